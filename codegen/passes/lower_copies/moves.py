"""Lower moves to scalar loops, as the copy defines them; later passes obey the directives."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import index_of, let, loop, plus, rest, times
from codegen.ir.element_types import dtype_of
from codegen.ir.index import Affine, Index, index_symbol
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Call, Let, Statement, Store, View
from codegen.ir.strided_box import Side
from codegen.ir.values import Load, Local, Op, Value
from codegen.passes.lower_copies.blocks import block_of, converted_rows
from codegen.passes.lower_copies.lowered import FILL, Lowered, Sides, converted, moved_element
from codegen.passes.lower_copies.short_rows import OTHERS_OFFSET
from codegen.passes.lower_copies.super_vectors import line_of, super_vector
from codegen.schedule.directives import Groups, LanesBeyond, Table, Vectorize
from codegen.schedule.offset_tables import GROUP_COUNT, GROUP_TABLE, LINE_TABLE
from codegen.schedule.transfer_loops import Loop
from codegen.schedule.transfers import Moves, offset_tables

WORD_BITS = 64
"""LLVM does not vectorize loops over wider elements."""


def lower_moves(moves: Moves, sides: Sides) -> Lowered:
    """The scalar loops of elements that are moved, converted or filled with padding.

    before:  for column in columns: for row in 2:  dst[4*column + 2*row] = src[2*column + row_src*row], u16
    after:   for column in 0..column_extent: for row in 0..2:
               dst[4*column + 2*row] = src[2*column + row_src*row]

    Several loops without super-vectors move elements by their addresses: LLVM would vectorize them at a loss.
    """
    loops = moves.loops[len(moves.around) :]
    if sides.in_bits:
        body = _packed(moves, sides)
    elif (moves.copies and not moves.requests) or moves.fills or moves.convert:
        body = _element(moves, inner_sides(moves, sides))
    else:  # a byte of codes, or a byte that is requested
        loops, (body, _) = moves.loops[:1], super_vector(moves, sides, 1)
    for x in reversed(loops):
        body = (loop(x.axis, 0, x.extent, *body),)
    for _ in moves.obeying(Groups):
        body = (loop("group", 0, GROUP_COUNT, *_group(sides), *body),)
    if moves.around:
        body = (*_tile_views(moves, sides), *body)
    for x in reversed(moves.around):
        body = (loop(x.axis, 0, x.extent, *body),)
    unit = "bits" if sides.in_bits else "bytes"
    how = ", ".join(map(str, moves.directives)) or f"Element by element, strides in {unit}"
    chunks = any(x.src_table for x in moves.loops) and not moves.order
    is_opaque = moves.goes_back or (moves.stream and chunks)
    what = _what(moves).replace("{at}", "{at}group, ") if moves.obeying(Groups) else _what(moves)
    before = converted_rows(block_of(moves)) if moves.order else ()
    return Lowered(body, what, how, before, opaque=is_opaque, shared=moves.shared)


def inner_sides(moves: Moves, sides: Sides) -> Sides:
    """Both sides inside all loops around those that run as super-vectors."""
    inside = "at" if moves.obeying(Groups) else "tile" if moves.around else ""
    return replace(sides, dst=f"dst_{inside}", src=f"src_{inside}") if inside else sides


def _tile_views(moves: Moves, sides: Sides) -> tuple[Statement, ...]:
    """Both sides at this iteration of the loops around; blocks that read lanes test the source offset."""
    to, at = (plus(*(times(x.axis, x.stride(side)) for x in moves.around)) for side in ("dst", "src"))
    before: tuple[Statement, ...] = ()
    if moves.obeying(LanesBeyond):
        before, at = (let(OTHERS_OFFSET, at),), index_of(OTHERS_OFFSET)
    views = View("src_tile", sides.src, at, opaque=True), View("dst_tile", sides.dst, to, opaque=True)
    return (*before, *views)


def _group(sides: Sides) -> tuple[Statement, ...]:
    """The views of a group on both sides."""
    return (
        Let("group_src", Load(GROUP_TABLE, (times("group", 2),), "i64")),
        Let("group_dst", Load(GROUP_TABLE, (plus(times("group", 2), 1),), "i64")),
        View("src_at", sides.src, index_symbol("group_src")),
        View("dst_at", sides.dst, index_symbol("group_dst")),
    )


def offset(moves: Moves, side: Side) -> Index:
    """The offset of an element on a side."""
    loops = moves.loops[len(moves.around) :]
    return plus(*(_entry(x) if x.table(side) else times(x.axis, x.stride(side)) for x in loops))


def _entry(x: Loop) -> str:
    """The local that holds the entry of an iteration in its table."""
    return f"{x.axis}_offset"


def element_by_address(moves: Moves, sides: Sides) -> tuple[Statement, ...]:
    """An element that LLVM does not vectorize with others."""
    width, before = moves.target.bits // 8, _entries(moves)
    to, at = offset(moves, "dst"), offset(moves, "src")
    for table in moves.obeying(Table):
        position = to if table.side == "dst" else at
        before += [line_of(position), Let("line_offset", Load(LINE_TABLE, (index_symbol("line"),), "i64"))]
        within = plus("line_offset", rest(position, LINE_BYTES))
        to, at = (within, at) if table.side == "dst" else (to, within)
    return *before, *moved_element(width, sides.dst, to, sides.src, at)


def _entries(moves: Moves) -> list[Statement]:
    """The entries of the tables of loops."""
    tables = (x for x in moves.loops if x.src_table or x.dst_table)
    return [Let(_entry(x), Load(x.table_name, (index_symbol(x.axis),), "i64")) for x in tables]


def _element(moves: Moves, sides: Sides) -> tuple[Statement, ...]:
    """The innermost statement."""
    to, width = offset(moves, "dst"), moves.target.bits // 8
    if moves.source is None:
        fill = Call("fill_part", ("dst_x", index_of(width), *map(index_symbol, FILL)))
        return View("dst_x", sides.dst, to), fill
    is_vector = bool(moves.obeying(Vectorize)) and (moves.convert is not None or not offset_tables(moves))
    if not is_vector and (len(moves.loops) > 1 or moves.source.bits > WORD_BITS or offset_tables(moves)):
        return element_by_address(moves, sides)
    value = converted(moves.convert, Load(sides.src, (offset(moves, "src"),), f"bits{moves.source.bits}"))
    return *_entries(moves), Store(sides.dst, (to,), value)


def _packed(moves: Moves, sides: Sides) -> tuple[Statement, ...]:
    """An element at a bit address; one side or both are packed."""
    to, at, bits = offset(moves, "dst"), offset(moves, "src"), moves.target.bits
    views: tuple[Statement, ...] = ()
    dst, src = sides.dst, sides.src
    if bits >= 8:
        views, dst, to = (View("dst_x", dst, to, in_bytes=True),), "dst_x", Affine()
    if moves.source is None and bits >= 8:
        return *views, Call("fill_part", (dst, index_of(bits // 8), *map(index_symbol, FILL)))
    value: Value = Local("fill_low", "i64")
    if moves.source:
        if moves.source.bits >= 8:
            views, src, at = (*views, View("src_x", src, at, in_bytes=True)), "src_x", Affine()
        value = Load(src, (at,), f"bits{moves.source.bits}")
    if value.dtype != f"bits{bits}":
        value = Op("cast", (value,), f"bits{bits}")
    return *views, Store(dst, (to,), value)


def _what(moves: Moves) -> str:
    """What moves, for readers: dst[{at}column, row] = src[{at}row, column], column < n, row < 2, u16."""
    ranges = "".join(f", {x.axis} < {x.extent}" for x in moves.loops[len(moves.around) :])
    if moves.requests:
        return f"src[{{at}}{_indices(moves, 'src')}]{ranges}"
    return f"dst[{{at}}{_indices(moves, 'dst')}] = {_value(moves)}{ranges}, {moves.target.name}"


def _value(moves: Moves) -> str:
    """The value of an element, for readers: bf16(f32 src[…])."""
    if moves.source is None:
        return "padding"
    element = f"src[{{at}}{_indices(moves, 'src')}]"
    match moves.convert:
        case (source, _) if source.startswith("swap "):
            return f"swap_{moves.source.bits}({element})"
        case (source, target):
            return f"{dtype_of(target)}({dtype_of(source)} {element})"
    bits = moves.target.bits
    return element if bits == moves.source.bits else f"bits{bits}({element})"


def _indices(moves: Moves, side: Side) -> str:
    """The indices of an element on a side, those with the smallest literal strides last."""

    def stride(x: Loop) -> int:
        step = x.stride(side)
        return step if isinstance(step, int) and not x.table(side) else 1 << 62

    def index(x: Loop) -> str:
        if x.table(side):
            return f"{x.table_name}[{x.axis}]"
        return f"{'-' * (stride(x) < 0)}{x.axis}"

    return ", ".join(map(index, sorted(moves.loops, key=lambda x: -abs(stride(x)))))
