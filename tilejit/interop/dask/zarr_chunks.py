"""Write the buffers of chunks as the chunks of a zarr array, byte for byte, and read them back."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, cast

import dask
import dask.array as da
import numpy as np

from codegen import LayoutError, TilejitError, cached
from tilejit.arrays.memory import Array
from tilejit.copies.convert import pack
from tilejit.interop.dask.blocks import buffer_dtype, buffer_slots, extents_at
from tilejit.interop.dask.chunks import Dims, edge_layout, holds
from tilejit.interop.zarr import TileCodec, chunk_spec_of  # before zarr, to report that it is missing
from tilejit.layout.as_layout import as_layout
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.dtypes import unambiguous_name
from tilejit.layout.indexing import shape_name
from tilejit.layout.shape import Shape

import zarr  # isort: skip
from zarr.abc.store import Store
from zarr.buffer.cpu import buffer_prototype
from zarr.core.sync import sync
from zarr.errors import ContainsArrayError, ContainsGroupError

DESCRIPTION = "zarr.json"
"""The name of an array's metadata in its folder; it is written last."""


def write(tiled: Any, store: Any, overwrite: bool, compute: bool) -> Any:
    """Write the chunks of an array, then its metadata, for `TiledDask.to_zarr`.

    Raises:
        LayoutError: the array exists already, or the layout has no text form.
        TilejitError: several workers cannot write to the store.
        TypeError: `store` is None.
    """
    codec, held = codec_of(tiled.chunk)
    if store is None:
        raise TypeError("expected a path, a URL or a zarr store, got None")
    if isinstance(store, Store) and not store.supports_deletes:
        raise TilejitError(
            f"{store} cannot be written by several workers\n  write to a folder, then copy the folder into it"
        )
    try:
        z = zarr.create_array(
            store,
            shape=tiled.shape,
            chunks=tiled.chunk.dimensions,
            dtype=held,
            serializer=codec,
            zarr_format=3,
            compressors=None,
            filters=None,
            overwrite=overwrite,
        )
    except (ContainsArrayError, ContainsGroupError) as error:
        raise LayoutError(f"{error}\n  pass another store, or overwrite=True") from error
    description = _remove_description(z)
    written = tiled.array.map_blocks(
        partial(_write_block, z),
        chunks=tuple((1,) * n for n in (*tiled.grid, 1)),
        dtype=bool,
        meta=np.empty((0,) * tiled.array.ndim, bool),
    )
    done = dask.delayed(partial(_finish, z, description))(written)
    return done.compute() if compute else done


def codec_of(chunk: Spec) -> tuple[TileCodec, np.dtype[Any]]:
    """The codec that reads buffers of a layout, and zarr's dtype for its elements.

    bf16[128,128]{1,0:T(8,128)(2,1)} -> TileCodec("{1,0:T(8,128)(2,1)}", dtype="bf16"), uint16

    Raises:
        LayoutError: the layout has no text form.
    """
    parameters = {}
    if isinstance(chunk, CuteShape) and chunk.element_size_in_bits:
        parameters["element_size_in_bits"] = chunk.element_size_in_bits
    text, element = str(chunk.layout), chunk.element
    again = as_layout(text, dtype=element, dims=chunk.dimensions, **parameters)
    if replace(again, padding_value=chunk.padding_value) != chunk:
        raise LayoutError(f"the layout of {shape_name(chunk)} has no text form, which zarr needs")
    if chunk.dtype.isbuiltin == 1:
        return TileCodec(text, parameters), chunk.dtype
    held = chunk.element.byte_dtype or np.dtype(f"u{chunk.dtype.itemsize}")
    return TileCodec(text, parameters, unambiguous_name(element)), held


def opened(store: Any) -> Any:
    """Open a zarr array for reading."""
    return store if isinstance(store, zarr.Array) else zarr.open_array(store, mode="r")


def read(z: Any) -> tuple[Any, Dims, Spec, Spec | None]:
    """A zarr array's chunks as buffers, its shape, and the layouts of a chunk and of the whole array.

    Raises:
        LayoutError: its chunks are not plain buffers, or it has no elements.
    """
    codecs = tuple(getattr(z.metadata, "codecs", ()))
    if len(codecs) != 1 or not isinstance(codecs[0], TileCodec):
        names = ", ".join(type(codec).__name__ for codec in codecs) or "none (a zarr 2 array)"
        raise LayoutError(
            f"chunks of {z.store_path} are not plain tiled buffers: codecs {names}\n"
            "  repack them: tilejit.interop.dask.pack(dask.array.from_zarr(…), …)"
        )
    dims = tuple(map(int, z.shape))
    if 0 in dims:
        raise LayoutError(f"{z.store_path} has no elements")
    chunk = chunk_spec_of(codecs[0], z.metadata.data_type, tuple(map(int, z.chunks)))
    dtype = buffer_dtype(chunk)
    array = da.map_blocks(
        partial(_read_block, z, chunk, dims),
        chunks=(*((1,) * n for n in z.cdata_shape), (buffer_slots(chunk),)),
        dtype=dtype,
        meta=np.empty((0,) * (len(dims) + 1), dtype),
    )
    return array, dims, chunk, _of_the_whole(chunk, dims)


def _of_the_whole(chunk: Spec, dims: Dims) -> Spec | None:
    if isinstance(chunk, Shape):
        return replace(chunk, dimensions=dims, padded_dimensions=None)
    fits = all(n <= size for n, size in zip(dims, chunk.function.sizes, strict=True))
    return replace(chunk, dimensions=dims) if fits else None


def _write_block(z: Any, block: Array, block_id: Dims) -> Array:
    """Store the buffer of the chunk at a grid position; writing it twice has the same effect."""
    raw = np.ascontiguousarray(block).reshape(-1).view(np.uint8)
    sync(_chunk(z, block_id).set(buffer_prototype.buffer.from_array_like(raw)))
    return np.ones((1,) * block.ndim, bool)


def _read_block(z: Any, chunk: Spec, dims: Dims, block_id: Dims) -> Array:
    """The buffer of the chunk at a grid position, or the array's fill value if it is not stored."""
    data = sync(_chunk(z, block_id).get(prototype=buffer_prototype))
    if data is None:
        buffer = _filled(chunk, extents_at(block_id, chunk, dims), z.fill_value)
    else:
        raw = data.as_numpy_array().view(np.uint8)
        if raw.nbytes != chunk.size_in_bytes:
            raise LayoutError(
                f"the chunk {block_id[:-1]} of {z.store_path} has {raw.nbytes} bytes, but "
                f"{shape_name(chunk)} takes {chunk.size_in_bytes}\n"
                "  it is damaged, or was written with another layout"
            )
        buffer = raw.view(buffer_dtype(chunk))
    return buffer.reshape((1,) * len(dims) + (-1,))


@cached(8)
def _filled(chunk: Spec, extents: Dims, value: Any) -> Array:
    """The buffer of a chunk that holds one value."""
    held = np.full(extents, value)
    elements = held if holds(chunk, held.dtype) else held.view(chunk.dtype)
    return pack(elements, edge_layout(chunk, extents), threads=1).buffer


def _chunk(z: Any, block_id: Dims) -> Any:
    """The location of the chunk at a grid position in the store."""
    return z.store_path / z.metadata.encode_chunk_key(block_id[:-1])


def _remove_description(z: Any) -> bytes:
    """Remove the array's metadata until its chunks are written, and return it."""
    place = z.store_path / DESCRIPTION
    description = sync(place.get(prototype=buffer_prototype)).to_bytes()
    sync(place.delete())
    return cast("bytes", description)


def _finish(z: Any, description: bytes, _: Any) -> None:
    """Write the array's metadata after all chunks; writing it twice has the same effect.

    Raises:
        LayoutError: another process created an array there at the same time.
    """
    place = z.store_path / DESCRIPTION
    existing = sync(place.get(prototype=buffer_prototype))
    if existing is not None and existing.to_bytes() != description:
        raise LayoutError(
            f"another array was created at {z.store_path} in the meantime\n  pass another store"
        )
    sync(place.set(buffer_prototype.buffer.from_bytes(description)))
