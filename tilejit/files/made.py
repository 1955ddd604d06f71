"""Buffers for files: created at once, or in pieces if they are large."""

from __future__ import annotations

from math import prod

from tilejit.arrays.memory import Array
from tilejit.copies.convert import pack, unpack
from tilejit.copies.relayouts import relayout
from tilejit.files.casts import Cast
from tilejit.files.pieces import Box, Pieces, in_pieces
from tilejit.files.tensor_file import row_major
from tilejit.files.windows import FileArray, FileTiles
from tilejit.layout.cute_shape import Spec
from tilejit.layout.shape import Shape
from tilejit.tiled.tiled_array import TiledArray


def packed(
    source: FileArray | FileTiles, spec: Spec, cast: Cast | None, threads: int | None
) -> Array | Pieces:
    """The packed buffer of an array in a layout."""

    def read(box: Box) -> Array:
        values = source[box]
        if cast is not None:
            return cast(values, threads)
        return values if values.dtype == spec.dtype else _in_layout(values, spec, threads)

    pieces = in_pieces(spec, read, source.steps, threads)
    if pieces is not None:
        return pieces
    whole = source.whole()
    array = whole.unpack() if isinstance(whole, TiledArray) else whole
    return pack(array if cast is None else cast(array, threads), spec, threads=threads).buffer


def relaid(source: FileTiles, spec: Spec, threads: int | None) -> Array | Pieces:
    """The buffer of a tiled array in another layout."""
    pieces = in_pieces(spec, source.__getitem__, source.steps, threads)
    return relayout(source.whole(), spec, threads=threads).buffer if pieces is None else pieces


def unpacked(source: FileTiles, target: Shape, cast: Cast | None, threads: int | None) -> Array | Pieces:
    """The elements of a tiled array as the buffer of `target`, which is row-major."""
    dtype = target.dtype

    def stored(values: Array) -> Array:
        """The elements after the cast; integers narrower than a byte become bytes."""
        return (values if cast is None else cast(values, threads)).astype(dtype, copy=False)

    def read(box: Box) -> Array:
        return stored(source[box])

    pieces = in_pieces(target, read, source.steps, threads)
    if pieces is not None:
        return pieces
    array = stored(unpack(source.whole(), threads=threads))
    return pack(array, target, threads=threads).buffer if target.packed else array


def _in_layout(values: Array, spec: Spec, threads: int | None) -> Array:
    """A box of elements in the layout's dtype: in native byte order, and narrow integers checked."""
    flat = row_major(spec.primitive_type, (prod(values.shape),))
    buffer = pack(values.reshape(-1), flat, threads=threads).buffer
    return buffer.view(spec.dtype).reshape(values.shape)
