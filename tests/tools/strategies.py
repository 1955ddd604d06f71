"""Random shapes, layouts and strides, from any source of small integers: Hypothesis or a random generator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st

from tilejit.cute.layout import Layout
from tilejit.cute.swizzle import ComposedLayout, Swizzle
from tilejit.layout.cute_shape import CuteShape
from tilejit.layout.dtypes import PRIMITIVE_TYPES, lookup
from tilejit.layout.from_parts import make_shape
from tilejit.layout.shape import Shape

Pick = Callable[[int, int], int]
"""pick(low, high) -> an integer of [low, high]."""

T = TypeVar("T")
MERGE = -1
TYPES = tuple(name for name, row in PRIMITIVE_TYPES.items() if row.numpy is not None)
PACKED = ("pred", "s1", "u1", "s2", "u2", "s4", "u4", "f4e2m1fn")
SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17, 24, 31, 32, 33, 40, 64, 65, 100, 128, 130)
TILE_SIZES = (1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 8, 12, 16, 32, 128)
KNOWN_TILES: tuple[tuple[tuple[int, ...], ...], ...] = (
    ((8, 128),),
    ((8, 128), (2, 1)),
    ((8, 128), (4, 1)),
    ((16, 128), (2, 1)),
    ((32, 128), (4, 1)),
    ((32, 128), (32, 1)),
    ((2, 128),),
    ((1024,), (128,), (2, 1)),
    ((64, 128), (8, 1)),
    ((16,),),
    ((4, 16), (16,), (4, 1)),
)


def one_of(pick: Pick, options: Sequence[T]) -> T:
    return options[pick(0, len(options) - 1)]


def chance(pick: Pick, one_in: int) -> bool:
    return pick(1, one_in) == 1


def permutation(pick: Pick, count: int) -> tuple[int, ...]:
    rest, out = list(range(count)), []
    while rest:
        out.append(rest.pop(pick(0, len(rest) - 1)))
    return tuple(out)


def extents(pick: Pick, most: int) -> tuple[int, ...]:
    """Dimensions whose product is at most `most`; sometimes none, sometimes an empty one."""
    out: list[int] = []
    for _ in range(one_of(pick, (0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6))):
        limit = max(1, most // max(1, prod(out)))
        out.append(one_of(pick, [n for n in SIZES if n <= limit]))
    if out and chance(pick, 40):
        out[pick(0, len(out) - 1)] = 0
    return tuple(out[k] for k in permutation(pick, len(out)))


def tiles_for(pick: Pick, axes: Sequence[int], most: int) -> tuple[tuple[int, ...], ...]:
    """Up to three levels of tiles that keep the buffer within `most` slots."""
    if chance(pick, 4):
        known = one_of(pick, KNOWN_TILES)
        return known if _slots(axes, known) <= most else ()
    out: tuple[tuple[int, ...], ...] = ()
    for _ in range(one_of(pick, (0, 1, 1, 1, 2, 2, 3))):
        rank = len(axes)
        for tile in out:
            sizes = sum(t != MERGE for t in tile)
            rank = max(rank, len(tile)) - len(tile) + 2 * sizes
        length = pick(1, max(1, min(rank + 1, 5)))
        tile = [one_of(pick, TILE_SIZES) for _ in range(length)]
        if chance(pick, 4):
            tile = [MERGE if k < length - 1 and chance(pick, 3) else t for k, t in enumerate(tile)]
        if _slots(axes, (*out, tuple(tile))) <= most:
            out = (*out, tuple(tile))
    return out


def _slots(axes: Sequence[int], tiles: Sequence[Sequence[int]]) -> int:
    """The number of slots of the buffer, by the definition."""
    sizes = list(axes)
    for tile in tiles:
        sizes = [1] * (len(tile) - len(sizes)) + sizes
        lead, rest = sizes[: len(sizes) - len(tile)], sizes[len(sizes) - len(tile) :]
        counts, carry = [], 1
        for n, t in zip(rest, tile, strict=True):
            carry *= n
            if t != MERGE:
                counts.append(-(-carry // t))
                carry = 1
        sizes = lead + counts + [t for t in tile if t != MERGE]
    return prod(sizes)


def shape(
    pick: Pick, *, dtype: str | None = None, most: int = 2000, dims: tuple[int, ...] | None = None
) -> Shape:
    """A shape with at most `most` elements, which sometimes has each feature that pack supports."""
    name = dtype or (one_of(pick, PACKED) if chance(pick, 4) else one_of(pick, TYPES))
    dims = extents(pick, most) if dims is None else dims
    order = permutation(pick, len(dims)) if chance(pick, 2) else tuple(reversed(range(len(dims))))
    padded = dims
    if dims and chance(pick, 6):
        padded = tuple(n + (pick(0, 5) if chance(pick, 2) else 0) for n in dims)
        padded = padded if prod(padded) <= 4 * most else dims
    tiles = tiles_for(pick, [padded[d] for d in reversed(order)], 8 * most)
    bits = PRIMITIVE_TYPES[name].bits
    packed = name in PACKED and not chance(pick, 4)
    return make_shape(
        lookup(name),
        dims,
        order,
        tiles,
        padded_dimensions=padded if padded != dims else None,
        padding_value=pick(0, 1) if chance(pick, 8) and name not in ("f8e8m0fnu", "s1") else None,
        element_size_in_bits=bits if packed else 0,
        tail_padding_alignment_in_elements=one_of(pick, (2, 3, 8, 64, 100)) if chance(pick, 8) else 1,
    )


def cute_shape(
    pick: Pick,
    *,
    swizzled: bool,
    most: int = 2000,
    dtype: str | None = None,
    dims: tuple[int, ...] | None = None,
) -> CuteShape:
    """A CuTe layout with at most `most` elements and no shared slots: nested modes, holes, boxes."""
    name = dtype or (one_of(pick, PACKED) if chance(pick, 4) else one_of(pick, TYPES))
    sizes = (1, 2, 2, 4, 4, 8) if swizzled and not chance(pick, 5) else (1, 2, 3, 4, 5, 7, 8, 16)
    modes: list[list[int]] = [] if dims is None else [digits(pick, n) for n in dims]
    total = 1
    for _ in range(pick(1, 3) if dims is None else 0):
        modes.append([])
        for _ in range(pick(1, 3)):
            fits = [n for n in sizes if n * total <= most]
            modes[-1].append(one_of(pick, fits))
            total *= modes[-1][-1]
    places = [(m, k) for m, mode in enumerate(modes) for k in range(len(mode))]
    steps, stride = [[0] * len(mode) for mode in modes], 1
    for place in permutation(pick, len(places)):
        m, k = places[place]
        gaps = (1, 2, 4) if swizzled else (1, 2, 3)
        stride *= one_of(pick, gaps) if chance(pick, 8) else 1
        steps[m][k] = stride
        stride *= modes[m][k]
    if dims is None:
        dims = tuple(prod(mode) if chance(pick, 2) else pick(1, prod(mode)) for mode in modes)
    layout: Any = Layout(tuple(map(tuple, modes)), tuple(map(tuple, steps)))
    if swizzled:
        bits = pick(0, 3)
        shift = (bits + pick(0, 3)) * (-1 if chance(pick, 4) else 1)
        offset = one_of(pick, (0, 0, stride, pick(0, 20)))
        layout = ComposedLayout(Swizzle(bits, pick(0, 4), shift), offset, layout)
    own = PRIMITIVE_TYPES[name].bits
    return CuteShape(name, dims, layout, own if name in PACKED and not chance(pick, 4) else 0)


def digits(pick: Pick, size: int) -> list[int]:
    """Up to three digits of a dimension. Indices past its end are padding."""
    out: list[int] = []
    for _ in range(pick(0, 2)):
        out.append(one_of(pick, [n for n in (1, 2, 3, 4, 5, 8, 16) if n <= size]))
        size = -(-size // out[-1])
    return [*out, size + (pick(0, 2) if chance(pick, 8) else 0)]


@dataclass(frozen=True)
class Pattern:
    """An einops pattern of an array, the sizes to give, and the number of the element in each slot or -1."""

    text: str
    sizes: dict[str, int]
    slots: np.ndarray[Any, Any]


def pattern(pick: Pick, dims: tuple[int, ...]) -> Pattern:
    """Up to seven digits in any order; the slots by pad, reshape and transpose."""
    groups: list[list[int]] = []
    for n in dims:
        groups.append(digits(pick, n) if sum(map(len, groups)) + len(dims) < 6 else [n])
    flat = [(f"d{d}k{k}", n) for d, group in enumerate(groups) for k, n in enumerate(group)]
    names = [[f"d{d}k{k}" for k in range(len(group))] for d, group in enumerate(groups)]
    order = permutation(pick, len(flat))
    box = np.full([prod(group) for group in groups], -1)
    box[tuple(map(slice, dims))] = np.arange(prod(dims)).reshape(dims)
    slots = box.reshape([n for _, n in flat]).transpose(order).reshape(-1)
    left = " ".join(f"({' '.join(row)})" for row in names)
    text = f"{left} -> {' '.join(flat[k][0] for k in order)}"
    return Pattern(text, dict(flat), slots)


def strides(
    pick: Pick, dims: tuple[int, ...], itemsize: int, *, broadcast: bool, reach: int = 1 << 20
) -> tuple[int, ...]:
    """Byte strides of an array: any order, holes, odd gaps, reversed axes; zero if `broadcast` allows it."""
    out = [0] * len(dims)
    step = itemsize * one_of(pick, (1, 1, 1, 1, 2, 3)) + (
        one_of(pick, (1, 2, 3, 5)) if chance(pick, 12) else 0
    )
    order = tuple(reversed(range(len(dims)))) if chance(pick, 2) else permutation(pick, len(dims))
    for d in order:
        if broadcast and chance(pick, 10):
            continue
        out[d] = -step if chance(pick, 8) else step
        room = step * max(1, dims[d])
        step = room + (one_of(pick, (0, 0, itemsize, 3 * itemsize, 64, 1)) if chance(pick, 3) else 0)
        step = room if step > reach else step
    return tuple(out)


def picker(rng: np.random.Generator) -> Pick:
    """A Pick over a random generator."""
    return lambda low, high: int(rng.integers(low, high + 1))


@st.composite
def shapes(draw: Any, *, dtype: str | None = None, most: int = 300) -> Shape:
    """A Hypothesis strategy of shapes."""
    return shape(lambda low, high: draw(st.integers(low, high)), dtype=dtype, most=most)


@st.composite
def cute_shapes(draw: Any, *, most: int = 300) -> CuteShape:
    """A Hypothesis strategy of CuTe layouts, half of them swizzled."""
    pick: Pick = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    return cute_shape(pick, swizzled=chance(pick, 2), most=most)


@st.composite
def shapes_and_strides(
    draw: Any, *, broadcast: bool = True, most: int = 300
) -> tuple[Shape, tuple[int, ...]]:
    """A shape, and the strides of an array to pack into it."""
    pick: Pick = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    made = shape(pick, most=most)
    return made, strides(pick, made.dimensions, made.dtype.itemsize, broadcast=broadcast)


@st.composite
def shape_pairs(draw: Any, *, most: int = 300) -> tuple[Shape, Shape]:
    """Two shapes of the same array."""
    pick: Pick = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    first = shape(pick, most=most)
    return first, shape(pick, dtype=first.primitive_type, most=most, dims=first.dimensions)
