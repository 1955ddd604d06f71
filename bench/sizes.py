"""Packs, unpacks and relayouts from 1 KiB to 256 MiB, fresh and into given memory, against NumPy recipes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

import numpy as np
from rich.table import Table

import tilejit as tj
from bench import peers, relayout
from bench.arrays import Array, aligned, bits, filled, flat_bytes, short_name
from bench.formats import FORMATS, Dims, Format
from bench.jobs import Case, Job, packing, unpacking
from bench.measure import Row
from bench.peers import Way
from bench.recipe import Recipe

SIZES = tuple(1 << k for k in range(10, 29, 2))
QUICK_SIZES = tuple(1 << k for k in (12, 16, 20))
PAIRS = ((0, 6), (6, 0), (1, 6), (2, 14))
"""Formats between which arrays are moved: TPU and Tenstorrent, interleaved TPU and VNNI."""


def cases(quick: bool) -> list[Case]:
    """Every format at every size; calls alternate with NumPy's, so that both find the same caches."""
    sizes, formats = (QUICK_SIZES, FORMATS[:2]) if quick else (SIZES, FORMATS)
    packs = [
        Case("sizes", f"{way}, {memory}", _name(way, named, dims, memory), partial(make, named, dims), True)
        for named in formats
        for way, memory, make in (
            ("pack", "out= given", partial(_given, packing)),
            ("pack", "fresh", _fresh_pack),
            ("unpack", "out= given", partial(_given, unpacking)),
            ("unpack", "fresh", _fresh_unpack),
        )
        if not (named.width and memory == "fresh")
        for dims in _dims(named, sizes)
    ]
    moves = [
        Case("sizes", "relayout, out= given", f"relayout {source.label(dims)} to {target.name}", make, True)
        for source, target in ((FORMATS[k], FORMATS[n]) for k, n in PAIRS)
        if source.dtype == target.dtype
        for dims in _dims(source, sizes)
        for make in (partial(_relayout, source, target, dims),)
    ]
    return packs + moves


def _dims(named: Format, sizes: tuple[int, ...]) -> list[Dims]:
    """Shapes of about those bytes in proportion to the format's even shape, each once."""
    return list(dict.fromkeys(_scaled(named, size) for size in sizes))


def _scaled(named: Format, nbytes: int) -> Dims:
    """The format's even shape with its longest dimensions halved, or its first one doubled.

    f32[4096,4096], 1 KiB -> (16, 16)
    """
    dims, itemsize = list(named.shapes[0]), filled((1,), named.dtype).itemsize
    while prod(dims) * itemsize > nbytes and max(dims) > 1:
        longest = dims.index(max(dims))
        dims[longest] = -(-dims[longest] // 2)
    while prod(dims) * itemsize <= nbytes // 2:
        dims[0] *= 2
    return tuple(dims)


def _name(way: str, named: Format, dims: Dims, memory: str) -> str:
    array = f"{short_name(named.dtype)}[{','.join(map(str, dims))}]"
    return f"{way} {array} {named.name} {named.layout[1:-1].partition(':')[2]}, {memory}"


def _relayout(source: Format, target: Format, dims: Dims, threads: int) -> Job:
    job = relayout.job(source, target, dims, source.dtype, relayout.empty, threads)
    return Job(job.moved_bytes, job.out, job.expected, job.ours, {"numpy": job.peers["numpy"]})


def _given(make: Callable[..., Job], named: Format, dims: Dims, threads: int) -> Job:
    job = make(named.layout, named.recipe(dims), named.dtype, threads, named.width)
    return Job(job.moved_bytes, job.out, job.expected, job.ours, {"numpy": job.peers["numpy"]})


def _fresh_pack(named: Format, dims: Dims, threads: int) -> Job:
    x, recipe = filled(dims, named.dtype), named.recipe(dims)
    buffer = aligned((recipe.slots,), named.dtype)
    peers.by_numpy(recipe.pack(bits(x), bits(buffer)))()
    source = bits(x)
    after = [(0, p - n) for p, n in zip(recipe.padded, recipe.shape, strict=True)]

    def by_recipe() -> Array:
        """Pad, reshape and transpose, as one writes it without TileJIT."""
        padded = np.pad(source, after) if recipe.padded != recipe.shape else source
        return padded.reshape(recipe.blocks).transpose(recipe.order).copy("C")

    return Job(
        moved_bytes=2 * x.nbytes,
        out=buffer,
        expected=flat_bytes(buffer).copy(),
        ours=lambda: lambda: tj.pack(x, named.layout, threads=threads),
        peers={"numpy": lambda: by_recipe},
    )


def _fresh_unpack(named: Format, dims: Dims, threads: int) -> Job:
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
    view, inside = buffer.reshape(recipe.packed).transpose(recipe.back), tuple(map(slice, recipe.shape))
    return lambda: view.copy("C").reshape(recipe.padded)[inside]


SLOWER, LONG_SECONDS = 0.95, 5e-6
"""A call is slower below this ratio to the recipe, where the recipe takes at least so long."""


def slower(rows: Sequence[Row]) -> Table | None:
    """The cases in which a NumPy recipe of at least 5 us is faster; None without rows of this suite."""
    own = [row for row in rows if row.table == "sizes" and not row.problem and "numpy" in row.peers]
    timed = [(row, seconds.median) for row in own if (seconds := row.peers["numpy"].seconds)]
    if not timed:
        return None
    long = [(row, seconds) for row, seconds in timed if seconds >= LONG_SECONDS]
    found = sorted((row.peers["numpy"].ratio, row.case) for row, _ in long)
    short = [row.ours.median * 1e6 for row, seconds in timed if seconds < LONG_SECONDS]
    title = f"slower than the recipe: {sum(ratio < SLOWER for ratio, _ in found)} of {len(long)} cases"
    title += f"; where it takes less than 5 us, calls take {min(short):.1f} to {max(short):.1f}" * bool(short)
    table = Table("case", "x numpy", title=title, title_justify="left", min_width=100)
    for ratio, case in found:
        if ratio < SLOWER:
            table.add_row(case, f"{ratio:.2f}")
    return table
