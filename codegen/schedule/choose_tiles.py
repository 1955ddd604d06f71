"""Choose the sizes of tiles of loops."""

from __future__ import annotations

from collections.abc import Mapping

from codegen.ir.nodes import Function
from codegen.ir.visit import loops_of

TILE = 32
"""Iterations per tile of a loop that does not run as lanes."""


def choose_tiles(function: Function, lanes: Mapping[int, int]) -> dict[int, int]:
    """Iterations per tile of each loop, by loop number.

    lanes: the number of iterations that will run as lanes, by loop number. Tile sizes are multiples of it, so
    that full tiles hold full super-vectors.
    """
    numbers = [loop.number for root in loops_of(function.body) for loop in root.all()]
    return {n: -(-TILE // lanes.get(n, 1)) * lanes.get(n, 1) for n in numbers}
