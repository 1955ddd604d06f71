"""Convert values for a tiled array as in NumPy assignment, or reject them."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Number
from typing import Any

import numpy as np

from codegen import LayoutError
from tilejit.arrays import float_status
from tilejit.arrays.memory import Array
from tilejit.layout.dtypes import PrimitiveType, from_numpy
from tilejit.support.masked_arrays import is_masked_array

CHECKED_BYTES = 1 << 18
"""Bytes that are checked or changed at a time, so that several passes over them stay in the cache."""

SCALARS_AS_ARRAYS = (np.floating, np.bool_)
"""Scalars that convert as arrays do. Integers are excluded, because only those in arrays wrap around."""


def elements(value: Any, element: PrimitiveType) -> Array:
    """Return the value as an array of the element type, converted as in NumPy assignment.

    [1, 2.7] for s8 -> [1, 2]    300 for u8, nan for s32, 8 for s4, 1j for f32 -> error

    Casts warn as in NumPy. Unlike NumPy it always raises for numbers and NaN outside an integer type's range,
    integers outside s4 and narrower types, None, imaginary parts that would be lost, and NaN for a type
    without NaN. Arrays of wide integers wrap around, as in NumPy.

    Raises:
        LayoutError: the element type does not hold a value, or the value is text.
        TypeError: the value is not an array of numbers.
        FloatingPointError: a cast overflows, and `np.errstate` asks for an error.
    """
    if element.numpy is None:
        raise LayoutError(f"{element.name}[] has no elements\n  use an array's shape")
    refuse_masked(value)
    try:
        array = np.asarray(value)
        if array.dtype == element.numpy:
            return array
        if isinstance(value, np.ndarray) and element.byte_dtype is not None and is_byte(array.dtype):
            return _codes(array, element)
        return _converted(value, array, element, element.numpy)
    except (LayoutError, FloatingPointError):
        raise
    except TypeError as error:
        raise TypeError(f"cannot convert the value to {element.name}: {error}") from error
    except (ValueError, ArithmeticError) as error:
        raise LayoutError(f"cannot convert the value to {element.name}: {error}") from error


def _converted(value: Any, array: Array, element: PrimitiveType, dtype: np.dtype[Any]) -> Array:
    """Convert after rejecting everything that would change by more than rounding."""
    casts = float_status.Casts()
    with casts:
        plain = _plain_numbers(array, element)
        kind = plain.dtype.kind
        wraps = kind in "iu" and isinstance(value, np.ndarray) and element.byte_dtype is None
        if kind in "iuf" and element.kind in ("signed", "unsigned") and not wraps:
            check_range(plain, element)
        if kind == "f" and element.kind == "float" and element.bits < 8 and np.isnan(plain).any():
            raise LayoutError(f"{element.name} has no NaN\n  replace them first, e.g. with np.nan_to_num")
        out = np.empty(plain.shape, np.int64 if element.byte_dtype is not None else dtype)
        # Python numbers are converted one by one, because NumPy's dtype for an array of them may be inexact.
        by_one = plain is array and not isinstance(value, np.ndarray | np.generic)
        out[...] = value if by_one else plain
        if element.byte_dtype is not None:
            check_range(out, element)
            out = out.astype(dtype)
    casts.react()
    return out


def _codes(array: Array, element: PrimitiveType) -> Array:
    """The elements of an array of bytes, as an array of the narrower integer type."""
    check_range(array, element)
    assert element.numpy is not None
    codes = array if element.kind == "unsigned" else np.bitwise_and(array, (1 << element.bits) - 1)
    return codes.view(element.numpy)


def _plain_numbers(array: Array, element: PrimitiveType) -> Array:
    """The array in a dtype that NumPy itself computes with, real for real elements."""
    kind = array.dtype.kind
    if kind in "SUT":
        raise LayoutError(f"expected numbers, got text of {array.dtype}\n  pass numbers, such as float(text)")
    if kind == "V" and array.dtype.names is None:
        from_numpy(array.dtype)
        return array.astype(np.float64)
    if kind == "O":
        wrong = {
            type(part).__name__ for part in array.reshape(-1) if not isinstance(part, Number | np.generic)
        }
        if wrong:
            kind_of_error = LayoutError if wrong <= {"str", "bytes"} else TypeError
            raise kind_of_error(f"expected numbers, got {min(wrong)}\n  pass numbers, such as float(text)")
        return array.astype(np.float64) if element.kind == "float" else array
    if kind not in "biufc":
        raise TypeError(f"expected numbers, got an array of {array.dtype}")
    if kind == "c" and element.kind not in ("complex", "pred"):
        if not np.all(array.imag == 0):
            raise TypeError("it is complex, and its imaginary part would be lost; pass its .real")
        return array.real
    return array


def check_range(array: Array, element: PrimitiveType, *, located: bool = True) -> None:
    """Raise for numbers that an integer type cannot hold; fractions are truncated first.

    The message names the first such element, or only its value unless `located`.

    Raises:
        LayoutError: there is such a number, or NaN.
    """
    if element.integer_range is None or not array.size:
        return
    low, high = element.integer_range
    if all(low - 1 < least and most < high + 1 for least, most in _extremes(array)):
        return
    wrong = ~((array > low - 1) & (array < high + 1))
    first = np.unravel_index(int(np.argmax(wrong)), array.shape)
    index = f"element {[int(at) for at in first]}" if located and array.ndim else "a value"
    raise LayoutError(
        f"{index} is {array[first]}, but {element.name} holds {low} to {high}\n"
        "  clip or mask the values first"
    )


def _extremes(array: Array) -> Iterator[tuple[Any, Any]]:
    """The smallest and the largest value of each part; unsigned integers count as at least 0."""
    for part in _parts(array):
        yield 0 if array.dtype.kind == "u" else part.min().item(), part.max().item()


def _parts(array: Array) -> Iterator[Array]:
    """Parts of an array that fit in the cache: flat views of memory, or the whole array if it has gaps."""
    if not array.flags.forc:
        yield array
        return
    flat = (array if array.flags.c_contiguous else array.T).reshape(-1)
    step = CHECKED_BYTES // array.itemsize
    for begin in range(0, len(flat), step):
        yield flat[begin : begin + step]


def widens_to(element: PrimitiveType, dtype: np.dtype[Any]) -> bool:
    """Whether bytes of that dtype hold every value of an integer type narrower than a byte.

    u4 to uint8 or int8, s4 to int8 -> True    s4 to uint8, u4 to int32, f4e2m1fn to uint8 -> False
    """
    if element.byte_dtype is None or not is_byte(dtype):
        return False
    return element.kind == "unsigned" or dtype.kind == "i"


def is_byte(dtype: np.dtype[Any]) -> bool:
    """Whether it is int8 or uint8, which may hold the codes of a narrower integer type."""
    return dtype.kind in "iu" and dtype.itemsize == 1


def extend_sign(array: Array, bits: int) -> None:
    """Set the upper bits of int8 elements in place to the sign of the value in their lower `bits`.

    0x09 of 4 bits, which is -7 in s4 -> 0xF9
    """
    sign = 1 << bits - 1
    for part in _parts(array):  # NumPy's shifts of bytes are ten times as slow
        np.bitwise_and(part, 2 * sign - 1, out=part)
        np.bitwise_xor(part, sign, out=part)
        np.subtract(part, sign, out=part)


def refuse_masked(value: Any) -> None:
    """Raise for an array with masked elements, because layouts have no mask.

    Raises:
        TypeError: an element is masked.
    """
    if is_masked_array(value) and np.ma.is_masked(value):
        raise TypeError("the array has masked elements\n  fill them first, e.g. x.filled(0)")


def broadcast(values: Array, shape: tuple[int, ...]) -> Array:
    """Broadcast the values to a shape as in NumPy assignment, which may drop leading dimensions of size 1.

    Raises:
        LayoutError: the shapes do not match.
    """
    while values.ndim > len(shape) and values.shape[0] == 1:
        values = values[0]
    try:
        return np.broadcast_to(values, shape)
    except ValueError as error:
        raise LayoutError(
            f"values of shape {values.shape} do not broadcast to the destination's shape {shape}\n"
            "  use that shape, or 1 for dimensions that repeat"
        ) from error
