"""Assemble rows of a copy from parts of the source whose bytes are reordered."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import index_of, least, let, loop, minus, plus, quotient, times
from codegen.ir.index import Affine, Index, index_symbol
from codegen.ir.integer_operators import number_in
from codegen.ir.lines import LANE_BYTES
from codegen.ir.nodes import For, Function, Let, Statement, Store, View
from codegen.ir.rewriting import Body, rewrite_body
from codegen.ir.values import Load, Local, Op, VectorShape
from codegen.passes.loop_bounds import ends
from codegen.passes.sides import sides_of
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import Assemble
from codegen.schedule.loops import Size
from codegen.schedule.offset_tables import PART_OFFSETS, PART_ORDERS


def assemble_rows(function: Function, nest: CopyNest) -> Function:
    """Assemble several rows at once, the same register of each at a time.

    before:  for step in 0..step_extent: for x in 0..x_extent:
               dst[step_dst*step + x] = src[step_src*step + x_offsets[x]]
    after:   for block in 0..blocks:              Assemble("step", rows=4, steps, register=16, parts=2)
               step = min(block * 4*steps, step_extent - 4*steps)
               src_block = src + step * step_src; dst_block = dst + step * step_dst
               for register in 0..registers:
                 order_0 = part_orders[4*register] [2]
                 assembled_0 = shuffled(src_block[part_offsets[2*register]] [4, 16], order_0)
                 order_1 = part_orders[4*register + 2] [2]
                 assembled_1 = with_shuffled(assembled_0, src_block[part_offsets[2*register + 1]] [4, 16], …)
                 dst_block[min(16*register, row_bytes - 16)] = assembled_1 [4, 16]

    The last register of a row overlaps the one before it, and so do the last rows.
    """
    (how,) = nest.obeying(Assemble)

    def assembled(node: Statement) -> Body:
        if isinstance(node, For) and node.index == how.axis:
            return _blocks(nest, how, *ends(node))
        return (node,)

    return replace(function, body=rewrite_body(function.body, assembled))


def _blocks(nest: CopyNest, how: Assemble, first: Index, last: Index) -> Body:
    """The loop over blocks of rows from one step to another, after the sizes that all of them share."""
    sides, (step, *inside), before = sides_of(nest), nest.loops, list[Statement]()

    def size(name: str, value: Index) -> Size:
        """A number, or a name for a size that is known at run time."""
        if (number := number_in(value)) is not None:
            return number
        before.append(let(name, value))
        return name

    if not isinstance(first, Affine):
        first = index_of(size(f"{step.axis}_start", first))
    if not isinstance(last, Affine):
        last = index_of(size(f"{step.axis}_stop", last))
    rows = index_of(how.steps)
    block_steps = size("block_steps", times(rows, how.rows))
    row_bytes = size("row_bytes", times(rows, inside[0].extent) if inside else rows)
    src_pitch, dst_pitch = size("src_pitch", times(rows, step.src)), size("dst_pitch", times(rows, step.dst))
    registers = quotient(plus(row_bytes, how.register - 1), how.register)
    at = least(times("register", how.register), minus(row_bytes, how.register))
    lanes = _lanes(how, how.register, dst_pitch)
    store = Store("dst_block", (at,), Local(f"assembled_{how.parts - 1}", "bits8", lanes[0]), *lanes[1:])
    parts = tuple(statement for k in range(how.parts) for statement in _part(nest, how, k, src_pitch))
    block = (
        let(step.axis, least(plus(first, times("block", block_steps)), minus(last, block_steps))),
        View("src_block", sides.src, times(step.axis, step.src)),
        View("dst_block", sides.dst, times(step.axis, step.dst)),
        loop("register", 0, registers, *parts, store),
    )
    blocks = quotient(plus(minus(last, first), block_steps, -1), block_steps)
    return *before, loop("block", 0, blocks, *block)


def _part(nest: CopyNest, how: Assemble, k: int, pitch: Size) -> Body:
    """Add the bytes of part k to those of the parts before it; rows are `pitch` apart in the source."""
    entry, numbers = plus(times("register", how.parts), k), how.register // 8
    offset = Let(f"offset_{k}", Load(PART_OFFSETS, (entry,), "i64"))
    order = Let(f"order_{k}", Load(PART_ORDERS, (times(entry, numbers),), "bits64", (numbers,), (0,), (1,)))
    part = Load("src_block", (index_symbol(offset.name),), "bits8", *_lanes(how, LANE_BYTES, pitch))
    operands, shape = (part, Local(order.name, "bits64", (numbers,))), (*part.shape[:-1], how.register)
    value = Op("shuffled", operands, "bits8", shape)
    if k:
        value = Op("with_shuffled", (Local(f"assembled_{k - 1}", "bits8", shape), *operands), "bits8", shape)
    return offset, order, Let(f"assembled_{k}", value)


def _lanes(how: Assemble, size: int, pitch: Size) -> tuple[VectorShape, tuple[int, ...], tuple[Size, ...]]:
    """The shape of `size` bytes of each row, the subscripts along which it varies, and the steps."""
    return ((size,), (0,), (1,)) if how.rows == 1 else ((how.rows, size), (0, 0), (pitch, 1))
