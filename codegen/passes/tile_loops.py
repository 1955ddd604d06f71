"""The loops of a transpose over tiles, panels and other digits, and the view of the tile that comes next."""

from __future__ import annotations

from codegen.ir.building import Term, compare, index_of, least, let, loop, plus, times
from codegen.ir.index import Index
from codegen.ir.nodes import Compare, If, Statement, View
from codegen.ir.rewriting import Body
from codegen.passes.transposed_blocks import block_of
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import LanesBeyond, Tile
from codegen.schedule.loops import Loop, Size, int_size
from codegen.support.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TileLoop:
    """One loop around the blocks of a transpose.

    Attributes:
        axis: "row", "column", or the name of another digit.
        index, stop, step: what the loop counts: elements of a side, panels, or iterations of a digit.
        follows: whether another iteration follows.
        src: the factors of the index in the source offset of a tile.
        before: names that depend on the index.
    """

    axis: str
    index: str
    stop: Size
    step: int
    follows: Compare
    src: tuple[Size, ...]
    before: Body = ()

    def offset(self, at: Term) -> Index:
        """The source offset of a tile at an index."""
        found = index_of(at)
        for factor in self.src:
            found = times(found, factor)
        return found


def tile_loops(nest: CopyNest) -> tuple[TileLoop, ...]:
    """The loops around blocks, outermost first."""
    around, tiles = {x.axis: x for x in nest.around}, {x.index: x for x in nest.outer_tiles}
    return tuple(_digit(around[name]) if name in around else _tiles(nest, tiles[name]) for name in nest.outer)


def _tiles(nest: CopyNest, tile: Tile) -> TileLoop:
    """The loop over the tiles of an axis; one over panels counts them."""
    x, stop = nest.axis(tile.axis), f"{tile.axis}_stop"
    src = () if x.src_table else (x.src,)
    ends, last = compare(stop, "lt", x.extent), let(stop, least(plus(tile.first, tile.size), x.extent))
    if tile.level != "panel":
        return TileLoop(x.axis, tile.index, x.extent, int_size(tile.size), ends, src, (last,))
    before = let(tile.first, times(tile.index, tile.size)), last
    return TileLoop(x.axis, tile.index, tile.count, 1, ends, (tile.size, *src), before)


def _digit(x: Loop) -> TileLoop:
    """The loop over a digit that is neither rows nor columns."""
    return TileLoop(x.axis, x.axis, x.extent, 1, compare(plus(x.axis, 1), "lt", x.extent), (x.src,))


def around_tiles(nest: CopyNest, body: Body) -> Body:
    """All loops around a body."""
    for x in reversed(tile_loops(nest)):
        body = (loop(x.index, 0, x.stop, *x.before, *body, step=x.step),)
    return body


def next_tile(nest: CopyNest, src: str) -> Statement:
    """The view of the source where the next tile begins.

    The innermost loop moves on, or begins again while the one around it moves on, and so forth. A single
    loop ends with the same tile again.
    """
    outermost, *inside = tile_loops(nest)
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
    for x in tile_loops(nest):
        here = plus(x.index, x.step if moves_on.get(x.axis) else 0)
        at[x.axis] = index_of(0) if moves_on.get(x.axis) is False else here
    table = "row" in at and nest.axis("row").src_table is not None
    if table and tile_loops(nest)[0].axis == "row" and moves_on.get("row"):
        at["row"] = least(at["row"], block_of(nest).rows.extent)
    offsets = (x.offset(at[x.axis]) for x in tile_loops(nest) if not (table and x.axis == "row"))
    view = View("next_tile", src, plus(*offsets))
    return (let("next_row", at["row"]), view) if table else (view,)


def columns_of(nest: CopyNest) -> tuple[Term, Term]:
    """The first column of a tile, and the one after its last; a last block begins earlier."""
    if nest.obeying(LanesBeyond):
        return 0, nest.axis("column").extent
    return "column_first", "column_stop"
