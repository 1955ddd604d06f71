"""Copies of tiles that were seen before: the kernels are known, and each call brings the tiles' offsets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from codegen import COPIES_HOLD_GIL_BYTES, Cache, CopyProgram, Integers, OffsetCall, offset_calls
from tilejit.arrays.memory import address
from tilejit.layout.cute_shape import Spec
from tilejit.tiled.tile_grid import Grid
from tilejit.tiled.tiled_array import TiledArray


@dataclass(frozen=True, slots=True)
class TileCalls:
    """The kernel calls of a gather of so many tiles, or of a scatter.

    layout  of the tiled array, which is a number in the key of the calls
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
    program = compiled(np.arange(count) % prod(grid.extents))
    if program.first or any(len(x.tables) != 1 for x in program.launches):
        return nothing
    index, tables = np.arange(count), [x.tables[0] for x in program.launches]
    others = [np.ascontiguousarray((x.src if into else x.dst)(index), np.int64) for x in tables]
    if not others or any((x != others[0]).any() for x in others[1:]):
        return nothing
    step = step * grid.access.unit_bits // 8
    tile_range = range(0, step * (prod(grid.extents) - 1) + 1)
    other_range = range(int(others[0].min()), int(others[0].max()) + 1)
    sides = (other_range, tile_range) if into else (tile_range, other_range)
    moved = 2 * prod(held.shape) * held.dtype.itemsize
    calls = offset_calls(program.launches, *sides, hold_gil=moved <= COPIES_HOLD_GIL_BYTES)
    return TileCalls(layout, calls, step, others[0])
