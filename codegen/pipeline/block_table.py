"""The calls of all blocks of a grid: made for one block of each kind, and repeated for the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.ir.lines import LINE_BYTES
from codegen.maps.block_grid import BlockGrid, Dims, Ends, Integers
from codegen.runtime.call_tables import Bounds, CallTable, Group, call_table, repeated
from codegen.support.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a grid.

    kind       the dimensions along which it is the last one
    following  the kind of the next block; None if there is none
    ahead      bytes from there to the next block, from the first address
    offsets    where it begins, in bytes from each address
    """

    kind: Ends
    following: Ends | None
    ahead: int
    offsets: tuple[int, ...]


Calls: TypeAlias = Callable[[Block], tuple[Group, Group]]
"""The calls of a block: those before it is computed in cache, and those after."""


def block_table(
    grid: BlockGrid,
    steps: Sequence[Dims],
    lines: Sequence[int],
    bounds: Sequence[Bounds],
    cached: Sequence[int],
    calls: Calls,
) -> CallTable:
    """The table of the calls of every block, in two groups for each.

    steps   bytes from one block to the next along each dimension, from each address
    lines   of each address, as in `call_table`
    bounds  of each address
    cached  the sizes in bytes of the arrays in cache, whose addresses follow

    Raises:
        KernelError: a block would leave the bounds of an address, or an array in cache.
    """
    offsets, kinds, ends = [grid.offsets(x) for x in steps], grid.kinds(), (*grid.ends(), None)
    following = np.append(kinds[1:], len(ends) - 1)
    ahead = np.diff(offsets[0], append=offsets[0][-1:])
    aligned = [(line + x) % LINE_BYTES == 0 for line, x in zip(lines, offsets, strict=True)]
    first, like = _like((kinds, following, ahead, *aligned))
    groups: list[Group] = []
    for k in first:
        kind, after = ends[kinds[k]], ends[following[k]]
        assert kind is not None
        groups += calls(Block(kind, after, int(ahead[k]), tuple(int(x[k]) for x in offsets)))
    once = call_table(groups, lines, bounds, tuple(cached))
    moved = [x - x[first][like] for x in offsets] + [np.zeros(len(like), np.int64) for _ in cached]
    which = (2 * like[:, None] + (0, 1)).reshape(-1)
    allowed = (*bounds, *((0, size) for size in cached))
    return repeated(once, which, np.stack(moved, axis=1).repeat(2, axis=0), allowed)


def _like(facts: Sequence[NDArray[Any]]) -> tuple[Integers, Integers]:
    """The first block of each kind that has the same facts, and the kind of each block.

    (0, 0, 1, 0), (5, 5, 5, 7) -> (0, 3, 2), (0, 0, 2, 1)
    """
    key = np.zeros(len(facts[0]), np.int64)
    for fact in facts:
        values = np.unique(fact)
        key = key * len(values) + np.searchsorted(values, fact)
    keys, first = np.unique(key, return_index=True)
    return first, np.searchsorted(keys, key)
