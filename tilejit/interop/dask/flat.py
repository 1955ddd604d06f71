"""Write the buffer of a whole array to one file, range by range, on the workers that have the elements."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np

from codegen import LayoutError, check_threads, thread_count
from tilejit.arrays.memory import Array
from tilejit.copies.convert import pack
from tilejit.files.packings import packing_of
from tilejit.files.pieces import Cut, cut, piece_buffer
from tilejit.files.provenance import check_records, updating_record
from tilejit.files.whole_file import mode_of, sync_directory
from tilejit.interop.dask.chunks import Dims, chunk_sizes, holds, known_dims, read_layout
from tilejit.layout.as_layout import LayoutLike, of_the_layout
from tilejit.layout.cute_shape import Spec
from tilejit.layout.indexing import shape_name
from tilejit.programs.tuning import PaddingNumber

CHUNK_BYTES = 32 << 20
"""Bytes of the buffer that one task writes by default."""


def to_flat(
    x: Any,
    /,
    layout: LayoutLike,
    path: str | os.PathLike[str],
    *,
    padding: PaddingNumber | None = None,
    piece_bytes: int = CHUNK_BYTES,
    threads: int | None = None,
    **parameters: Any,
) -> None:
    """Write the buffer that `tilejit.pack` creates for a whole dask array to a file, immediately.

    >>> x = dask.array.ones((50, 300), dtype="f4", chunks=(16, 128))
    >>> to_flat(x, "{1,0:T(8,128)}", "weights.bin")
    >>> np.fromfile("weights.bin", np.float32).shape
    (21504,)

    A task packs one box of the array into its range of the file, so no process holds the whole array. The
    file appears at `path` when it is complete, and its record beside it, as `tilejit pack` writes it: so
    `tilejit unpack weights.bin x.npy` needs no shape.

    Args:
        x: a dask array.
        layout: the layout of the whole array: anything that `as_layout` reads.
        path: the file, which all workers can access.
        padding: the value of padding elements; None takes the layout's own, or 0.
        piece_bytes: about how many bytes a task writes.
        threads: TileJIT's threads in a task; None for one.
        parameters: keywords of a named format, or sizes of a pattern's axes.

    Raises:
        LayoutError: as `pack`; or no range of the buffer holds a single box: for swizzles across the whole
            buffer, for layouts that merge dimensions, and if the tiles of several boxes are interleaved.
        TypeError: an argument has the wrong type.
        TilejitError: `path` is not a regular file.
        OSError: the file cannot be written.
    """
    x = da.asarray(x)
    dims = known_dims(x)
    own = of_the_layout(parameters, "to_flat", "the array")
    whole, spec = read_layout(layout, x.dtype, dims, padding, own)
    if whole is None:
        raise LayoutError(
            f"{shape_name(spec)} does not hold an array {list(dims)}\n  pass a layout of the whole array"
        )
    if not holds(spec, x.dtype):
        raise LayoutError(
            f"the array is {x.dtype}, but the layout is for {spec.primitive_type}\n  pass x.astype(…)"
        )
    target = Path(os.path.realpath(path))
    mode = mode_of(target)
    temporary = target.with_name(f".tilejit-{secrets.token_hex(8)}.tmp")
    check_records(path)
    check_threads(threads)
    if isinstance(piece_bytes, bool) or not hasattr(piece_bytes, "__index__"):
        raise TypeError(f"piece_bytes: expected a number of bytes, got {type(piece_bytes).__name__}")
    if piece_bytes < 1:
        raise LayoutError(f"piece_bytes: expected at least 1, got {piece_bytes}")
    tasks = _tasks(x, whole, str(temporary), piece_bytes, threads)
    try:
        with open(temporary, "xb") as file:
            if mode is not None:
                os.chmod(temporary, mode)
            file.truncate(whole.size_in_bytes)
        dask.compute(tasks)
        with updating_record(path, (packing_of(layout, own, whole),)):
            os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.errno and error.filename == str(temporary):
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise
    sync_directory(target.parent)


def _tasks(x: Any, spec: Spec, path: str, piece_bytes: int, threads: int | None) -> list[Any]:
    """A task for each range of the buffer."""
    found = cut(spec, piece_bytes)
    if found is None:
        if spec.size_in_bytes > piece_bytes:
            raise LayoutError(
                f"no range of the buffer of {shape_name(spec)} holds one box of the array\n"
                f"  pass piece_bytes={spec.size_in_bytes} to write it at once, or write chunks with to_zarr"
            )
        boxes = x.rechunk(-1).to_delayed().reshape(-1)
        ranges = [(0, spec.size_in_bytes)]
    else:
        sizes = chunk_sizes(spec.dimensions, _extents(found))
        ranges = [(begin, end) for begin, end, _ in found.pieces()]
        # Pieces come in the order of the buffer, the most major dimension first.
        last = tuple(d for d in range(spec.rank) if d not in found.order)
        boxes = x.rechunk(sizes).to_delayed().transpose((*found.order, *last)).reshape(-1)
    write = dask.delayed(_write_piece, pure=False, traverse=False)
    return [
        write(box, spec, path, begin, end, threads) for box, (begin, end) in zip(boxes, ranges, strict=True)
    ]


def _extents(found: Cut) -> Dims:
    """The extents of the boxes that pieces hold."""
    extents = list(found.spec.dimensions)
    for d in found.order:
        many = found.at_once if d == found.order[-1] else 1
        extents[d] = min(found.spec.dimensions[d], many * found.grid.extents[d])
    return tuple(extents)


def _write_piece(values: Array, spec: Spec, path: str, begin: int, end: int, threads: int | None) -> None:
    """Create a range of the buffer from the elements of its box, and write it to disk."""
    if end - begin == spec.size_in_bytes:
        made = pack(values, spec, threads=threads).buffer
    else:
        made = piece_buffer(spec, values, end - begin, thread_count(threads, 2 * (end - begin)))
    data: Any = made.view(np.uint8).data
    handle = os.open(path, os.O_WRONLY | getattr(os, "O_BINARY", 0))
    try:
        with os.fdopen(handle, "wb", buffering=0) as file:
            file.seek(begin)
            while data:
                data = data[file.write(data) :]
            os.fsync(file.fileno())
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
