"""Packs and unpacks from 4 KiB to 64 MiB, into given and into fresh memory, against the NumPy recipe."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import tilejit as tj
from bench import peers
from bench.arrays import Array, aligned, bits, filled, flat_bytes, short_name
from bench.formats import FORMATS, Format
from bench.jobs import Case, Job, packing, unpacking
from bench.peers import Way
from bench.recipe import Recipe

TPU_F32, TPU_BF16 = FORMATS[0], FORMATS[1]
TILE = {TPU_F32: (8, 128), TPU_BF16: (16, 128)}
"""The shape that takes 4 KiB, in whole tiles."""
STEPS = 8
"""Each array has four times the bytes of the one before: the last has 64 MiB."""
QUICK_STEPS = 4


def cases(quick: bool) -> list[Case]:
    """Both formats at every size; calls alternate with NumPy's, so that both find the same caches."""
    return [
        Case("sizes", f"{way}, {memory}", name, partial(make, named, dims), alternates=True)
        for named, (rows, columns) in TILE.items()
        for way, memory, make in (
            ("pack", "out= given", partial(_given, packing)),
            ("pack", "fresh", _fresh_pack),
            ("unpack", "out= given", partial(_given, unpacking)),
            ("unpack", "fresh", _fresh_unpack),
        )
        for step in range(QUICK_STEPS if quick else STEPS)
        for dims in ((rows << step, columns << step),)
        for name in (_name(way, named, dims, memory),)
    ]


def _name(way: str, named: Format, dims: tuple[int, int], memory: str) -> str:
    array = f"{short_name(named.dtype)}[{dims[0]},{dims[1]}]"
    return f"{way} {array} {named.layout[5:-1]}, {memory}"


def _given(make: Callable[..., Job], named: Format, dims: tuple[int, int], threads: int) -> Job:
    job = make(named.layout, named.recipe(dims), named.dtype, threads)
    return Job(job.moved_bytes, job.out, job.expected, job.ours, {"numpy": job.peers["numpy"]})


def _fresh_pack(named: Format, dims: tuple[int, int], threads: int) -> Job:
    x, recipe = filled(dims, named.dtype), named.recipe(dims)
    buffer = aligned((recipe.slots,), named.dtype)
    peers.by_numpy(recipe.pack(bits(x), bits(buffer)))()
    view = bits(x).reshape(recipe.blocks).transpose(recipe.order)
    return Job(
        moved_bytes=2 * x.nbytes,
        out=buffer,
        expected=flat_bytes(buffer).copy(),
        ours=lambda: lambda: tj.pack(x, named.layout, threads=threads),
        peers={"numpy": lambda: lambda: view.copy("C")},
    )


def _fresh_unpack(named: Format, dims: tuple[int, int], threads: int) -> Job:
    x, recipe = filled(dims, named.dtype), named.recipe(dims)
    tiled = tj.pack(x, named.layout)
    return Job(
        moved_bytes=2 * x.nbytes,
        out=aligned(dims, named.dtype),
        expected=flat_bytes(x),
        ours=lambda: lambda: tj.unpack(tiled, threads=threads),
        peers={"numpy": lambda: _unpacked(recipe, bits(tiled.buffer))},
    )


def _unpacked(recipe: Recipe, buffer: Array) -> Way:
    view = buffer.reshape(recipe.packed).transpose(recipe.back)
    return lambda: view.copy("C").reshape(recipe.shape)
