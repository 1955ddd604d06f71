"""The work on one chunk, as module-level functions that workers run."""

from __future__ import annotations

from typing import Any

import numpy as np

from codegen import LayoutError, cached
from tilejit.arrays.memory import Array
from tilejit.copies.convert import pack, unpack
from tilejit.copies.relayouts import relayout
from tilejit.interop.dask.chunks import Dims, edge_layout
from tilejit.layout.cute_shape import Spec
from tilejit.layout.helpers import dims_text
from tilejit.tiled.tiled_array import TiledArray


def pack_block(block: Array, *, chunk: Spec, dims: Dims, threads: int | None, block_id: Dims) -> Array:
    """The buffer of a chunk, [1, …, 1, slots].

    Raises:
        LayoutError: the block's size differs from the array's chunks.
    """
    extents = extents_at(block_id, chunk, dims)
    if block.shape != extents:
        raise LayoutError(
            f"the chunk at {block_id[: len(dims)]} is {dims_text(block.shape)}, but the array has "
            f"{dims_text(extents)}\n  pass chunks= to map_blocks if its function returned another shape"
        )
    packed = pack(block, edge_layout(chunk, block.shape), threads=threads)
    return packed.buffer.reshape((1,) * block.ndim + (-1,))


def unpack_block(block: Array, *, chunk: Spec, dims: Dims, threads: int | None, block_id: Dims) -> Array:
    """The elements of a chunk, without padding."""
    return unpack(_tiled(block, edge_layout(chunk, extents_at(block_id, chunk, dims))), threads=threads)


def relayout_block(
    block: Array, *, chunk: Spec, into: Spec, dims: Dims, threads: int | None, block_id: Dims
) -> Array:
    """The buffer of a chunk in another layout."""
    extents = extents_at(block_id, chunk, dims)
    tiled = relayout(_tiled(block, edge_layout(chunk, extents)), edge_layout(into, extents), threads=threads)
    return tiled.buffer.reshape((1,) * len(dims) + (-1,))


def extents_at(block_id: Dims, chunk: Spec, dims: Dims) -> Dims:
    """The extents of the chunk at a grid position; the end of the array may cut it off."""
    place = block_id[: len(dims)]
    return tuple(min(e, n - k * e) for k, e, n in zip(place, chunk.dimensions, dims, strict=True))


def buffer_dtype(spec: Spec) -> np.dtype[Any]:
    """The dtype of a buffer: the elements' own dtype, or uint8 if they share bytes."""
    return np.dtype(np.uint8) if spec.packed else spec.dtype


@cached(256)
def buffer_slots(spec: Spec) -> int:
    """The length of a buffer in items of its dtype."""
    return spec.size_in_bytes // buffer_dtype(spec).itemsize


def _tiled(block: Array, spec: Spec) -> TiledArray:
    return TiledArray.from_buffer(np.ascontiguousarray(block).reshape(-1), spec)
