"""complement: the layout that repeats another so that every offset below a bound is met once."""

from __future__ import annotations

import numpy as np

from codegen.errors import LayoutError
from tilejit.layout.cute.int_tuple import as_int_tuple, product
from tilejit.layout.cute.layout import Layout, cosize, offsets
from tilejit.layout.cute.modes import flat_modes, from_modes, joined
from tilejit.layout.cute.tables import recognise
from tilejit.layout.cute.witness import NoLayoutError, Witness
from tilejit.layout.tokens import shown

_MEND = "give strides that are multiples of what the smaller ones reach"
CHUNK = 1 << 10
MAX_COVER = 1 << 20
"""Offsets that a complement without divisibility is looked for in."""


def complement(layout: object, cotarget: object = None) -> Layout:
    """The ascending layout R whose sums with the layout's offsets are distinct and cover 0 to cotarget - 1.

    4:2, 24 -> (2,3):(1,8)    (2,2):(1,6), 24 -> (3,2):(2,12)    4:1, 10 -> 3:4, which covers 12

    Modes of stride 0 are dropped first. R is unique but for its end: whole gaps, then as many repeats as the
    bound takes.

    Args:
        layout: a Layout, or a size or shape for the compact one.
        cotarget: the bound, a size, shape or Layout; the cosize of the layout where none is given.

    Raises:
        NoLayoutError: no layout does that; the witness is an offset that cannot be met once, and how many
            times the repeats that smaller ones ask for meet it.
        LayoutError: a negative stride.
    """
    base = layout if isinstance(layout, Layout) else Layout(layout)
    bound = _bound(base, cotarget)
    modes = [(step, size) for size, step in flat_modes(base) if step and size != 1]
    modes.sort()
    if base.size == 0:
        raise NoLayoutError(f"{str(base)[:80]} has no elements to repeat\n  give it some", Witness(0, 0, 1))
    if modes and modes[0][0] < 0:
        raise LayoutError(
            f"{str(base)[:80]} has the negative stride {modes[0][0]}\n  make it a layout of offsets from 0"
        )
    out: list[tuple[int, int]] = []
    current = 1
    for step, size in modes:
        if step % current:
            return _searched(base, bound)
        if step != current:
            out.append((step // current, current))
        current = step * size
    out.append((max(1, -(-bound // current)), current))
    return from_modes(joined(out))


def _bound(base: Layout, cotarget: object) -> int:
    if cotarget is None:
        return cosize(base)
    bound = cotarget.size if isinstance(cotarget, Layout) else product(as_int_tuple(cotarget, "a cotarget"))
    if bound < 0:
        raise LayoutError(f"the cotarget is {shown(bound)}\n  give 0 or more")
    return bound


def _searched(base: Layout, bound: int) -> Layout:
    """Without divisibility: each lowest offset not yet met begins a repeat; there is no choice.

    So the values are forced as far as the bound, and the layout that continues them is the only candidate.
    """
    tile = np.unique(offsets(base))
    image = recognise(tile)
    if isinstance(image, Layout) and image.size < base.size:
        return complement(image, bound)
    reach = min(bound, MAX_COVER)
    met = np.zeros(reach + 1, bool)
    values: list[int] = []
    lowest = 0
    while lowest < reach:
        places = tile + lowest
        places = places[places < reach]
        if met[places].any():
            clash = int(places[met[places]][0])
            raise NoLayoutError(
                f"{str(base)[:80]} has no complement in {shown(bound)}: offset {lowest} needs a repeat "
                f"of its own, which would meet offset {clash} again\n  {_MEND}",
                Witness(clash, 2, 1),
            )
        met[places] = True
        values.append(lowest)
        lowest = _next(met, lowest, reach)
    if reach < bound:
        raise LayoutError(
            f"{str(base)[:80]} has no complement by divisibility, and the search would be long\n"
            f"  give a cotarget of at most {MAX_COVER}"
        )
    found = _continued(values)
    _check_disjoint(base, tile, found, bound)
    return found


def _next(met: np.ndarray[tuple[int], np.dtype[np.bool_]], begin: int, end: int) -> int:
    """The first place from `begin` that is not met."""
    for start in range(begin, end, CHUNK):
        chunk = met[start : min(start + CHUNK, end)]
        at = int(chunk.argmin())
        if not chunk[at]:
            return start + at
    return end


def _continued(values: list[int]) -> Layout:
    """The smallest layout whose offsets begin with these values; a candidate only, where there is none."""
    out: list[tuple[int, int]] = []
    rest = np.asarray(values or [0], np.int64)
    while rest.size > 1:
        faults = np.flatnonzero(rest != np.arange(rest.size) * rest[1])
        run = int(faults[0]) if faults.size else rest.size
        out.append((run, int(rest[1])))
        rest = rest[::run]
    return from_modes(joined(out))


def _check_disjoint(
    base: Layout, tile: np.ndarray[tuple[int], np.dtype[np.int64]], found: Layout, bound: int
) -> None:
    """Raise unless the repeats of the candidate ascend, meet nothing twice, and cover the bound."""
    repeats = offsets(found)
    if repeats.size * tile.size > 1 << 26:
        raise LayoutError(
            f"{str(base)[:80]}: a complement is too large to be checked\n  give a smaller cotarget"
        )
    sums = np.sort((repeats[:, None] + tile).reshape(-1))
    twice = np.flatnonzero(sums[1:] == sums[:-1])
    if (np.diff(repeats) <= 0).any() or twice.size or _first_gap(sums, bound) < bound:
        at = int(sums[twice[0]]) if twice.size else _first_gap(sums, bound)
        count = int((sums == at).sum())
        raise NoLayoutError(
            f"{str(base)[:80]} has no complement in {shown(bound)}: repeats at the offsets it needs, "
            f"{found}, do not meet offset {at} once and ascend\n  {_MEND}",
            None if count == 1 else Witness(at, count, 1),
        )


def _first_gap(sums: np.ndarray[tuple[int], np.dtype[np.int64]], bound: int) -> int:
    """The first offset below the bound that is not among distinct, sorted sums; the bound where none is."""
    within = sums[sums < bound]
    gaps = np.flatnonzero(within != np.arange(within.size))
    return int(gaps[0]) if gaps.size else within.size
