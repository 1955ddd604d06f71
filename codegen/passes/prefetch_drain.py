"""Request a line of the source for each line that leaves scratch: those that fill it next."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeGuard

from codegen.ir.building import let, minus, plus, quotient, rest, times
from codegen.ir.index import Index, index_symbol
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Call, For, Function, Let, Statement, View
from codegen.ir.rewriting import Body, rewrite_body
from codegen.ir.values import Load
from codegen.passes.prefetch_bytes import with_requests
from codegen.passes.row_buffers import LINE
from codegen.passes.stage_tiles import columns_of
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import Prefetch
from codegen.schedule.loops import int_size
from codegen.schedule.offset_tables import CHUNK_BYTES


def prefetch_chunk(function: Function, nest: CopyNest, how: Prefetch) -> Function:
    """Request the next chunk of packed rows while the rows of this one leave scratch.

    before:  for row in 0..2: for line in head..stop step 64: dst_row[line] = held[line] [64] @streamed
    after:   for row in 0..2: for line in head..stop step 64: dst_row[line] = held[line] [64] @streamed
               prefetch src_chunk[8*chunk_rows + 256*row + line - head]
    """
    long, short = nest.loops
    packed, rows = int_size(long.src), nest.lanes[short.axis]
    lines = packed // (nest.target.bits // 8)  # of CHUNK_BYTES that the next chunk reads
    row = index_symbol(short.axis) if lines == rows else rest(short.axis, lines)
    at = plus(times("chunk_rows", packed), times(row, CHUNK_BYTES))

    def requested(node: Statement) -> Body:
        return (_in_drain(node, "src_chunk", at),) if is_drain(node) else (node,)

    return replace(function, body=rewrite_body(function.body, requested))


def next_rows(nest: CopyNest, drain: For) -> Body:
    """The loop over staged parts of result rows, each line of which requests a line of the next tile.

    The elements of the next tile are counted by rows.
    """
    assert nest.source is not None, "a transpose reads its source"
    (first, last), rows = columns_of(nest), int_size(nest.tiles("row")[0].size)
    widths = (nest.source.bits // 8, nest.target.bits // 8)
    along, source_width = nest.axis("row"), widths[0]
    number = let("element", times("run", rows))
    row = let("later_row", quotient("element", "tile_columns"))
    column = let("later_column", minus("element", times("later_row", "tile_columns")))
    at, before = times("later_column", source_width), [number, row, column]
    if along.src_table:
        entry = Load(along.table_name, (plus("next_row", "later_row"),), "i64")
        before.append(Let("later_row_offset", entry))
        at = plus("later_row_offset", at)
    else:
        at = plus(times("later_row", along.src), at)
    made = _in_drain(drain, "next_tile", at, widths, rows * source_width)
    return let("tile_columns", minus(last, first)), replace(made, body=(*before, *made.body))


def is_drain(node: Statement) -> TypeGuard[For]:
    """Whether a statement is a loop over result rows that leave scratch: see `drained`."""
    match node:
        case For(body=(*_, For(index), _)):
            return index == LINE
    return False


def _in_drain(drain: For, source: str, at: Index, ratio: tuple[int, int] = (1, 1), size: int = 0) -> For:
    """A loop over result rows that requests the lines of `source` from an offset on.

    ratio  (bytes to request, bytes stored meanwhile)
    size   bytes to request, which may touch one line more than the stores; 0 if the lines match. Where they
           don't, the loop has no register to spare for an opaque address
    """
    *before, first, lines, last = drain.body
    assert isinstance(lines, For), "the lines of a row are a loop"
    wide, stored = ratio

    def scaled(position: str) -> Index:
        return quotient(position, stored // wide) if stored > wide else times(position, wide // stored)

    def line(position: Index) -> Call:
        return Call("prefetch_line", (plus("next_lines", position),))

    view = View("next_lines", source, minus(at, scaled("head")), opaque=not size)
    requests = (line(plus(scaled(LINE), k * LINE_BYTES)) for k in range(max(wide // stored, 1)))
    end = (line(plus(scaled("head"), size - 1)),) if size else ()
    body = *before, view, first, with_requests(lines, *requests), *end, last
    return replace(drain, body=body)
