"""Layouts and tilings by exhaustive search: slow, obvious, and without code from TileJIT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations, product
from math import prod

import numpy as np
from numpy.typing import NDArray

Chain = tuple[tuple[int, int], ...]
MERGE = -1


def chain_offset(chain: Chain, index: int) -> int:
    """By definition. The last digit is unbounded."""
    out = 0
    for place, (size, stride) in enumerate(chain):
        last = place == len(chain) - 1
        out += (index if last else index % size) * stride
        index //= size
    return out


def sizes_of(count: int, *, whole: bool) -> Iterator[tuple[int, ...]]:
    """Every sequence of sizes from 2 up whose product is `count`, or just reaches it unless `whole`."""
    if count == 1:
        yield ()
        return
    for size in range(2, count + 1):
        if whole and count % size:
            continue
        for rest in sizes_of(-(-count // size), whole=whole):
            yield (size, *rest)


def chains_of(values: Sequence[int], *, whole: bool) -> Iterator[Chain]:
    """Every chain with these offsets. A digit's stride is the offset of the index at which it is 1."""
    for sizes in sizes_of(len(values), whole=whole):
        weights = [prod(sizes[:k]) for k in range(len(sizes))]
        chain = tuple((size, int(values[weight])) for size, weight in zip(sizes, weights, strict=True))
        if all(chain_offset(chain, i) == value for i, value in enumerate(values)):
            yield chain


def has_chain(values: Sequence[int], *, whole: bool) -> bool:
    return next(chains_of(values, whole=whole), None) is not None


def is_sum_of_chains(table: NDArray[np.int64], *, whole: bool) -> bool:
    """Whether a layout with one mode per axis has these offsets."""
    lines = [
        table[tuple(slice(None) if k == axis else 0 for k in range(table.ndim))] for axis in range(table.ndim)
    ]
    for index in np.ndindex(*table.shape):
        if table[index] != sum(int(line[i]) for line, i in zip(lines, index, strict=True)):
            return False
    return all(has_chain([int(v) for v in line], whole=whole) for line in lines)


def tiled_offsets(
    dims: Sequence[int], minor_to_major: Sequence[int], tiles: Sequence[Sequence[int]]
) -> NDArray[np.int64]:
    """The slot of every element, one index at a time: e -> (e // t, e mod t) for each tile."""
    grid = np.indices(dims)
    axes = [(grid[d], dims[d]) for d in reversed(minor_to_major)]
    for tile in tiles:
        axes = [(np.zeros(dims, np.int64), 1)] * (len(tile) - len(axes)) + axes
        first = len(axes) - len(tile)
        highs, lows = [], []
        merged: NDArray[np.int64] = np.zeros(dims, np.int64)
        extent = 1
        for (index, size), t in zip(axes[first:], tile, strict=True):
            merged, extent = merged * size + index, extent * size
            if t == MERGE:
                continue
            highs.append((merged // t, -(-extent // t)))
            lows.append((merged % t, t))
            merged, extent = np.zeros(dims, np.int64), 1
        axes = axes[:first] + highs + lows
    slot = np.zeros(dims, np.int64)
    for index, size in axes:
        slot = slot * size + index
    return slot


def all_tilings(
    dims: tuple[int, ...], levels: Sequence[tuple[int, Sequence[int]]]
) -> Iterator[tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]]:
    """Every order with every sequence of tiles. A level is its most entries and the sizes they may have."""
    sets: list[list[tuple[tuple[int, ...], ...]]] = [[()]]
    for most, sizes in levels:
        tiles = [t for length in range(1, most + 1) for t in product(sizes, repeat=length) if t[-1] != MERGE]
        sets.append([(*before, tile) for before in sets[-1] for tile in tiles])
    for order in permutations(range(len(dims))):
        for group in sets:
            for tiles in group:
                yield order, tiles


def text(dims: Sequence[int], minor_to_major: Sequence[int], tiles: Sequence[Sequence[int]] = ()) -> str:
    """XLA's text of an f32 shape."""
    parts = "".join("(" + ",".join("*" if t == MERGE else str(t) for t in tile) + ")" for tile in tiles)
    head = f"f32[{','.join(map(str, dims))}]"
    return f"{head}{{{','.join(map(str, minor_to_major))}{':T' + parts if parts else ''}}}"
