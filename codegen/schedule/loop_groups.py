"""Perfectly nested loops of a kernel that run in another order: in tiles, or interchanged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from codegen.analysis.bodies import perfect_nest, shared_loop
from codegen.analysis.report import LoopReport
from codegen.ir.nodes import For, Function, Statement
from codegen.schedule.directives import Directive, Reorder, Tail, Tile, Vectorize
from codegen.schedule.loops import int_size
from codegen.support.dataclasses import dataclass
from codegen.support.lookups import expect

LEVELS = ("tile", "strip")
"""The levels of tiles of a kernel's loops, outermost first."""


@dataclass(frozen=True, slots=True)
class LoopGroup:
    """Perfectly nested loops, from the outermost to the innermost one that directives name.

    loops  as they are nested in the function
    tiles  the loops over tiles to add, as `order` has them if no directive orders them
    order  the names of all loops, outermost first
    """

    loops: tuple[For, ...]
    tiles: tuple[Tile, ...]
    order: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All loops in the order that they have without a Reorder: those over tiles first."""
        return (*(x.index for x in self.tiles), *(x.index for x in self.loops))

    def tiles_of(self, axis: str) -> tuple[Tile, ...]:
        """The loops over tiles of a loop, outermost first."""
        found = (x for x in self.tiles if x.axis == axis)
        return tuple(sorted(found, key=lambda x: self.order.index(x.index)))

    def blocks(self, lanes: Mapping[str, int]) -> list[tuple[str, int]]:
        """For each loop in order, the loop of the function and its iterations in one iteration."""
        tiles = {x.index: (x.axis, int_size(x.size)) for x in self.tiles}
        return [tiles.get(name, (name, lanes.get(name, 1))) for name in self.order]

    def loop(self, name: str) -> For:
        """The loop of that name, or whose tiles a loop of that name runs over."""
        axis = next((x.axis for x in self.tiles if x.index == name), name)
        return expect((loop for loop in self.loops if loop.index == axis), f"a loop {name}", self.names)


def group_at(loop: For, directives: Sequence[Directive]) -> LoopGroup | None:
    """The group that begins with a loop; None if no Tile or Reorder names it."""
    tiles = [x for x in directives if isinstance(x, Tile)]
    orders = [x.loops for x in directives if isinstance(x, Reorder)]
    named = {*(x.axis for x in tiles), *(name for order in orders for name in order)}
    if loop.index not in named:
        return None
    nest = perfect_nest(loop)
    last = max(k for k, each in enumerate(nest) if each.index in named)
    loops = tuple(nest[: last + 1])
    levels = tuple(
        x
        for strips in (False, True)
        for each in loops
        for x in tiles
        if (x.axis, x.level == "strip") == (each.index, strips)
    )
    group = LoopGroup(loops, levels, ())
    order = next((order for order in orders if {*order} & {*group.names}), group.names)
    return LoopGroup(loops, levels, order)


def orders_without_tiles(directives: Sequence[Directive]) -> tuple[Reorder, ...]:
    """The orders that directives give the loops of a function, before loops over tiles are added.

    Tile("i", 8), Reorder("j", "i_tile", "i") -> Reorder("j", "i")
    """
    tiles = {x.index for x in directives if isinstance(x, Tile)}
    orders = (x.loops for x in directives if isinstance(x, Reorder))
    return tuple(Reorder(tuple(name for name in order if name not in tiles)) for order in orders)


def outer_loop(function: Function, directives: Sequence[Directive]) -> str:
    """The outermost loop, if threads may share it: it or its tiles are the only statement; "" if none."""
    loop = shared_loop(function)
    group = group_at(loop, directives) if loop else None
    if loop is None or (group and group.loop(group.order[0]) is not loop):
        return ""
    return group.order[0] if group else loop.index


def groups_of(body: tuple[Statement, ...], directives: Sequence[Directive]) -> Iterator[LoopGroup]:
    """All groups of a body, in source order."""
    for node in body:
        if not isinstance(node, For):
            continue
        group = group_at(node, directives)
        if group is not None:
            yield group
        yield from groups_of(group.loops[-1].body if group else node.body, directives)


def tails_of(directives: Sequence[Directive]) -> dict[str, str]:
    """How the last iterations of each loop run."""
    return {x.axis: x.how for x in directives if isinstance(x, Tail)}


def lane_directives(function: Function, reports: Sequence[LoopReport]) -> tuple[Directive, ...]:
    """The directives of chosen lanes: of each nest, the loops and the tail of the innermost one."""
    found = {x.index: x for x in reports if x.vectorized}
    lanes = {index: x.shape[-1] for index, x in found.items()}
    nests = [nest for node in function.body for nest in _nests(node, lanes, ())]
    pairs = [(Vectorize(nest), Tail(nest[-1][0], found[nest[-1][0]].tail)) for nest in nests]  # type: ignore[arg-type]
    return tuple(x for pair in pairs for x in pair)


def _nests(
    node: Statement, lanes: Mapping[str, int], around: tuple[tuple[str, int], ...]
) -> Iterator[tuple[tuple[str, int], ...]]:
    """The loops over super-vectors of each nest in a statement, outermost first, with their lanes."""
    if not isinstance(node, For):
        return
    count = lanes.get(node.index, 1)
    own = (*around, (node.index, count)) if count > 1 else around
    inside = [nest for each in node.body for nest in _nests(each, lanes, own)]
    yield from inside or ([own] if count > 1 else [])


def deepest(function: Function, directives: Sequence[Directive]) -> int:
    """How many loops are one inside the other, with those over tiles."""

    def depth(body: tuple[Statement, ...]) -> int:
        found = 0
        for node in body:
            if isinstance(node, For):
                own = sum(isinstance(x, Tile) and x.axis == node.index for x in directives)
                found = max(found, 1 + own + depth(node.body))
        return found

    return depth(function.body)
