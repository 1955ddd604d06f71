"""Request a line of the source for each line that leaves scratch: those that fill it next."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeGuard

from codegen.ir.building import Term, index_of, let, minus, plus, quotient, times
from codegen.ir.index import Index
from codegen.ir.integer_operators import floor_div
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Call, For, Let, Statement, View
from codegen.ir.rewriting import Body
from codegen.ir.values import Load
from codegen.passes.prefetch_bytes import with_requests
from codegen.passes.row_buffers import LINE
from codegen.passes.stage import columns_of
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.loops import int_size


def next_rows(nest: CopyNest, drain: For) -> Body:
    """The loop over staged parts of result rows, each line of which requests a line of the next tile.

    The elements of the next tile are counted by rows. Those of packed rows follow each other.

    before:  for column in 0..2: for line in head..stop step 64: out[line] = held[line] [64] @streamed
    after:   for column in 0..2: for line in head..stop step 64: out[line] = held[line] [64] @streamed
               prefetch next_tile[256*column + line - head]
    """
    assert nest.source is not None, "a tile has a source"
    (first, last), along = columns_of(nest), nest.loops[-2]
    rows, bits = int_size(nest.tiles(along.axis)[0].size), (nest.source.bits, nest.target.bits)
    element, columns = times(drain.index, rows), minus(last, first)
    if _bytes(columns, bits[0]) == index_of(along.src):
        return (_in_drain(drain, _bytes(element, bits[0]), bits),)
    number = let("element", element)
    row = let("later_row", quotient("element", "tile_columns"))
    column = let("later_column", minus("element", times("later_row", "tile_columns")))
    at, before = _bytes("later_column", bits[0]), [number, row, column]
    if along.src_table:
        entry = Load(along.table_name, (plus("next_row", "later_row"),), "i64")
        before.append(Let("later_row_offset", entry))
        at = plus("later_row_offset", at)
    else:
        at = plus(times("later_row", along.src), at)
    made = _in_drain(drain, at, bits, rows * bits[0] // 8)
    return let("tile_columns", columns), replace(made, body=(*before, *made.body))


def _bytes(count: Term, bits: int) -> Index:
    """The size of so many elements."""
    return times(count, bits // 8) if bits >= 8 else floor_div(times(count, bits), 8)


def is_drain(node: Statement) -> TypeGuard[For]:
    """Whether a statement is a loop over result rows that leave scratch: see `drained`."""
    match node:
        case For(body=(*_, For(index), _)):
            return index == LINE
    return False


def _in_drain(drain: For, at: Index, bits: tuple[int, int], size: int = 0) -> For:
    """A loop over parts of result rows that requests the lines of the next tile from an offset on.

    bits  of an element to request, and of one that is stored meanwhile
    size  bytes to request, which may touch one line more than the stores; 0 if the parts follow each other.
          Where they don't, the loop has no register to spare for an opaque address
    """
    *before, first, lines, last = drain.body
    assert isinstance(lines, For), "the lines of a row are a loop"
    wide, stored = bits

    def scaled(position: str) -> Index:
        return quotient(position, stored // wide) if stored > wide else times(position, wide // stored)

    def line(position: Index) -> Call:
        return Call("prefetch_line", (plus("next_lines", position),))

    view = View("next_lines", "next_tile", minus(at, scaled("head")), opaque=not size)
    requests = (line(plus(scaled(LINE), k * LINE_BYTES)) for k in range(max(wide // stored, 1)))
    end = (line(plus(scaled("head"), size - 1)),) if size else ()
    return replace(drain, body=(*before, view, first, with_requests(lines, *requests), *end, last))
