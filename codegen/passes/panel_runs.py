"""Store a panel of short result rows: it leaves as runs of full lines."""

from __future__ import annotations

from codegen.ir.building import index_of, least, let, loop, minus, plus, quotient, times
from codegen.ir.nodes import Let, Statement, View
from codegen.ir.values import Load
from codegen.passes.panel_requests import columns_of, requesting_runs
from codegen.passes.row_buffers import drained
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.offset_tables import OffsetTable
from codegen.schedule.panels import PANEL_RUN_OFFSETS, RUN_OFFSETS


def run_sizes(nest: CopyNest) -> tuple[Statement, ...]:
    """The sizes of the panel's runs: how many columns, and how many bytes of one layer and of all."""
    (first, stop), layers = columns_of(nest), nest.tiles("layer")
    assert nest.panel is not None, "runs leave a panel"
    sizes = (
        let("run_columns", least(nest.panel.run_columns, minus(stop, first))),
        let("layer_bytes" if layers else "run_bytes", times("run_columns", "row_bytes")),
    )
    if not layers:
        return sizes
    return *sizes, let("run_bytes", times(minus("layer_stop", layers[0].first), "layer_bytes"))


def drained_runs(nest: CopyNest, dst: str) -> tuple[Statement, ...]:
    """All runs of the panel.

    after:   for run in 0..runs:
               for x in lines of the run:  dst[run, x] = panel[run, x] [64]
    """
    first, stop = columns_of(nest)
    runs = let("runs", quotient(minus(stop, first), "run_columns"))
    run = drained("out", "held", "run_bytes", streamed=nest.stream)
    return runs, *requesting_runs(nest, loop("run", 0, "runs", *_begins(nest, dst), *run))


def _begins(nest: CopyNest, dst: str) -> tuple[Statement, ...]:
    """Where a run begins: in the destination `out`, and in the panel `held`."""
    assert nest.panel is not None, "runs leave a panel"
    if nest.panel.runs is not None:
        tables = {"out_offset": RUN_OFFSETS, "held_offset": PANEL_RUN_OFFSETS}
        loads = (Let(name, Load(table, (index_of("run"),), "i64")) for name, table in tables.items())
        views = View("out", dst, index_of("out_offset")), View("held", "panel", index_of("held_offset"))
        return *loads, *views
    if isinstance(nest.panel.pitch, OffsetTable):
        raise AssertionError("without a table of runs, columns are steps apart")
    column, (first, _) = let("column", times("run", "run_columns")), columns_of(nest)
    out = View("out", dst, times(plus(first, "column"), nest.axis("column").dst))
    return column, out, View("held", "panel", times("column", nest.panel.pitch))
