"""From which sizes on copies are ours to make: NumPy has made a smaller one before ours is looked up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Sizes:
    """The thresholds of calls, not of kernels; `accelerate(smallest=...)` sets the first."""

    small_elements: int = 1 << 13
    """Below this number of elements NumPy copies."""
    small_run_bytes: int = 1 << 20
    """Below this NumPy's own copy of one contiguous stretch to another is as fast as memory."""


SIZES = Sizes()
