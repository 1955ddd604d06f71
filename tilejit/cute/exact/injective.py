"""Decide whether a layout is injective: by its strides, by differences of few coordinates, or by a table.

Coordinates c and c' have the same offset if x = c - c' satisfies sum(x[k] * stride[k]) = 0 with |x[k]| <
size[k]. A mode has x = 0 if its stride exceeds the range of all smaller ones, or if it returns to the lattice
of the others only past its size.
"""

from __future__ import annotations

from itertools import accumulate, combinations
from math import gcd, prod
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from tilejit.cute.digits import Mode, by_stride
from tilejit.cute.layout import Layout, cosize, offsets
from tilejit.cute.modes import flat_modes, from_modes

MAX_PAIRED = 200
"""The most modes to compare in pairs."""
MAX_DIFFERENCES = 1 << 22
"""The most differences of coordinates to enumerate."""
MAX_MARKS = 1 << 27
"""The most offsets to mark in a table, 128 MiB."""

Moves = list[tuple[Mode, int]]
"""Modes, and the numbers of steps whose offsets cancel."""


def is_injective(layout: Layout) -> bool:
    """Whether no two coordinates of a Layout share an offset; see `questions.is_injective`."""
    moving = [mode for mode in flat_modes(layout) if mode.size != 1]
    modes = sorted([m if m.stride >= 0 else Mode(m.size, -m.stride) for m in moving], key=by_stride)
    if not modes or any(mode.size == 0 for mode in modes):
        return True
    core = _core(modes)
    if not core:
        return True
    reach = _reach(core)
    if reach + 1 < prod(mode.size for mode in core) or len({mode.stride for mode in core}) < len(core):
        return False
    if _meeting_pair(core):
        return False
    if len(core) == 2:
        return True
    core.sort(key=attrgetter("size"))
    if prod(2 * mode.size - 1 for mode in core[:-1]) <= MAX_DIFFERENCES:
        return _met_by_last(core, reach) is None
    whole = from_modes(core)
    return distinct_offsets(whole).size == whole.size


def meeting(layout: Layout) -> tuple[int, int] | None:
    """Two indices that share an offset, the smaller first; None if pairs of modes and differences show none.

    (4,4):(1,2) -> (2, 4)    (4,8):(1,5) -> None

    Args:
        layout: a layout with positive strides.
    """
    weights: dict[Mode, list[int]] = {}
    weight = 1
    for size, step in flat_modes(layout):
        weights.setdefault(Mode(size, step), []).append(weight)
        weight *= size
    core = _core(sorted((mode for mode, own in weights.items() for _ in own if mode.size > 1), key=by_stride))
    found = _meeting_pair(core)
    core.sort(key=attrgetter("size"))
    if not found and core and prod(2 * mode.size - 1 for mode in core[:-1]) <= MAX_DIFFERENCES:
        found = _met_by_last(core, _reach(core))
    if not found:
        return None
    moves = [(count, weights[mode].pop()) for mode, count in found]
    return tuple(sorted(sum(max(0, sign * count) * w for count, w in moves) for sign in (1, -1)))  # type: ignore[return-value]


def distinct_offsets(layout: Layout) -> NDArray[np.int64]:
    """The offsets of a layout without negative strides in ascending order, each once.

    (2,3):(1,1) -> [0, 1, 2, 3]

    Raises:
        LayoutError: there are more than 2^27 offsets, or one exceeds 64 bits.
    """
    table = offsets(layout)
    reach = cosize(layout)
    if reach <= MAX_MARKS:  # np.unique takes fifty times as long
        met = np.zeros(reach, bool)
        met[table] = True
        return np.flatnonzero(met)
    return distinct(table)


def distinct(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of a table in ascending order, each once; np.unique is slower because it hashes them."""
    ordered = np.sort(table)
    first = np.ones(ordered.size, bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return np.asarray(ordered[first], np.int64)


def _reach(modes: list[Mode]) -> int:
    """The highest offset of modes without negative strides."""
    return sum(step * (size - 1) for size, step in modes)


def _core(modes: list[Mode]) -> list[Mode]:
    """Modes that may take part in a collision.

    (4, 2), (4, 3), (5, 1000) -> (4, 2), (4, 3)
    """
    count = len(modes) + 1
    while len(modes) < count:
        count = len(modes)
        reaches = list(accumulate((step * (size - 1) for size, step in modes), initial=0))
        while modes and modes[-1].stride > reaches[len(modes) - 1]:
            modes = modes[:-1]
        strides = [mode.stride for mode in modes]
        before = list(accumulate(strides, gcd, initial=0))
        behind = list(accumulate(reversed(strides), gcd, initial=0))[::-1]
        modes = [mode for k, mode in enumerate(modes) if not _apart(mode, gcd(before[k], behind[k + 1]))]
    return modes


def _apart(mode: Mode, lattice: int) -> bool:
    """Whether 0 is the only multiple of the stride within the size that lies on the lattice."""
    size, step = mode
    return step > 0 and (lattice == 0 or lattice // gcd(lattice, step) >= size)


def _meeting_pair(core: list[Mode]) -> Moves | None:
    """Two modes whose strides have a common multiple within both ranges, and the steps that cancel."""
    if len(core) > MAX_PAIRED:
        return None
    for a, b in combinations(core, 2):
        common = gcd(a.stride, b.stride)
        if common == 0:
            return [(a, 1), (b, 0)]
        if b.stride // common < a.size and a.stride // common < b.size:
            return [(a, b.stride // common), (b, -(a.stride // common))]
    return None


def _met_by_last(core: list[Mode], reach: int) -> Moves | None:
    """A difference of all modes but the last that is a multiple of the last stride within its size."""
    kind = np.int64 if reach < 1 << 61 else object
    sums = np.zeros(1, kind)
    for size, step in core[:-1]:
        sums = (np.arange(1 - size, size).astype(kind)[:, None] * step + sums).reshape(-1)
    size, step = core[-1]
    met = (sums % step == 0) & (abs(sums) // step < size)
    met[sums.size // 2] = False  # no difference
    at = int(met.argmax())
    if not met[at]:
        return None
    moves = [(core[-1], -int(sums[at]) // step)]
    for mode in core[:-1]:
        at, digit = divmod(at, 2 * mode.size - 1)
        moves.append((mode, digit - mode.size + 1))
    return moves
