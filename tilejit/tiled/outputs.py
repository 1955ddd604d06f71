"""Check `out=` and `padding=` for copies of complete arrays."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from codegen import LayoutError
from tilejit.arrays.memory import Array
from tilejit.arrays.strided import overlaps_itself
from tilejit.arrays.values import refuse_masked
from tilejit.layout.cute_shape import Spec
from tilejit.layout.padding import padding_bytes
from tilejit.tiled.buffers import checked_buffer, flat_words


def output_buffer(out: Any, spec: Spec, source: Array) -> Array:
    """Check `out` and return it as a flat array: a contiguous array of elements, of bytes or of words.

    Raises:
        LayoutError: `out` does not hold the shape, is read-only, or overlaps the source.
        TypeError: it is not an array.
    """
    buffer = checked_buffer(flat_words(out, spec), spec, "out")
    check_target(buffer, source)
    return buffer


def padding_of(padding: Any, spec: Spec, out: Any) -> bytes | None:
    """One element of padding for `padding=`, or None to keep the padding of `out`.

    None -> the layout's own value, else 0    7 -> 7    "keep" -> None

    Raises:
        LayoutError: it is another word, does not fit the dtype, or there is no `out` to keep it from.
    """
    if not isinstance(padding, str):
        return padding_bytes(spec.padding_value if padding is None else padding, spec.element)
    if padding != "keep":
        raise LayoutError(f'padding: expected "keep", a number or None, got {padding[:40]!r}')
    if out is None:
        refuse_keep()
    return None


def refuse_keep() -> NoReturn:
    """Raise the LayoutError for `padding="keep"` without `out`, because new memory has no padding to keep."""
    raise LayoutError('padding="keep" needs an out= whose padding it keeps\n  pass out=, or a value')


def checked_out(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any], source: Array) -> Array:
    """Return `out` if it is an array of that shape and dtype that may be written while `source` is read.

    Raises:
        LayoutError: `out` has another shape or dtype, is read-only, or overlaps itself or the source.
        TypeError: it is not an array, or has masked elements.
    """
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out: expected an array, got {type(out).__name__}")
    refuse_masked(out)
    check_alike(out, shape, dtype)
    check_target(out, source)
    return out


def check_alike(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise a LayoutError unless `out` has the shape and dtype of the result."""
    if tuple(out.shape) != shape or out.dtype != dtype:
        raise LayoutError(
            f"out is {out.dtype}{list(out.shape)}, but the result is {dtype}{list(shape)}\n"
            "  pass an array of that shape and dtype, or omit out="
        )


def check_target(memory: Array, source: Array) -> None:
    """Check that the memory of `out` may be written while the source is read.

    Raises:
        LayoutError: it is read-only, or overlaps itself or the source.
    """
    if not memory.flags.writeable:
        raise LayoutError("out is read-only\n  pass a writable array")
    if overlaps_itself(memory.shape, memory.strides, memory.itemsize):
        raise LayoutError(
            f"out has elements that share memory: strides {memory.strides} for shape {memory.shape}\n"
            "  pass an array without overlapping elements"
        )
    if np.may_share_memory(memory, source):
        raise LayoutError(
            "out overlaps the array that is copied into it\n  pass an array with its own memory"
        )
