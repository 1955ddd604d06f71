"""Lower shuffles: registers of the destination from parts of the source whose bytes are reordered."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import least, let, loop, plus, times
from codegen.ir.index import index_symbol
from codegen.ir.lines import LANE_BYTES
from codegen.ir.nodes import Let, Prefetch, Statement, Store, View
from codegen.ir.values import Load, Local, Op
from codegen.passes.lower_copies.lowered import Lowered, Sides
from codegen.schedule.shuffles import PART_OFFSETS, PART_ORDERS, Shuffle


def lower_shuffle(shuffle: Shuffle, sides: Sides) -> Lowered:
    """Assemble each register of a block of periods from its parts.

    before:  dst <- shuffle src, registers of 16 bytes, 2 parts each, 4 periods together
    after:   for block in 0..blocks:
               step = min(block * block_steps, last_step)
               src_block = src + step * step_src; dst_block = dst + step * step_dst
               for register in 0..registers:
                 order_0 = part_orders[4*register] [2]
                 assembled_0 = shuffled(src_block[part_offsets[2*register]] [4, 16], order_0)
                 order_1 = part_orders[4*register + 2] [2]
                 assembled_1 = with_shuffled(assembled_0, src_block[part_offsets[2*register + 1]] [4, 16], …)
                 dst_block[min(16*register, last_register)] = assembled_1 [4, 16]

    The last register of a period overlaps the one before it, and so does the last block. If the schedule says
    so, each part is followed by a prefetch of src_block[part_offsets[…] + ahead].
    """
    parts = tuple(statement for k in range(shuffle.parts) for statement in _part(shuffle, k))
    shape, steps = _rows(shuffle, shuffle.register), _steps(shuffle, shuffle.dst_pitch)
    assembled = Local(f"assembled_{shuffle.parts - 1}", "bits8", shape)
    at = least(times("register", shuffle.register), shuffle.last_register)
    store = Store("dst_block", (at,), assembled, tuple(0 for _ in shape), steps)
    block = (
        let("step", least(times("block", shuffle.block_steps), shuffle.last_step)),
        View("src_block", sides.src, times("step", shuffle.step_src)),
        View("dst_block", sides.dst, times("step", shuffle.step_dst)),
        loop("register", 0, shuffle.registers, *parts, store),
    )
    ends = (0, shuffle.blocks) if sides.in_loops else ("begin", "end")
    what = f"dst[{{at}}x] = src[{{at}}x], x < {shuffle.last_register} + {shuffle.register} bytes"
    how = f"{shuffle.parts} parts of 16 bytes per register, at {PART_OFFSETS}, shuffled by {PART_ORDERS}"
    return Lowered((loop("block", *ends, *block),), what, how, axes=("block",))


def _part(shuffle: Shuffle, k: int) -> tuple[Statement, ...]:
    """Add the bytes of part k to those of the parts before it."""
    entry, numbers = plus(times("register", shuffle.parts), k), shuffle.register // 8
    listed = Load(PART_ORDERS, (times(entry, numbers),), "bits64", (numbers,), (0,), (1,))
    order = Let(f"order_{k}", listed)
    offset, shape = Let(f"offset_{k}", Load(PART_OFFSETS, (entry,), "i64")), _rows(shuffle, LANE_BYTES)
    assembled = _rows(shuffle, shuffle.register)
    part = Load(
        "src_block",
        (index_symbol(offset.name),),
        "bits8",
        shape,
        tuple(0 for _ in shape),
        _steps(shuffle, shuffle.src_pitch),
    )
    operands = part, Local(order.name, "bits64", (numbers,))
    if k == 0:
        shuffled = Op("shuffled", operands, "bits8", assembled)
    else:
        before = Local(f"assembled_{k - 1}", "bits8", assembled)
        shuffled = Op("with_shuffled", (before, *operands), "bits8", assembled)
    assemble = Let(f"assembled_{k}", shuffled)
    if not shuffle.ahead:
        return offset, order, assemble
    return offset, order, assemble, Prefetch(replace(part, subscripts=(plus(offset.name, shuffle.ahead),)))


def _rows(shuffle: Shuffle, size: int) -> tuple[int, ...]:
    """The shape of `size` bytes of each period of a block."""
    return (size,) if shuffle.together == 1 else (shuffle.together, size)


def _steps(shuffle: Shuffle, pitch: int | str) -> tuple[int | str, ...]:
    """The bytes from lane to lane, and from period to period if there are several."""
    return (1,) if shuffle.together == 1 else (pitch, 1)
