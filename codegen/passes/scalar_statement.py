"""The statement of a copy: one element that is moved, converted or filled with padding."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import index_of, loop, plus, times
from codegen.ir.element_types import bits_of, dtype_of
from codegen.ir.index import Affine, Index, index_symbol
from codegen.ir.instructions import conversion
from codegen.ir.nodes import Call, Let, Statement, Store, View
from codegen.ir.rewriting import Body, rewrite_body
from codegen.ir.strided_box import Element, Side
from codegen.ir.values import Load, Local, Op, Value
from codegen.passes.sides import FILL, Sides, viewed
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import Table, Vectorize
from codegen.schedule.loops import Loop
from codegen.schedule.offset_tables import LINE_TABLE

WORD_BITS = 64
"""LLVM does not vectorize loops over wider elements."""


def inner_loops(nest: CopyNest, sides: Sides) -> Body:
    """The statement, and the inner loops around it that view neither side."""
    body = scalar_statement(nest, sides)
    for x in reversed(nest.loops[len(viewed(nest)) :]):
        body = (loop(x.axis, 0, x.extent, *body),)
    return body


def scalar_statement(nest: CopyNest, sides: Sides) -> Body:
    """The innermost statement: dst[4*column + 2*row] = src[2*column + row_src*row]

    Several loops without super-vectors move elements by their addresses: LLVM would vectorize them at a loss.
    """
    (to_entries, to), (at_entries, at) = _offset(nest, "dst"), _offset(nest, "src")
    before = to_entries + at_entries
    if nest.requests:
        return (Call("prefetch_line", (plus(sides.src, at),)),)
    if nest.source is None and nest.target.bits >= 8:
        width = index_of(nest.target.bits // 8)
        view = View("dst_x", sides.dst, to, unit_bits=0 if nest.unit_bits == 8 else 8)
        return view, Call("fill_part", ("dst_x", width, *map(index_symbol, FILL)))
    if nest.source is None or min(nest.target.bits, nest.source.bits) < 8:
        return _packed(nest, sides, to, at)
    for table in nest.obeying(Table):
        view = View(f"{table.side}_lines", getattr(sides, table.side), Affine(), lines=LINE_TABLE)
        before, sides = [*before, view], replace(sides, **{table.side: view.name})
    element = Load(sides.src, (at,), f"bits{nest.source.bits}")
    store = Store(sides.dst, (to,), _converted(nest.convert, element))
    is_wide = len(nest.loops) > 1 or nest.source.bits > WORD_BITS or before
    by_address = is_wide and not nest.obeying(Vectorize)
    return *before, *(moved_by_address((store,)) if by_address else (store,))


def _offset(nest: CopyNest, side: Side) -> tuple[list[Statement], Index]:
    """The entries of tables that an element has on a side, and its offset there."""
    parts = [offset_along(x, side, x.axis) for x in nest.loops[len(viewed(nest)) :]]
    return [entry for entries, _ in parts for entry in entries], plus(*(offset for _, offset in parts))


def offset_along(x: Loop, side: Side, index: str) -> tuple[Body, Index]:
    """The entry of an iteration, if a side has a table of them, and the offset of the iteration there."""
    if not x.table(side):
        return (), times(index, x.stride(side))
    entry = Let(f"{x.axis}_offset", Load(x.table_name, (index_symbol(index),), "i64"))
    return (entry,), index_symbol(entry.name)


def _converted(convert: tuple[str, str] | None, element: Load) -> Load | Op:
    """An element as the destination holds it: converted if necessary, and typed as bits.

    (f32, bf16)   src[x] of bits32 -> convert_f32_to_bf16(src[x]) of bits16
    """
    if convert is None:
        return element
    return Op(conversion(*convert).name, (element,), f"bits{bits_of(dtype_of(convert[1]))}")


def _packed(nest: CopyNest, sides: Sides, to: Index, at: Index) -> Body:
    """An element of which one side or both are packed: dst_x[4*code] = bits4(src[2*x + code])"""
    before, dst, to = _in_units(nest, "dst", sides.dst, to, nest.target)
    value: Value = Local("fill_low", "i64")
    if nest.source:
        viewed_too, src, at = _in_units(nest, "src", sides.src, at, nest.source)
        before, value = (*before, *viewed_too), Load(src, (at,), f"bits{nest.source.bits}")
    if value.dtype != f"bits{nest.target.bits}":
        value = Op("cast", (value,), f"bits{nest.target.bits}")
    return *before, Store(dst, (to,), value)


def _in_units(
    nest: CopyNest, side: Side, name: str, offset: Index, element: Element
) -> tuple[Body, str, Index]:
    """A side and the offset of an element in bits if it is packed, else in bytes.

    In nests that count bytes, packed elements follow each other along the last loop.
    """
    unit_bits = 1 if element.bits < 8 else 8
    if unit_bits == nest.unit_bits:
        return (), name, offset
    within = times(nest.loops[-1].axis, element.bits) if unit_bits == 1 else Affine()
    return (View(f"{side}_x", name, offset, unit_bits=unit_bits),), f"{side}_x", within


def moved_by_address(body: Body) -> Body:
    """A body whose elements move by their addresses, so that LLVM does not vectorize it.

    It would collect addresses in registers and extract them one by one, which takes up to 2.7 times as long.

    before:  dst[4*column + 2*row] = src[2*column + row_src*row]
    after:   to = dst + 4*column + 2*row; at = opaque(src + 2*column + row_src*row); to[0] = at[0]
    """

    def by_address(node: Statement) -> Body:
        match node:
            case Store(dst, (to,), Load(src, (at,), shape=()) as element):
                move = replace(element, array="at", subscripts=(Affine(),))
                store = replace(node, array="to", subscripts=(Affine(),), value=move)
                return View("to", dst, to), View("at", src, at, opaque=True), store
        return (node,)

    return rewrite_body(body, by_address)
