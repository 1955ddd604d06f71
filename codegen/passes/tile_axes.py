"""Run loops of a copy in blocks, as its directives say."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import index_of, least, loop, plus
from codegen.ir.nodes import For, Function, Statement
from codegen.ir.rewriting import Body, rewrite_body
from codegen.schedule.directives import Tile
from codegen.schedule.transfers import Moves, TransferNest


def tile_axes(function: Function, nest: TransferNest) -> Function:
    """Run nested loops in blocks, so that the lines of a block stay in cache.

    before:  for column in 0..columns: for row in 0..rows: …          Tile("column", 32), Tile("row", 64)
    after:   for first_column in 0..columns step 32: for first_row in 0..rows step 64:
               for column in first_column..min(first_column + 32, columns):
                 for row in first_row..min(first_row + 64, rows): …
    """
    moves = nest.transfer
    tiles = {tile.axis: tile.size for tile in moves.obeying(Tile)} if isinstance(moves, Moves) else {}
    if not tiles:
        return function

    def tiled(node: Statement) -> Body:
        if isinstance(node, For) and node.index == next(iter(tiles)):
            return (_around(node, tiles),)
        return (node,)

    return replace(function, body=rewrite_body(function.body, tiled))


def _around(node: For, tiles: dict[str, int]) -> Statement:
    """The loops over blocks, around those inside of blocks."""
    nested = [node]
    while len(nested) < len(tiles):
        (inner,) = nested[-1].body
        assert isinstance(inner, For), "loops in blocks stand alone in each other"
        nested.append(inner)
    body = nested[-1].body
    for x in reversed(nested):
        first = f"first_{x.index}"
        stop = least(plus(first, tiles[x.index]), *x.upper)
        body = (replace(x, lower=(index_of(first),), upper=(stop,), body=body),)
    for x in reversed(nested):
        (count,) = x.upper
        body = (loop(f"first_{x.index}", 0, count, *body, step=tiles[x.index]),)
    return body[0]
