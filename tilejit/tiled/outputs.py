"""Where copies of whole arrays go: what is given as `out=`, checked, or fresh memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from codegen import LayoutError
from tilejit.arrays.memory import Array
from tilejit.arrays.strided import overlaps_itself
from tilejit.arrays.values import refuse_masked
from tilejit.layout.cute_shape import Spec
from tilejit.layout.padding import padding_bytes
from tilejit.tiled.buffers import checked_buffer


def output_buffer(out: Any, spec: Spec, source: Array) -> Array:
    """The flat array `out`, checked.

    Raises:
        LayoutError: `out` does not hold the shape, is read-only, or overlaps the source.
        TypeError: it is not an array.
    """
    buffer = checked_buffer(out, spec, "out")
    check_target(buffer, source)
    return buffer


def padding_of(padding: Any, spec: Spec, out: Any) -> bytes | None:
    """One element of the padding that `padding=` asks for, or None to keep what `out` holds.

    None -> the layout's own value, else 0    7 -> 7    "keep" -> None

    Raises:
        LayoutError: it is another word, no value of the dtype, or there is no `out` to keep it of.
    """
    if not isinstance(padding, str):
        return padding_bytes(spec.padding_value if padding is None else padding, spec.element)
    if padding != "keep":
        raise LayoutError(f'padding={padding[:40]!r}: write "keep", a number, or None')
    if out is None:
        raise LayoutError('padding="keep" keeps what out= holds\n  give out=, or a value')
    return None


def checked_out(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any], source: Array) -> Array:
    """`out`, if it is an array of that shape and dtype that may be written to while `source` is read.

    Raises:
        LayoutError: `out` is of another shape or dtype, read-only, or overlaps itself or the source.
        TypeError: it is not an array, or has masked elements.
    """
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out is an array, not {type(out).__name__}")
    refuse_masked(out)
    check_alike(out, shape, dtype)
    check_target(out, source)
    return out


def check_alike(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise a LayoutError unless `out` has the shape and dtype of the result."""
    if tuple(out.shape) != shape or out.dtype != dtype:
        raise LayoutError(
            f"out is {out.dtype}{list(out.shape)}, but the result is {dtype}{list(shape)}\n"
            "  give one like the result, or omit out="
        )


def check_target(memory: Array, source: Array) -> None:
    """Check that the memory of `out` may be written while the source is read.

    Raises:
        LayoutError: it is read-only, or overlaps itself or the source.
    """
    if not memory.flags.writeable:
        raise LayoutError("out is read-only\n  give an array of your own")
    if overlaps_itself(memory.shape, memory.strides, memory.itemsize):
        raise LayoutError(
            f"out has elements that share memory: strides {memory.strides} for shape {memory.shape}\n"
            "  give an array without overlapping elements"
        )
    if np.may_share_memory(memory, source):
        raise LayoutError("out overlaps what is copied into it\n  give out= memory of its own")
