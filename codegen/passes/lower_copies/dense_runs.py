"""Lower the second half of a transpose of short result rows: the panel leaves as runs of full lines."""

from __future__ import annotations

from codegen.ir.building import (
    Term,
    index_of,
    least,
    let,
    loop,
    minus,
    plus,
    quotient,
    times,
)
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Blocks, Call, Let, Narrow, Statement, View
from codegen.ir.streams import Stream
from codegen.ir.values import IndexValue, Load, Op, Value
from codegen.passes.lower_copies.runs import line
from codegen.schedule.offset_tables import OffsetTable
from codegen.schedule.transfers import RUN_OFFSETS, RUN_PANEL_OFFSETS
from codegen.schedule.transposes import TransposeRuns
from codegen.support.lookups import expect


def run_sizes(t: TransposeRuns) -> tuple[Statement, ...]:
    """The sizes of the panel's runs: how many columns, and how many bytes of one layer and of all."""
    few = least(t.run_columns, minus("column_stop", "column_first"))
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
    return expect((x.src for x in t.loops if x.axis == "layers"), "a loop over layers", t.loops)


def drain_panel(t: TransposeRuns) -> tuple[Statement, ...]:
    """All runs of the panel.

    after:   for run in 0..runs:
               for x in lines of the run:  dst[run, x] = panel[run, x] [64]
    """
    runs = let("runs", quotient(minus("column_stop", "column_first"), "run_columns"))
    return runs, loop("run", 0, "runs", *_run_begins(t), *_run(t), blocks=Blocks(ahead="runs"))


def _run_begins(t: TransposeRuns) -> tuple[Statement, ...]:
    """Where a run begins: in the destination `out`, and in the panel `row`."""
    if t.run_offsets is not None:
        tables = {"out_offset": RUN_OFFSETS, "row_offset": RUN_PANEL_OFFSETS}
        loads = (Let(name, Load(table, (index_of("run"),), "i64")) for name, table in tables.items())
        views = View("out", "dst_tile", index_of("out_offset")), View("row", "panel", index_of("row_offset"))
        return *loads, *views
    if isinstance(t.column_step, OffsetTable) or isinstance(t.panel_step, OffsetTable):
        raise AssertionError("without a table of runs, columns are steps apart")
    column = let("column", times("run", "run_columns"))
    out = View("out", "dst_tile", times(plus("column_first", "column"), t.column_step))
    return column, out, View("row", "panel", times("column", t.panel_step))


def _run(t: TransposeRuns) -> tuple[Statement, ...]:
    """The lines of a run; fewer bytes before the first one and after the last one."""
    ends = View("out_end", "out", index_of("x")), View("row_end", "row", index_of("x"))
    few = Narrow("left", (*ends, Call("drain_part", ("out_end", "row_end", index_of("left")))))
    blocks = Blocks((few,), streamed=(Stream("headed" if t.stream else "aligned"),))
    return (loop("x", 0, "run_bytes", line("out", "row", "x"), step=LINE_BYTES, blocks=blocks),)


def if_less(a: Term, b: Term, then: Term, otherwise: Term) -> Value:
    """then if a < b else otherwise"""
    values = [IndexValue(index_of(x)) for x in (a, b, then, otherwise)]
    return Op("select", (Op("lt", tuple(values[:2]), "i1"), *values[2:]), "i64")
