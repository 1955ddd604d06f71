"""Run loops in tiles, in the order that directives give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from codegen.analysis.bodies import defined
from codegen.ir.building import least, let, plus, quotient, times
from codegen.ir.index import Affine, Index, index_symbol
from codegen.ir.nodes import Carried, For, Function, Statement
from codegen.ir.rewriting import Body, rename_carried
from codegen.ir.values import Local
from codegen.passes.new_names import fresh_name
from codegen.schedule.directives import Directed, Tile
from codegen.schedule.loop_groups import LoopGroup, group_at
from codegen.support.dataclasses import dataclass


def tile(function: Function, schedule: Directed) -> Function:
    """Split loops, scalar or over super-vectors, into loops over tiles and loops inside each tile.

    before:  for i in 0..n: for j in 0..m step 16:  C[i, j] = A[i, j] [16]     Tile("i", 8), Tile("j", 64)
    after:   for i_tile in 0..n step 8: for j_tile in 0..m step 64:
               for i in i_tile..min(i_tile + 8, n):
                 for j in j_tile..min(j_tile + 64, m) step 16:  C[i, j] = A[i, j] [16]

    Loops over tiles carry the accumulators of a reduction from one tile to the next. Without tiles, loops are
    interchanged: Reorder("j", "i"). Where blocks are transposed or staged, ends of tiles have names,
    i_stop = min(i_tile + 8, n), because later passes use them. A loop over tiles of a size that is an
    argument counts them, i_tile in tiles.
    """
    taken = {argument.name for argument in function.arguments} | defined(function.body)

    def tiled(body: Body) -> Body:
        return tuple(loop(node) if isinstance(node, For) else node for node in body)

    def loop(node: For) -> Statement:
        group = group_at(node, schedule.directives)
        if group is None:
            return replace(node, body=tiled(node.body))
        names = {x.index: fresh_name(x.index, taken) for x in group.tiles}
        held = [c.name for x in group.loops for c in x.carried if names]
        carried = {name: fresh_name(f"{name}.{group.tiles[-1].level}", taken) for name in held}
        nest = _Nest(
            group, names, carried, bool(function.buffers) and (schedule.transposes or schedule.staged)
        )
        (made,) = nest.around(tiled(group.loops[-1].body))
        return made

    return replace(function, body=tiled(function.body))


@dataclass(frozen=True, slots=True)
class _Nest:
    """The loops of a group in their order.

    names    the loops over tiles
    carried  the names inside a tile of what is carried from tile to tile
    named    whether ends of tiles have names
    """

    group: LoopGroup
    names: Mapping[str, str]
    carried: Mapping[str, str]
    named: bool

    def around(self, body: Body) -> Body:
        """The loops around a body; those that the order lacks stay as they are, inside the others."""
        for loop in reversed(self.group.loops):
            if loop.index not in self.group.order:
                body = (replace(loop, body=body),)
        views = _views(self.group)
        for name in reversed(self.group.order):
            body = (self.loop(name, (*views.get(name, ()), *body)),)
        return body

    def loop(self, name: str, body: Body) -> For:
        """The loop of that name around a body."""
        loop = replace(self.group.loop(name), body=body)
        levels = self.group.tiles_of(loop.index)
        depth = next((k for k, x in enumerate(levels) if x.index == name), len(levels))
        made = self.inside(loop, levels[:depth]) if depth else loop
        if depth < len(levels):
            return self.over_tiles(made, levels[: depth + 1])
        if depth:
            started = tuple(replace(c, start=_held(c, c.name)) for c in loop.carried)
            made = rename_carried(replace(made, carried=started), self.carried)
        return made

    def inside(self, loop: For, levels: Sequence[Tile]) -> For:
        """The loop inside a tile, whose end is a name or the nearest of several bounds."""
        first, last = self.ends(loop, levels)
        around = (self.ends(loop, levels[:k])[1] for k in range(1, len(levels)))
        upper = (index_symbol(_stop(levels)),) if self.named else (last, *around, *loop.upper)
        return replace(loop, lower=(first,), upper=upper, parallel=False)

    def over_tiles(self, loop: For, levels: Sequence[Tile]) -> For:
        """The loop over the tiles of a level."""
        tile, step = levels[-1], loop.step // loop.size
        carried = tuple(replace(c, update=_held(c, self.carried[c.name])) for c in loop.carried)
        made = replace(loop, index=self.names[tile.index], size=1, carried=carried, min_distance=1)
        before: Body = ()
        if self.named:
            _, last = self.ends(loop, levels)
            before = (let(_stop(levels), least(last, *loop.upper)),)
        if isinstance(tile.size, int):
            made = replace(made, step=tile.size * step)
        else:
            tiles = quotient(plus(*loop.upper, tile.size, -1), tile.size)
            made = replace(made, lower=(Affine(),), upper=(tiles,))
        return replace(made, body=(*before, *loop.body))

    def ends(self, loop: For, levels: Sequence[Tile]) -> tuple[Index, Index]:
        """The first iteration of a tile, and the one after its last if it is full."""
        first = first_iteration(levels[-1], self.names[levels[-1].index])
        return first, plus(first, times(levels[-1].size, loop.step // loop.size))


def first_iteration(tile: Tile, index: str = "") -> Index:
    """The first iteration of a tile: the index of the loop over tiles, unless it counts them."""
    at = index or tile.index
    return index_symbol(at) if isinstance(tile.size, int) else times(at, tile.size)


def _views(group: LoopGroup) -> dict[str, Body]:
    """The views between the loops, by the loop that they move into.

    They are inside the loops whose views they use.
    """
    found, around = dict[str, Body](), set[str]()
    for loop in (x for x in group.loops[:-1] if x.body[:-1]):
        around.add(loop.index)
        innermost = [name for name in group.order if name in around][-1]
        found[innermost] = (*found.get(innermost, ()), *loop.body[:-1])
    return found


def _stop(levels: Sequence[Tile]) -> str:
    """The name of the end of a tile of the last of some levels."""
    return f"{levels[-1].axis if len(levels) == 1 else levels[-1].index}_stop"


def _held(carried: Carried, name: str) -> Local:
    """The value of that name of what a loop carries."""
    return Local(name, carried.start.dtype, carried.start.shape)
