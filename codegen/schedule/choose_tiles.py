"""Choose the tiles of loops of a kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codegen.analysis.bodies import flat, perfect_nest, vector_nest
from codegen.ir.nodes import For, Function, Statement
from codegen.schedule.check_loops import order_problem
from codegen.schedule.directives import Directive, Tile
from codegen.schedule.machine import machine

TILE = 32
"""Iterations per tile of a loop that does not run as lanes."""

TRANSPOSED_TILE = (128, 256)
"""Iterations per tile of two loops whose squares are transposed in registers: lines stay in the second cache
until all squares that share them have run. `c[j, i] = a[i, j]` takes 9.1 ms without tiles and 1.9 with them
for f32 on 2048x2048, 18.6 and 9.0 on 4096x4096, 3.8 and 3.3 for f64 on 2000x2000 (Zen 4, 2026-11)."""

TILED_CACHES = 4
"""Such nests run in tiles from this many times the size of the second cache on; smaller ones gain nothing."""


def runs_in_tiles(size_bytes: int) -> bool:
    """Whether tiles pay for arrays of that many bytes in total."""
    return size_bytes >= TILED_CACHES * machine().second_cache_bytes


def choose_tiles(function: Function, wide: Function, lanes: Sequence[Directive]) -> tuple[Tile, ...]:
    """The tiles of nests of several loops that may run in another order: full tiles hold full super-vectors.

    wide: the same function with super-vectors, whose directives are `lanes`.
    """
    nests = (nest for nest in _nests(wide.body) if len(nest) > 1)
    tiles = (tuple(Tile(x.index, -(-TILE // x.size) * x.size) for x in nest) for nest in nests)
    return tuple(x for found in tiles if not order_problem(function, (*found, *lanes)) for x in found)


def choose_transposed_tiles(
    function: Function, wide: Function, lanes: Sequence[Directive]
) -> tuple[Tile, ...]:
    """The tiles of pairs of loops over super-vectors, as far as their order is legal."""
    found: list[Tile] = []
    for nest in (vector_nest(x) for x in flat(wide.body) if isinstance(x, For)):
        divides = all(size % x.size == 0 for size, x in zip(TRANSPOSED_TILE, nest, strict=False))
        if len(nest) == len(TRANSPOSED_TILE) and divides:
            tiles = [Tile(x.index, size) for x, size in zip(nest, TRANSPOSED_TILE, strict=True)]
            found += [] if order_problem(function, (*tiles, *lanes)) else tiles
    return tuple(found)


def _nests(body: tuple[Statement, ...]) -> Iterator[list[For]]:
    """The perfect nests of a body, and those inside them."""
    for node in body:
        if isinstance(node, For):
            nest = perfect_nest(node)
            yield nest
            yield from _nests(nest[-1].body)
