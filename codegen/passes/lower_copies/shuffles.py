"""Lower shuffles: registers of the destination from parts of the source whose bytes are reordered."""

from __future__ import annotations

from codegen.ir.building import least, let, loop, plus, times
from codegen.ir.index import index_symbol
from codegen.ir.lines import LANE_BYTES
from codegen.ir.nodes import Let, Statement, Store, View
from codegen.ir.values import Load, Local, Op
from codegen.passes.lower_copies.lowered import Lowered, Sides
from codegen.schedule.shuffles import PART_OFFSETS, PART_ORDERS, Shuffle


def lower_shuffle(shuffle: Shuffle, sides: Sides) -> Lowered:
    """Assemble each register of a block of periods from its parts.

    before:  dst <- shuffle src, registers of 2 parts, 4 periods together
    after:   for block in 0..blocks:
               step = min(block * block_steps, last_step)
               src_block = src + step * step_src; dst_block = dst + step * step_dst
               for register in 0..registers:
                 order_0 = byte_order(part_orders[4*register], part_orders[4*register + 1])
                 assembled_0 = shuffled(src_block[part_offsets[2*register]] [4, 16], order_0)
                 order_1 = byte_order(part_orders[4*register + 2], part_orders[4*register + 3])
                 assembled_1 = with_shuffled(assembled_0, src_block[part_offsets[2*register + 1]] [4, 16], …)
                 dst_block[min(16*register, last_register)] = assembled_1 [4, 16]

    The last register of a period overlaps the one before it, and so does the last block.
    """
    parts = tuple(statement for k in range(shuffle.parts) for statement in _part(shuffle, k))
    shape, steps = _rows(shuffle), _steps(shuffle, shuffle.dst_pitch)
    assembled = Local(f"assembled_{shuffle.parts - 1}", "bits8", shape)
    at = least(times("register", LANE_BYTES), shuffle.last_register)
    store = Store("dst_block", (at,), assembled, tuple(0 for _ in shape), steps)
    block = (
        let("step", least(times("block", shuffle.block_steps), shuffle.last_step)),
        View("src_block", sides.src, times("step", shuffle.step_src)),
        View("dst_block", sides.dst, times("step", shuffle.step_dst)),
        loop("register", 0, shuffle.registers, *parts, store),
    )
    ends = (0, shuffle.blocks) if sides.in_loops else ("begin", "end")
    what = f"dst[{{at}}, x] = src[{{at}}, x], x < {shuffle.last_register} + 16 bytes"
    how = f"{shuffle.parts} parts of 16 bytes each, at {PART_OFFSETS}, shuffled by {PART_ORDERS}"
    return Lowered((loop("block", *ends, *block),), what, how, axes=("block",))


def _part(shuffle: Shuffle, k: int) -> tuple[Statement, ...]:
    """Add the bytes of part k to those of the parts before it."""
    entry = plus(times("register", shuffle.parts), k)
    halves = [Load(PART_ORDERS, (plus(times(entry, 2), half),), "i64") for half in (0, 1)]
    order = Let(f"order_{k}", Op("byte_order", tuple(halves), "bits8", (LANE_BYTES,)))
    offset, shape = Let(f"offset_{k}", Load(PART_OFFSETS, (entry,), "i64")), _rows(shuffle)
    part = Load(
        "src_block",
        (index_symbol(offset.name),),
        "bits8",
        shape,
        tuple(0 for _ in shape),
        _steps(shuffle, shuffle.src_pitch),
    )
    operands = part, Local(order.name, "bits8", (LANE_BYTES,))
    if k == 0:
        shuffled = Op("shuffled", operands, "bits8", shape)
    else:
        before = Local(f"assembled_{k - 1}", "bits8", shape)
        shuffled = Op("with_shuffled", (before, *operands), "bits8", shape)
    return offset, order, Let(f"assembled_{k}", shuffled)


def _rows(shuffle: Shuffle) -> tuple[int, ...]:
    """A register of each period of a block."""
    return (LANE_BYTES,) if shuffle.together == 1 else (shuffle.together, LANE_BYTES)


def _steps(shuffle: Shuffle, pitch: int | str) -> tuple[int | str, ...]:
    """The bytes from lane to lane, and from period to period if there are several."""
    return (1,) if shuffle.together == 1 else (pitch, 1)
