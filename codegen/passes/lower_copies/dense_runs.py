"""Lower the second half of a transpose of short result rows: the panel leaves as runs of full lines."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import (
    Term,
    compare,
    index_of,
    least,
    let,
    loop,
    minus,
    multiple,
    plus,
    quotient,
    rest,
    times,
)
from codegen.ir.index import Affine
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Call, Carried, For, If, IndexValue, Let, Load, Local, Op, Statement, Value, View
from codegen.passes.lower_copies.runs import line
from codegen.schedule.offset_tables import OffsetTable
from codegen.schedule.transfers import ROW_TABLE, RUN_OFFSETS, RUN_PANEL_OFFSETS, TransposeRuns


def run_sizes(t: TransposeRuns) -> tuple[Statement, ...]:
    """The sizes of the panel's runs: how many columns, and how many bytes of one layer and of all."""
    few = least(t.run_columns, minus("j_stop", "j_first"))
    size = "layer_bytes" if t.layers != 1 else "run_bytes"
    out: list[Statement] = [
        let("run_columns", few),
        let(size, times("run_columns", "row_bytes")),
    ]
    if t.layers != 1:
        out.append(let("run_bytes", times("layers", "layer_bytes")))
    return tuple(out)


def layer_stride(t: TransposeRuns) -> int | str:
    """The source bytes from layer to layer."""
    return next(x.src for x in t.loops if x.axis == "layers")


def drain_panel(t: TransposeRuns) -> tuple[Statement, ...]:
    """All runs of the panel, and requests for the next panel, row by row of its source.

    after:   for run in 0..runs:
               for x in lines of the run:  dst[run, x] = panel[run, x] [64]; prefetch the next panel
    """
    columns = minus("j_stop", "j_first")
    sizes = (
        let("runs", quotient(columns, "run_columns")),
        let("ahead_stop", plus(times(columns, t.source_width), LINE_BYTES - 1)),
    )
    runs = loop("run", 0, "runs", *_place(t), *_run(t))
    return *sizes, _carrying(runs, t, starts=True)


def _place(t: TransposeRuns) -> tuple[Statement, ...]:
    """Where a run begins: in the destination `out`, and in the panel `row`."""
    if t.run_offsets is not None:
        tables = {"out_offset": RUN_OFFSETS, "row_offset": RUN_PANEL_OFFSETS}
        loads = (Let(name, Load(table, (index_of("run"),), "i64")) for name, table in tables.items())
        views = View("out", "dst_tile", index_of("out_offset")), View("row", "panel", index_of("row_offset"))
        return *loads, *views
    if isinstance(t.column_step, OffsetTable) or isinstance(t.panel_step, OffsetTable):
        raise AssertionError("without a table of runs, columns are steps apart")
    column = let("column", times("run", "run_columns"))
    out = View("out", "dst_tile", times(plus("j_first", "column"), t.column_step))
    return column, out, View("row", "panel", times("column", t.panel_step))


def _run(t: TransposeRuns) -> tuple[Statement, ...]:
    """The bytes of a run before its first full line, the lines, and the bytes after them."""
    requests = _carrying(loop("request", 0, t.requests, *_request(t)), t, updates=True)
    lines = loop("x", "first", "last", line("out", "row", "x", stream=t.stream), requests, step=LINE_BYTES)
    return (
        let("first", least(rest(times("out", -1), LINE_BYTES), "run_bytes")),
        let("last", plus("first", multiple(minus("run_bytes", "first"), LINE_BYTES))),
        Call("drain_part", ("out", "row", index_of("first"))),
        _carrying(lines, t),
        View("out_last", "out", index_of("last")),
        View("row_last", "row", index_of("last")),
        Call("drain_part", ("out_last", "row_last", minus("run_bytes", "last"))),
    )


def _request(t: TransposeRuns) -> tuple[Statement, ...]:
    """Request the line at ahead_x of the source row that starts at ahead_start; the place of the next one.

    The rest of a source row is a branch, which is predicted. Selects would make requests wait for each other.
    """
    ahead = View("ahead", "next_tile", plus("ahead_start", "ahead_x"))
    names = ["ahead_x", "ahead_row", "ahead_start", *(["ahead_layer"] if t.layers != 1 else [])]
    stay: tuple[Statement, ...] = tuple(
        let(f"later_{name[6:]}", plus(name, LINE_BYTES if name == "ahead_x" else 0)) for name in names
    )
    row = plus("ahead_row", 1)
    start = Load(ROW_TABLE, (index_of("later_row"),), "i64")
    move: tuple[Statement, ...] = (
        let("later_x", Affine()),
        Let("later_row", if_less(row, t.rows, row, 0)),
    )
    if t.layers == 1:
        move = (*move, Let("later_start", start))
    else:
        layer = if_less(0, "later_row", "ahead_layer", plus("ahead_layer", 1))
        at = plus("later_offset", times("later_layer", layer_stride(t)))
        lets = Let("later_layer", layer), Let("later_offset", start), let("later_start", at)
        move = (*move, *lets)
    within = compare(plus("ahead_x", LINE_BYTES), "lt", "ahead_stop")
    return ahead, Call("prefetch_line", (index_of("ahead"),)), If((within,), stay, move)


def _carrying(each: For, t: TransposeRuns, *, starts: bool = False, updates: bool = False) -> For:
    """The loop, from one iteration of which to the next the place of the next request moves on."""
    zero = IndexValue(Affine())
    first: dict[str, Value] = {
        "ahead_x": zero,
        "ahead_row": zero,
        "ahead_start": Load(ROW_TABLE, (Affine(),), "i64"),
    }
    if t.layers != 1:
        first["ahead_layer"] = zero
    own = {name: Local(name, "i64") for name in first}
    later = {name: Local(f"later_{name[6:]}", "i64") for name in first}
    carried = tuple(
        Carried(name, start if starts else own[name], (later if updates else own)[name])
        for name, start in first.items()
    )
    return replace(each, carried=carried)


def if_less(a: Term, b: Term, then: Term, otherwise: Term) -> Value:
    """then if a < b else otherwise"""
    values = [IndexValue(index_of(x)) for x in (a, b, then, otherwise)]
    return Op("select", (Op("lt", tuple(values[:2]), "i1"), *values[2:]), "i64")
