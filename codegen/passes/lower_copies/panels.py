"""Lower staged transposes: a tile goes through a panel in cache, from which full lines are streamed."""

from __future__ import annotations

from codegen.ir.building import compare, index_of, least, loop, minus, multiple, plus, rest, times
from codegen.ir.copies.nodes import COLUMN_TABLE, TransposeTiles
from codegen.ir.copies.tiles import PackedLines
from codegen.ir.index import FloorDiv
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Call, If, IndexValue, Let, Load, Statement, Store, View
from codegen.passes.lower_copies.blocks import transposed_block
from codegen.passes.lower_copies.lowered import text
from codegen.passes.lower_copies.runs import line


def lower_panel(t: TransposeTiles, dst: str, src: str) -> tuple[Statement, ...]:
    """One tile: blocks are transposed into the panel, then each result row goes out in lines.

    after:   for j in blocks, i in blocks:  panel[j, i] = transposed(src[i, j] [16, 16])
             for j in j_first..j_stop:
               for x in lines of row j:     dst[j, x] = panel[j, x] [64] @streamed; prefetch the next tile

    The bytes after the last line wait in front of the panel's row, for the lines of the next tile of rows.
    """
    first = Let("j_first", IndexValue(least("j_tile", minus(text(t.columns), t.block[1]))))
    return (first, _fill(t, src), *_drain(t, dst))


def _fill(t: TransposeTiles, src: str) -> Statement:
    """panel[j - j_first, i - i_tile] = src[i, j]; a last block begins earlier."""
    (rows, columns), pitch = t.block, t.panel_pitch
    i = Let("i", IndexValue(least("i_block", minus(text(t.rows), rows))))
    j = Let("j", IndexValue(least("j_block", minus("j_stop", columns))))
    block, value = transposed_block(t, src)
    into = View(
        "into", "panel", plus(times(minus("j", "j_first"), pitch), times(minus("i", "i_tile"), t.width))
    )
    store = Store("into", (index_of(0),), value, (0, 0), (pitch, t.width))
    body: tuple[Statement, ...] = (*block, into, store)
    if t.order == "rows":
        inner = loop("j_block", "j_first", "j_stop", j, *body, step=columns)
        return loop("i_block", "i_tile", "i_stop", i, inner, step=rows)
    inner = loop("i_block", "i_tile", "i_stop", i, *body, step=rows)
    return loop("j_block", "j_first", "j_stop", j, inner, step=columns)


def _drain(t: TransposeTiles, dst: str) -> tuple[Statement, ...]:
    """The lines of each result row, from byte `first` of the row to byte `last`, and its ends."""
    size = Let("row_bytes", IndexValue(times(minus("i_stop", "i_tile"), t.width)))
    n = minus("j", "j_first")
    ahead, request = _ahead(t)
    before = If(
        (compare("i_tile", "eq", 0),),
        (
            Let("first", IndexValue(least(rest(times("out", -1), LINE_BYTES), "row_bytes"))),
            Call("copy_part", ("out", "row", index_of("first"))),
        ),
        (Let("first", IndexValue(times(rest("out", LINE_BYTES), -1))),),
    )
    last = Let("last", IndexValue(plus("first", multiple(minus("row_bytes", "first"), LINE_BYTES))))
    lines = loop("x", "first", "last", line("out", "row", "x", stream=True), request, step=LINE_BYTES)
    end_of_request = Call("prefetch_line", (plus("ahead", t.tile[0] * t.width - 1),))
    end = minus("row_bytes", LINE_BYTES)
    kept = Store(
        "row",
        (index_of(-LINE_BYTES),),
        Load("row", (end,), "bits8", (LINE_BYTES,), (0,), (1,)),
        (0,),
        (1,),
    )
    ends = View("out_last", "out", index_of("last")), View("row_last", "row", index_of("last"))
    remaining = Call("copy_part", ("out_last", "row_last", minus("row_bytes", "last")))
    after = If((compare("i_stop", "lt", text(t.rows)),), (kept,), (*ends, remaining))
    row = View("row", "panel", times(n, t.panel_pitch))
    body = *_result_row(t, dst), row, before, last, *ahead, lines, end_of_request, after
    return size, loop("j", "j_first", "j_stop", *body)


def _result_row(t: TransposeTiles, dst: str) -> tuple[Statement, ...]:
    """The address of the tile's part of result row j."""
    within = times("i_tile", t.width)
    if isinstance(t.column_step, PackedLines):
        offset = Let("column_offset", Load(COLUMN_TABLE, (index_of("j"),), "i64"))
        return offset, View("out", dst, plus("column_offset", within))
    return (View("out", dst, plus(times("j", text(t.column_step)), within)),)


def _ahead(t: TransposeTiles) -> tuple[tuple[Statement, ...], Statement]:
    """For each line that goes out, request one of the next tile, whose elements are counted row by row."""
    rows, columns = t.tile
    number = Let("element", IndexValue(times(minus("j", "j_first"), rows)))
    row, column = FloorDiv(index_of("element"), columns), rest("element", columns)
    request = Call("prefetch_line", (plus("ahead", minus("x", "first")),))
    if isinstance(t.row_step, PackedLines):
        offset = Let("ahead_offset", Load("row_offsets", (plus("next_i", row),), "i64"))
        view = View("ahead", "next_tile", plus("ahead_offset", times(column, t.width)))
        return (number, offset, view), request
    step = times(row, text(t.row_step))
    return (number, View("ahead", "next_tile", plus(step, times(column, t.width)))), request
