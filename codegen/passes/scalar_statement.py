"""The statement of a copy: one element that is moved, converted or filled with padding."""

from __future__ import annotations

from codegen.ir.building import index_of, loop, plus, rest, times
from codegen.ir.index import Affine, Index, index_symbol
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Call, Let, Statement, Store, View
from codegen.ir.rewriting import Body
from codegen.ir.strided_box import Side
from codegen.ir.values import Load, Local, Op, Value
from codegen.passes.sides import FILL, Sides, converted, moved_element, viewed
from codegen.passes.super_vectors import line_of, super_vector
from codegen.schedule.copy_nest import CopyNest, offset_tables
from codegen.schedule.directives import Table, Vectorize
from codegen.schedule.loops import Loop
from codegen.schedule.offset_tables import LINE_TABLE

WORD_BITS = 64
"""LLVM does not vectorize loops over wider elements."""


def offset(nest: CopyNest, side: Side) -> Index:
    """The offset of an element on a side."""
    loops = nest.loops[len(viewed(nest)) :]
    return plus(*(_entry(x) if x.table(side) else times(x.axis, x.stride(side)) for x in loops))


def _entry(x: Loop) -> str:
    """The local that holds the entry of an iteration in its table."""
    return f"{x.axis}_offset"


def element_by_address(nest: CopyNest, sides: Sides) -> Body:
    """An element that LLVM does not vectorize with others."""
    width, before = nest.target.bits // 8, _entries(nest)
    to, at = offset(nest, "dst"), offset(nest, "src")
    for table in nest.obeying(Table):
        position = to if table.side == "dst" else at
        before += [line_of(position), Let("line_offset", Load(LINE_TABLE, (index_symbol("line"),), "i64"))]
        within = plus("line_offset", rest(position, LINE_BYTES))
        to, at = (within, at) if table.side == "dst" else (to, within)
    return *before, *moved_element(width, sides.dst, to, sides.src, at)


def _entries(nest: CopyNest) -> list[Statement]:
    """The entries of the tables of loops."""
    tables = (x for x in nest.loops if x.src_table or x.dst_table)
    return [Let(_entry(x), Load(x.table_name, (index_symbol(x.axis),), "i64")) for x in tables]


def inner_loops(nest: CopyNest, sides: Sides) -> Body:
    """The statement, and the inner loops around it that view neither side."""
    loops, body = nest.loops[len(viewed(nest)) :], scalar_statement(nest, sides)
    is_code = nest.unit_bits == 8 and not (nest.copies or nest.fills or nest.convert)
    if nest.requests or is_code:  # a byte
        loops, (body, _) = nest.loops[:1], super_vector(nest, sides, 1)
    for x in reversed(loops):
        body = (loop(x.axis, 0, x.extent, *body),)
    return body


def scalar_statement(nest: CopyNest, sides: Sides) -> Body:
    """The innermost statement: dst[4*column + 2*row] = src[2*column + row_src*row]

    Several loops without super-vectors move elements by their addresses: LLVM would vectorize them at a loss.
    """
    if nest.unit_bits == 1:
        return _packed(nest, sides)
    to, width = offset(nest, "dst"), nest.target.bits // 8
    if nest.source is None:
        fill = Call("fill_part", ("dst_x", index_of(width), *map(index_symbol, FILL)))
        return View("dst_x", sides.dst, to), fill
    is_vector = bool(nest.obeying(Vectorize)) and (nest.convert is not None or not offset_tables(nest))
    if not is_vector and (len(nest.loops) > 1 or nest.source.bits > WORD_BITS or offset_tables(nest)):
        return element_by_address(nest, sides)
    value = converted(nest.convert, Load(sides.src, (offset(nest, "src"),), f"bits{nest.source.bits}"))
    return *_entries(nest), Store(sides.dst, (to,), value)


def _packed(nest: CopyNest, sides: Sides) -> Body:
    """An element at a bit address; one side or both are packed."""
    to, at, bits = offset(nest, "dst"), offset(nest, "src"), nest.target.bits
    views: tuple[Statement, ...] = ()
    dst, src = sides.dst, sides.src
    if bits >= 8:
        views, dst, to = (View("dst_x", dst, to, in_bytes=True),), "dst_x", Affine()
    if nest.source is None and bits >= 8:
        return *views, Call("fill_part", (dst, index_of(bits // 8), *map(index_symbol, FILL)))
    value: Value = Local("fill_low", "i64")
    if nest.source:
        if nest.source.bits >= 8:
            views, src, at = (*views, View("src_x", src, at, in_bytes=True)), "src_x", Affine()
        value = Load(src, (at,), f"bits{nest.source.bits}")
    if value.dtype != f"bits{bits}":
        value = Op("cast", (value,), f"bits{bits}")
    return *views, Store(dst, (to,), value)
