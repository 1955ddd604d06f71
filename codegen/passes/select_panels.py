"""Describe a transpose of short result rows: its loops over panels, and the layout of a panel."""

from __future__ import annotations

from math import prod

from codegen.ir.blocks import block_shape
from codegen.ir.strided_box import StridedBox
from codegen.passes.lane_reads import lane_reads
from codegen.schedule.dense_layout import dense_layout
from codegen.schedule.offset_tables import OffsetTable
from codegen.schedule.schedule import TransposeSchedule
from codegen.schedule.transfer_loops import Loop, Size
from codegen.schedule.transposes import TransposeRuns


def in_panels(cut: TransposeSchedule, box: StridedBox) -> TransposeRuns:
    """Loops over panels; all rows are in each, and columns and layers as far as they fit."""
    source_width, width, digits = box.source_width, box.width, box.digits
    rows, columns = digits(cut.rows), digits(cut.columns)
    row_count, column_count = (prod(n for n, _, _ in side) for side in (rows, columns))
    block, tile, lanes = block_shape(width, cut.block), min(cut.tile[1], column_count), None
    if column_count < block[1] or (tile < column_count and (tile % block[1] or len(columns) > 1)):
        raise AssertionError(f"expected full blocks of {block}, got {column_count} columns by {tile}")
    others = {axis: digits((axis,))[0] for axis in cut.loops if axis in box.extents}
    layers = digits((cut.layers,))[0] if cut.layers else None
    if cut.block == "short":
        if row_count < block[0]:
            raise AssertionError(f"expected {block[0]} rows or more in parts of lanes, got {row_count}")
        block = block_shape(width, "64x16")
        apart = (*others.values(), *([layers] if layers else []))
        lanes = lane_reads(rows, column_count, apart, width, block[0])
    row_bytes = row_count * width
    layout = dense_layout(
        row_bytes,
        [(tile, columns[0][2])] if tile < column_count else [(n, d) for n, _, d in columns],
        in_order=row_count < block[0],
        layers=(cut.together, layers[2]) if layers else None,
    )
    panels = Loop("columns", -(-column_count // tile))
    groups = Loop("layers", -(-layers[0] // cut.together), *layers[1:]) if layers else None
    known = {"columns": panels, "layers": groups}
    column_step: Size | OffsetTable = columns[0][2]
    panel_step: Size | OffsetTable = layout.columns[0][1]
    run_tables: tuple[OffsetTable | None, OffsetTable | None] = None, None
    if len(columns) > 1:
        column_step, panel_step = (
            OffsetTable(tuple((n, d) for n, _, d in columns)),
            OffsetTable(layout.columns),
        )
        runs = layout.runs or ((1, 0, 0),)
        run_tables = (
            OffsetTable(tuple((n, d) for n, d, _ in runs)),
            OffsetTable(tuple((n, p) for n, _, p in runs)),
        )
    return TransposeRuns(
        source_width,
        width,
        row_count,
        column_count,
        OffsetTable(tuple((n, s) for n, s, _ in rows), more=block[0]),
        column_step,
        tuple(known.get(axis) or Loop(axis, *others.get(axis, ())) for axis in cut.loops),
        cut.tile[1],
        block,
        panel_step,
        layout.run_columns,
        cut.requests,
        cut.of_tiles,
        layers[0] if layers else 1,
        cut.together,
        *run_tables,
        layout.size_bytes,
        lanes,
        box.conversion,
    )
