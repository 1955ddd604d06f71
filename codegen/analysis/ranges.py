"""Ranges of numbers, and of the offsets of a copy on each side, proven inside the buffers before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from codegen.ir.index import Affine
from codegen.support.errors import KernelError

Range: TypeAlias = tuple[int, int]
"""The least and the largest number; the first is larger if there is none."""

Ends: TypeAlias = tuple[int | None, int | None]
"""The same, None where it is unknown."""


def is_empty(ends: Ends) -> bool:
    """Whether a range has no numbers."""
    low, high = ends
    return low is not None and high is not None and low > high


def range_in(expression: Affine, ranges: Mapping[str, Ends]) -> Ends:
    """The range of an expression by the ranges of its symbols."""
    low: int | None = expression.constant
    high: int | None = expression.constant
    for name, c in expression.terms:
        least, most = ranges[name]
        if c < 0:
            least, most = most, least
        low = None if low is None or least is None else low + c * least
        high = None if high is None or most is None else high + c * most
    return low, high


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
