"""Run loops of a copy in tiles and in another order, as its directives say."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import index_of, least, let, loop, plus
from codegen.ir.index import Index
from codegen.ir.nodes import For, Function, Statement
from codegen.ir.rewriting import Body, rewrite_body
from codegen.passes.lower_copies.tile_loops import around_tiles
from codegen.schedule.directives import Tile
from codegen.schedule.transfer_loops import int_size
from codegen.schedule.transfers import Moves, TransferNest


def tile_axes(function: Function, nest: TransferNest) -> Function:
    """Run nested loops in tiles, so that the lines of a tile stay in cache.

    before:  for column in 0..columns: for row in 0..rows: …          Tile("column", 32), Tile("row", 64)
    after:   for column_tile in 0..columns step 32: column_stop = min(column_tile + 32, columns)
               for row_tile in 0..rows step 64: row_stop = min(row_tile + 64, rows)
                 for column in column_tile..column_stop: for row in row_tile..row_stop: …

    With `Reorder`, loops around these move between those over tiles, and threads share the first loop.
    """
    moves = nest.transfer
    if not isinstance(moves, Moves) or not moves.obeying(Tile):
        return function

    def tiled(node: Statement) -> Body:
        if isinstance(node, For) and node.index == moves.loops[0].axis:
            return _tiled(node, moves, parallel=not nest.entries)
        return (node,)

    return replace(function, body=rewrite_body(function.body, tiled))


def _tiled(node: For, moves: Moves, *, parallel: bool) -> Body:
    """The loops of moves in their order, around the innermost body."""
    order = moves.order or (*(x.index for x in moves.obeying(Tile)), *(x.axis for x in moves.loops))
    views, body = _inside(node, {*order})
    inner, around = [name for name in order if name not in moves.outer], {x.axis for x in moves.around}
    for name in reversed(inner):
        if name in around:
            body, views = (*views, *body), ()
        body = (_loop(name, moves, body),)
    return around_tiles(moves, (*views, *body), parallel=parallel) if moves.order else body


def _inside(node: For, names: set[str]) -> tuple[Body, Body]:
    """The views between nested loops, and the body of the innermost one."""
    *views, last = node.body
    if not (isinstance(last, For) and last.index in names):
        return (), node.body
    more, body = _inside(last, names)
    return (*views, *more), body


def _loop(name: str, moves: Moves, body: Body) -> For:
    """The loop over an axis inside its tiles, or over tiles inside of others."""
    tile = next((x for x in moves.obeying(Tile) if x.index == name), None)
    axis = tile.axis if tile else name
    levels = moves.tiles(axis)
    first, last = _ends(axis, moves, levels[: levels.index(tile)] if tile else levels)
    if tile is None:
        return loop(axis, first, last, *body)
    stop = let(_stop(levels, tile), least(plus(name, tile.size), last))
    return loop(name, first, last, stop, *body, step=int_size(tile.size))


def _ends(axis: str, moves: Moves, around: tuple[Tile, ...]) -> tuple[Index, Index]:
    """The bounds of a loop inside some levels of tiles."""
    if not around:
        return index_of(0), index_of(moves.axis(axis).extent)
    return index_of(around[-1].first), index_of(_stop(moves.tiles(axis), around[-1]))


def _stop(levels: tuple[Tile, ...], tile: Tile) -> str:
    """The name of the end of a tile."""
    return f"{tile.axis}_stop" if tile == levels[0] else f"{tile.index}_stop"
