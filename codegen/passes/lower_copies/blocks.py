"""Register blocks of a transpose: their loads, and the value to store."""

from __future__ import annotations

from codegen.ir.building import Term, index_of, plus, times
from codegen.ir.copies.nodes import ROW_TABLE, Size, TileLoop, TransposeTiles
from codegen.ir.copies.tiles import PackedLines
from codegen.ir.index import Index
from codegen.ir.nodes import Entries, Load, Local, Op, Step
from codegen.passes.lower_copies.lowered import text

TILES = {"rows": ("i", 0), "columns": ("j", 1)}
"""The index of a loop over tiles, and its position in a pair of rows and columns."""


def other_loops(t: TransposeTiles) -> tuple[TileLoop, ...]:
    """The loops over digits that are neither rows nor columns."""
    return tuple(x for x in t.loops if x.axis not in TILES)


def transposed_block(t: TransposeTiles, src: str, j: Term = "j") -> tuple[Load, Op]:
    """The load of the block at (i, j), and its transpose, where a local `block` holds it."""
    load = read_block(t, src, index_of("i"), index_of(j))
    rows, columns = t.block
    return load, Op("transposed", (Local("block", load.dtype, t.block),), load.dtype, (columns, rows))


def read_block(t: TransposeTiles, src: str, i: Index, j: Index) -> Load:
    """The rows of a block from (i, j) on."""
    at, step = row_at(t.row_step, ROW_TABLE, i)
    where = plus(at, times(j, t.width))
    return Load(src, (where,), f"bits{8 * t.width}", t.block, (0, 0), (step, t.width))


def row_at(step: Size | PackedLines, table: str, index: Index) -> tuple[Index, Step]:
    """The offset of a row and the step to the next one; with a table, the step has the offset too."""
    if isinstance(step, PackedLines):
        return index_of(0), Entries(table, index)
    return times(index, text(step)), text(step)
