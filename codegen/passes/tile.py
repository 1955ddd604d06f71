"""Run loops of a kernel in tiles, in the order that directives give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codegen.analysis.bodies import defined
from codegen.ir.index import Affine, index_symbol
from codegen.ir.nodes import Carried, For, Function, Statement
from codegen.ir.rewriting import rename_carried
from codegen.ir.values import Local
from codegen.passes.new_names import fresh_name
from codegen.schedule.directives import Directive
from codegen.schedule.loop_groups import LoopGroup, group_at
from codegen.schedule.loops import int_size


def tile(function: Function, directives: Sequence[Directive]) -> Function:
    """Split loops, scalar or over super-vectors, into loops over tiles and loops inside each tile.

    before:  for i in 0..n: for j in 0..m step 16:  C[i, j] = A[i, j] [16]     Tile("i", 8), Tile("j", 64)
    after:   for i_tile in 0..n step 8: for j_tile in 0..m step 64:
               for i in i_tile..min(i_tile + 8, n):
                 for j in j_tile..min(j_tile + 64, m) step 16:  C[i, j] = A[i, j] [16]

    Loops over tiles carry the accumulators of a reduction from one tile to the next. Without tiles, loops are
    interchanged: Reorder("j", "i").
    """
    taken = {argument.name for argument in function.arguments} | defined(function.body)

    def tiled(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return tuple(loop(node) if isinstance(node, For) else node for node in body)

    def loop(node: For) -> Statement:
        group = group_at(node, directives)
        if group is None:
            return replace(node, body=tiled(node.body))
        names = {x.index: fresh_name(x.index, taken) for x in group.tiles}
        held = [c.name for x in group.loops for c in x.carried if names]
        carried = {name: fresh_name(f"{name}.{group.tiles[-1].level}", taken) for name in held}
        (made,) = _in_order(group, names, carried, tiled(group.loops[-1].body))
        return made

    return replace(function, body=tiled(function.body))


def _in_order(
    group: LoopGroup, names: dict[str, str], carried: dict[str, str], body: tuple[Statement, ...]
) -> tuple[Statement, ...]:
    """The loops of a group around a body.

    names    the index of each loop over tiles
    carried  the names inside a tile of what is carried from tile to tile
    """
    for name in reversed(group.order):
        loop = group.loop(name)
        step, levels = loop.step // loop.size, group.tiles_of(loop.index)
        depth = next((k for k, x in enumerate(levels) if x.index == name), len(levels))
        lower, upper = loop.lower, loop.upper
        if depth:
            around = levels[depth - 1]
            first = index_symbol(names[around.index])
            lower, upper = (first,), (first + Affine(int_size(around.size) * step), *upper)
        made = replace(loop, lower=lower, upper=upper, body=body, parallel=loop.parallel and not depth)
        if depth < len(levels):
            size = int_size(levels[depth].size) * step
            handed = tuple(replace(c, update=_held(c, carried[c.name])) for c in loop.carried)
            made = replace(made, index=names[name], step=size, size=1, carried=handed, min_distance=1)
        elif depth:
            started = tuple(replace(c, start=_held(c, c.name)) for c in loop.carried)
            made = rename_carried(replace(made, carried=started), carried)
        body = (made,)
    return body


def _held(carried: Carried, name: str) -> Local:
    """The value of that name of what a loop carries."""
    return Local(name, carried.start.dtype, carried.start.shape)
