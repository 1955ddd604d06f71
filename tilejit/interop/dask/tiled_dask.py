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

    >>> t = pack(dask.array.ones((50, 300), dtype="f4", chunks=(16, 128)), "{1,0:T(8,128)}")
    >>> t
    TiledDask(f32[50,300]{1,0:T(8,128)},
      4 x 3 chunks of f32[16,128]{1,0:T(8,128)}, 98304 bytes)
    >>> t.array[3, 0].compute().shape  # the buffer of one chunk
    (2048,)

    The chunks form a regular grid. The chunk at (i, j, …) covers the box that starts at (i, j, …) times the
    chunk's extents, and `array[i, j, …]` holds the bytes of `tilejit.pack` for that box in the chunk's
    layout. Boxes at the end of the array have buffers of the same size, and the excess is padding.

    Attributes:
        array: [*chunks along each dimension, slots], a block for each chunk's buffer: of the element dtype,
            or uint8 if elements share bytes.
        shape: the dimensions of the array, in elements.
        chunk: the layout of a whole chunk; `chunk.dimensions` are its extents in elements.
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
        """The dtype of the elements that `unpack` returns."""
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
        """Unpack to a dask array with the same chunks, bit for bit.

        >>> x = dask.array.ones((50, 300), dtype="f4", chunks=(16, 128))
        >>> pack(x, "{1,0:T(8,128)}").unpack()[:8, :2].compute().shape
        (8, 2)

        Returns:
            The dask array, computed lazily.
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
        """Convert to another layout, chunk by chunk if each chunk consists of whole tiles of it.

        >>> t = pack(dask.array.ones((50, 300), dtype="f4", chunks=(32, 128)), "{1,0:T(8,128)}")
        >>> t.relayout("tenstorrent").grid
        (2, 3)

        Args:
            layout: the layout: anything that `as_layout` reads.
            chunks: as in `pack`; None keeps the chunks, or extends them to whole tiles.
            padding: as in `pack`.
            parameters: keywords of a named format, or sizes of a pattern's axes.

        Returns:
            The array in the other layout, computed lazily.

        Raises:
            LayoutError, TypeError: as `pack`.
        """
        own = of_the_layout(parameters, "relayout", "the tiled array")
        name = self.chunk.primitive_type
        whole, spec = read_layout(layout, self.chunk.element, self.shape, padding, own)
        if spec.primitive_type != name:
            raise LayoutError(
                f"the tiled array is {name}, but the layout is for {spec.primitive_type}\n"
                "  pass a layout of the same dtype; to convert, pack(t.unpack().astype(…), …)"
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
        """Compute the buffers and keep them on the workers, like `dask.array.Array.persist`.

        >>> pack(dask.array.ones((50, 300), dtype="f4"), "{1,0:T(8,128)}").persist().grid
        (1, 1)

        Args:
            keywords: those of `dask.array.Array.persist`.

        Returns:
            The array over the computed buffers.
        """
        return replace(self, array=self.array.persist(**keywords))

    def to_zarr(self, store: Any, *, overwrite: bool = False, compute: bool = True) -> Any:
        """Write the buffers as the chunks of a zarr array with the codec `tilejit.tile`.

        >>> t = pack(dask.array.ones((50, 300), dtype="f4", chunks=(16, 128)), "{1,0:T(8,128)}")
        >>> t.to_zarr("weights.zarr")
        >>> float(zarr.open_array("weights.zarr")[5, 7])
        1.0

        zarr stores the buffer `array[i, j, …]` byte for byte as the chunk at (i, j, …). Dtypes that zarr does
        not support become integers of the same width.

        `zarr.json`, which makes the chunks an array, is written last. A run that fails or ends early may
        leave chunks but no array, so missing chunks are never read as zeros.

        Args:
            store: a path, a URL or a zarr store that all workers can access.
            overwrite: True removes an existing array immediately.
            compute: False returns a dask.delayed.Delayed that writes when it is computed.

        Returns:
            None, or the Delayed.

        Raises:
            LayoutError: an array exists and `overwrite` is False, another process creates one there at the
                same time, or the layout has no text form.
            TilejitError: only a single process can write to the store, such as a ZIP file.
            TypeError: `store` is not a store.
            ImportError: zarr is not installed.
        """
        from tilejit.interop.dask.zarr_chunks import write

        return write(self, store, overwrite, compute)

    def to_flat(self, path: str | os.PathLike[str], *, piece_bytes: int = flat.CHUNK_BYTES) -> None:
        """Write the buffer that `tilejit.pack` creates for the whole array, padding included, to a file.

        >>> t = pack(dask.array.ones((50, 300), dtype="f4", chunks=(16, 128)), "{1,0:T(8,128)}")
        >>> t.to_flat("weights.bin")
        >>> np.fromfile("weights.bin", np.float32).shape
        (21504,)

        Args:
            path: the file, which all workers can access.
            piece_bytes: about how many bytes a task writes.

        Raises:
            LayoutError: a CuTe layout describes one chunk; or as the function `to_flat`.
            TypeError, TilejitError, OSError: as the function `to_flat`.
        """
        if self.layout is None:
            raise LayoutError(
                f"{self.chunk.layout} is the layout of a chunk, not of the whole array\n"
                "  convert to a layout of the whole array: t.relayout(…).to_flat(…)"
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

    >>> x = dask.array.ones((50, 300), dtype="f4", chunks=(10, 100))
    >>> pack(x, "{1,0:T(8,128)(2,1)}").chunk.dimensions
    (16, 128)
    >>> pack(x, "tenstorrent", chunks=(32, -1)).chunk.dimensions
    (32, 300)

    Args:
        x: a dask array, or anything that `dask.array.asarray` accepts.
        layout: anything that `as_layout` reads. Formats and shapes describe the whole array; a CuTe layout
            describes one chunk.
        chunks: elements of a chunk along each dimension: a multiple of the tile's size, or -1 for all. None
            rounds the chunks of `x` up to whole tiles, or takes the size of a CuTe layout.
        padding: the value of padding elements; None takes the layout's own, or 0.
        threads: TileJIT's threads in a task; None for one, because workers have threads of their own.
        parameters: keywords of a named format, or sizes of a pattern's axes.

    Returns:
        The array in packed chunks, computed lazily.

    Raises:
        LayoutError: the layout, the chunks or the padding are invalid, or `x` has no elements or has chunks
            of unknown sizes. Computing the result raises if a value does not fit a packed dtype.
        TypeError: an argument has the wrong type, or the layout does not take a keyword.
    """
    if isinstance(x, TiledDask):
        raise TypeError("expected an array, got a TiledDask\n  unpack it first, or call relayout")
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
            f"the array is {x.dtype}, but the layout is for {spec.primitive_type}\n"
            "  pass a layout of the array's dtype, or x.astype(…)"
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

    >>> t = pack(dask.array.ones((50, 300), dtype="f4", chunks=(32, 128)), "{1,0:T(8,128)}")
    >>> t.to_zarr("weights.zarr")
    >>> from_zarr("weights.zarr").relayout("tenstorrent").grid
    (2, 3)

    Args:
        store: a zarr array, or a store that `TiledDask.to_zarr` accepts.
        threads: TileJIT's threads in a task; None for one.

    Returns:
        The array in packed chunks, computed lazily.

    Raises:
        LayoutError: the chunks are not plain buffers: they have another codec, or are compressed or sharded.
            Computing the result raises if a chunk has another size.
        FileNotFoundError: the array does not exist. Other errors are zarr's own.
        ImportError: zarr is not installed.
    """
    from tilejit.interop.dask.zarr_chunks import opened, read

    check_threads(threads)
    z = opened(store)
    array, dims, chunk, whole = read(z)
    return TiledDask(array, dims, chunk, whole, threads)
