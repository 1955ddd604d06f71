"""Buffers for files: created at once, or in pieces if they are large."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from tilejit.arrays.memory import Array
from tilejit.copies.convert import pack, unpack
from tilejit.copies.relayouts import relayout
from tilejit.files.pieces import Box, Pieces, far_apart, in_pieces
from tilejit.files.tensor_file import row_major
from tilejit.layout.cute_shape import Spec
from tilejit.layout.shape import Shape
from tilejit.programs.tuning import Casting
from tilejit.tiled.tiled_array import TiledArray

Drop = Callable[[], None]


def packed(
    source: Array | TiledArray, spec: Spec, casting: Casting, threads: int | None, drop: Drop
) -> Array | Pieces:
    """The packed buffer of an array in a layout; `drop` is called after a piece has been read."""

    def read(box: Box) -> Array:
        values = np.asarray(source[box])
        return values if values.dtype == spec.dtype else _converted(values, spec, casting, threads)

    if isinstance(source, TiledArray):
        steps = far_apart(source.layout)
    else:
        steps = tuple(abs(s) * (n // 2) for s, n in zip(source.strides, source.shape, strict=True))
    pieces = in_pieces(spec, read, steps, threads, drop)
    if pieces is not None:
        return pieces
    array = source.unpack() if isinstance(source, TiledArray) else source
    return pack(array, spec, casting=casting, threads=threads).buffer


def relaid(source: TiledArray, spec: Spec, threads: int | None, drop: Drop) -> Array | Pieces:
    """The buffer of a tiled array in another layout."""
    pieces = in_pieces(spec, lambda box: np.asarray(source[box]), far_apart(source.layout), threads, drop)
    return relayout(source, spec, threads=threads).buffer if pieces is None else pieces


def unpacked(source: TiledArray, target: Shape, threads: int | None, drop: Drop) -> Array | Pieces:
    """The elements of a tiled array as the buffer of `target`, which is row-major."""
    dtype = target.dtype

    def read(box: Box) -> Array:
        return np.asarray(source[box]).astype(dtype, copy=False)

    pieces = in_pieces(target, read, far_apart(source.layout), threads, drop)
    if pieces is not None:
        return pieces
    array = unpack(source, threads=threads)
    if target.packed:
        return pack(array, target, threads=threads).buffer
    return array.astype(dtype, copy=False)


def _converted(values: Array, spec: Spec, casting: Casting, threads: int | None) -> Array:
    """A box of elements, converted like `pack` does."""
    dims = values.shape
    flat = row_major(spec.primitive_type, (prod(dims),))
    buffer = pack(values.reshape(-1), flat, casting=casting, threads=threads).buffer
    return buffer.view(spec.dtype).reshape(dims)
