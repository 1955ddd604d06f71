"""Soak cases between layouts: relayout, tiles gathered and scattered, views by tilers."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

import tests.tools.strategies as random_of
from tests.tools.oracle import (
    packed_by_definition,
    random_elements,
    same_elements,
    slots_of,
    unpacked_by_definition,
    value_mask,
)
from tilejit import cute
from tilejit.copies.relayouts import relayout
from tilejit.copies.tiles import gather_tiles, scatter_tiles
from tilejit.cute.layout import Layout
from tilejit.layout.as_layout import as_layout
from tilejit.layout.cute_shape import CuteShape
from tilejit.layout.dtypes import PRIMITIVE_TYPES
from tilejit.layout.from_parts import make_shape
from tilejit.layout.shape import Shape
from tilejit.tiled.tiled_array import TiledArray

if TYPE_CHECKING:
    from tests.tools.soak.cases import Case

MOST_BYTES, ROOM_BYTES = 1 << 20, 23 << 20
"""Layouts beyond are drawn again: holes and padding multiply. Those of large shapes may be larger, as far as
an arena has room.
"""
MOST_TILE_AXES = 20
"""The most axes of a pattern's tiles: the definition reshapes to more axes, and NumPy supports 64."""


@dataclass(frozen=True)
class Side:
    """A layout: the shape for the definition, and the argument for `relayout`."""

    spec: Any
    obj: Any
    parameters: dict[str, Any] = field(default_factory=dict)


def relay(case: Case, shape: Shape) -> None:
    """A buffer in one layout into another of the same array, each of any kind."""
    old, new = (_side(case, shape) for _ in range(2))
    source_spec, target = old.spec, new.spec
    case.note(source=_named(old), target=_named(new))
    source = case.bench.source.place(
        source_spec.size_in_bytes, at_end=case.chance(2), gap=case.one_of(0, 0, 1, 8)
    )
    source[:] = _noise(case, source_spec)
    data = case.bench.target.place(target.size_in_bytes, at_end=case.chance(2), gap=case.one_of(0, 0, 3, 8))
    data[:] = case.random_bytes(len(data))
    before, kept = data.copy(), source.copy()
    keep = case.chance(3)
    fill = random_elements(case.rng, target.dtype, 1)
    threads = case.one_of(1, 1, 2, 3, None)
    case.note(threads=threads, keep=keep)
    t = TiledArray.from_buffer(source, source_spec)
    relayout(t, new.obj, out=data, padding="keep" if keep else fill[0], threads=threads, **new.parameters)
    again = partial(
        relayout, t, new.obj, out=data, padding="keep" if keep else fill[0], threads=threads, **new.parameters
    )
    elements = unpacked_by_definition(kept, source_spec)
    want = packed_by_definition(elements, target, None if keep else fill, before)
    mask = value_mask(target)
    wrong = np.flatnonzero((data & mask) != (want & mask))
    case.check(not len(wrong), f"{len(wrong)} wrong bytes, the first at {wrong[:1]}")
    case.check(bool((source == kept).all()), "the source changed")
    case.check(
        case.bench.target.untouched() and case.bench.source.untouched(), "bytes beside the buffers changed"
    )
    case.repeat(again, data, before)


def _named(side: Side) -> str:
    return f"{side.obj!s} {side.parameters}" if isinstance(side.spec, CuteShape) else repr(side.spec)


def _noise(case: Case, shape: Any) -> Any:
    """Random bytes. Narrow elements with their own bytes stay narrow."""
    data = case.random_bytes(shape.size_in_bytes)
    if shape.packed:
        return data
    return data & (1 if shape.primitive_type == "pred" else value_mask(shape))


def _side(case: Case, shape: Shape) -> Side:
    """A layout of the array: the shape itself, XLA's, a row of digits, nested modes, a swizzle, a pattern."""
    kinds = ("given", "xla", "row", "nested", "swizzled", "pattern")
    kind = case.one_of(*(kinds if shape.dimensions and 0 not in shape.dimensions else kinds[:2]))
    case.bench.counts[f"side {kind}"] += 1
    if kind == "given":
        return Side(shape, shape)
    while True:
        side = _drawn(case, shape, kind)
        most = max(MOST_BYTES, min(8 * shape.size_in_bytes, ROOM_BYTES))
        if side is not None and side.spec.size_in_bytes <= most:
            return side


def _drawn(case: Case, shape: Shape, kind: str) -> Side | None:
    dims, name = shape.dimensions, shape.primitive_type
    if kind == "xla":
        spec: Any = random_of.shape(case.pick, dtype=name, dims=dims, most=max(prod(dims), 100))
        return Side(spec, spec)
    width = _width(case, name)
    if kind == "pattern":
        return _of_pattern(case, shape, width)
    if kind == "row":
        order = random_of.permutation(case.pick, len(dims))
        strides, step = [0] * len(dims), 1
        for d in order:
            strides[d], step = step, step * (dims[d] + case.pick(0, 2))
        spec = CuteShape(name, dims, Layout(dims, tuple(strides)), width)
    else:
        spec = random_of.cute_shape(case.pick, swizzled=kind == "swizzled", dtype=name, dims=dims)
    if case.chance(2):
        return Side(spec, spec)
    own = {"element_size_in_bits": spec.bits} if spec.packed else {}
    return Side(spec, str(spec.layout) if case.chance(2) else spec.layout, own)


def _width(case: Case, name: str) -> int:
    return PRIMITIVE_TYPES[name].bits if name in random_of.PACKED and not case.chance(4) else 0


def _of_pattern(case: Case, shape: Shape, width: int) -> Side | None:
    """A pattern. Its slots are checked against pad, reshape and transpose."""
    drawn = random_of.pattern(case.pick, shape.dimensions)
    given = {**drawn.sizes, **({"element_size_in_bits": width} if width else {})}
    spec = as_layout(drawn.text, dims=shape.dimensions, dtype=shape.element, **given)
    if sum(map(len, spec.tiles)) >= MOST_TILE_AXES:
        return None
    slots = slots_of(spec)
    case.note(pattern=drawn.text, sizes=drawn.sizes)
    wanted = np.full(slots.size, -1)
    wanted[: drawn.slots.size] = drawn.slots
    case.check(bool((slots == wanted).all()), "a pattern's slots are not the definition's")
    if case.chance(2):
        sizes = "".join(f", {name}={size}" for name, size in drawn.sizes.items())
        return Side(spec, drawn.text + sizes, {k: v for k, v in given.items() if k not in drawn.sizes})
    return Side(spec, drawn.text, given)


def gather(case: Case, shape: Shape) -> None:
    """Tiles of two or three dimensions in any order, gathered and scattered, by only the first tile step."""
    rank = case.one_of(2, 2, 3)
    flat, deep = ((2, 3), (4, 8), (8, 16), (1, 5), (16, 4)), ((2, 3, 4), (2, 1, 8))
    tile = case.one_of(*flat, *(deep if rank == 3 else ()))
    inner = case.one_of((), ((2, 1),), ((1, 2),), ((4, 2), (2, 1)))
    extents = tuple(case.pick(1, 5 if rank == 2 else 3) for _ in range(rank))
    lead = rank - len(tile)
    sizes = (*(1 for _ in range(lead)), *tile)
    order = random_of.permutation(case.pick, rank) if case.chance(2) else tuple(reversed(range(rank)))
    physical = tuple(n * t - case.pick(0, t - 1) for n, t in zip(extents, sizes, strict=True))
    layout = (order, (tile, *inner))
    width = shape.layout.element_size_in_bits if shape.layout else 0
    spec, whole = (
        make_shape(shape.element, _logical(dims, order), *layout, element_size_in_bits=width)
        for dims in (physical, tuple(n * t for n, t in zip(extents, sizes, strict=True)))
    )
    case.check(len(slots_of(whole)) == len(slots_of(spec)), "the padded shape has other slots")
    data = case.bench.source.place(spec.size_in_bytes, at_end=case.chance(2))
    data[:] = _noise(case, spec)
    array = unpacked_by_definition(data, whole).transpose(tuple(reversed(order)))
    tiles = _tiles(array, extents, sizes, lead)
    count = prod(extents)
    ids = case.rng.integers(0, count, case.pick(0, 6))
    places = np.stack(np.unravel_index(ids, extents), 1) if case.chance(3) else ids
    case.note(tiled=str(spec), ids=places.tolist())
    t = TiledArray.from_buffer(data, spec)
    got = gather_tiles(t, places, threads=case.one_of(1, 2, None))
    case.check(same_elements(got, tiles[ids], spec), "other tiles than the definition's")
    if len(ids):
        _gather_into(case, t, ids, tiles[ids])
    values = random_elements(case.rng, spec.dtype, len(ids) * prod(tile)).reshape(-1, *tile)
    scatter_tiles(t, places, values, duplicates="last")
    for number, value in zip(ids.tolist(), values, strict=True):
        tiles[number] = value
    again = gather_tiles(t, np.arange(count))
    case.check(same_elements(again, tiles, spec), "tiles were written elsewhere")
    case.check(case.bench.source.untouched(), "bytes beside the buffer changed")


def _logical(physical: tuple[int, ...], minor_to_major: tuple[int, ...]) -> tuple[int, ...]:
    """Dimensions in logical order."""
    dims = [0] * len(physical)
    for size, d in zip(reversed(physical), minor_to_major, strict=True):
        dims[d] = size
    return tuple(dims)


def _tiles(array: Any, extents: tuple[int, ...], sizes: tuple[int, ...], lead: int) -> Any:
    """[tiles, *tile] of an array in physical order."""
    rank = len(extents)
    pairs = array.reshape([n for pair in zip(extents, sizes, strict=True) for n in pair])
    split = pairs.transpose(*range(0, 2 * rank, 2), *range(1, 2 * rank, 2))
    return split.reshape(-1, *sizes[lead:]).copy()


def _gather_into(case: Case, t: TiledArray, ids: Any, want: Any) -> None:
    """Tiles into a tiled array with any layout, whose padding stays."""
    plain = make_shape(t.layout.element, want.shape)
    side = _side(case, plain)
    spec = side.spec
    case.note(into=_named(side))
    room = case.bench.target.place(spec.size_in_bytes, at_end=case.chance(2))
    room[:] = _noise(case, spec)
    before = room.copy()
    gather_tiles(t, ids, out=TiledArray.from_buffer(room, spec))
    expected, mask = packed_by_definition(want, spec, None, before), value_mask(spec)
    case.check(bool(((room & mask) == (expected & mask)).all()), "tiles in a tiled array are others")
    case.check(case.bench.target.untouched(), "bytes beside the tiled array changed")


def view(case: Case, shape: Shape) -> None:
    """A tile of any layout by CuTe's tiler, read and written. The definition slices the array."""
    dims = shape.dimensions
    if not dims or 0 in dims:
        shape = make_shape(shape.element, dims := (3, 7))
    side = _side(case, shape)
    spec = side.spec
    data = case.bench.source.place(spec.size_in_bytes, at_end=case.chance(2))
    data[:] = _noise(case, spec)
    before = data.copy()
    whole = unpacked_by_definition(before, spec)
    if case.chance(2):
        _divided(case, side, data, whole)
        return
    tiler = tuple(case.pick(1, n) for n in dims)
    coord = tuple(case.pick(0, -(-n // size) - 1) for n, size in zip(dims, tiler, strict=True))
    case.note(source=_named(side), tiler=tiler, coord=coord)
    place = tuple(slice(k * size, (k + 1) * size) for k, size in zip(coord, tiler, strict=True))
    tile = cute.local_tile(TiledArray.from_buffer(data, spec), tiler, coord)
    case.check(same_elements(tile.unpack(), np.ascontiguousarray(whole[place]), spec), "another tile")
    case.check(bool((data == before).all()), "reading changed bytes")
    values = random_elements(case.rng, spec.dtype, whole[place].size).reshape(whole[place].shape)
    tile[...] = values
    whole[place] = values
    mask = value_mask(spec)
    want = packed_by_definition(whole, spec, None, before)
    case.check(bool(((data & mask) == (want & mask)).all()), "a tile was written elsewhere")
    case.check(case.bench.source.untouched(), "bytes beside the buffer changed")


def _divided(case: Case, side: Side, data: Any, whole: Any) -> None:
    """The array as tiles that pass its end. The definition is NumPy's view of the unpacked array."""
    spec, before, zero = side.spec, data.copy(), np.zeros((), side.spec.dtype)
    change = case.one_of(cute.logical_divide, cute.zipped_divide, cute.composition)
    tiler = tuple(case.pick(1, n) if case.chance(2) else Layout(2, case.pick(1, n)) for n in spec.dimensions)
    case.note(source=_named(side), tiler=tiler, change=change.__name__)
    view = change(TiledArray.from_buffer(data, spec), tiler, fill_value=zero)
    same = change(whole, tiler, fill_value=zero)
    case.check(same_elements(view.unpack(), same.unpack(), spec), "other tiles")
    case.check(bool((data == before).all()), "reading changed bytes")
    values = random_elements(case.rng, spec.dtype, same.predicate.size).reshape(same.predicate.shape)
    view[...] = values
    same[...] = values
    mask = value_mask(spec)
    want = packed_by_definition(whole, spec, None, before)
    case.check(bool(((data & mask) == (want & mask)).all()), "tiles were written elsewhere")
    case.check(case.bench.source.untouched(), "bytes beside the buffer changed")
