"""Requests for the source of the next tile while a staged tile is stored, row by row of the source."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import Term, compare, index_of, let, loop, minus, plus, quotient, times
from codegen.ir.index import Affine
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Call, Carried, For, If, Let, Statement, View
from codegen.ir.rewriting import Body
from codegen.ir.values import IndexValue, Load, Local, Op, Value
from codegen.passes.row_buffers import Ahead, prefetch_in_drain
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import PrefetchTile
from codegen.schedule.loops import int_size


def requesting_runs(nest: CopyNest, runs: For) -> Body:
    """The loop over the runs of a tile, which requests some lines of the next one for each line stored.

    before:  for run in 0..runs: for x in first..last step 64: dst[run, x] = staged[run, x] [64]
    after:   for run in 0..runs: for x in first..last step 64: dst[run, x] = staged[run, x] [64]
               for request in 0..requests:
                 prefetch next_tile[ahead_start + ahead_x]
                 ahead_x = ahead_x + 64, or the beginning of the next row of the source
    """
    if not nest.obeying(PrefetchTile):
        return (runs,)
    (ahead,), (first, last) = nest.obeying(PrefetchTile), columns_of(nest)
    assert ahead.lines is not None, "tiles of complete rows request a number of lines"
    requests = _carrying(loop("request", 0, ahead.lines, *_request(nest)), nest, updates=True)
    body = (
        _carrying(replace(x, body=(*x.body, requests)), nest) if isinstance(x, For) else x for x in runs.body
    )
    row = times(minus(last, first), nest.axis("column").src)
    stop = let("ahead_stop", plus(row, LINE_BYTES - 1))
    return stop, _carrying(replace(runs, body=tuple(body)), nest, starts=True)


def before_requests(nest: CopyNest) -> Body:
    """What the requests of `requesting_rows` share."""
    first, last = columns_of(nest)
    return (let("tile_columns", minus(last, first)),) if nest.obeying(PrefetchTile) else ()


def requesting_rows(nest: CopyNest, drained: Body) -> Body:
    """The drain of one long result row, each line of which requests a line of the next tile.

    The elements of the next tile are counted by rows.
    """
    if not nest.obeying(PrefetchTile):
        return drained
    assert nest.source is not None, "a transpose reads its source"
    widths, rows = (nest.source.bits // 8, nest.target.bits // 8), int_size(nest.tiles("row")[0].size)
    along, source_width = nest.axis("row"), widths[0]
    number = let("element", times(minus("column", "column_first"), rows))
    row = let("ahead_row", quotient("element", "tile_columns"))
    column = let("ahead_column", minus("element", times("ahead_row", "tile_columns")))
    at, before = times("ahead_column", source_width), [number, row, column]
    if along.src_table:
        entry = Load(along.table_name, (plus("next_row", "ahead_row"),), "i64")
        before.append(Let("ahead_offset", entry))
        at = plus("ahead_offset", at)
    else:
        at = plus(times("ahead_row", along.src), at)
    ahead = Ahead("next_tile", at, widths, rows * source_width, opaque=False)
    return (*before, *prefetch_in_drain(drained, ahead))


def _request(nest: CopyNest) -> tuple[Statement, ...]:
    """Request the line at ahead_x of the source row that starts at ahead_start, and advance to the next line.

    The end of a source row is a branch, which is predicted. Selects would make requests wait for each other.
    """
    ahead = View("ahead", "next_tile", plus("ahead_start", "ahead_x"))
    names = ["ahead_x", "ahead_row", "ahead_start", *(["ahead_layer"] if nest.tiles("layer") else [])]
    stay: tuple[Statement, ...] = tuple(
        let(f"later_{name[6:]}", plus(name, LINE_BYTES if name == "ahead_x" else 0)) for name in names
    )
    row = plus("ahead_row", 1)
    start = Load(nest.axis("row").table_name, (index_of("later_row"),), "i64")
    move: tuple[Statement, ...] = (
        let("later_x", Affine()),
        Let("later_row", _if_less(row, nest.axis("row").extent, row, 0)),
    )
    if not nest.tiles("layer"):
        move = (*move, Let("later_start", start))
    else:
        layer = _if_less(0, "later_row", "ahead_layer", plus("ahead_layer", 1))
        at = plus("later_offset", times("later_layer", nest.axis("layer").src))
        lets = Let("later_layer", layer), Let("later_offset", start), let("later_start", at)
        move = (*move, *lets)
    within = compare(plus("ahead_x", LINE_BYTES), "lt", "ahead_stop")
    return ahead, Call("prefetch_line", (index_of("ahead"),)), If((within,), stay, move)


def _carrying(each: For, nest: CopyNest, *, starts: bool = False, updates: bool = False) -> For:
    """The loop, which carries the position of the next request from iteration to iteration."""
    zero = IndexValue(Affine())
    first: dict[str, Value] = {
        "ahead_x": zero,
        "ahead_row": zero,
        "ahead_start": Load(nest.axis("row").table_name, (Affine(),), "i64"),
    }
    if nest.tiles("layer"):
        first["ahead_layer"] = zero
    own = {name: Local(name, "i64") for name in first}
    later = {name: Local(f"later_{name[6:]}", "i64") for name in first}
    carried = tuple(
        Carried(name, start if starts else own[name], (later if updates else own)[name])
        for name, start in first.items()
    )
    return replace(each, carried=carried)


def _if_less(a: Term, b: Term, then: Term, otherwise: Term) -> Value:
    """then if a < b else otherwise"""
    values = [IndexValue(index_of(x)) for x in (a, b, then, otherwise)]
    return Op("select", (Op("lt", tuple(values[:2]), "i1"), *values[2:]), "i64")


def columns_of(nest: CopyNest) -> tuple[Term, Term]:
    """The first column of a tile, and the one after its last; a last block begins earlier."""
    if nest.short:
        return 0, nest.axis("column").extent
    return "column_first", "column_stop"
