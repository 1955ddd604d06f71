"""Every format of the catalog: pack and unpack of about 64 MB, against memcpy of the bytes moved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

import tilejit as tj
from bench.arrays import LINE_BYTES, Array, aligned
from bench.jobs import Case, Job
from bench.peers import Call
from tilejit.catalog.families import families
from tilejit.catalog.format import Format
from tilejit.layout.dtypes import primitive_type
from tilejit.layout.formats.examples import example_packing, example_planes, free_element

Planes = Mapping[str, Array]
BYTES, QUICK_BYTES = 64 << 20, 1 << 20


def cases(quick: bool) -> list[Case]:
    """A pack and an unpack of each format that has a packing."""
    size = QUICK_BYTES if quick else BYTES
    return [
        Case("catalog", family.name, f"{operation} {row.name}", partial(make, row, size))
        for family in families()
        for row in family.formats
        if example_packing(row) is not None
        for operation, make in (("pack", _pack), ("unpack", _unpack))
    ]


def _planes(row: Format, size: int) -> dict[str, Array]:
    """Arrays for the planes: the example's dimensions, doubled in turn until the main plane has the size."""
    packing = example_packing(row)
    assert packing is not None
    assert row.example is not None
    dims, dtype = list(row.example[0]), row.example[1]
    grows = [k for k, n in enumerate(dims) if n > 1] or [0]
    turn = 0
    while prod(dims) * max(1, primitive_type(dtype).storage_bits // 8) < size:
        dims[grows[turn % len(grows)]] *= 2
        turn += 1
    sizes, free = packing.sizes(tuple(dims), row.name), free_element(row, packing)
    planes, _ = _aligned(example_planes(packing, sizes, free, _values))
    if packing.rounds:  # rounded values come back as they are
        (name,) = planes
        planes[name][...] = tj.pack(planes[name], row.name).unpack()
    return planes


def _values(dims: tuple[int, ...], number: int, seed: int) -> Array:
    return np.random.default_rng(seed).integers(0, number, dims, np.int16)


def _aligned(arrays: Planes) -> tuple[dict[str, Array], Array]:
    """Copies of arrays, each on a cache line, and the memory that holds all of them."""
    starts = [0, *accumulate(x.nbytes + -x.nbytes % LINE_BYTES for x in arrays.values())]
    memory, found = aligned((starts[-1],), np.uint8), {}
    for start, (name, array) in zip(starts, arrays.items(), strict=False):
        found[name] = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        found[name][...] = array
    return found, memory


def _pack(row: Format, size: int, threads: int) -> Job:
    planes = _planes(row, size)
    given: Any = planes if len(planes) > 1 else next(iter(planes.values()))
    packed = tj.pack(given, row.name)
    buffers, memory = _aligned(_buffers(packed))
    out: Any = buffers if isinstance(packed, tj.PackedPlanes) else buffers["buffer"]

    def call() -> Any:
        return tj.pack(given, row.name, out=out, threads=threads)

    return _job(planes, buffers, memory, call, lambda found: found.unpack())


def _unpack(row: Format, size: int, threads: int) -> Job:
    planes = _planes(row, size)
    packed = tj.pack(planes if len(planes) > 1 else next(iter(planes.values())), row.name)
    nothing = np.empty(0, np.uint8)  # each call returns new arrays
    return _job(
        planes, _buffers(packed), nothing, lambda: packed.unpack(threads=threads), lambda found: found
    )


def _buffers(packed: Any) -> Planes:
    return packed.buffers if isinstance(packed, tj.PackedPlanes) else {"buffer": packed.buffer}


def _job(
    planes: Planes, buffers: Planes, out: Array, call: Callable[[], Any], read: Callable[[Any], Any]
) -> Job:
    """A job whose answer is right if the planes come back."""

    def agrees(result: object) -> bool:
        found = read(result)
        own = found if isinstance(found, dict) else {next(iter(planes)): found}
        same = (np.asarray(own[name]).astype(x.dtype).tobytes() == x.tobytes() for name, x in planes.items())
        return all(same)

    def ours() -> Call:
        return call

    moved = sum(x.nbytes for x in planes.values()) + sum(x.nbytes for x in buffers.values())
    return Job(moved, out, out, ours, {}, agrees)
