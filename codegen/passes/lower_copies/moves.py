"""Lower moves to scalar loops, as the copy defines them; later passes obey the directives."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import index_of, loop, plus, rest, times
from codegen.ir.element_types import dtype_of
from codegen.ir.index import Affine, Index, index_symbol
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Call, Let, Statement, Store, View
from codegen.ir.strided_box import Side
from codegen.ir.values import Load, Local, Op, Value
from codegen.passes.lower_copies.lowered import FILL, Lowered, Sides, converted, moved_element
from codegen.passes.lower_copies.super_vectors import line_of, super_vector
from codegen.schedule.directives import Groups, Table, Vectorize
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
    loops = moves.loops
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
    unit = "bits" if sides.in_bits else "bytes"
    how = ", ".join(map(str, moves.directives)) or f"Element by element, strides in {unit}"
    is_opaque = moves.goes_back or (moves.stream and any(x.table for x in moves.loops))
    what = _what(moves).replace("{at}", "{at}group, ") if moves.obeying(Groups) else _what(moves)
    return Lowered(body, what, how, opaque=is_opaque)


def inner_sides(moves: Moves, sides: Sides) -> Sides:
    """Both sides inside the loop over groups, if there is one."""
    return replace(sides, dst="dst_at", src="src_at") if moves.obeying(Groups) else sides


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
    entries = (_entry(x) for x in moves.loops if x.table and side == "src")
    return plus(*(times(x.axis, x.stride(side)) for x in moves.loops), *entries)


def _entry(x: Loop) -> str:
    """The local that holds the source offset of an iteration."""
    return f"{x.axis}_offset"


def element_by_address(moves: Moves, sides: Sides) -> tuple[Statement, ...]:
    """An element that LLVM does not vectorize with others."""
    width, tables = moves.target.bits // 8, (x for x in moves.loops if x.table)
    before = [Let(_entry(x), Load(LINE_TABLE, (index_symbol(x.axis),), "i64")) for x in tables]
    to, at = offset(moves, "dst"), offset(moves, "src")
    for table in moves.obeying(Table):
        position = to if table.side == "dst" else at
        before += [line_of(position), Let("line_offset", Load(LINE_TABLE, (index_symbol("line"),), "i64"))]
        within = plus("line_offset", rest(position, LINE_BYTES))
        to, at = (within, at) if table.side == "dst" else (to, within)
    return *before, *moved_element(width, sides.dst, to, sides.src, at)


def _element(moves: Moves, sides: Sides) -> tuple[Statement, ...]:
    """The innermost statement."""
    to, width = offset(moves, "dst"), moves.target.bits // 8
    if moves.source is None:
        fill = Call("fill_part", ("dst_x", index_of(width), *map(index_symbol, FILL)))
        return View("dst_x", sides.dst, to), fill
    is_vector = bool(moves.obeying(Vectorize)) and not offset_tables(moves)
    if not is_vector and (len(moves.loops) > 1 or moves.source.bits > WORD_BITS or offset_tables(moves)):
        return element_by_address(moves, sides)
    value = converted(moves.convert, Load(sides.src, (offset(moves, "src"),), f"bits{moves.source.bits}"))
    return (Store(sides.dst, (to,), value),)


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
    ranges = "".join(f", {x.axis} < {x.extent}" for x in moves.loops)
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
        return step if isinstance(step, int) else 1 << 62

    def index(x: Loop) -> str:
        if x.table and side == "src":
            return f"{LINE_TABLE}[{x.axis}]"
        return f"{'-' * (stride(x) < 0)}{x.axis}"

    return ", ".join(map(index, sorted(moves.loops, key=lambda x: -abs(stride(x)))))
