"""Random schedules of loops as text; a kernel accepts some of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codegen.ir.nodes import Function
from codegen.ir.visit import Loop, loops_of

SIZES = (1, 2, 3, 4, 5, 8, 16, 24, 40)
LANES = (1, 2, 3, 4, 8, 16)
TAILS = ("mask", "mask", "scalar", "shift")

Pick = Callable[[int], int]
"""pick(n): one of 0 to n - 1."""


def nests_of(function: Function) -> list[list[str]]:
    """The loops from each outermost one to each innermost one."""

    def paths(loop: Loop) -> list[list[str]]:
        inside = [path for each in loop.inside for path in paths(each)]
        return [[loop.node.index, *path] for path in inside or [[]]]

    return [path for root in loops_of(function.body) for path in paths(root)]


def random_schedule(nests: Sequence[Sequence[str]], pick: Pick) -> str:
    """A schedule of one nest: tiles of some loops, any order, lanes of some loops, and a tail."""
    loops = nests[pick(len(nests))]
    lanes = {name: LANES[pick(len(LANES))] for name in loops if not pick(3)}
    parts, tiles = [], []
    for name in loops:
        for level in ("tile", "strip")[pick(3) :] if not pick(2) else ():
            size = SIZES[pick(len(SIZES))] * (lanes.get(name, 1) if pick(4) else 1)
            size *= 1 + 3 * (level == "tile")
            parts.append(f'Tile("{name}", {size}, level="{level}")')
            tiles.append(f"{name}_{level}")
    if pick(2):
        order = _shuffled([*loops], pick)
        order = _shuffled(tiles, pick) + order if pick(3) else _shuffled([*tiles, *order], pick)
        parts.append(f"Reorder({', '.join(f'{name!r}' for name in order)})".replace("'", '"'))
    if lanes:
        inner = [name for name in loops if name in lanes]
        parts.append(f"Vectorize({', '.join(f'{name}={lanes[name]}' for name in inner)})")
        if pick(3) and lanes[inner[-1]] > 1:
            parts.append(f'Tail("{inner[-1]}", "{TAILS[pick(len(TAILS))]}")')
        parts += ['Stream("full")'] * (not pick(6))
    return ", ".join(parts) or f"Vectorize({loops[-1]}=8)"


def _shuffled(names: list[str], pick: Pick) -> list[str]:
    left, out = [*names], list[str]()
    while left:
        out.append(left.pop(pick(len(left))))
    return out
