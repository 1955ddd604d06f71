"""The offset ranges of a copy on each side, proven inside the buffers before it runs."""

from __future__ import annotations

from codegen.support.errors import KernelError


def affine_range(base: int, digits: list[tuple[int, int]]) -> tuple[int, int]:
    """The lowest and the highest offset of a product of strided digits."""
    low = base + sum(min(0, (n - 1) * s) for n, s in digits)
    high = base + sum(max(0, (n - 1) * s) for n, s in digits)
    return low, high


def check_range(side: str, low: int, stop: int, bounds: tuple[int, int]) -> None:
    """Invariant 3: [low, stop) lies within the bounds."""
    if low < bounds[0] or stop > bounds[1]:
        raise KernelError(
            f"verify: the {side} is touched at {low} to {stop - 1}, but it has {bounds[0]} to {bounds[1] - 1}"
        )


def check_disjoint(src: tuple[int, int], dst: tuple[int, int]) -> None:
    """Invariant 6: the address ranges of source and destination do not overlap."""
    if src[0] < dst[1] and dst[0] < src[1]:
        raise KernelError(f"verify: source {src[0]:#x}..{src[1]:#x} and destination {dst[0]:#x} overlap")
