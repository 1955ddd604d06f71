"""TiledDask: a dask array whose chunks are packed, each in its own buffer."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import Any

import dask.array as da
import numpy as np

from codegen import LayoutError, check_threads, dataclass
from tilejit.interop.dask import blocks, flat
from tilejit.interop.dask.chunks import (
    Chunks,
    Dims,
    chunk_layout,
    chunk_sizes,
    holds,
    is_aligned,
    known_dims,
    read_layout,
)
from tilejit.layout.as_layout import LayoutLike, of_the_layout
from tilejit.layout.cute_shape import Spec
from tilejit.layout.dtypes import from_numpy
from tilejit.layout.indexing import shape_name
from tilejit.programs.tuning import PaddingNumber


@dataclass(frozen=True, slots=True)
class TiledDask:
    """A dask array in packed chunks, computed lazily.

    >>> t = pack(dask.array.ones((50000, 30000), "f4"), "{1,0:T(8,128)}")
    >>> t.array[2, 0].compute()     # the buffer of the chunk at (2, 0)

    The chunks form a regular grid. The chunk at (i, j, …) is the box that starts at (i, j, …) times the
    extents of a chunk, and `array[i, j, …]` holds the bytes of `tilejit.pack` for that box in the chunk's
    layout. A box at the end of the array has a whole chunk's buffer, and the excess is padding.

    Attributes:
        array: [*chunks along each dimension, slots], a block for each chunk's buffer: of the element dtype,
            or uint8 if elements share bytes.
        shape: the dimensions of the array.
        chunk: the layout of a whole chunk; `chunk.dimensions` are the elements of one.
        layout: the layout of the whole array, which `to_flat` writes; None if a CuTe layout describes one
            chunk.
        threads: TileJIT's threads in a task; None for one.
    """

    array: Any
    shape: Dims
    chunk: Spec
    layout: Spec | None
    threads: int | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The elements' dtype, as `unpack` gives them."""
        return self.chunk.dtype

    @property
    def grid(self) -> Dims:
        """Chunks along each dimension."""
        return tuple(map(int, self.array.shape[:-1]))

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers, padding included."""
        return math.prod(self.grid) * self.chunk.size_in_bytes

    def __repr__(self) -> str:
        whole = shape_name(self.layout) if self.layout else f"{self.dtype}[{','.join(map(str, self.shape))}]"
        chunks = " x ".join(map(str, self.grid)) or "1"
        return f"TiledDask({whole},\n  {chunks} chunks of {shape_name(self.chunk)}, {self.nbytes} bytes)"

    def unpack(self) -> Any:
        """Return the dask array with the same chunks, bit for bit.

        >>> t.unpack()[:8, :128].compute()
        """
        return self.array.map_blocks(
            blocks.unpack_block,
            chunk=self.chunk,
            dims=self.shape,
            threads=self.threads,
            drop_axis=len(self.shape),
            chunks=chunk_sizes(self.shape, self.chunk.dimensions),
            dtype=self.dtype,
            meta=np.empty((0,) * len(self.shape), self.dtype),
        )

    def relayout(
        self,
        layout: LayoutLike,
        *,
        chunks: Chunks | None = None,
        padding: PaddingNumber | None = None,
        **parameters: Any,
    ) -> TiledDask:
        """The array in another layout; chunk by chunk if chunks are also whole tiles of that layout.

        >>> t.relayout("tenstorrent")

        Args:
            layout, padding, parameters: as in `pack`.
            chunks: as in `pack`; None for the present ones, rounded up to whole tiles.

        Returns:
            The tiled array in the new layout; nothing is computed yet.

        Raises:
            LayoutError, TypeError: as `pack`.
        """
        own = of_the_layout(parameters, "relayout", "the tiled array")
        name = self.chunk.primitive_type
        whole, spec = read_layout(layout, name, self.shape, padding, own)
        if spec.primitive_type != name:
            raise LayoutError(
                f"the tiled array is {name}, the layout {spec.primitive_type}\n"
                "  give the layout of the same dtype; to convert, pack(t.unpack().astype(…), …)"
            )
        extents = self.chunk.dimensions
        if chunks is None and is_aligned(spec, extents, self.shape):
            into = replace(spec, dimensions=extents)
        else:
            into = chunk_layout(spec, self.shape, extents, chunks)
        if into.dimensions != extents:
            return _packed(self.unpack(), whole, into, self.threads)
        array = self.array.map_blocks(
            blocks.relayout_block,
            chunk=self.chunk,
            into=into,
            dims=self.shape,
            threads=self.threads,
            **_buffers(self.grid, into),
        )
        return TiledDask(array, self.shape, into, whole, self.threads)

    def persist(self, **keywords: Any) -> TiledDask:
        """Compute the buffers and keep them on the workers, like `dask.array.Array.persist`."""
        return replace(self, array=self.array.persist(**keywords))

    def to_zarr(self, store: Any, *, overwrite: bool = False, compute: bool = True) -> Any:
        """Write the buffers as the chunks of a zarr array with the codec `tilejit.tile`.

        >>> t.to_zarr("weights.zarr")

        zarr stores the buffer `array[i, j, …]` byte for byte as the chunk at (i, j, …). Types without a zarr
        name become integers of the same width.

        `zarr.json`, which makes the chunks an array, is written last. A run that fails or ends early may
        leave chunks but no array, so missing chunks are never read as zeros.

        Args:
            store: a path, a URL or a zarr store that all workers can access.
            overwrite: True removes an existing array immediately.
            compute: False returns a dask.delayed.Delayed that writes when it is computed.

        Raises:
            LayoutError: an array exists and `overwrite` is False, another one is created there at the same
                time, or the layout has no text form.
            TilejitError: only a single process can write the store, such as a ZIP file.
            TypeError: it is not a store.
            ImportError: zarr is not installed.
        """
        from tilejit.interop.dask.zarr_chunks import write

        return write(self, store, overwrite, compute)

    def to_flat(self, path: str | os.PathLike[str], *, piece_bytes: int = flat.CHUNK_BYTES) -> None:
        """Write the buffer that `tilejit.pack` makes of the whole array, padding included, to a file.

        >>> t.to_flat("weights.bin")

        Raises:
            LayoutError, OSError: as the function `to_flat`.
        """
        if self.layout is None:
            raise LayoutError(
                f"{self.chunk.layout} is the layout of a chunk, not of the whole array\n"
                "  give a layout of the whole: t.relayout(…).to_flat(…)"
            )
        flat.to_flat(self.unpack(), self.layout, path, piece_bytes=piece_bytes, threads=self.threads)


def pack(
    x: Any,
    /,
    layout: LayoutLike,
    *,
    chunks: Chunks | None = None,
    padding: PaddingNumber | None = None,
    threads: int | None = None,
    **parameters: Any,
) -> TiledDask:
    """Pack a dask array into tiled buffers, chunk by chunk and lazily.

    >>> t = tilejit.interop.dask.pack(x, "{1,0:T(8,128)(2,1)}")
    >>> t = tilejit.interop.dask.pack(x, "tenstorrent", chunks=(4096, 4096))

    Args:
        x: a dask array; anything else is converted by `dask.array.asarray`.
        layout, parameters: as in `as_layout`. Formats and shapes describe the whole array, a CuTe layout
            describes one chunk.
        chunks: elements of a chunk along each dimension, a multiple of the tiles, or -1 for the whole
            dimension. None takes the chunks of x, rounded up to whole tiles, or those of a CuTe layout.
        padding: a number; None for the padding value of the layout, or 0.
        threads: TileJIT's threads in a task; None for one, because workers have threads of their own.

    Returns:
        The tiled array; nothing is computed yet.

    Raises:
        LayoutError: layout, chunks or padding are wrong, or x has no elements or chunks of unknown sizes;
            during the computation, if a value does not fit a packed dtype.
        TypeError: an argument has the wrong type, or a keyword is not a parameter of the layout.
    """
    if isinstance(x, TiledDask):
        raise TypeError("pack takes an array; this is packed already\n  unpack it first, or relayout it")
    x = da.asarray(x)
    dims = known_dims(x)
    try:
        from_numpy(x.dtype)
    except LayoutError as error:
        raise TypeError(str(error)) from error
    check_threads(threads)
    own = of_the_layout(parameters, "pack", "the array")
    whole, spec = read_layout(layout, x.dtype, dims, padding, own)
    if not holds(spec, x.dtype):
        raise LayoutError(
            f"the array is {x.dtype}, the layout {spec.primitive_type}\n"
            "  give the layout of the array's dtype, or x.astype(…) before"
        )
    chunk = chunk_layout(spec, dims, tuple(int(max(sizes)) for sizes in x.chunks), chunks)
    return _packed(x, whole, chunk, threads)


def _packed(x: Any, whole: Spec | None, chunk: Spec, threads: int | None) -> TiledDask:
    dims = tuple(map(int, x.shape))
    cut = x.rechunk(chunk_sizes(dims, chunk.dimensions))
    array = cut.map_blocks(
        blocks.pack_block,
        chunk=chunk,
        dims=dims,
        threads=threads,
        new_axis=len(dims),
        **_buffers(cut.numblocks, chunk),
    )
    return TiledDask(array, dims, chunk, whole, threads)


def _buffers(grid: Dims, chunk: Spec) -> dict[str, Any]:
    """The metadata of an array of buffers, for `map_blocks`."""
    dtype = blocks.buffer_dtype(chunk)
    return {
        "chunks": (*((1,) * n for n in grid), (blocks.buffer_slots(chunk),)),
        "dtype": dtype,
        "meta": np.empty((0,) * (len(grid) + 1), dtype),
    }


def from_zarr(store: Any, *, threads: int | None = None) -> TiledDask:
    """Read a zarr array with the codec `tilejit.tile` lazily, as the buffers of its chunks.

    >>> from_zarr("weights.zarr").relayout("tenstorrent").to_zarr("others.zarr")

    Args:
        store: as in `TiledDask.to_zarr`, or a zarr array.
        threads: as in `pack`.

    Returns:
        The tiled array, which reads chunks when they are computed.

    Raises:
        LayoutError: its chunks are not plain buffers: they have another codec, compression or shards; during
            the computation, if a chunk has the wrong size.
        FileNotFoundError: the array does not exist. Other errors are zarr's.
        ImportError: zarr is not installed.
    """
    from tilejit.interop.dask.zarr_chunks import opened, read

    check_threads(threads)
    z = opened(store)
    array, dims, chunk, whole = read(z)
    return TiledDask(array, dims, chunk, whole, threads)
