"""Give a nest what its blocks of rows and columns need: tables, scratch, and the lanes that may be read."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.strided_box import Side
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.lane_reads import lane_reads
from codegen.schedule.loops import LaneReads, Loop, int_size
from codegen.schedule.offset_tables import OffsetTable
from codegen.schedule.staged_block import StagedBlock, grouped_block, staged_block


def with_tables(nest: CopyNest) -> CopyNest:
    """The nest with what its directives need: a block, the lanes that may be read, and entries after rows.

    Tiles with complete result rows have a table of rows: registers may have more than the box, and requests
    for the next tile look for rows after the last one.
    """
    block = _staged_block(nest) if nest.staged else None
    if not nest.transposes:
        return replace(nest, staged_block=block)
    _check_blocks(nest)
    row = nest.axis("row")
    if row.src_table or nest.stages_rows:
        digits, more = tuple(_digits(row, "src")), _more_rows(nest, int_size(row.extent))
        row = replace(row, src=0, src_table=OffsetTable(digits, more=more))
    loops = tuple(row if x.axis == "row" else x for x in nest.loops)
    return replace(
        nest,
        loops=loops,
        staged_block=block,
        reads=_lane_reads(nest) if nest.short else None,
    )


def _more_rows(nest: CopyNest, rows: int) -> int:
    """Entries of a table of rows after the last one: those of the next tile, or of a block without enough."""
    if nest.stages_rows:
        return nest.lanes["row"]
    tallest, *smaller = (int_size(x.size) for x in nest.tiles("row"))
    return 2 * (max(min(tallest, rows), *smaller) if smaller else tallest)


def _staged_block(nest: CopyNest) -> StagedBlock:
    """A block of a tile's columns, layers and groups of rows; a part of a row is a run of its own."""
    (row, column), width = nest.loops[-2:], nest.target.bits // 8
    tall, wide = nest.tiles(row.axis), nest.tiles(column.axis)
    columns = int_size(wide[0].size) if wide else nest.lanes[column.axis]
    if tall:
        block = staged_block(int_size(tall[0].size) * width, [(columns, 0)])
        return grouped_block(block, columns, [(x.axis, _in_block(nest, x)) for x in nest.around])
    rows, digits = int_size(row.extent), _digits(column, "dst")
    digits = [(columns, digits[0][1])] if columns < int_size(column.extent) else digits
    layers = [(int_size(x.size), int_size(nest.axis("layer").dst)) for x in nest.tiles("layer")]
    return staged_block(rows * width, digits, layers, in_order=rows < nest.lanes["row"])


def _in_block(nest: CopyNest, x: Loop) -> int:
    """The iterations of an outer loop that a block has; 0 of those around it."""
    size = next((tile.size for tile in nest.tiles(x.axis)), x.extent)
    return int_size(size) if x.axis in nest.in_block else 0


def _lane_reads(nest: CopyNest) -> LaneReads:
    """The lanes that source rows shorter than a lane may read."""
    rows, others = nest.axis("row"), [(int_size(x.extent), int_size(x.src)) for x in nest.others]
    columns, width = int_size(nest.axis("column").extent), nest.target.bits // 8
    return lane_reads(_digits(rows, "src"), columns, others, width, nest.lanes["row"])


def _digits(loop: Loop, side: Side) -> list[tuple[int, int]]:
    """The digits that a loop joins on a side: (count, stride), most minor first."""
    table = loop.table(side)
    return [*table.digits] if table else [(int_size(loop.extent), int_size(loop.stride(side)))]


def _check_blocks(nest: CopyNest) -> None:
    """Blocks are full, except that those of source rows shorter than a lane have a lane of each.

    Staged tiles of complete rows have as many as there are, and parts of one digit are full blocks.
    """
    row, column, lanes = nest.axis("row"), nest.axis("column"), nest.lanes
    fits = nest.short or int_size(column.extent) >= lanes["column"]
    fits = fits and (int_size(row.extent) >= lanes["row"] or (nest.stages_rows and not nest.short))
    if nest.stages_rows and (tile := int_size(nest.tiles("column")[0].size)) < int_size(column.extent):
        fits = fits and tile % lanes["column"] == 0 and column.dst_table is None
    if not fits:
        raise AssertionError(f"expected full blocks, got {row.extent} rows, {column.extent} columns: {nest}")
