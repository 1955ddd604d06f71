"""Request the source of the next tile of a transpose while lines of this one are stored."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from codegen.ir.building import Term, compare, greatest, index_of, least, let, minus, plus, times
from codegen.ir.element_types import bits_of
from codegen.ir.index import Index, index_symbols
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Compare, For, Function, If, Let, Prefetch, Statement, Store, View
from codegen.ir.rewriting import Body, rewrite_body, substituted
from codegen.passes.prefetch_bytes import vector_loads, with_requests
from codegen.passes.prefetch_drain import is_drain, next_rows
from codegen.passes.sides import first_sides, sides_of
from codegen.passes.tile import first_iteration
from codegen.schedule import directives
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import Tile
from codegen.schedule.loops import Loop, Size
from codegen.support.dataclasses import dataclass


def prefetch_tile(function: Function, nest: CopyNest, how: directives.Prefetch) -> Function:
    """View the source where the next tile begins, and request its lines.

    before:  for row_tile in 0..rows step 96: for column_tile in 0..columns step 96:
               for row in …: for column in …: dst[column, row] = transposed(src[row, column] [16, 16])
    after:   for row_tile in 0..rows step 96: for column_tile in 0..columns step 96:
               next_tile = src[row_tile, column_tile + 96] if column_stop < columns else src[row_tile + 96, 0]
               for row in …: for column in …:
                 dst[column, row] = transposed(src[row, column] [16, 16])
                 prefetch next_tile[row - row_tile, column - column_tile] [16, 16]

    Each block requests the same block of the next tile. Staged parts of result rows request a line for each
    line that leaves scratch instead: see `next_rows`.
    """
    view = _next_tile(nest, first_sides(nest).src)

    def requested(node: Statement) -> Body:
        if not isinstance(node, For):
            return (node,)
        if node.index == nest.outer[-1]:
            ends = tuple(takewhile(lambda x: isinstance(x, Let), node.body))
            return (replace(node, body=(*ends, view, *node.body[len(ends) :])),)
        if nest.staged and not nest.stages_rows:
            return next_rows(nest, node) if is_drain(node) else (node,)
        return (_next_block(node, nest),)

    return replace(function, body=rewrite_body(function.body, requested))


def _next_block(node: For, nest: CopyNest) -> For:
    """A loop over blocks, or over rows that are converted one by one, to request the same of the next tile.

    The tile before requested the line inside which a row begins, so the last byte of a row is requested.
    Blocks before the first line of a result row and after its last one are stored through the cache.
    """
    sides, views = sides_of(nest), [x for x in node.body if isinstance(x, View)]
    rows = [x for x in views if x.buffer == sides.src]
    found = [x for x in vector_loads(node.body) if x.array in (sides.src, *(x.name for x in rows))]
    cached = any(isinstance(x, Store) and x.array == sides.dst and not x.streamed for x in node.body)
    if not found or cached or any(isinstance(x, For) for x in node.body):
        return node
    used = {name for x in rows for name in index_symbols(x.offset)}
    entries = [x for x in node.body if isinstance(x, Let) and x.name in used]
    local = [*(x.name for x in entries), *(x.name for x in rows)]
    names = {name: f"later_{name}" for name in local} | {sides.src: "next_tile"}
    (load,) = found
    begun = ((name, x) for x in nest.outer_tiles for name in (x.axis, f"{x.axis}_first"))
    later = {name: minus(name, first_iteration(x)) for name, x in begun}
    if nest.axis("row").src_table and not nest.stages_rows:
        # A last block may begin before its tile, but not before the table.
        later["row"] = plus("next_row", greatest(later["row"], 0))
    layers = (times(later[x.axis], x.src) for x in nest.loops if x.axis == "layer")
    row_bytes = load.shape[-1] * bits_of(load.dtype) // 8
    at = plus(*load.subscripts, *layers, min(row_bytes, LINE_BYTES) - 1)
    requests: Body = (
        *(replace(x, name=names[x.name]) for x in entries),
        *(replace(x, name=names[x.name], buffer="next_tile") for x in rows),
        Prefetch(replace(load, array=names[load.array], subscripts=(at,))),
    )
    for name, index in (later | {x.name: index_of(names[x.name]) for x in entries}).items():
        requests = tuple(substituted(x, name, index) for x in requests)
    return with_requests(node, *requests)


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
