"""The loops of a transpose over tiles, panels and other digits, and the view of the tile that comes next."""

from __future__ import annotations

from typing import Literal, TypeAlias

from codegen.ir.building import Term, compare, index_of, least, let, loop, minus, plus, times
from codegen.ir.index import Index
from codegen.ir.nodes import Blocks, Compare, If, Statement, View
from codegen.ir.rewriting import Body
from codegen.passes.lower_copies.blocks import block_of
from codegen.schedule.directives import PrefetchTile, Tile
from codegen.schedule.transfer_loops import Loop, Size
from codegen.schedule.transfers import Moves
from codegen.schedule.transposes import TransposeRuns
from codegen.support.dataclasses import dataclass

Transpose: TypeAlias = Moves | TransposeRuns
"""Both kinds."""


@dataclass(frozen=True, slots=True)
class TileLoop:
    """One loop around the blocks of a transpose.

    Attributes:
        axis: "row", "column", "layers", or the name of another digit.
        index, stop, step: what the loop counts: elements of a side, panels, or iterations of a digit.
        follows: whether another iteration follows.
        src, dst: the factors of the index in the offset of a tile. Rows and columns are part of a block's
            offset instead, so they have none in the destination.
        before: names that depend on the index.
    """

    axis: str
    index: str
    stop: Size
    step: int
    follows: Compare
    src: tuple[Size, ...]
    dst: tuple[Size, ...]
    before: Body = ()

    def offset(self, side: Literal["src", "dst"], at: Term) -> Index:
        """The offset of a tile at an index."""
        found = index_of(at)
        for factor in self.src if side == "src" else self.dst:
            found = times(found, factor)
        return found


def tile_loops(t: Transpose) -> tuple[TileLoop, ...]:
    """The loops around blocks, outermost first."""
    if isinstance(t, TransposeRuns):
        return tuple(_panels(t, x) for x in t.loops)
    around, tiles = {x.axis: x for x in t.around}, {x.index: x for x in t.outer_tiles}
    return tuple(_digit(around[name]) if name in around else _tiles(t, tiles[name]) for name in t.outer)


def _tiles(t: Moves, tile: Tile) -> TileLoop:
    x, stop = t.axis(tile.axis), f"{tile.axis}_stop"
    before = let(stop, least(plus(tile.index, tile.size), x.extent))
    src = () if x.src_table else (x.src,)
    return TileLoop(
        x.axis, tile.index, x.extent, tile.size, compare(stop, "lt", x.extent), src, (), (before,)
    )


def _panels(t: TransposeRuns, x: Loop) -> TileLoop:
    if x.axis == "columns":
        stop = let("column_stop", least(plus("column_tile", t.tile), t.columns))
        before = let("column_tile", times("column_panel", t.tile)), stop
        ends, src = compare("column_stop", "lt", t.columns), (t.tile, t.source_width)
        return TileLoop("column", "column_panel", x.extent, 1, ends, src, (), before)
    if x.axis == "layers":
        layers = let("layers", least(t.together, minus(t.layers, times("group", t.together))))
        ends = compare(plus("group", 1), "lt", x.extent)
        strides = (t.together, x.src), (t.together, x.dst)
        return TileLoop(x.axis, "group", x.extent, 1, ends, *strides, (layers,))
    return _digit(x)


def _digit(x: Loop) -> TileLoop:
    """The loop over a digit that is neither rows nor columns."""
    return TileLoop(x.axis, x.axis, x.extent, 1, compare(plus(x.axis, 1), "lt", x.extent), (x.src,), (x.dst,))


def other_loops(t: Transpose) -> tuple[TileLoop, ...]:
    """The loops over digits that are neither rows nor columns."""
    return tuple(x for x in tile_loops(t) if x.axis not in ("row", "column"))


def others_offset(t: Transpose, side: Literal["src", "dst"]) -> Index:
    """The offset of the digits that are neither rows nor columns."""
    return plus(*(x.offset(side, x.index) for x in other_loops(t)))


def around_tiles(t: Transpose, body: Body, *, parallel: bool) -> Body:
    """All loops around a body; a parallel one runs from `begin` to `end`, which count its iterations."""
    requests = isinstance(t, TransposeRuns) or t.obeying(PrefetchTile)
    blocks = Blocks(ahead="tile") if requests else None
    for k, x in reversed(list(enumerate(tile_loops(t)))):
        first, last = index_of(0), index_of(x.stop)
        if parallel and k == 0:
            first, last = times("begin", x.step), times("end", x.step)
            last = least(last, x.stop) if x.step > 1 else last
        body = (loop(x.index, first, last, *x.before, *body, step=x.step, blocks=blocks),)
        blocks = None
    return body


def next_tile(t: Transpose, src: str) -> Statement:
    """The view of the source where the next tile begins.

    The innermost loop moves on, or begins again while the one around it moves on, and so forth. A single
    loop ends with the same tile again.
    """
    outermost, *inside = tile_loops(t)
    begin_again = {x.axis: False for x in inside}
    last = begin_again | {outermost.axis: True} if inside else {}
    chosen: Body = _begin(t, src, last)
    for x in inside or (outermost,):
        begin_again.pop(x.axis, None)
        chosen = (If((x.follows,), _begin(t, src, begin_again | {x.axis: True}), chosen),)
    return chosen[0]


def _begin(t: Transpose, src: str, moves_on: dict[str, bool]) -> Body:
    """The view of a tile: each loop moves on, begins again, or stays.

    With a table of rows, the first row is an index into it, and not in the address. The outermost loop also
    moves on from its last tile. If it runs over rows, that index is at most their number: super-vectors may
    have many more rows than the table has.
    """
    at: dict[str, Index] = {}
    for x in tile_loops(t):
        here = plus(x.index, x.step if moves_on.get(x.axis) else 0)
        at[x.axis] = index_of(0) if moves_on.get(x.axis) is False else here
    table = isinstance(t, Moves) and t.axis("row").src_table is not None
    if table and tile_loops(t)[0].axis == "row" and moves_on.get("row"):
        at["row"] = least(at["row"], block_of(t).rows.extent)
    offsets = (x.offset("src", at[x.axis]) for x in tile_loops(t) if not (table and x.axis == "row"))
    view = View("next_tile", src, plus(*offsets))
    return (let("next_row", at.get("row", 0)), view) if table else (view,)
