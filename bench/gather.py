"""Gather all tiles of a tiled array in random order, and scatter them back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

import tilejit as tj
from bench import peers
from bench.arrays import BF16, INT4, Array, aligned, bits, filled, flat_bytes, short_name, shrunk
from bench.formats import BYTES, F32, HALVES, S8, WORDS
from bench.jobs import Case, Job
from bench.narrow import expand, squeeze
from bench.peers import Call
from bench.recipe import Recipe
from tilejit.arrays.memory import empty

Allocate = Callable[[tuple[int, ...], Any], Array]


@dataclass(frozen=True, slots=True)
class Tiles:
    """A tiled array.

    The recipe's `split` and `order` say how the tiles [n, *tile] are stored in the buffer.
    """

    dtype: Any
    layout: str
    tile: tuple[int, int]
    shape: tuple[int, int]
    split: tuple[tuple[int, ...], ...] = ((), (), ())
    order: tuple[int, ...] = (0, 1, 2)
    width: int = 0
    allocate: Allocate = empty

    @property
    def tile_bytes(self) -> int:
        """Bytes per tile in the buffer."""
        return prod(self.tile) * (self.width or 8 * np.dtype(self.dtype).itemsize) // 8

    def recipe(self, count: int) -> Recipe:
        """From an array of `count` tiles to the contents of the buffer, one tile after the other."""
        return Recipe((count, *self.tile), self.split, self.order)


def _nested(dtype: Any, tile: tuple[int, int], high: int, shape: tuple[int, int], width: int = 0) -> Tiles:
    """A layout whose (high,1) tiles store that many elements of a column side by side."""
    ending = f"E({width})" if width else ""
    layout = f"{{1,0:T({tile[0]},{tile[1]})({high},1){ending}}}"
    return Tiles(dtype, layout, tile, shape, ((), (high,), ()), (0, 1, 3, 2), width)


CASES = (
    Tiles(F32, "{1,0:T(8,128)}", (8, 128), WORDS[0]),
    Tiles(F32, "{1,0:T(8,128)}", (8, 128), WORDS[1]),
    Tiles(F32, "{1,0:T(32,128)}", (32, 128), WORDS[0]),
    Tiles(F32, "{1,0:T(256,256)}", (256, 256), WORDS[0]),
    Tiles(F32, "{1,0:T(32,32)(16,16)}", (32, 32), WORDS[0], ((), (16,), (16,)), (0, 1, 3, 2, 4)),
    Tiles(F32, "{1,0:T(8,128)}", (8, 128), WORDS[0], allocate=np.empty),
    _nested(BF16, (8, 128), 2, HALVES[0]),
    _nested(BF16, (16, 128), 2, HALVES[0]),
    _nested(BF16, (16, 128), 2, HALVES[1]),
    _nested(BF16, (32, 128), 2, HALVES[0]),
    _nested(BF16, (64, 128), 2, HALVES[0]),
    _nested(BF16, (128, 128), 2, HALVES[0]),
    _nested(S8, (32, 128), 4, BYTES[0]),
    _nested(INT4, (64, 128), 8, BYTES[0], 4),
)


def cases(quick: bool) -> list[Case]:
    """A gather and a scatter for each layout."""
    return [
        Case("tiles in random order", operation, _name(operation, tiles, dims), partial(make, tiles, dims))
        for tiles in CASES
        for dims in (shrunk(tiles.shape, tiles.dtype, quick),)
        for operation, make in (("gather", _gathering), ("scatter", _scattering))
    ]


def _name(operation: str, tiles: Tiles, dims: tuple[int, ...]) -> str:
    text = f"{operation} {short_name(tiles.dtype)}[{','.join(map(str, dims))}] {tiles.layout[5:-1]}"
    return text if tiles.allocate is empty else f"{text}, NumPy's memory"


def _gathering(tiles: Tiles, dims: tuple[int, ...], threads: int) -> Job:
    tiled, ids, logical = _arrays(tiles, dims)
    flat_bytes(tiled.buffer)[:] = np.frombuffer(np.random.default_rng(1).bytes(tiled.nbytes), np.uint8)
    by_numpy = _taken(tiles, tiled.buffer, ids, logical)
    by_numpy()
    return Job(
        moved_bytes=tiled.nbytes + logical.nbytes,
        out=logical,
        expected=flat_bytes(logical).copy(),
        ours=lambda: lambda: tj.gather_tiles(tiled, ids, logical, threads=threads),
        peers={"numpy": lambda: by_numpy},
    )


def _scattering(tiles: Tiles, dims: tuple[int, ...], threads: int) -> Job:
    tiled, ids, logical = _arrays(tiles, dims)
    logical[...] = filled(logical.shape, tiles.dtype)
    by_numpy = _put(tiles, tiled.buffer, ids, logical)
    by_numpy()
    return Job(
        moved_bytes=tiled.nbytes + logical.nbytes,
        out=tiled.buffer,
        expected=flat_bytes(tiled.buffer).copy(),
        ours=lambda: lambda: tj.scatter_tiles(tiled, ids, logical, threads=threads),
        peers={"numpy": lambda: by_numpy},
    )


def _arrays(tiles: Tiles, dims: tuple[int, ...]) -> tuple[tj.TiledArray, Array, Array]:
    """A tiled array, its tile numbers in random order, and an array [n, *tile]."""
    spec = tj.as_layout(tiles.layout, dtype=tiles.dtype, dims=dims)
    buffer = tiles.allocate((spec.size_in_bytes,), np.uint8)
    count = len(buffer) // tiles.tile_bytes
    logical = tiles.allocate((count, *tiles.tile), tiles.dtype)
    tiled = tj.TiledArray.from_buffer(buffer if tiles.width else buffer.view(tiles.dtype), spec)
    return tiled, np.random.default_rng(0).permutation(count), logical


def _taken(tiles: Tiles, buffer: Array, ids: Array, logical: Array) -> Call:
    """Take tiles with numpy.take, then put each in its logical order."""
    rows, recipe = flat_bytes(buffer).reshape(len(ids), -1), tiles.recipe(len(ids))
    if _in_order(recipe):
        out = flat_bytes(logical).reshape(len(ids), -1)
        return lambda: np.take(rows, ids, axis=0, out=out, mode="clip")
    between = aligned(rows.shape, np.uint8)
    flat = between.reshape(-1)
    if tiles.width:
        unpack = expand(recipe, flat, logical, tiles.width)
    else:
        unpack = peers.by_numpy(recipe.unpack(bits(flat.view(logical.dtype)), bits(logical)))

    def run() -> None:
        np.take(rows, ids, axis=0, out=between, mode="clip")
        unpack()

    return run


def _put(tiles: Tiles, buffer: Array, ids: Array, logical: Array) -> Call:
    """Put each tile in its stored order, then assign all of them by number."""
    rows, recipe = flat_bytes(buffer).reshape(len(ids), -1), tiles.recipe(len(ids))
    if _in_order(recipe):
        values = flat_bytes(logical).reshape(len(ids), -1)
        return lambda: rows.__setitem__(ids, values)
    between = aligned(rows.shape, np.uint8)
    flat = between.reshape(-1)
    if tiles.width:
        pack = squeeze(recipe, logical, flat, tiles.width)
    else:
        pack = peers.by_numpy(recipe.pack(bits(logical), bits(flat.view(logical.dtype))))

    def run() -> None:
        pack()
        rows[ids] = between

    return run


def _in_order(recipe: Recipe) -> bool:
    """Whether tiles are stored in their logical order."""
    return recipe.order == tuple(sorted(recipe.order))
