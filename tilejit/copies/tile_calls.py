"""Copies of tiles that were seen before: the kernels are known, and each call brings the tiles' offsets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from codegen import COPIES_HOLD_GIL_BYTES, Cache, CopyProgram, Integers, OffsetCall, PairTable, offset_calls
from tilejit.arrays.memory import address
from tilejit.layout.cute_shape import Spec
from tilejit.tiled.tile_grid import Grid
from tilejit.tiled.tiled_array import TiledArray


@dataclass(frozen=True, slots=True)
class TileCalls:
    """The kernel calls of a gather of so many tiles, or of a scatter.

    layout  of the tiled array, whose id is in the key of the calls
    step    bytes from one tile to the next in the tiled array
    others  the offsets of the tiles on the other side
    """

    layout: Spec
    calls: tuple[OffsetCall, ...]
    step: int
    others: Integers

    def run(self, numbers: Integers, tiles: int, held: int, *, into: bool) -> None:
        """Copy the tiles of these numbers, all in the grid, between the two addresses."""
        offsets = numbers * self.step
        at, others_at = address(offsets), address(self.others)
        for call in self.calls:
            if into:
                call(held, tiles, others_at, at)
            else:
                call(tiles, held, at, others_at)


_known: Cache[tuple[Any, ...], TileCalls] = Cache()


def tile_calls(
    t: TiledArray,
    grid: Grid,
    count: int,
    held: Any,
    *,
    into: bool,
    compiled: Callable[[Integers], CopyProgram],
) -> TileCalls | None:
    """The calls for so many tiles of this layout and `held`; None where each call is compiled for its tiles.

    compiled: makes the copy of given tiles on one thread.
    """
    layout = t.layout
    own = held.layout if isinstance(held, TiledArray) else (held.shape, held.strides, held.dtype)
    key = id(layout), own, count, into
    known = _known.get(key)
    if known is None or known.layout is not layout:
        known = _known.keep(key, _made(layout, grid, count, held, into, compiled))
    return known if known.calls else None


def _made(
    layout: Spec, grid: Grid, count: int, held: Any, into: bool, compiled: Callable[[Integers], CopyProgram]
) -> TileCalls:
    """The calls of the copy of as many tiles as are wanted, the first one among them; none if they differ."""
    step, nothing = grid.step, TileCalls(layout, (), 0, np.zeros(0, np.int64))
    if step is None or step < 0 or layout.packed or not count:
        return nothing
    chosen, index = np.arange(count) % prod(grid.extents), np.arange(count)
    program, step = compiled(chosen), step * grid.access.unit_bits // 8
    if program.first or any([x.extent for x in launch.tables] != [count] for launch in program.launches):
        return nothing
    tables = [launch.tables[0] for launch in program.launches]
    own, others = ([np.asarray(side(index)) for side in sides] for sides in _sides(tables, into))
    if (
        not others
        or any((x != chosen * step).any() for x in own)
        or any((x != others[0]).any() for x in others)
    ):
        return nothing
    rest = np.ascontiguousarray(others[0], np.int64)
    ranges = range(0, step * (prod(grid.extents) - 1) + 1), range(int(rest.min()), int(rest.max()) + 1)
    moved = 2 * prod(held.shape) * held.dtype.itemsize
    calls = offset_calls(
        program.launches, count, *(ranges[::-1] if into else ranges), hold_gil=moved <= COPIES_HOLD_GIL_BYTES
    )
    return TileCalls(layout, calls, step, rest)


def _sides(tables: list[PairTable], into: bool) -> tuple[list[Any], list[Any]]:
    """The functions of offsets on the side of the tiled array, and on the other side."""
    src, dst = [x.src for x in tables], [x.dst for x in tables]
    return (dst, src) if into else (src, dst)
