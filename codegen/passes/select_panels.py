"""Describe a transpose of short result rows: its loops over panels, and the layout of a panel."""

from __future__ import annotations

from math import prod

from codegen.ir.blocks import block_shape
from codegen.ir.strided_box import Digit, StridedBox
from codegen.schedule.dense_layout import DenseLayout, dense_layout
from codegen.schedule.lane_reads import lane_reads
from codegen.schedule.offset_tables import OffsetTable
from codegen.schedule.schedule import TransposeSchedule
from codegen.schedule.transfer_loops import LaneReads, Loop, Size
from codegen.schedule.transposes import TransposeRuns


def in_panels(cut: TransposeSchedule, box: StridedBox) -> TransposeRuns:
    """Loops over panels; each has all rows, and as many columns and layers as fit."""
    rows, columns = box.digits(cut.rows), box.digits(cut.columns)
    row_count, column_count = (prod(n for n, _, _ in side) for side in (rows, columns))
    others = {axis: box.digits((axis,))[0] for axis in cut.loops if axis in box.extents}
    layers = box.digits((cut.layers,))[0] if cut.layers else None
    tile = min(cut.tile[1], column_count)
    block, lanes = _block(cut, box, tile, (*others.values(), *([layers] if layers else [])))
    layout = dense_layout(
        row_count * box.width,
        [(tile, columns[0][2])] if tile < column_count else [(n, d) for n, _, d in columns],
        in_order=row_count < block[0],
        layers=(cut.together, layers[2]) if layers else None,
    )
    panels = Loop("columns", -(-column_count // tile))
    groups = Loop("layers", -(-layers[0] // cut.together), *layers[1:]) if layers else None
    known = {"columns": panels, "layers": groups}
    steps, runs = _columns_of_panels(columns, layout)
    return TransposeRuns(
        box.source_width,
        box.width,
        row_count,
        column_count,
        OffsetTable(tuple((n, s) for n, s, _ in rows), more=block[0]),
        steps[0],
        tuple(known.get(axis) or Loop(axis, *others.get(axis, ())) for axis in cut.loops),
        cut.tile[1],
        block,
        steps[1],
        layout.run_columns,
        cut.requests,
        cut.stream,
        cut.separate,
        cut.strips[1] if cut.strips else 0,
        layers[0] if layers else 1,
        cut.together,
        *runs,
        layout.size_bytes,
        lanes,
        box.conversion,
    )


def _block(
    cut: TransposeSchedule, box: StridedBox, tile: int, apart: tuple[Digit, ...]
) -> tuple[tuple[int, int], LaneReads | None]:
    """The block, and which blocks may read lanes beyond short rows; `apart` are the digits around them."""
    rows, columns = box.digits(cut.rows), box.digits(cut.columns)
    row_count, column_count = (prod(n for n, _, _ in side) for side in (rows, columns))
    block = block_shape(box.width, cut.block)
    if column_count < block[1] or (tile < column_count and (tile % block[1] or len(columns) > 1)):
        raise AssertionError(f"expected full blocks of {block}, got {column_count} columns by {tile}")
    if cut.block != "short":
        return block, None
    if row_count < block[0]:
        raise AssertionError(f"expected {block[0]} rows or more in parts of lanes, got {row_count}")
    block = block_shape(box.width, "64x16")
    return block, lane_reads(rows, column_count, apart, box.width, block[0])


def _columns_of_panels(
    columns: tuple[Digit, ...], layout: DenseLayout
) -> tuple[tuple[Size | OffsetTable, Size | OffsetTable], tuple[OffsetTable | None, OffsetTable | None]]:
    """The distances of columns in the destination and the panel, then the offsets of runs there or None.

    If columns have several digits, tables of offsets replace the distances.
    """
    if len(columns) == 1:
        return (columns[0][2], layout.columns[0][1]), (None, None)
    runs = layout.runs or ((1, 0, 0),)
    return (OffsetTable(tuple((n, d) for n, _, d in columns)), OffsetTable(layout.columns)), (
        OffsetTable(tuple((n, d) for n, d, _ in runs)),
        OffsetTable(tuple((n, p) for n, _, p in runs)),
    )
