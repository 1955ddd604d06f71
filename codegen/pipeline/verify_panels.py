"""Bounds of a transpose of short result rows: blocks stay in the panel, lanes and runs in the nest's reach.

Part of invariant 3 of `verify`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from codegen.analysis.ranges import affine_range, check_range
from codegen.ir.strided_box import Digit
from codegen.schedule.offset_tables import OffsetTable, Table
from codegen.schedule.transfer_loops import Size, int_size
from codegen.schedule.transposes import TransposeRuns
from codegen.support.errors import KernelError


def check_panels(runs: TransposeRuns, starts: tuple[int, int], reach: tuple[int, int, int, int]) -> None:
    """No block or run of any panel leaves the source, the panel or the destination.

    Full lanes of short source rows are for `check_lanes`.

    Args:
        runs: the transpose; sizes are numbers still.
        starts: the nest's first source offset and its first destination offset, in bytes.
        reach: of the nest, as `reach_of` returns it.
    """
    columns, digits = int_size(runs.columns), other_digits(runs)
    rows = runs.row_step.offsets
    if len(rows) < _rows_written(runs):
        raise KernelError(f"verify: blocks read {_rows_written(runs)} rows of a table of {len(rows)}")
    low, high = affine_range(starts[0], [(n, src) for n, src, _ in digits])
    stop = high + int(rows.max()) + columns * runs.source_width
    check_range("source", low + int(rows.min()), stop, reach[:2])
    low, high = affine_range(starts[1], [(n, dst) for n, _, dst in digits])
    for first, count in _panels(runs):
        layer_bytes, offsets, columns_at = _runs(runs, first, count)
        _check_panel(runs, (first, count), layer_bytes, (offsets, columns_at))
        check_range(
            "destination", low + int(offsets.min()), high + int(offsets.max()) + layer_bytes, reach[2:]
        )


def other_digits(runs: TransposeRuns) -> list[Digit]:
    """The digits that are neither rows nor columns."""
    digits = []
    for x in runs.loops:
        if x.axis != "columns":
            extent = runs.layers if x.axis == "layers" else x.extent
            digits.append((int_size(extent), int_size(x.src), int_size(x.dst)))
    return digits


def _panels(runs: TransposeRuns) -> Iterator[tuple[int, int]]:
    """(first column, columns) of the first panel and of the last, which may begin earlier than its tile."""
    columns, tile = int_size(runs.columns), int_size(runs.tile)
    yield 0, min(tile, columns)
    last = (columns - 1) // tile * tile
    first = last if runs.lanes else min(last, columns - runs.block[1])
    yield first, columns - first


def _runs(runs: TransposeRuns, first: int, count: int) -> tuple[int, Table, Table]:
    """Bytes of each run in one layer, and the offsets of all runs in the destination and in the panel."""
    together = min(int_size(runs.run_columns), count)
    layer_bytes = together * int_size(runs.rows) * runs.width
    if count % together:
        raise KernelError(f"verify: runs of {together} columns in a panel of {count}")
    if runs.run_offsets is not None and runs.run_panel_offsets is not None:
        return layer_bytes, runs.run_offsets.offsets, runs.run_panel_offsets.offsets
    columns = np.arange(0, count, together)
    return layer_bytes, _offsets(runs.column_step, first + columns), _offsets(runs.panel_step, columns)


def _offsets(step: Size | OffsetTable, columns: Table) -> Table:
    """The offset of each of the columns."""
    offsets: Table = step.offsets[columns] if isinstance(step, OffsetTable) else columns * int_size(step)
    return offsets


def _check_panel(
    runs: TransposeRuns, panel: tuple[int, int], layer_bytes: int, at: tuple[Table, Table]
) -> None:
    """Check that blocks stay in the panel, and that its runs are its columns, layer after layer.

    panel  the first column, and the number of columns
    at     the offsets of the runs in the destination and in the panel
    """
    (first, count), (run_offsets, run_panel_offsets) = panel, at
    columns_at = _offsets(runs.panel_step, np.arange(count))
    above = layer_bytes * (int_size(runs.together) - 1)
    stop = int(columns_at.max()) + above + _rows_written(runs) * runs.width
    check_range("panel", int(columns_at.min()), stop, (0, int_size(runs.panel_bytes)))
    order = np.argsort(run_panel_offsets)
    run = order[np.searchsorted(run_panel_offsets[order], columns_at, side="right") - 1]
    within = columns_at - run_panel_offsets[run]
    moved = within == _offsets(runs.column_step, first + np.arange(count)) - run_offsets[run]
    if not (moved & (within >= 0) & (within < layer_bytes)).all():
        raise KernelError("verify: a column is in no run of its panel")
    if len(run_panel_offsets) * layer_bytes != count * int_size(runs.rows) * runs.width:
        raise KernelError(f"verify: {len(run_panel_offsets)} runs of {layer_bytes} bytes for {count} columns")
    for layer in (x for x in runs.loops if x.axis == "layers"):
        if layer.dst != layer_bytes:
            raise KernelError(f"verify: layers {layer.dst} bytes apart do not follow runs of {layer_bytes}")


def _rows_written(runs: TransposeRuns) -> int:
    """Elements of each column that blocks write: those of a full block at least."""
    return max(int_size(runs.rows), runs.block[0])
