"""Find the next tile of a transpose, whose source is requested while this one is stored."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from codegen.ir.building import Term, compare, index_of, least, let, plus, times
from codegen.ir.index import Index
from codegen.ir.nodes import Compare, For, Function, If, Let, Statement, View
from codegen.ir.rewriting import Body, rewrite_body
from codegen.passes.sides import first_sides
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import Tile
from codegen.schedule.loops import Loop, Size
from codegen.support.dataclasses import dataclass


def find_next_tile(function: Function, nest: CopyNest) -> Function:
    """View the source where the next tile begins.

    before:  for row_tile in 0..rows step 96: for column_tile in 0..columns step 96: …
    after:   for row_tile in 0..rows step 96: for column_tile in 0..columns step 96:
               next_tile = src[row_tile, column_tile + 96] if column_stop < columns else src[row_tile + 96, 0]
               …

    Each block of `vectorize_axes` requests a block of it, and each line that leaves scratch requests a line.
    Tiles whose rows are shorter than a lane mostly follow each other, so hardware prefetches them.
    """
    view = _next_tile(nest, first_sides(nest).src)

    def in_tiles(node: Statement) -> Body:
        if not isinstance(node, For) or node.index != nest.outer[-1]:
            return (node,)
        ends = tuple(takewhile(lambda x: isinstance(x, Let), node.body))
        return (replace(node, body=(*ends, view, *node.body[len(ends) :])),)

    return replace(function, body=rewrite_body(function.body, in_tiles))


@dataclass(frozen=True, slots=True)
class _TileLoop:
    """One loop around the blocks of a transpose.

    Attributes:
        axis: "row", "column", or the name of another digit.
        index, step: what the loop counts: elements of a side, tiles, or iterations of a digit.
        follows: whether another iteration follows.
        src: the factors of the index in the source offset of a tile.
    """

    axis: str
    index: str
    step: int
    follows: Compare
    src: tuple[Size, ...]

    def offset(self, at: Term) -> Index:
        """The source offset of a tile at an index."""
        found = index_of(at)
        for factor in self.src:
            found = times(found, factor)
        return found


def _tile_loops(nest: CopyNest) -> tuple[_TileLoop, ...]:
    """The loops around blocks, outermost first."""
    around, tiles = {x.axis: x for x in nest.around}, {x.index: x for x in nest.outer_tiles}
    return tuple(_digit(around[name]) if name in around else _tiles(nest, tiles[name]) for name in nest.outer)


def _tiles(nest: CopyNest, tile: Tile) -> _TileLoop:
    """The loop over the tiles of an axis; it counts them if their size is an argument."""
    x = nest.axis(tile.axis)
    src, follows = () if x.src_table else (x.src,), compare(f"{x.axis}_stop", "lt", x.extent)
    if isinstance(tile.size, str):
        return _TileLoop(x.axis, tile.index, 1, follows, (tile.size, *src))
    return _TileLoop(x.axis, tile.index, tile.size, follows, src)


def _digit(x: Loop) -> _TileLoop:
    """The loop over a digit that is neither rows nor columns."""
    return _TileLoop(x.axis, x.axis, 1, compare(plus(x.axis, 1), "lt", x.extent), (x.src,))


def _next_tile(nest: CopyNest, src: str) -> Statement:
    """The view of the source where the next tile begins.

    The innermost loop moves on, or begins again while the one around it moves on, and so forth. With a single
    loop, the last tile requests itself.
    """
    outermost, *inside = _tile_loops(nest)
    begin_again = {x.axis: False for x in inside}
    last = begin_again | {outermost.axis: True} if inside else {}
    chosen: Body = _begin(nest, src, last)
    for x in inside or (outermost,):
        begin_again.pop(x.axis, None)
        chosen = (If((x.follows,), _begin(nest, src, begin_again | {x.axis: True}), chosen),)
    return chosen[0]


def _begin(nest: CopyNest, src: str, moves_on: dict[str, bool]) -> Body:
    """The view of a tile: each loop moves on, begins again, or stays.

    With a table of rows, the first row is an index into it, and not in the address. The outermost loop also
    moves on from its last tile. If it runs over rows, that index is at most their number: super-vectors may
    have many more rows than the table has.
    """
    at: dict[str, Index] = {}
    for x in _tile_loops(nest):
        here = plus(x.index, x.step if moves_on.get(x.axis) else 0)
        at[x.axis] = index_of(0) if moves_on.get(x.axis) is False else here
    table = "row" in at and nest.axis("row").src_table is not None
    if table and _tile_loops(nest)[0].axis == "row" and moves_on.get("row"):
        at["row"] = least(at["row"], nest.axis("row").extent)
    offsets = (x.offset(at[x.axis]) for x in _tile_loops(nest) if not (table and x.axis == "row"))
    view = View("next_tile", src, plus(*offsets))
    return (let("next_row", at["row"]), view) if table else (view,)
