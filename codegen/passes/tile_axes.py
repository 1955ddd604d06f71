"""Run loops of a copy in tiles and in another order, as its directives say."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from codegen.ir.building import index_of, least, let, loop, plus
from codegen.ir.index import Index
from codegen.ir.nodes import For, Function, Statement
from codegen.ir.rewriting import Body, rewrite_body
from codegen.passes.tile_loops import around_tiles
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import Tile
from codegen.schedule.loops import int_size


def tile_axes(function: Function, nest: CopyNest) -> Function:
    """Run nested loops in tiles, so that the lines of a tile stay in cache.

    before:  for column in 0..columns: for row in 0..rows: …          Tile("column", 32), Tile("row", 64)
    after:   for column_tile in 0..columns step 32: column_stop = min(column_tile + 32, columns)
               for row_tile in 0..rows step 64: row_stop = min(row_tile + 64, rows)
                 for column in column_tile..column_stop: for row in row_tile..row_stop: …

    With `Reorder`, loops around these move between those over tiles.
    """
    if not nest.obeying(Tile):
        return function
    outermost, *_ = (*(nest.around if nest.order else ()), *nest.loops)

    def tiled(node: Statement) -> Body:
        if isinstance(node, For) and node.index == outermost.axis:
            return _tiled(node, nest)
        return (node,)

    return replace(function, body=rewrite_body(function.body, tiled))


def _tiled(node: For, nest: CopyNest) -> Body:
    """The loops of a nest in their order, around the innermost body."""
    order = nest.order or (*(x.index for x in nest.obeying(Tile)), *(x.axis for x in nest.loops))
    views, body = _inside(node, {*order})
    for name in reversed([x for x in order if x not in nest.outer]):
        body = (_loop(name, nest, (*views.pop(name, ()), *body)),)
    outer = chain(*views.values())
    return around_tiles(nest, (*outer, *body)) if nest.order else body


def _inside(node: For, names: set[str]) -> tuple[dict[str, Body], Body]:
    """What is before the next loop in each of nested loops, and the body of the innermost one."""
    *views, last = node.body
    if not (isinstance(last, For) and last.index in names):
        return {}, node.body
    found, body = _inside(last, names)
    return {node.index: tuple(views), **found}, body


def _loop(name: str, nest: CopyNest, body: Body) -> For:
    """The loop over an axis inside its tiles, or over tiles inside of others."""
    tile = next((x for x in nest.obeying(Tile) if x.index == name), None)
    axis = tile.axis if tile else name
    levels = nest.tiles(axis)
    first, last = _ends(axis, nest, levels[: levels.index(tile)] if tile else levels)
    if tile is None:
        return loop(axis, first, last, *body)
    stop = let(_stop(levels, tile), least(plus(name, tile.size), last))
    return loop(name, first, last, stop, *body, step=int_size(tile.size))


def _ends(axis: str, nest: CopyNest, around: tuple[Tile, ...]) -> tuple[Index, Index]:
    """The bounds of a loop inside some levels of tiles."""
    if not around:
        return index_of(0), index_of(nest.axis(axis).extent)
    return index_of(around[-1].first), index_of(_stop(nest.tiles(axis), around[-1]))


def _stop(levels: tuple[Tile, ...], tile: Tile) -> str:
    """The name of the end of a tile."""
    return f"{tile.axis}_stop" if tile == levels[0] else f"{tile.index}_stop"
