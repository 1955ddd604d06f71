"""Choose the sizes of tiles of loops."""

from __future__ import annotations

from collections.abc import Mapping

from codegen.ir.nodes import Function
from codegen.ir.visit import loops_of
from codegen.schedule.machine import machine

TILE = 32
"""Iterations per tile of a loop that does not run as lanes."""


TRANSPOSED_TILE = (128, 256)
"""Iterations per tile of two loops whose squares are transposed in registers: lines stay in the second cache
until all squares that share them have run. `c[j, i] = a[i, j]` takes 9.1 ms without tiles and 1.9 with them
for f32 on 2048x2048, 18.6 and 9.0 on 4096x4096, 3.8 and 3.3 for f64 on 2000x2000 (Zen 4, 2026-11)."""

TILED_CACHES = 4
"""Such nests run in tiles from this many times the size of the second cache on; smaller ones gain nothing."""


def transposed_tile(sizes: tuple[int, ...]) -> tuple[int, int] | None:
    """The tile of nests in super-vectors that "auto" chose; None unless these are squares.

    (16, 16) -> (128, 256)    (64,) -> None
    """
    is_square = len(sizes) == 2 and sizes[0] == sizes[1]
    return TRANSPOSED_TILE if is_square else None


def runs_in_tiles(size_bytes: int) -> bool:
    """Whether tiles pay for arrays of that many bytes in total."""
    return size_bytes >= TILED_CACHES * machine().second_cache_bytes


def choose_tiles(function: Function, lanes: Mapping[int, int]) -> dict[int, int]:
    """Iterations per tile of each loop, by loop number.

    lanes: the number of iterations that will run as lanes, by loop number. Tile sizes are multiples of it, so
    that full tiles hold full super-vectors.
    """
    numbers = [loop.number for root in loops_of(function.body) for loop in root.all()]
    return {n: -(-TILE // lanes.get(n, 1)) * lanes.get(n, 1) for n in numbers}
