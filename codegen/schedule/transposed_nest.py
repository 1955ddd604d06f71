"""Give the nest of a transpose what its directives need: tables, a panel, and the lanes that may be read."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.strided_box import Side
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.lane_reads import lane_reads
from codegen.schedule.loops import LaneReads, Loop, int_size
from codegen.schedule.panels import Panel, dense_panel


def with_tables(nest: CopyNest) -> CopyNest:
    """The nest with what its directives need: a panel, the lanes that may be read, and entries after rows.

    Requests for the next tile look for rows after those of a table.
    """
    _check_blocks(nest)
    row = nest.axis("row")
    if row.src_table:
        row = replace(row, src_table=replace(row.src_table, more=_more_rows(nest, int_size(row.extent))))
    loops = tuple(row if x.axis == "row" else x for x in nest.loops)
    return replace(
        nest,
        loops=loops,
        panel=_panel(nest) if nest.dense else None,
        reads=_lane_reads(nest) if nest.short else None,
    )


def _more_rows(nest: CopyNest, rows: int) -> int:
    """Entries of a table of rows after the last one: those of the next tile, or of a block without enough."""
    if nest.dense:
        return nest.lanes["row"]
    tallest, *smaller = (int_size(x.size) for x in nest.tiles("row"))
    return 2 * (max(min(tallest, rows), *smaller) if smaller else tallest)


def _panel(nest: CopyNest) -> Panel:
    """A panel of all rows and of as many columns and layers as fit."""
    rows, columns = (int_size(nest.axis(name).extent) for name in ("row", "column"))
    digits, wide = _digits(nest.axis("column"), "dst"), int_size(nest.tiles("column")[0].size)
    layers = [(int_size(x.size), int_size(nest.axis("layer").dst)) for x in nest.tiles("layer")]
    digits = [(wide, digits[0][1])] if wide < columns else digits
    row_bytes = rows * (nest.target.bits // 8)
    return dense_panel(row_bytes, digits, in_order=rows < nest.lanes["row"], layers=layers)


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

    Panels have as many rows as there are, and parts of one digit are full blocks.
    """
    row, column, lanes = nest.axis("row"), nest.axis("column"), nest.lanes
    fits = nest.short or int_size(column.extent) >= lanes["column"]
    fits = fits and (int_size(row.extent) >= lanes["row"] or (nest.dense and not nest.short))
    if nest.dense and (tile := int_size(nest.tiles("column")[0].size)) < int_size(column.extent):
        fits = fits and tile % lanes["column"] == 0 and column.dst_table is None
    if not fits:
        raise AssertionError(f"expected full blocks, got {row.extent} rows, {column.extent} columns: {nest}")
