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
from codegen.schedule.offset_tables import OffsetTable
from codegen.schedule.transfer_loops import Size
from codegen.support.dataclasses import dataclass

PARTS = 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16
"""How many parts a register may have; each number is a kernel of its own."""

NOT_COPIED = 0x80
"""The entry of an order for a byte that another part has."""

PART_OFFSETS, PART_ORDERS = "part_offsets", "part_orders"
"""The arguments of a kernel: where the parts of each register begin, and the orders of their bytes."""


@dataclass(frozen=True, slots=True)
class ShuffleSchedule:
    """How a copy is shuffled.

    period    axes along which the destination is contiguous, most minor first; a period has all of them
    axis      the axis of which each period has `steps`; "" if the periods are not in a row
    steps     indices of `axis` per period
    together  periods that are assembled with the same orders at a time
    parts     parts per register
    register  bytes per register
    ahead     each part prefetches the line this many bytes after it; 0 for none
    """

    period: tuple[str, ...]
    axis: str
    steps: int
    together: int
    parts: int
    register: int = LANE_BYTES
    ahead: int = 0

    def __str__(self) -> str:
        digits = " ".join(self.period), f"{self.steps} of {self.axis}" if self.axis else ""
        period = " and ".join(filter(None, digits))
        long = "" if self.register == LANE_BYTES else f" per {self.register} bytes"
        ahead = f", {self.ahead} bytes ahead" if self.ahead else ""
        return f"periods of {period} | {self.together} together, {self.parts} parts each{long}{ahead}"


@dataclass(frozen=True, slots=True)
class Shuffle:
    """Assemble periods of the destination from shuffled parts of the source, `together` at a time.

    These are a block. Each of `blocks` begins `block_steps` indices of the axis after the previous one; the
    last one begins at index `last_step`, so that it ends with the axis. `step_src` and `step_dst` are the
    bytes from index to index, `src_pitch` and `dst_pitch` those from period to period.

    A period has `registers` of `register` bytes, the last of which begins at byte `last_register`. For each,
    `offsets` holds `parts` offsets, and `orders` as many orders of its bytes, 8 bytes per number. Each part
    prefetches the line `ahead` bytes after it, if that is not 0.
    """

    register: int
    ahead: int
    parts: int
    together: int
    registers: Size
    last_register: Size
    blocks: Size
    block_steps: Size
    last_step: Size
    step_src: Size
    step_dst: Size
    src_pitch: Size
    dst_pitch: Size
    offsets: OffsetTable
    orders: OffsetTable

    @property
    def stream(self) -> bool:
        """Registers are stored through the cache."""
        return False


def period_offsets(box: StridedBox, period: tuple[str, ...], axis: str, steps: int) -> NDArray[np.int64]:
    """The distance in the source of each byte of a period from its first byte."""
    offsets = np.arange(box.width)
    digits = [(n, src) for n, src, _ in box.digits(period)]
    digits += [(steps, box.axis(axis).src)] if axis else []
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
