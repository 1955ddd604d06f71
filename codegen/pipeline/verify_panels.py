"""Bounds of a transpose of short result rows: blocks stay in the panel, lanes and runs in the nest's reach.

Part of invariant 3 of `verify`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from codegen.analysis.ranges import affine_range, check_range
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.loops import Size, int_size
from codegen.schedule.offset_tables import OffsetTable, Table
from codegen.schedule.panels import Panel
from codegen.support.errors import KernelError


def check_panels(
    nest: CopyNest, panel: Panel, starts: tuple[int, int], reach: tuple[int, int, int, int]
) -> None:
    """No block or run of any panel leaves the source, the panel or the destination.

    Full lanes of short source rows are for `check_lanes`.

    Args:
        nest: the transpose; sizes are numbers still.
        panel: what its tiles go through.
        starts: the nest's first source offset and its first destination offset, in bytes.
        reach: of the nest, as `reach_of` returns it.
    """
    column, table = nest.axis("column"), nest.axis("row").src_table
    rows = table.offsets if table else np.zeros(0, np.int64)
    if len(rows) < _rows_written(nest):
        raise KernelError(f"verify: blocks read {_rows_written(nest)} rows of a table of {len(rows)}")
    low, high = affine_range(starts[0], [(int_size(x.extent), int_size(x.src)) for x in nest.others])
    stop = high + int(rows.max()) + int_size(column.extent) * int_size(column.src)
    check_range("source", low + int(rows.min()), stop, reach[:2])
    low, high = affine_range(starts[1], [(int_size(x.extent), int_size(x.dst)) for x in nest.others])
    for first, count in _panels(nest):
        layer_bytes, offsets, columns_at = _runs(nest, panel, first, count)
        _check_panel(nest, panel, (first, count), layer_bytes, (offsets, columns_at))
        check_range(
            "destination", low + int(offsets.min()), high + int(offsets.max()) + layer_bytes, reach[2:]
        )


def _panels(nest: CopyNest) -> Iterator[tuple[int, int]]:
    """(first column, columns) of the first panel and of the last, which may begin earlier than its tile."""
    columns, tile = int_size(nest.axis("column").extent), int_size(nest.tiles("column")[0].size)
    yield 0, min(tile, columns)
    last = (columns - 1) // tile * tile
    first = last if nest.short else min(last, columns - nest.lanes["column"])
    yield first, columns - first


def _runs(nest: CopyNest, panel: Panel, first: int, count: int) -> tuple[int, Table, Table]:
    """Bytes of each run in one layer, and the offsets of all runs in the destination and in the panel."""
    together = min(int_size(panel.run_columns), count)
    layer_bytes = together * int_size(nest.axis("row").extent) * nest.target.bits // 8
    if count % together:
        raise KernelError(f"verify: runs of {together} columns in a panel of {count}")
    if panel.runs is not None and panel.panel_runs is not None:
        return layer_bytes, panel.runs.offsets, panel.panel_runs.offsets
    columns = np.arange(0, count, together)
    return layer_bytes, _results(nest, first + columns), _offsets(panel.pitch, columns)


def _results(nest: CopyNest, columns: Table) -> Table:
    """The destination offset of each of the columns."""
    column = nest.axis("column")
    return _offsets(column.dst_table or column.dst, columns)


def _offsets(step: Size | OffsetTable, columns: Table) -> Table:
    """The offset of each of the columns."""
    offsets: Table = step.offsets[columns] if isinstance(step, OffsetTable) else columns * int_size(step)
    return offsets


def _check_panel(
    nest: CopyNest, panel: Panel, columns: tuple[int, int], layer_bytes: int, at: tuple[Table, Table]
) -> None:
    """Check that blocks stay in the panel, and that its runs are its columns, layer after layer.

    columns  the first column, and the number of columns
    at       the offsets of the runs in the destination and in the panel
    """
    (first, count), (run_offsets, panel_runs), width = columns, at, nest.target.bits // 8
    columns_at = _offsets(panel.pitch, np.arange(count))
    above = sum(layer_bytes * (int_size(x.size) - 1) for x in nest.tiles("layer"))
    stop = int(columns_at.max()) + above + _rows_written(nest) * width
    check_range("panel", int(columns_at.min()), stop, (0, int_size(panel.size_bytes)))
    order = np.argsort(panel_runs)
    run = order[np.searchsorted(panel_runs[order], columns_at, side="right") - 1]
    within = columns_at - panel_runs[run]
    moved = within == _results(nest, first + np.arange(count)) - run_offsets[run]
    if not (moved & (within >= 0) & (within < layer_bytes)).all():
        raise KernelError("verify: a column is in no run of its panel")
    if len(panel_runs) * layer_bytes != count * int_size(nest.axis("row").extent) * width:
        raise KernelError(f"verify: {len(panel_runs)} runs of {layer_bytes} bytes for {count} columns")
    for layer in (x for x in nest.others if nest.tiles(x.axis)):
        if layer.dst != layer_bytes:
            raise KernelError(f"verify: layers {layer.dst} bytes apart do not follow runs of {layer_bytes}")


def _rows_written(nest: CopyNest) -> int:
    """Elements of each column that blocks write: those of a full block at least."""
    return max(int_size(nest.axis("row").extent), nest.lanes["row"])
