"""Where copies of whole arrays go: what is given as `out=`, checked, or fresh memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from codegen import LayoutError
from tilejit.arrays.memory import Array, empty
from tilejit.arrays.strided import overlaps_itself
from tilejit.layout.cute_index import refuse_overlaps
from tilejit.layout.cute_shape import Spec
from tilejit.layout.indexing import shape_name
from tilejit.tiled.buffers import checked_buffer
from tilejit.tiled.tiled_array import TiledArray


def output_tiled(out: Any, spec: Spec, source: Array) -> TiledArray:
    """A TiledArray over `out`, or over fresh memory.

    Raises:
        LayoutError: `out` does not hold the shape, is read-only, or overlaps the source.
        TypeError: it is not an array.
    """
    if out is None:
        dtype = np.dtype(np.uint8) if spec.packed else spec.dtype
        length = spec.size_in_bytes // dtype.itemsize
        return TiledArray(empty((length,), dtype), spec)
    if isinstance(out, TiledArray) and out.spec != spec:
        raise LayoutError(
            f"out holds {shape_name(out.spec)}, but the result is {shape_name(spec)}\n"
            "  give a TiledArray of that layout, or a flat buffer"
        )
    buffer = checked_buffer(out.buffer if isinstance(out, TiledArray) else out, spec, "out")
    check_target(buffer, source)
    return out if isinstance(out, TiledArray) else TiledArray(buffer, spec)


def checked_out(
    out: Any, shape: tuple[int, ...], dtype: np.dtype[Any], source: Array, *, tiled: bool = False
) -> Any:
    """`out`, if an array of that shape and dtype may be written to it.

    source: what is copied. tiled: whether a TiledArray will do.

    Raises:
        LayoutError: `out` is of another shape or dtype, read-only, or overlaps itself or the source.
        TypeError: it is not an array.
    """
    if not isinstance(out, np.ndarray) and not (tiled and isinstance(out, TiledArray)):
        wanted = "an array or a TiledArray" if tiled else "an array"
        raise TypeError(f"out is {wanted}, not {type(out).__name__}")
    if tuple(out.shape) != shape or out.dtype != dtype:
        raise LayoutError(
            f"out is {out.dtype}{list(out.shape)}, but the result is {dtype}{list(shape)}\n"
            "  give one like the result, or leave out= away"
        )
    if isinstance(out, TiledArray):
        refuse_overlaps(out.spec)
    check_target(out.buffer if isinstance(out, TiledArray) else out, source)
    return out


def check_target(memory: Array, source: Array) -> None:
    """Whether the memory of `out` may be written while the source is read.

    Raises:
        LayoutError: it is read-only, or overlaps itself or the source.
    """
    if not memory.flags.writeable:
        raise LayoutError("out is read-only\n  give an array of your own")
    if overlaps_itself(memory.shape, memory.strides, memory.itemsize):
        raise LayoutError(
            f"out has elements that share memory: strides {memory.strides} for shape {memory.shape}\n"
            "  give an array with a place for each"
        )
    if np.may_share_memory(memory, source):
        raise LayoutError("out overlaps what is copied into it\n  give out= memory of its own")
