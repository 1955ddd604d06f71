"""Buffers for files: created at once, or in pieces if they are large."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from tilejit.arrays.memory import Array
from tilejit.copies.convert import pack, unpack
from tilejit.copies.relayouts import relayout
from tilejit.files.casts import Cast
from tilejit.files.pieces import Box, Pieces, far_apart, in_pieces
from tilejit.files.tensor_file import row_major
from tilejit.layout.cute_shape import Spec
from tilejit.layout.shape import Shape
from tilejit.tiled.tiled_array import TiledArray

Drop = Callable[[], None]


def packed(
    source: Array | TiledArray, spec: Spec, cast: Cast | None, threads: int | None, drop: Drop
) -> Array | Pieces:
    """The packed buffer of an array in a layout; `drop` is called after a piece has been read."""

    def read(box: Box) -> Array:
        values = np.asarray(source[box])
        if cast is not None:
            return cast(values, threads)
        return values if values.dtype == spec.dtype else _in_layout(values, spec, threads)

    if isinstance(source, TiledArray):
        steps = far_apart(source.layout)
    else:
        steps = tuple(abs(s) * (n // 2) for s, n in zip(source.strides, source.shape, strict=True))
    pieces = in_pieces(spec, read, steps, threads, drop)
    if pieces is not None:
        return pieces
    array = source.unpack() if isinstance(source, TiledArray) else source
    return pack(array if cast is None else cast(array, threads), spec, threads=threads).buffer


def relaid(source: TiledArray, spec: Spec, threads: int | None, drop: Drop) -> Array | Pieces:
    """The buffer of a tiled array in another layout."""
    pieces = in_pieces(spec, lambda box: np.asarray(source[box]), far_apart(source.layout), threads, drop)
    return relayout(source, spec, threads=threads).buffer if pieces is None else pieces


def unpacked(
    source: TiledArray, target: Shape, cast: Cast | None, threads: int | None, drop: Drop
) -> Array | Pieces:
    """The elements of a tiled array as the buffer of `target`, which is row-major."""
    dtype = target.dtype

    def stored(values: Array) -> Array:
        """The elements after the cast; integers narrower than a byte become bytes."""
        return (values if cast is None else cast(values, threads)).astype(dtype, copy=False)

    def read(box: Box) -> Array:
        return stored(np.asarray(source[box]))

    pieces = in_pieces(target, read, far_apart(source.layout), threads, drop)
    if pieces is not None:
        return pieces
    array = stored(unpack(source, threads=threads))
    return pack(array, target, threads=threads).buffer if target.packed else array


def _in_layout(values: Array, spec: Spec, threads: int | None) -> Array:
    """A box of elements in the layout's dtype: in native byte order, and narrow integers checked."""
    flat = row_major(spec.primitive_type, (prod(values.shape),))
    buffer = pack(values.reshape(-1), flat, threads=threads).buffer
    return buffer.view(spec.dtype).reshape(values.shape)
