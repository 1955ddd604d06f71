"""Blocks of the destination that go through scratch in cache, from which full lines are stored."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from codegen.analysis.bodies import flat
from codegen.ir.building import Term, compare, index_of, least, let, loop, minus, plus, quotient, times
from codegen.ir.index import Index, index_symbol
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Alloc, For, Function, Let, Statement, Store, View
from codegen.ir.rewriting import Body, rewrite_body, substituted
from codegen.ir.values import Load
from codegen.passes.row_buffers import drained
from codegen.passes.scalar_statement import offset_along
from codegen.passes.sides import sides_of, viewed
from codegen.passes.tile import first_iteration
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.loops import Loop, Size
from codegen.schedule.offset_tables import OffsetTable
from codegen.schedule.staged_block import RUN_OFFSETS, STAGED_RUN_OFFSETS, StagedBlock

BLOCK, TILE = "staged", "staged_tile"
"""The block, and its view that is indexed as the destination is: rows of the block are columns."""


def stage(function: Function, nest: CopyNest) -> Function:
    """Store the elements of each tile in scratch instead, then store each run of the destination in lines.

    before:  for column, row in a tile:    dst[column, row] = src[row, column]
    after:   for column, row in a tile:    staged[column, row] = src[row, column]
             for run in runs of the tile:
               for line in lines of the run:  dst[run, line] = staged[run, line] [64] @streamed

    Contiguous columns are a run if the tile has all of their rows. Otherwise each column is one, and the
    bytes after its last line wait in front of it, for the next tile of rows. A tile may have iterations of
    other loops, in an order of their own: they extend the runs, or have runs of their own.

    Super-vectors may have more rows than the box, or begin before a tile of rows. The bytes that they store
    beyond a run are those of the run before it, or are overwritten with the next one.
    """
    block, first = nest.staged_block, nest.in_block[0]
    assert block is not None, "a stage has a block"

    def staged(node: Statement) -> Body:
        if isinstance(node, For) and node.index == first:
            return _staged(node, nest, block)
        return (node,)

    body = rewrite_body(function.body, staged)
    space: Literal["stack", "scratch"] = "scratch" if nest.scratch_bytes else "stack"
    return replace(function, body=(Alloc(BLOCK, block.size_bytes, space), *body))


def _staged(node: For, nest: CopyNest, block: StagedBlock) -> Body:
    """One tile: the scalar loops fill the block, and runs leave it."""
    column, before = nest.loops[-1], list[Statement]()
    if not nest.short and (tiles := nest.tiles(column.axis)):
        latest = minus(column.extent, nest.lanes[column.axis])
        before.append(let(f"{column.axis}_first", least(first_iteration(tiles[0]), latest)))
    before += _run_sizes(nest, block)
    return *before, _view(nest, block), _fill(node, nest, block), *_drain(node, nest, block)


def _view(nest: CopyNest, block: StagedBlock) -> View:
    """The block as it would begin if it held all rows and columns; one with a table of columns does."""
    (column, _), (row, _), width = columns_of(nest), _rows(nest), nest.target.bits // 8
    before = 0 if isinstance(block.pitch, OffsetTable) else times(times(column, -1), block.pitch)
    return View(TILE, BLOCK, plus(before, times(row, -width), LINE_BYTES))


def _fill(node: For, nest: CopyNest, block: StagedBlock) -> For:
    """The scalar loops of a tile, which store their elements in the block.

    dst[column_dst*column + width*row] -> staged_tile[staged_pitch*column + width*row]
    """
    (row, column), inside = nest.loops[-2:], _inside(nest)
    before, offset = offset_along(_columns(block), "dst", column.axis)
    to = plus(offset, times(row.axis, nest.target.bits // 8))
    views, at = dict[str, View](), TILE
    for x in inside:
        pitch = block.pitches.get(x.axis, x.dst)
        views[f"dst_{x.axis}"] = View(f"staged_{x.axis}", at, _along(nest, x, pitch), x.axis in block.pitches)
        at = f"staged_{x.axis}"

    def into_block(statement: Statement) -> Body:
        match statement:
            case Store(array) if array == sides_of(nest).dst:
                return *before, replace(statement, array=at, subscripts=(to,))
            case View(name) if name in views:
                return (views[name],)
            case Let(_, Load(array)) if array == column.table_name:
                return ()
        return (statement,)

    (filled,) = rewrite_body((node,), into_block)
    assert isinstance(filled, For), "loops fill the block"
    return filled


def _inside(nest: CopyNest) -> list[Loop]:
    """The loops with views whose iterations a block has, outermost first."""
    return [x for x in (*nest.around, *viewed(nest)) if x.axis in nest.in_block]


def _first(nest: CopyNest, x: Loop) -> Index:
    """The first iteration of such a loop in a block."""
    return first_iteration(nest.tiles(x.axis)[0]) if nest.tiles(x.axis) else index_of(0)


def _along(nest: CopyNest, x: Loop, pitch: Size) -> Index:
    """The offset of an iteration of such a loop in a block."""
    return times(minus(x.axis, _first(nest, x)), pitch)


def _columns(block: StagedBlock) -> Loop:
    """The columns of a block, as a loop whose destination is the block."""
    if isinstance(block.pitch, OffsetTable):
        return Loop(BLOCK, dst_table=block.pitch)
    return Loop(BLOCK, dst=block.pitch)


def columns_of(nest: CopyNest) -> tuple[Term, Term]:
    """The first column of a tile, and the one after its last; a last block begins earlier."""
    column = nest.loops[-1]
    if nest.short or not nest.tiles(column.axis):
        return 0, column.extent
    return f"{column.axis}_first", f"{column.axis}_stop"


def _rows(nest: CopyNest) -> tuple[Term, Term]:
    """The first row of a tile, and the one after its last."""
    row = nest.loops[-2]
    tiles = nest.tiles(row.axis)
    return (tiles[0].index, f"{row.axis}_stop") if tiles else (0, row.extent)


def _run_sizes(nest: CopyNest, block: StagedBlock) -> Body:
    """The size of the runs in bytes, and in columns unless they have one: a last tile may have fewer."""
    (first, stop), (row, last), columns = columns_of(nest), _rows(nest), list[Statement]()
    size = times(minus(last, row), nest.target.bits // 8)
    if not block.alone:
        columns.append(let("run_columns", least(block.run_columns, minus(stop, first))))
        size = times(size, "run_columns")
    for x in (x for x in _inside(nest) if x.axis not in block.pitches):
        size = times(minus(f"{x.axis}_stop", _first(nest, x)), x.dst)
    return *columns, let("run_bytes", size)


def _drain(node: For, nest: CopyNest, block: StagedBlock) -> Body:
    """Store all runs of a tile, in the order of the destination."""
    made, loops = _runs(nest, block), {x.index: x for x in flat((node,)) if isinstance(x, For)}
    for x in reversed(_inside(nest)):
        name = f"dst_{x.axis}"
        views = tuple(y for y in loops[x.axis].body if isinstance(y, View) and y.name == name)
        if x.axis in block.pitches:
            made = (replace(loops[x.axis], body=(*views, *made)),)
        else:
            made = *(substituted(y, x.axis, _first(nest, x)) for y in views), *made
    return made


def _runs(nest: CopyNest, block: StagedBlock) -> Body:
    """Store the runs of a tile that are columns, or join some of them."""
    (first, stop), (row, last), (along, across) = columns_of(nest), _rows(nest), nest.loops[-2:]
    parts, dst = bool(nest.tiles(along.axis)), sides_of(nest).dst
    ends = (compare(row, "eq", 0), compare(last, "eq", along.extent)) if parts else None
    before, to, at = _run_offsets(nest, block)
    out, held = View("out", dst, to, opaque=parts), View("held", TILE, at, opaque=parts)
    run = *before, out, held, *drained("out", "held", "run_bytes", ends, streamed=nest.stream)
    if first == 0 and block.alone:
        return (loop(across.axis, 0, stop, *run),)
    columns = minus(stop, first)
    runs = columns if block.alone else quotient(columns, "run_columns")
    return let("runs", runs), loop("run", 0, "runs", *run)


def _run_offsets(nest: CopyNest, block: StagedBlock) -> tuple[Body, Index, Index]:
    """Where a run begins in the destination and in the block: at the first row of its first column."""
    if block.runs is not None:
        tables = {"out_offset": RUN_OFFSETS, "held_offset": STAGED_RUN_OFFSETS}
        loads = tuple(Let(name, Load(table, (index_of("run"),), "i64")) for name, table in tables.items())
        return loads, index_symbol("out_offset"), index_symbol("held_offset")
    column, (first, _), before = nest.loops[-1], columns_of(nest), list[Statement]()
    if first != 0 or not block.alone:
        before.append(let(column.axis, plus(first, times("run", 1 if block.alone else "run_columns"))))
    row = times(_rows(nest)[0], nest.target.bits // 8)
    entries, to = offset_along(column, "dst", column.axis)
    _, at = offset_along(_columns(block), "dst", column.axis)
    own = (x for x in _inside(nest) if x.axis in block.pitches)
    others = (_along(nest, x, block.pitches[x.axis]) for x in own)
    return (*before, *entries), plus(to, row), plus(at, row, *others)
