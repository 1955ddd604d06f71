"""The meaning of a box of a copy: every element, one by one. Passes and kernels are compared with it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from codegen.ir.buffers import Buffer
from codegen.ir.strided_box import Axis, Element, Side, StridedBox
from codegen.support.errors import KernelError

Bytes = NDArray[np.uint8]
Offsets = tuple[NDArray[np.int64], NDArray[np.int64]]


def box_of(
    digits: list[tuple[int, int, int]], width: int = 1, src: int = 0, dst: int = 0, *, fills: bool = False
) -> StridedBox:
    """A box with axes of (extent, source stride, destination stride) in bytes. Elements are integers."""
    element = Element(f"u{8 * width}", 8 * width)
    axes = tuple(Axis(f"d{k}", n, 0 if fills else s, d) for k, (n, s, d) in enumerate(digits))
    return StridedBox(axes, 0 if fills else src, dst, None if fills else element, element)


def visited(box: StridedBox) -> list[tuple[int, int]]:
    """Every (source, destination) offset, sorted."""
    return sorted(zip(offsets(box, "src"), offsets(box, "dst"), strict=True))


def offsets(box: StridedBox, side: Side) -> Iterator[int]:
    """The offset of each element on one side, in the order of the loops."""
    start = box.src if side == "src" else box.dst
    for index in product(*(range(axis.extent) for axis in box.axes)):
        yield start + sum(k * axis.stride(side) for k, axis in zip(index, box.axes, strict=True))


def copy_box(box: StridedBox, src: Buffer, dst: Buffer, fill: int = 0, tables: Offsets | None = None) -> None:
    """Move the elements of a box. `fill` is one element of padding, `tables` the offsets of all entries.

    Raises:
        KernelError: elements are converted, which tests compare with NumPy, or one is outside its storage.
    """
    if box.converts and not box.swap:
        raise KernelError("conversions are compared with NumPy")
    starts = zip(*(each.tolist() for each in tables), strict=True) if tables else [(0, 0)]
    for src_start, dst_start in starts:
        for at, to in zip(offsets(box, "src"), offsets(box, "dst"), strict=True):
            value = fill if box.source is None else src.read(src_start + at, box.source.bits)
            if box.swap:
                value = int.from_bytes(value.to_bytes(box.target.bits // 8, "little"), "big")
            elif box.source and box.target.bits == 1 < box.source.bits:
                value = int(value != 0)
            dst.write(dst_start + to, box.target.bits, value & (1 << box.target.bits) - 1)
