"""Calculations with shapes and strides: the bytes an array reaches, shared memory, and broadcasting."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from codegen import BOUND_BY_MEMORY, TRANSPOSES

OVERLAP_WORK: Any = 1000  # Any: the stubs of NumPy before 2.5 accept only 0 and -1
"""The most candidates that the exact test for shared memory examines."""


def span(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """The bytes that an array may access, [low, stop) from its first element; (0, 0) without elements.

    (3, 5), (20, 4), 4 -> (0, 60)    (5,), (-4,), 4 -> (-16, 4)
    """
    if 0 in shape:
        return 0, 0
    reaches = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    return sum(r for r in reaches if r < 0), sum(r for r in reaches if r > 0) + itemsize


def c_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides of a new array in C order.

    (3, 5), 4 -> (20, 4)    (3, 0, 2), 4 -> (8, 8, 4)
    """
    strides = [itemsize]
    for n in reversed(shape[1:]):
        strides.append(strides[-1] * max(n, 1))
    return tuple(reversed(strides[: len(shape)]))


def order_of(x: NDArray[Any]) -> Literal["C", "F", ""]:
    """Return "C" if elements are contiguous along the last dimension, "F" if along the first, else ""."""
    if not x.ndim or x.strides[-1] == x.itemsize:
        return "C"
    return "F" if x.strides[0] == x.itemsize else ""


def minor_axis(shape: tuple[int, ...], strides: tuple[int, ...]) -> int | None:
    """The axis whose elements are closest; None without an axis of several elements.

    (3, 5), (20, 4) -> 1    (3, 1), (20, 4) -> 0
    """
    axes = [(abs(s), -k) for k, (n, s) in enumerate(zip(shape, strides, strict=True)) if n > 1 and s]
    return -min(axes)[1] if axes else None


def slowness_of_copy(dst_axis: int | None, src_axis: int | None) -> int:
    """A factor for the cost of a copy whose sides have these minor axes; None for unknown ones."""
    return BOUND_BY_MEMORY if dst_axis == src_axis or None in (dst_axis, src_axis) else TRANSPOSES


class ArrayLayout:
    """Shape, strides and dtype of an array, and the bytes from its first element that it may access."""

    __slots__ = ("dtype", "low", "shape", "stop", "strides")

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.low, self.stop = span(shape, strides, dtype.itemsize)

    @property
    def minor_axis(self) -> int | None:
        """The axis whose elements are closest."""
        return minor_axis(self.shape, self.strides)

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)} with strides {self.strides}"

    def difference(self, array: NDArray[Any]) -> str:
        """How the array differs from this layout, or "" if the difference does not matter."""
        if array.shape != self.shape:
            return f"has shape {array.shape}, not {self.shape}"
        if array.dtype != self.dtype:
            return f"is {array.dtype}, not {self.dtype}"
        walked = zip(array.shape, array.strides, self.strides, strict=True)
        if array.size and any(a != b for n, a, b in walked if n > 1):
            return f"has strides {array.strides}, not {self.strides}"
        return ""


def broadcast_strides(
    have: tuple[int, ...], strides: tuple[int, ...], want: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Strides of an array broadcast to a shape as in NumPy assignment, or None if it does not broadcast.

    (5, 1), (4, 4), (3, 5, 2) -> (0, 4, 0)    (1, 5), (20, 4), (5,) -> (4,)
    """
    surplus = max(0, len(have) - len(want))
    if any(n != 1 for n in have[:surplus]):
        return None
    have, strides = have[surplus:], strides[surplus:]
    missing = len(want) - len(have)
    if any(n not in (1, wanted) for n, wanted in zip(have, want[missing:], strict=True)):
        return None
    return (0,) * missing + tuple(s if n != 1 else 0 for n, s in zip(have, strides, strict=True))


def overlaps_itself(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Whether elements of such an array may share bytes; never False if they do.

    (3, 5), (20, 4), 4 -> False    (3, 5), (0, 4), 4 -> True    (3, 5), (4, 4), 4 -> True
    """
    if 0 in shape:
        return False
    reach = itemsize
    for stride, extent in sorted((abs(s), n) for s, n in zip(strides, shape, strict=True) if n > 1):
        if stride < reach:
            return True
        reach += stride * (extent - 1)
    return False


def share_memory(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Whether the arrays share a byte; also True if the test is too expensive."""
    try:
        return np.shares_memory(first, second, OVERLAP_WORK)
    except np.exceptions.TooHardError:
        return True


def without_overlap(dst: Any, src: Any) -> Any:
    """Return the source, or a copy of it if NumPy's assignment would read elements it has written.

    NumPy copies an overlapping source first, with two exceptions: a single element, and a one-dimensional
    destination. For the latter it looks for a safe direction; with two different strides there may be none.
    """
    if not (isinstance(dst, np.ndarray) and isinstance(src, np.ndarray)):
        return src
    if src.size != 1 and (dst.ndim != 1 or (src.strides == dst.strides and src.dtype is dst.dtype)):
        return src
    return src.copy() if dst is not src and np.may_share_memory(dst, src) else src
