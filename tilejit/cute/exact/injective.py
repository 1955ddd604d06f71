"""Whether a layout meets an offset twice: by its strides, by differences of few coordinates, last by a table.

Coordinates c and c' meet where x = c - c' has sum(x[k] * stride[k]) = 0 with |x[k]| < size[k]. A mode whose
stride passes all smaller ones, or that comes back to the lattice of all others only past its size, has x = 0.
"""

from __future__ import annotations

from itertools import accumulate, combinations
from math import gcd, prod

import numpy as np
from numpy.typing import NDArray

from tilejit.cute.layout import Layout, cosize, offsets, trusted
from tilejit.cute.modes import flat_modes

MAX_PAIRED = 200
MAX_DIFFERENCES = 1 << 22
MAX_MARKS = 1 << 27
"""Offsets that have a mark each, 128 MiB."""

Mode = tuple[int, int]
"""The stride, without its sign, and the size."""

Moves = list[tuple[Mode, int]]
"""Modes, and how many of their steps make no way together."""


def is_injective(layout: Layout) -> bool:
    """Whether no two coordinates of a Layout have one offset; see `questions.is_injective`."""
    modes = sorted((abs(step), size) for size, step in flat_modes(layout) if size != 1)
    if not modes or any(size == 0 for _, size in modes):
        return True
    core = _core(modes)
    if not core:
        return True
    reach = sum(step * (size - 1) for step, size in core)
    if reach + 1 < prod(size for _, size in core) or len({step for step, _ in core}) < len(core):
        return False
    if _meeting_pair(core):
        return False
    if len(core) == 2:
        return True
    core.sort(key=lambda mode: mode[1])
    if prod(2 * size - 1 for _, size in core[:-1]) <= MAX_DIFFERENCES:
        return _met_by_last(core, reach) is None
    whole = trusted(tuple(size for _, size in core), tuple(step for step, _ in core))
    return distinct_offsets(whole).size == whole.size


def meeting(layout: Layout) -> tuple[int, int] | None:
    """Two indices of one offset, the smaller first; None where pairs of modes, and differences, show none.

    (4,4):(1,2) -> (2, 4)    (4,8):(1,5) -> None

    Args:
        layout: of positive strides; coalesced indices count all its modes.
    """
    weights: dict[Mode, list[int]] = {}
    weight = 1
    for size, step in flat_modes(layout):
        weights.setdefault((step, size), []).append(weight)
        weight *= size
    core = _core(sorted(mode for mode, own in weights.items() for _ in own if mode[1] > 1))
    found = _meeting_pair(core)
    core.sort(key=lambda mode: mode[1])
    if not found and core and prod(2 * size - 1 for _, size in core[:-1]) <= MAX_DIFFERENCES:
        found = _met_by_last(core, sum(step * (size - 1) for step, size in core))
    if not found:
        return None
    moves = [(count, weights[mode].pop()) for mode, count in found]
    return tuple(sorted(sum(max(0, sign * count) * w for count, w in moves) for sign in (1, -1)))  # type: ignore[return-value]


def distinct_offsets(layout: Layout) -> NDArray[np.int64]:
    """The offsets of a layout without negative strides in ascending order, each once.

    (2,3):(1,1) -> [0, 1, 2, 3]

    Raises:
        LayoutError: more than 2^27 offsets, or one beyond 64 bits.
    """
    table = offsets(layout)
    reach = cosize(layout)
    if reach <= MAX_MARKS:  # np.unique takes fifty times as long
        met = np.zeros(reach, bool)
        met[table] = True
        return np.flatnonzero(met)
    return distinct(table)


def distinct(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of a table in ascending order, each once; np.unique hashes them, which takes longer."""
    ordered = np.sort(table)
    first = np.ones(ordered.size, bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return np.asarray(ordered[first], np.int64)


def _core(modes: list[Mode]) -> list[Mode]:
    """Modes that may have a part in a meeting.

    (2, 4), (3, 4), (1000, 5) -> (2, 4), (3, 4)
    """
    count = len(modes) + 1
    while len(modes) < count:
        count = len(modes)
        reaches = list(accumulate((step * (size - 1) for step, size in modes), initial=0))
        while modes and modes[-1][0] > reaches[len(modes) - 1]:
            modes = modes[:-1]
        strides = [step for step, _ in modes]
        before = list(accumulate(strides, gcd, initial=0))
        behind = list(accumulate(reversed(strides), gcd, initial=0))[::-1]
        modes = [mode for k, mode in enumerate(modes) if not _apart(mode, gcd(before[k], behind[k + 1]))]
    return modes


def _apart(mode: Mode, lattice: int) -> bool:
    """Whether no multiple of the stride within the size is on the lattice, but 0."""
    step, size = mode
    return step > 0 and (lattice == 0 or lattice // gcd(lattice, step) >= size)


def _meeting_pair(core: list[Mode]) -> Moves | None:
    """Two modes of which a multiple of the one is one of the other, and how often each is taken."""
    if len(core) > MAX_PAIRED:
        return None
    for a, b in combinations(core, 2):
        common = gcd(a[0], b[0])
        if common == 0:
            return [(a, 1), (b, 0)]
        if b[0] // common < a[1] and a[0] // common < b[1]:
            return [(a, b[0] // common), (b, -(a[0] // common))]
    return None


def _met_by_last(core: list[Mode], reach: int) -> Moves | None:
    """A difference of all modes but the last that is a multiple of its stride within its size."""
    kind = np.int64 if reach < 1 << 61 else object
    sums = np.zeros(1, kind)
    for step, size in core[:-1]:
        sums = (np.arange(1 - size, size).astype(kind)[:, None] * step + sums).reshape(-1)
    step, size = core[-1]
    met = (sums % step == 0) & (abs(sums) // step < size)
    met[sums.size // 2] = False  # no difference at all
    at = int(met.argmax())
    if not met[at]:
        return None
    moves = [(core[-1], -int(sums[at]) // step)]
    for mode in core[:-1]:
        at, digit = divmod(at, 2 * mode[1] - 1)
        moves.append((mode, digit - mode[1] + 1))
    return moves
