"""The cases whose schedules `python -m bench record` measures, the same in every run.

A third is held out: a cost may be fitted to the others. The hash of a case's name says which, and the order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from math import exp, log, prod
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import numpy as np

import tilejit as tj
from bench import casts, cliffs, corpus_kernels, relayout, swizzles
from bench.arrays import short_name
from bench.formats import FORMATS, Dims
from bench.space import CopySpace, Space
from codegen import AccessMap, Element, PermutedMap
from tilejit.arrays.memory import bytes_map
from tilejit.layout.cute_shape import Spec
from tilejit.layout.indexing import access_map
from tilejit.layout.permuted import permuted_map
from tilejit.programs.compiled import array_element, buffer_element
from tilejit.programs.copy_programs import may_be_staged
from tilejit.programs.moves import move_for

SEED = 45
RANDOM_COPIES = 250
RELAYOUTS = 60
LEAST_BYTES, MOST_BYTES = 1 << 16, 128 << 20
HALVINGS = 0, 0, 2, 4, 6
"""How often arrays of 64 MB are halved."""

WIDTHS = {1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16"}
SIDES = (512, 513, 1000, 1001, 1024, 1025, 2000, 2048, 2049, 4000, 4096, 4097, 8000, 8192, 8193)
"""Of square transposes; neighbors should take as long."""

Strides: TypeAlias = tuple[int, ...]
Side: TypeAlias = tuple[AccessMap, Element]
"""Where elements are, and what they are."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A case: its kind, its name, and what makes its schedules, which allocates nothing."""

    kind: str
    name: str
    space: Callable[[], Space]

    @property
    def held_out(self) -> bool:
        """Whether nothing may be fitted to its times."""
        return is_held_out(self.name)


def is_held_out(name: str) -> bool:
    """Whether nothing may be fitted to the times of the case of that name."""
    return _hash(name)[-1] % 3 == 0


def _hash(name: str) -> bytes:
    return sha256(name.encode()).digest()


def cases() -> list[Recorded]:
    """All cases. The first ones are as mixed as all of them."""
    found = [
        *_permutations(),
        *_random_copies(),
        *_packs(),
        *_relayouts(),
        *_swizzles(),
        *_conversions(),
        *_transposes(),
        *(Recorded(kind, name, space) for kind, name, space in corpus_kernels.cases()),
    ]
    return sorted(found, key=lambda case: _hash(case.name))


def _permutations() -> Iterator[Recorded]:
    for case in json.loads((Path(__file__).parent / "ttc57.json").read_text())["cases"]:
        shape, order = tuple(case["shape"]), tuple(case["perm"])
        yield _permutation("permutations", shape, order, "f4")


def _permutation(kind: str, shape: Dims, order: Dims, dtype: str) -> Recorded:
    itemsize = np.dtype(dtype).itemsize
    steps = tight(shape, itemsize)
    dims = tuple(shape[d] for d in order)
    made = partial(arrays, dims, tuple(steps[d] for d in order), tight(dims, itemsize), dtype)
    return Recorded(kind, f"{kind} u{8 * itemsize} {_text(shape)} by {_text(order)}", made)


def _transposes() -> Iterator[Recorded]:
    for width, dtype in WIDTHS.items():
        for side in SIDES:
            if LEAST_BYTES <= side * side * width <= MOST_BYTES:
                yield _permutation("transposes", (side, side), (1, 0), dtype)


def _random_copies() -> Iterator[Recorded]:
    draw = Random(SEED)
    for _ in range(RANDOM_COPIES):
        yield _random_copy(draw)


def _random_copy(draw: Random) -> Recorded:
    """A permutation of any rank and width, perhaps with gaps, reversed axes, or starts inside a line."""
    while True:
        width, rank = draw.choice([*WIDTHS]), draw.randint(2, 5)
        size = exp(draw.uniform(log(LEAST_BYTES), log(MOST_BYTES))) / width
        dims = cliffs.random_shape(draw, rank, size)
        order = draw.sample(range(rank), rank)
        src, dst = _strides(draw, dims, order, width), _strides(draw, dims, range(rank), width)
        if src != dst and LEAST_BYTES <= prod(dims) * width <= MOST_BYTES:
            break
    starts = draw.choice((0, 0, 0, 16)), draw.choice((0, 0, 16, width * draw.randrange(64 // width)))
    sides = f"from {_text(src)}+{starts[0]} to {_text(dst)}+{starts[1]}"
    name = f"random u{8 * width} {_text(dims)} {sides}"
    return Recorded("random copies", name, partial(arrays, dims, src, dst, WIDTHS[width], starts=starts))


def _strides(draw: Random, dims: Dims, order: Sequence[int], width: int) -> Strides:
    """Strides with the dimensions in that order; every third array has a gap, every fifth is reversed."""
    steps, step = [0] * len(dims), width
    gap_after = draw.choice(order) if draw.random() < 1 / 3 else -1
    reversed_axis = draw.choice(order) if draw.random() < 1 / 5 else -1
    for d in reversed(order):
        steps[d] = -step if d == reversed_axis else step
        gap = width * draw.choice((1, 3, 16, 64)) if d == gap_after else 0
        step = step * dims[d] + gap * (step > width or dims[d] > 64)
    return tuple(steps)


def tight(dims: Dims, width: int) -> Strides:
    """Strides in bytes of a contiguous array in C order."""
    return tuple(width * prod(dims[d + 1 :]) for d in range(len(dims)))


def arrays(
    dims: Dims, src: Strides, dst: Strides, dtype: Any, to: Any = None, starts: tuple[int, int] = (0, 0)
) -> CopySpace:
    """The copy between two strided arrays that `copyto` makes."""
    source, target = np.dtype(dtype), np.dtype(to or dtype)
    move = move_for(source, target)
    assert move
    maps = bytes_map(dims, src, source.itemsize), bytes_map(dims, dst, target.itemsize)
    staged = may_be_staged(*maps, move)
    return CopySpace(*maps, move.source, move.target, starts=starts, staged=staged)


def _packs() -> Iterator[Recorded]:
    draw = Random(SEED)
    for named in FORMATS:
        for shape in named.shapes:
            for kind, make in (("packs", packed), ("unpacks", unpacked)):
                dims = _halved(shape, draw.choice(HALVINGS))
                name = f"{kind} {short_name(named.dtype)} {_text(dims)} {named.name} {named.layout}"
                yield Recorded(kind, name, partial(make, named.layout, named.dtype, dims))


def _relayouts() -> Iterator[Recorded]:
    draw = Random(SEED)
    pairs = [
        (group.dtype, shape, pair)
        for group in relayout.GROUPS
        for shape in group.shapes
        for pair in group.pairs(False)
    ]
    for dtype, shape, (source, target) in draw.sample(pairs, RELAYOUTS):
        dims = _halved(shape, draw.choice(HALVINGS))
        name = f"relayouts {short_name(dtype)} {_text(dims)} {source.layout} to {target.layout}"
        yield Recorded("relayouts", name, partial(relaid, dtype, dims, source.layout, target.layout))


def _swizzles() -> Iterator[Recorded]:
    draw = Random(SEED)
    for swizzle in swizzles.SWIZZLED:
        for kind, make in (("packs", packed), ("unpacks", unpacked)):
            dims = _halved(swizzle.dims, draw.choice(HALVINGS))
            layout = swizzle.layout(dims)
            name = f"{kind} {short_name(swizzle.dtype)} {_text(dims)} {layout}"
            yield Recorded("swizzles", name, partial(make, layout, swizzle.dtype, dims))


def _conversions() -> Iterator[Recorded]:
    for source, target in casts.CASES:
        for halvings in (0, 3, 6):
            dims = _halved(casts.DIMS, halvings)
            src, dst = (tight(dims, x.itemsize) for x in (source, target))
            back = tight(dims[::-1], source.itemsize)[::-1]
            for what, steps in (("flat", src), ("transposed", back)):
                name = f"conversions {short_name(source)} to {short_name(target)} {what} {_text(dims)}"
                yield Recorded("conversions", name, partial(arrays, dims, steps, dst, source, target))


def packed(layout: str, dtype: Any, dims: Dims) -> CopySpace:
    """The pack of an array in C order, with zeros as padding."""
    spec = tj.as_layout(layout, dtype=dtype, dims=dims)
    array, buffer = _sides(spec)
    return _copy(array, buffer, padded=True, permuted=permuted_map(spec))


def unpacked(layout: str, dtype: Any, dims: Dims) -> CopySpace:
    """The unpack into an array in C order."""
    spec = tj.as_layout(layout, dtype=dtype, dims=dims)
    array, buffer = _sides(spec)
    return _copy(buffer, array, permuted=permuted_map(spec))


def relaid(dtype: Any, dims: Dims, source: str, target: str) -> CopySpace:
    """The relayout between two buffers."""
    buffers = (_sides(tj.as_layout(layout, dtype=dtype, dims=dims))[1] for layout in (source, target))
    return replace(_copy(*buffers, padded=True), staged=True)


def _sides(spec: Spec) -> tuple[Side, Side]:
    """The array in C order, and the buffer."""
    element = array_element(spec)
    width = element.bits // 8
    array = bytes_map(spec.dimensions, tight(spec.dimensions, width), width)
    return (array, element), (access_map(spec), buffer_element(spec))


def _copy(src: Side, dst: Side, *, padded: bool = False, permuted: PermutedMap | None = None) -> CopySpace:
    """A copy between such sides; those of swizzled layouts may run in two stages."""
    (reads, source), (writes, target) = src, dst
    padding = bytes(-(-target.bits // 8)) if padded else None
    staged = permuted is not None
    return CopySpace(reads, writes, source, target, padding, staged=staged, permuted=permuted)


def _halved(dims: Dims, times: int) -> Dims:
    """The longest dimension is halved that many times; odd extents stay odd."""
    for _ in range(times):
        longest = dims.index(max(dims))
        dims = tuple(n // 2 | n & 1 if d == longest else n for d, n in enumerate(dims))
    return dims


def _text(numbers: Sequence[int]) -> str:
    return f"[{','.join(map(str, numbers))}]"
