"""Tiles of a transpose that go through a block of scratch in cache, from which full lines are stored."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import Term, compare, index_of, least, let, loop, minus, plus, quotient, times
from codegen.ir.index import Index, index_symbol
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Alloc, For, Function, Let, Statement, Store, View
from codegen.ir.rewriting import Body, rewrite_body, substituted
from codegen.ir.values import Load
from codegen.passes.row_buffers import drained
from codegen.passes.scalar_statement import offset_along
from codegen.passes.sides import sides_of
from codegen.passes.tile import first_iteration
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.loops import Loop, Size
from codegen.schedule.offset_tables import OffsetTable
from codegen.schedule.staged_block import RUN_OFFSETS, STAGED_RUN_OFFSETS, StagedBlock

BLOCK, TILE = "staged", "staged_tile"
"""The block, and its view that is indexed as the destination is: rows of the block are columns."""


def stage_tiles(function: Function, nest: CopyNest) -> Function:
    """Store the elements of each tile in scratch instead, then store each run of the destination in lines.

    before:  for column, row in a tile:    dst[column, row] = src[row, column]
    after:   for column, row in a tile:    staged[column, row] = src[row, column]
             for run in runs of the tile:
               for line in lines of the run:  dst[run, line] = staged[run, line] [64] @streamed

    Contiguous columns are a run if the tile has all of their rows. Otherwise each column is one, and the
    bytes after its last line wait in front of it, for the next tile of rows.

    Blocks of `vectorize_axes` may have more rows than the box. The extra bytes land in the next column, and
    are overwritten with that column.
    """
    if not nest.staged:
        return function
    dst, first_inner, block = sides_of(nest).dst, nest.order[len(nest.outer)], nest.staged_block
    assert block is not None, "a stage has a block"

    def staged(node: Statement) -> Body:
        if isinstance(node, For) and node.index == first_inner:
            return _staged(node, nest, block, dst)
        return (node,)

    body = rewrite_body(function.body, staged)
    return replace(function, body=(Alloc(BLOCK, nest.scratch_bytes, "scratch"), *body))


def _staged(node: For, nest: CopyNest, block: StagedBlock, dst: str) -> Body:
    """One tile: register blocks go into scratch, and runs out of it.

    Layers fill it one by one. Both sides are viewed at each of them, and then at the first one again.
    """
    before, view, filled = list[Statement](), _view(nest, block), _fill(node, nest, block, dst)
    if not nest.short:
        (tile, *_), latest = nest.tiles("column"), minus(nest.axis("column").extent, nest.lanes["column"])
        before.append(let("column_first", least(first_iteration(tile), latest)))
    before += _run_sizes(nest, block)
    if node.index != "layer":
        return *before, view, *filled, *_drain(nest, block, dst)
    (tile,), (layers,) = nest.tiles("layer"), filled
    assert isinstance(layers, For), "layers fill the block in a loop"
    first = first_iteration(tile)
    view = replace(view, offset=plus(view.offset, times(minus("layer", first), "layer_bytes")))
    views = *(x for x in layers.body if isinstance(x, View) and x.name == dst), view
    at_first = (substituted(x, "layer", first) for x in views)
    return *before, replace(layers, body=(view, *layers.body)), *at_first, *_drain(nest, block, dst)


def _view(nest: CopyNest, block: StagedBlock) -> View:
    """The block as it would begin if it held all rows and columns; one with a table of columns does."""
    (column, _), (row, _), width = columns_of(nest), _rows(nest), nest.target.bits // 8
    before = 0 if isinstance(block.pitch, OffsetTable) else times(times(column, -1), block.pitch)
    return View(TILE, BLOCK, plus(before, times(row, -width), LINE_BYTES))


def _fill(node: For, nest: CopyNest, block: StagedBlock, dst: str) -> Body:
    """The scalar loops of a tile, which store their elements in the block.

    dst[column_dst*column + width*row] -> staged_tile[staged_pitch*column + width*row]
    """
    before, column = offset_along(_columns(block), "dst", "column")
    to = plus(column, times("row", nest.target.bits // 8))

    def into_block(statement: Statement) -> Body:
        match statement:
            case Store(array) if array == dst:
                return *before, replace(statement, array=TILE, subscripts=(to,))
            case Let(_, Load(array)) if array == nest.axis("column").table_name:
                return ()
        return (statement,)

    return rewrite_body((node,), into_block)


def _columns(block: StagedBlock) -> Loop:
    """The columns of a block, as a loop whose destination is the block."""
    if isinstance(block.pitch, OffsetTable):
        return Loop(BLOCK, dst_table=block.pitch)
    return Loop(BLOCK, dst=block.pitch)


def columns_of(nest: CopyNest) -> tuple[Term, Term]:
    """The first column of a tile, and the one after its last; a last block begins earlier."""
    if nest.short:
        return 0, nest.axis("column").extent
    return "column_first", "column_stop"


def _rows(nest: CopyNest) -> tuple[Term, Term]:
    """The first row of a tile, and the one after its last."""
    tiles = nest.tiles("row")
    return (tiles[0].index, "row_stop") if tiles else (0, nest.axis("row").extent)


def _together(block: StagedBlock) -> Size:
    """The columns of a run: a number, or a local, because a last tile may have fewer."""
    return 1 if block.run_columns == 1 else "run_columns"


def _run_sizes(nest: CopyNest, block: StagedBlock) -> tuple[Statement, ...]:
    """The sizes of the runs: how many columns, and how many bytes of one layer and of all."""
    (first, stop), (row, last), layers = columns_of(nest), _rows(nest), nest.tiles("layer")
    columns: Body = ()
    if isinstance(_together(block), str):
        columns = (let("run_columns", least(block.run_columns, minus(stop, first))),)
    size = times(times(minus(last, row), nest.target.bits // 8), _together(block))
    if not layers:
        return *columns, let("run_bytes", size)
    all_bytes = times(minus("layer_stop", first_iteration(layers[0])), "layer_bytes")
    return *columns, let("layer_bytes", size), let("run_bytes", all_bytes)


def _drain(nest: CopyNest, block: StagedBlock, dst: str) -> tuple[Statement, ...]:
    """Store all runs of a tile."""
    (first, stop), (row, last) = columns_of(nest), _rows(nest)
    parts = bool(nest.tiles("row"))
    ends = (compare(row, "eq", 0), compare(last, "eq", nest.axis("row").extent)) if parts else None
    before, (to, at) = _run_offsets(nest, block)
    out, held = View("out", dst, to, opaque=parts), View("held", TILE, at, opaque=parts)
    run = out, held, *drained("out", "held", "run_bytes", ends, streamed=nest.stream)
    runs = let("runs", quotient(minus(stop, first), _together(block)))
    return runs, loop("run", 0, "runs", *before, *run)


def _run_offsets(nest: CopyNest, block: StagedBlock) -> tuple[Body, tuple[Index, Index]]:
    """Where a run begins in the destination and in the block: at the first row of its first column."""
    if block.runs is not None:
        tables = {"out_offset": RUN_OFFSETS, "held_offset": STAGED_RUN_OFFSETS}
        loads = tuple(Let(name, Load(table, (index_of("run"),), "i64")) for name, table in tables.items())
        return loads, (index_symbol("out_offset"), index_symbol("held_offset"))
    column = let("column", plus(columns_of(nest)[0], times("run", _together(block))))
    row = times(_rows(nest)[0], nest.target.bits // 8)
    entries, to = offset_along(nest.axis("column"), "dst", "column")
    _, at = offset_along(_columns(block), "dst", "column")
    return (column, *entries), (plus(to, row), plus(at, row))
