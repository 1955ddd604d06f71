"""From one named format to another of the same dtype: every pair, on an even and an uneven shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

import tilejit as tj
from bench import peers, swizzles
from bench.arrays import Array, aligned, bits, filled, flat_bytes, short_name, shrunk
from bench.formats import BF16, BYTES, F16, F32, FORMATS, HALVES, IMAGES, S8, U32, WORDS, Dims, Format
from bench.jobs import Case, Job
from tilejit.arrays.memory import empty

Allocate = Callable[[tuple[int, ...], Any], Array]


@dataclass(frozen=True, slots=True)
class Group:
    """Formats of one dtype and rank, and the shapes that they are measured on."""

    dtype: Any
    shapes: tuple[Dims, Dims]
    formats: tuple[Format, ...]

    def pairs(self, quick: bool) -> Iterator[tuple[Format, Format]]:
        """Every format to every other; in a quick run, only to the next."""
        for k, source in enumerate(self.formats):
            others = (*self.formats[k + 1 :], *self.formats[:k])
            yield from ((source, target) for target in others[: 1 if quick else None])


def _of(dtype: Any, rank: int) -> tuple[Format, ...]:
    return tuple(f for f in FORMATS if f.dtype == dtype and len(f.split) == rank)


GROUPS = (
    Group(F32, WORDS, (*_of(F32, 2), *_of(U32, 2))),
    Group(F32, IMAGES, _of(F32, 4)),
    Group(BF16, HALVES, _of(BF16, 2)),
    Group(F16, HALVES, _of(F16, 2)),
    Group(S8, BYTES, _of(S8, 2)),
)
"""Formats of other dtypes and ranks have no partner."""


def cases(quick: bool) -> list[Case]:
    """The pairs, grouped by dtype and shape; one pair also in memory that NumPy allocates."""
    found = [
        _case(f"{shape} shapes", group, pair, shrunk(group.shapes[index], group.dtype, quick))
        for group in GROUPS
        for shape, index in (("even", 0), ("uneven", 1))
        for pair in group.pairs(quick)
    ]
    group, (pair, *_) = GROUPS[0], GROUPS[0].pairs(quick)
    dims = shrunk(group.shapes[0], group.dtype, quick)
    return [*found, _case("NumPy's memory", group, pair, dims, np.empty), *swizzles.cases(quick)]


def _case(
    name: str, group: Group, pair: tuple[Format, Format], dims: Dims, allocate: Allocate = empty
) -> Case:
    source, target = (_short(f) for f in pair)
    text = f"{short_name(group.dtype)}[{','.join(map(str, dims))}] {source} to {target}"
    make = partial(job, *pair, dims, group.dtype, allocate)
    return Case("relayout", name, text, make)


def _short(named: Format) -> str:
    """tpu T(8,128)(2,1)"""
    tiles = named.layout.strip("{}").partition(":")[2]
    return f"{named.name} {tiles if len(tiles) <= 16 else tiles[:15] + '…'}"


def job(source: Format, target: Format, dims: Dims, dtype: Any, allocate: Allocate, threads: int) -> Job:
    """Relayout a buffer in one format into a buffer in another."""
    there = packed(source, dims, dtype, allocate)
    expected = flat_bytes(packed(target, dims, dtype, allocate))
    tiled = tj.TiledArray.from_buffer(there, tj.as_layout(source.layout, dtype=dtype, dims=dims))
    spec = tj.as_layout(target.layout, dtype=dtype, dims=dims)
    out = allocate((target.recipe(dims).slots,), dtype)
    between = aligned(dims, dtype)
    steps = (
        *source.recipe(dims).unpack(bits(there), bits(between)),
        *target.recipe(dims).pack(bits(between), bits(out)),
    )
    return Job(
        moved_bytes=there.nbytes + out.nbytes,
        out=out,
        expected=expected,
        ours=lambda: lambda: tj.relayout(tiled, spec, out=out, threads=threads),
        peers={
            "numpy": lambda: peers.by_numpy(steps),
            "torch": lambda: peers.by_torch(steps, threads),
        },
    )


@lru_cache(maxsize=max(len(group.formats) for group in GROUPS))
def packed(named: Format, dims: Dims, dtype: Any, allocate: Allocate) -> Array:
    """The buffer that the format's recipe makes; the pairs of one dtype and shape share it."""
    recipe = named.recipe(dims)
    buffer = allocate((recipe.slots,), dtype)
    peers.by_numpy(recipe.pack(bits(filled(dims, dtype)), bits(buffer)))()
    return buffer
