"""How to cut an array into chunks that can be packed separately, and the layouts of the chunks."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from codegen import LayoutError, cached, ceil_div
from tilejit.cute.layout import Layout as CuteLayout
from tilejit.cute.parsing import parse as parse_cute
from tilejit.cute.swizzle import ComposedLayout
from tilejit.cute.text import is_cute
from tilejit.layout.as_layout import LayoutLike, as_layout
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.dtypes import ElementLike
from tilejit.layout.helpers import dims_text
from tilejit.layout.indexing import shape_name
from tilejit.layout.padding import checked_padding_value
from tilejit.layout.shape import Layout, Shape
from tilejit.layout.shape_facts import tile_steps_of
from tilejit.programs.tuning import PaddingNumber
from tilejit.tiled.buffers import writable_layout

Dims: TypeAlias = tuple[int, ...]
Chunks: TypeAlias = int | Sequence[int]
"""Elements of a chunk along each dimension; -1 for all of them."""


def read_layout(
    layout: LayoutLike,
    dtype: ElementLike,
    dims: Dims,
    padding: PaddingNumber | None,
    parameters: dict[str, Any],
) -> tuple[Spec | None, Spec]:
    """The layout of the whole array (None if it describes one chunk), and the layout for chunks.

    f32[1000,300], "{1,0:T(8,128)}" -> f32[1000,300]{1,0:T(8,128)}, the same
    f32[1000,300], "(16,256):(256,1)" -> None, f32[16,256] (16,256):(256,1)

    Raises:
        LayoutError: the layout cannot be read, pads the whole array by padded_dimensions, or the padding does
            not fit.
        TypeError: an argument has the wrong type, or the layout does not take a keyword.
    """
    if isinstance(padding, str):
        raise LayoutError(f"padding: expected a number or None, got {padding[:40]!r}\n  pass a number")
    if 0 in dims:
        raise LayoutError(f"an array {dims_text(dims)} has no elements to pack\n  use tilejit.pack")
    fitted = _fitted(layout, dims)
    spec = as_layout(layout, dtype=dtype, dims=fitted, **parameters)
    writable_layout(spec)
    if isinstance(spec, Shape):
        spec = _of_any_size(spec)
    if padding is not None:
        spec = replace(spec, padding_value=checked_padding_value(padding, spec.element, "padding"))
    return (spec if fitted == dims else None), spec


def _fitted(layout: Any, dims: Dims) -> Dims:
    """The dimensions, limited to the modes of a CuTe layout."""
    layout = parse_cute(layout) if isinstance(layout, str) and is_cute(layout) else layout
    if not isinstance(layout, CuteLayout | ComposedLayout):
        return dims
    from tilejit.cute.function import function_of

    sizes = function_of(layout).sizes
    return tuple(map(min, dims, sizes)) if len(sizes) == len(dims) else dims


def _of_any_size(spec: Shape) -> Shape:
    """The shape with its order written out, if its layout applies to arrays of any size."""
    if spec.padded_dimensions not in (None, spec.dimensions):
        raise LayoutError(
            f"the layout pads the whole array to {dims_text(spec.padded_dimensions or ())}, but chunks are "
            "padded one by one\n  omit padded_dimensions"
        )
    layout = spec.layout or Layout(spec.minor_to_major)
    return replace(spec, layout=layout, padded_dimensions=None, dynamic=())


def known_dims(x: Any) -> Dims:
    """The dimensions of a dask array.

    Raises:
        LayoutError: chunks have unknown sizes, as after x[x > 0].
    """
    if any(math.isnan(n) for n in x.shape):
        raise LayoutError("chunks of the array have unknown sizes\n  call x.compute_chunk_sizes() first")
    return tuple(map(int, x.shape))


def chunk_layout(spec: Spec, dims: Dims, have: Dims, requested: Chunks | None) -> Spec:
    """The layout of a whole chunk, with the requested extents or about those of the array's chunks.

    f32[1000,300]{1,0:T(8,128)}, chunks of 100x100 -> f32[104,128]{1,0:T(8,128)}

    Raises:
        LayoutError: chunks of the requested extents would cut tiles, or do not fit a CuTe layout.
        TypeError: the requested extents are not integers.
    """
    if isinstance(spec, CuteShape):
        room = spec.dimensions
        extents = room if requested is None else _requested(requested, dims)
        if any(map(operator.gt, extents, room)):
            raise LayoutError(
                f"chunks of {dims_text(extents)} do not fit {spec.layout}\n"
                f"  a CuTe layout describes one chunk: pass chunks of at most {dims_text(room)}"
            )
        return replace(spec, dimensions=extents)
    tile = tile_extents(spec)
    if requested is None:
        return replace(spec, dimensions=_rounded(have, tile, dims))
    extents = _requested(requested, dims)
    if extents != _rounded(extents, tile, dims):
        raise LayoutError(
            f"chunks of {dims_text(extents)} cut the tiles of {shape_name(spec)}\n"
            f"  pass multiples of {dims_text(tile)}, e.g. {dims_text(_rounded(extents, tile, dims))}"
        )
    return replace(spec, dimensions=extents)


def _rounded(extents: Dims, tile: Dims, dims: Dims) -> Dims:
    """Extents rounded up to whole tiles, but at most the array's dimensions."""
    return tuple(min(n, ceil_div(e, t) * t) for e, t, n in zip(extents, tile, dims, strict=True))


def _requested(chunks: Any, dims: Dims) -> Dims:
    """The requested extents of chunks: one number for all dimensions, or one for each; -1 takes all."""
    try:
        given = (chunks,) * len(dims) if hasattr(chunks, "__index__") else tuple(chunks)
        extents = tuple(operator.index(e) for e in given)
    except TypeError as error:
        raise TypeError(
            f"chunks: expected one integer, or one for each dimension, got {str(chunks)[:40]!r}\n"
            "  pass the elements of a chunk along each dimension, -1 for all"
        ) from error
    if len(extents) != len(dims) or any(e < 1 and e != -1 for e in extents):
        raise LayoutError(
            f"chunks={str(chunks)[:40]} do not fit an array {dims_text(dims)}\n"
            "  pass the elements of a chunk along each dimension, -1 for all"
        )
    return tuple(n if e == -1 else min(e, n) for e, n in zip(extents, dims, strict=True))


def is_aligned(spec: Spec, extents: Dims, dims: Dims) -> bool:
    """Whether chunks of those extents consist of whole tiles, or fit a CuTe layout."""
    if isinstance(spec, CuteShape):
        return all(map(operator.le, extents, spec.dimensions))
    return extents == _rounded(extents, tile_extents(spec), dims)


@cached(256)
def tile_extents(spec: Shape) -> Dims:
    """The elements along each dimension that the tiles of all levels span together.

    bf16[5,7]{1,0:T(8,128)(2,1)} -> (8, 128)    f32[5,7]{1,0:T(4,8)(2,4,8)} -> (4, 16)

    1 along dimensions that `*` merges, because no chunks fit them.
    """
    reach = [1] * spec.rank
    # The dimension that each axis counts, and the elements per step; None for axes within tiles.
    axes: list[tuple[int, int] | None] = [(d, 1) for d in reversed(spec.minor_to_major)]
    for step in tile_steps_of(spec)[0]:
        axes = [*(None for _ in range(step.lead)), *axes]
        counts: list[tuple[int, int] | None] = []
        for group, size in zip(step.groups, step.tile, strict=True):
            axis = axes[group[0]] if len(group) == 1 else None
            if axis is not None:
                d, unit = axis
                reach[d] = unit * size
            counts.append(axis and (axis[0], axis[1] * size))
        axes = axes[: step.untouched] + counts + [None] * len(step.tile)
    return tuple(reach)


def holds(spec: Spec, dtype: np.dtype[Any]) -> bool:
    """Whether a layout's elements can be packed from arrays of a dtype, in either byte order."""
    narrow = spec.element.byte_dtype  # NumPy compares None with a dtype as if it were float64
    native = dtype.newbyteorder("=")
    return native == spec.dtype or (narrow is not None and native == narrow)


@cached(256)
def edge_layout(chunk: Spec, extents: Dims) -> Spec:
    """The layout of a chunk at the end of the array: the size of a whole chunk, with the excess as padding.

    f32[16,256]{1,0:T(8,128)}, (5, 256) -> f32[5,256]{1,0:T(8,128)} padded to 16x256
    """
    if isinstance(chunk, CuteShape) or extents == chunk.dimensions:
        return replace(chunk, dimensions=extents)
    return replace(chunk, dimensions=extents, padded_dimensions=chunk.dimensions)


def chunk_sizes(dims: Dims, extents: Dims) -> tuple[Dims, ...]:
    """The sizes of chunks along each dimension, in dask's form: (1000,), (300,) -> ((300, 300, 300, 100),)"""
    return tuple(
        (*(e for _ in range((n - 1) // e)), n - (n - 1) // e * e) for n, e in zip(dims, extents, strict=True)
    )
