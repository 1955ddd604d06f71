"""Shuffles: periods of the destination, assembled from parts of the source whose bytes are reordered.

A period is a run of the destination that repeats: its bytes lie at the same distances in the source each
time. It is written by registers of 16 or 64 bytes, the last of which ends with the period. A register is
assembled from parts of 16 source bytes. The tables, which all periods share, say where each part begins and
which of its bytes go where.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from codegen.ir.lines import LANE_BYTES
from codegen.ir.strided_box import StridedBox
from codegen.schedule.directives import Assemble
from codegen.schedule.loops import int_size
from codegen.schedule.offset_tables import OffsetTable

PARTS = 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16
"""How many parts a register may have; each number is a kernel of its own."""

NOT_COPIED = 0x80
"""The entry of an order for a byte that another part has."""


def part_tables(
    box: StridedBox, period: tuple[str, ...], step: tuple[str, ...], assemble: Assemble
) -> tuple[OffsetTable, OffsetTable]:
    """The tables of the parts of a period; parts that no register needs copy nothing.

    period  axes along which the destination is contiguous, most minor first; a period has all of them
    step    the axis of which each period has some steps; () if the periods are not in a row
    """
    begins, orders = register_parts(
        period_offsets(box, period, step, int_size(assemble.steps)), assemble.register
    )
    more = assemble.parts - begins.shape[1]
    begins = np.pad(begins, ((0, 0), (0, more)), mode="edge")
    orders = np.pad(orders, ((0, 0), (0, more), (0, 0)), constant_values=NOT_COPIED)
    numbers = begins.ravel().tolist(), orders.ravel().view("<i8").tolist()
    return OffsetTable(listed=tuple(numbers[0])), OffsetTable(listed=tuple(numbers[1]))


def period_offsets(
    box: StridedBox, period: tuple[str, ...], step: tuple[str, ...] = (), steps: int = 1
) -> NDArray[np.int64]:
    """The distance in the source of each byte of a period from its first byte."""
    offsets = np.arange(box.width)
    digits = [(n, src) for n, src, _ in box.digits(period)]
    digits += [(steps, box.axis(name).src) for name in step]
    for extent, stride in digits:
        offsets = (np.arange(extent)[:, None] * stride + offsets[None, :]).ravel()
    return offsets


def register_parts(
    offsets: NDArray[np.int64], register: int = LANE_BYTES
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Where parts of registers begin, [registers, parts], and their orders, [registers, parts, bytes].

    offsets   as from `period_offsets`: at least a register of them, and 16 or more apart
    register  bytes per register

    A part begins at the first byte that no part before it has, unless it would then leave the bytes that the
    period reads. Parts that a register does not need copy nothing.
    """
    registers = -(-len(offsets) // register)
    starts = np.minimum(np.arange(registers) * register, len(offsets) - register)
    bytes_of = offsets[starts[:, None] + np.arange(register)]
    latest, missing = offsets.max() - (LANE_BYTES - 1), np.ones(bytes_of.shape, bool)
    begins: list[NDArray[np.int64]] = []
    orders: list[NDArray[np.uint8]] = []
    while missing.any():
        first = np.where(missing, bytes_of, np.iinfo(np.int64).max).min(axis=1)
        begin = np.minimum(first, latest)
        if begins:
            begin = np.where(missing.any(axis=1), begin, begins[0])
        distances = bytes_of - begin[:, None]
        has = missing & (distances < LANE_BYTES)
        orders.append(np.where(has, distances, NOT_COPIED).astype(np.uint8))
        begins.append(begin)
        missing &= ~has
    return np.stack(begins, axis=1), np.stack(orders, axis=1)
