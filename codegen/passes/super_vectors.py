"""The statements of a copy that move a super-vector of elements, or the few that are left."""

from __future__ import annotations

from math import gcd, prod

from codegen.ir.building import index_of, let, plus, quotient, times
from codegen.ir.index import Affine, Index, index_symbol
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Call, Let, Store, View
from codegen.ir.rewriting import Body
from codegen.ir.strided_box import SIDES, Side
from codegen.ir.values import Each, Entries, Load, Local, Op, Step
from codegen.passes.lane_orders import Lane, Moved, Placed, placed, reordered
from codegen.passes.sides import FILL, Sides, converted, named
from codegen.passes.tails import LEFT
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import Table, Vectorize
from codegen.schedule.loops import Loop, int_size
from codegen.schedule.offset_tables import LINE_TABLE

PATTERN = Local("pattern", "bits8", (LINE_BYTES,))
"""A line of padding."""


def super_vector(nest: CopyNest, sides: Sides, count: int) -> tuple[Body, bool]:
    """`count` iterations of the first loop with all of the others, and whether lanes after them are stored.

    block = src[2*column] [2, 32]; dst[4*column] = interleaved(block) [64]
    block = src[2*x] [128];        dst[x] = packed_4(block) [64]

    Lines that have a table are the rows of a super-vector:

    line = column // 16; block = src[2*column] [2, 32]; dst[line_offsets[line..]] = interleaved(block) [2, 32]
    """
    long, *_ = nest.loops
    if nest.requests:
        return (Call("prefetch_line", (plus(sides.src, times(long.axis, long.src)),)),), False
    to = times(long.axis, long.dst)
    if nest.source is None:
        return (Store(sides.dst, (to,), PATTERN, (0,), (1,)),), False
    if min(nest.target.bits, nest.source.bits) < 8:
        return _codes(nest, sides, count), False
    found = reordered(_lanes(nest, count), nest.source.bits // 8, nest.target.bits // 8)
    for table in nest.obeying(Table):
        return _at_lines(nest, sides, table.side, found), False
    value = converted(nest.convert, _load(nest, sides, found.load, f"bits{nest.source.bits}"))
    to = plus(to, found.store.first)
    if isinstance(value, Load) and not found.instructions:
        return (Store(sides.dst, (to,), value, *_dimensions(found.store)),), False
    block = Let("block", value)
    moved: Local | Op = named(block.name, value)
    for name, shape in found.instructions:
        moved = Op(name, (moved,), moved.dtype, shape)
    return (block, Store(sides.dst, (to,), moved, *_dimensions(found.store))), found.beyond


def _at_lines(nest: CopyNest, sides: Sides, side: Side, found: Moved) -> Body:
    """A super-vector of which a side has its lines at the offsets of a table."""
    (long, short), width = nest.loops, nest.target.bits // 8
    shape = int_size(short.extent), LINE_BYTES // width
    at_lines = Placed(shape, (Entries(LINE_TABLE, index_symbol("line")), width), 0, ())
    load, store = (at_lines, found.store) if side == "src" else (found.load, at_lines)
    to, at = (index_of(0) if side == each else times(long.axis, long.stride(each)) for each in SIDES[::-1])
    dtype, (name, _) = f"bits{8 * width}", found.instructions[0]
    block = Let("block", Load(sides.src, (at,), dtype, shape, *_dimensions(load)))
    moved = Op(name, (Local("block", dtype, shape),), dtype, shape)
    line = line_of(times(long.axis, long.stride(side)))
    return line, block, Store(sides.dst, (to,), moved, *_dimensions(store))


def line_of(position: Index) -> Let:
    """The number of the line that holds a byte of the side whose lines are at the offsets of a table.

    4*column // 64 -> column // 16
    """
    assert isinstance(position, Affine), "the packed side has literal strides"
    common = gcd(LINE_BYTES, position.constant, *(factor for _, factor in position.terms))
    fewer = Affine(position.constant // common, tuple((x, factor // common) for x, factor in position.terms))
    return let("line", quotient(fewer, LINE_BYTES // common) if common < LINE_BYTES else fewer)


def few_bytes(nest: CopyNest, sides: Sides) -> Body:
    """The iterations that are `left`, by an instruction for any number of bytes."""
    long, *_ = nest.loops
    to, at, left = times(long.axis, long.dst), times(long.axis, long.src), index_symbol(LEFT)
    if nest.source is None:
        return View("tail", sides.dst, to), Call("fill_part", ("tail", left, *map(index_symbol, FILL)))
    bits = min(nest.target.bits, nest.source.bits)
    name = "copy_part"
    if bits < 8:
        name = f"pack_part_{bits}" if nest.target.bits == bits else f"unpack_part_{bits}"
    ends = View(f"{sides.dst}_at", sides.dst, to), View(f"{sides.src}_at", sides.src, at)
    return *ends, Call(name, (ends[0].name, ends[1].name, left))


def _codes(nest: CopyNest, sides: Sides, count: int) -> Body:
    """Codes that are packed into bytes, or unpacked: contiguous ones, or rows of them."""
    assert nest.source is not None, "codes are read"
    packs, bits = nest.target.bits < 8, min(nest.target.bits, nest.source.bits)
    long, *_ = nest.loops
    lanes = tuple(x for x in _lanes(nest, count) if x.lanes > 1)
    loose = next(placed(lanes, "src" if packs else "dst", 1))
    if loose.first:  # codes that go backward are rows of one
        (lane,) = lanes
        loose = Placed((lane.lanes, 1), (lane.src if packs else lane.dst, 1), 0, ())
    packed = Placed((prod(loose.shape) * bits // 8,), (1,), 0, ())
    name = f"packed_{bits}" if packs else f"unpacked_{bits}"
    if len(loose.shape) > 1:
        name = f"{name}_from_rows" if packs else f"{name}_into_{loose.shape[0]}_rows"
        pitch, step = loose.steps
        assert isinstance(pitch, int | str), "rows are steps apart"
        loose = loose._replace(steps=(Each(pitch), step))
    read, write = (loose, packed) if packs else (packed, loose)
    block = Op(name, (_load(nest, sides, read, "bits8"),), "bits8", write.shape)
    store = Store(sides.dst, (times(long.axis, long.dst),), named("block", block), *_dimensions(write))
    return Let("block", block), store


def _lanes(nest: CopyNest, count: int) -> tuple[Lane, ...]:
    """The vector dimensions with `count` lanes in the first one."""
    (vectors,) = nest.obeying(Vectorize)
    counts = {**dict(vectors.lanes), nest.loops[0].axis: count}
    return tuple(Lane(counts[x.axis], _source_step(x), x.dst) for x in nest.loops)


def _source_step(x: Loop) -> Step:
    """The distance from lane to lane in the source."""
    return Entries(x.table_name, index_symbol(x.axis)) if x.src_table else x.src


def _load(nest: CopyNest, sides: Sides, read: Placed, dtype: str) -> Load:
    long, *_ = nest.loops
    at: Index = plus(times(long.axis, long.src), read.first)
    return Load(sides.src, (at,), dtype, read.shape, *_dimensions(read))


def _dimensions(found: Placed) -> tuple[tuple[int, ...], tuple[Step, ...]]:
    """The subscripts along which the dimensions of a super-vector vary, and their steps."""
    return (0,) * len(found.shape), found.steps
