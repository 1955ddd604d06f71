"""From which sizes on copies are ours to make: NumPy has made a smaller one before ours is looked up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Sizes:
    """The thresholds of calls, not of kernels; `accelerate(smallest=...)` sets the first."""

    small_elements: int = 1 << 13
    """Below this number of elements NumPy copies."""
    small_run_bytes: int = 8 << 20
    """Below this NumPy copies long rows, and contiguous arrays to each other, as fast as we do."""
    long_row_bytes: int = 256
    """What a long row is: NumPy copies each by one call of memcpy."""
    part_bytes: int = 1 << 15
    """Of many arrays that are joined, each has as many bytes on the average, or NumPy joins them."""
    aligned_bytes: int = 1 << 18
    """From this size on fresh results start a cache line; below, their memory is NumPy's own."""


SIZES = Sizes()
