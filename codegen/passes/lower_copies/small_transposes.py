"""Lower transposes of digits that are too short for registers."""

from __future__ import annotations

from codegen.ir.building import Term, index_of, least, loop, plus, times
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Statement, View
from codegen.passes.lower_copies.lowered import Sides, moved_element
from codegen.schedule.limits import SMALL_LEAST_COLUMNS, SMALL_ROWS
from codegen.schedule.transfers import Interleave


def small_transpose(stmt: Interleave, sides: Sides) -> tuple[Statement, ...]:
    """Move element by element, in blocks of 64 bytes of 64 source rows, so that lines stay in cache.

    before:  dst <- transpose src, rows rows of columns u16, rows row_step apart, columns column_step apart
    after:   for first_column in 0..columns step 32: for first_row in 0..rows step 64:
               for column in first_column..min(first_column + 32, columns):
                 for row in first_row..min(first_row + 64, rows):
                   dst[column*column_step + 2*row] = src[row*row_step + 2*column]
    """
    rows, columns, width = stmt.rows, stmt.columns, stmt.width
    wide = max(LINE_BYTES // width, SMALL_LEAST_COLUMNS)

    def end(first: str, size: int, extent: int | str) -> Term:
        return least(plus(first, size), extent)

    to, at = times("row", width), times("row", stmt.row_step)
    move = moved_element(width, "dst_column", to, "src_column", at)
    element_rows = loop("row", "first_row", end("first_row", SMALL_ROWS, rows), *move)
    element_columns = loop(
        "column",
        "first_column",
        end("first_column", wide, columns),
        View("dst_column", sides.dst, times("column", stmt.column_step)),
        View("src_column", sides.src, index_of(times("column", width))),
        element_rows,
    )
    blocks = loop("first_row", 0, rows, element_columns, step=SMALL_ROWS)
    return (loop("first_column", 0, columns, blocks, step=wide),)
