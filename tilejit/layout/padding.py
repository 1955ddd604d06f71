"""Padding values: checked against the element type, and converted to one element."""

from __future__ import annotations

import math
import operator
from typing import Any, Literal, SupportsFloat, SupportsIndex, TypeAlias, get_args

import numpy as np

from codegen import LayoutError, shown
from tilejit.layout.dtypes import PRIMITIVE_TYPES, PrimitiveType

PaddingValue = int | float | complex | bool
PaddingName: TypeAlias = Literal["ZERO_PAD", "ONE_PAD", "LOWEST_PAD", "HIGHEST_PAD", "UNKNOWN_PAD"]
"""The entries of XLA's enum PaddingValue that name a padding value."""

_INVALID = "INVALID_PAD"


def padding_value_of(value: object, dtype: PrimitiveType) -> PaddingValue | None:
    """Return the padding value of a shape, for a number or a name in XLA's enum PaddingValue.

    (7, s32) -> 7    ("ONE_PAD", bf16) -> 1.0    ("LOWEST_PAD", f32) -> -inf    ("LOWEST_PAD", s8) -> -128
    ("HIGHEST_PAD", f8e4m3fn) -> 448.0    ("UNKNOWN_PAD", f32) -> None

    Lowest and highest are the neutral elements of maximum and minimum: infinities if the type has them.

    Raises:
        LayoutError: the type cannot hold the value or has no order, or the name does not exist.
        TypeError: it is neither a number nor a name.

    Source: the enum PaddingValue in XLA's xla_data.proto.
    """
    number = _named_number(value, dtype) if isinstance(value, str) else value
    return checked_padding_value(number, dtype)


def _named_number(name: str, dtype: PrimitiveType) -> PaddingValue | None:
    """The number that a name stands for in a type; None for UNKNOWN_PAD."""
    match name:
        case "ZERO_PAD":
            return 0
        case "ONE_PAD":
            return 1
        case "LOWEST_PAD" | "HIGHEST_PAD":
            return _extreme(dtype, name)
        case "UNKNOWN_PAD":
            return None
    fix = f"write a number, or one of {', '.join(get_args(PaddingName))}"
    if name == _INVALID:
        raise LayoutError(
            f"padding_value is {_INVALID}, which XLA reserves for a field that is not set\n  {fix}"
        )
    raise LayoutError(f"padding_value {name[:40]!r} is not a padding name\n  {fix}")


def _extreme(dtype: PrimitiveType, name: str) -> PaddingValue:
    """The smallest or the largest value of a type, an infinity if it has one."""
    lowest = name == "LOWEST_PAD"
    if dtype.integer_range is not None:
        return dtype.integer_range[0 if lowest else 1]
    if dtype.kind != "float":
        raise LayoutError(
            f"padding_value is {name}, but {dtype.name} has no order\n  write a number, ZERO_PAD or ONE_PAD"
        )
    infinity = -math.inf if lowest else math.inf
    if _float_holds(infinity, dtype):
        return infinity
    import ml_dtypes

    limits = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    return float(limits.min if lowest else limits.max)


def checked_padding_value(
    value: object, dtype: PrimitiveType, what: str = "padding_value"
) -> PaddingValue | None:
    """Return a padding value as the Python number of the element type's kind; None stays None.

    (0.0, s32) -> 0    (1, pred) -> True    (np.float32(2), bf16) -> 2.0    (-1, c64) -> (-1+0j)

    A floating-point type takes any number in its range, which it may round. A number outside the range, which
    would become an infinity, NaN or the largest value, raises an error.

    Args:
        value: a number, or None.
        dtype: the element type.
        what: the name of the value in messages.

    Raises:
        LayoutError: the type cannot hold the value.
        TypeError: it is not a number.
    """
    if value is None:
        return None
    number = _python_number(value, what)
    if not dtype.is_array_element:
        raise LayoutError(f"{dtype.name}[] has no elements to pad\n  omit {what}")
    if dtype.kind == "complex":
        number = number if isinstance(number, complex) else complex(_as_float(number, dtype, what))
        part = PRIMITIVE_TYPES[f"f{dtype.bits // 2}"]
        if not (_float_holds(number.real, part) and _float_holds(number.imag, part)):
            raise _unfit(number, dtype, what)
        return number
    if isinstance(number, complex):
        if number.imag or math.isnan(number.imag):
            raise LayoutError(
                f"{what} {number} is complex and does not fit {dtype.name}\n  pass a real number"
            )
        number = number.real
    if dtype.kind != "float":
        return _as_integer(number, dtype, what)
    number = _as_float(number, dtype, what)
    if not _float_holds(number, dtype):
        raise _unfit(number, dtype, what)
    return number


def padding_bytes(value: object, dtype: PrimitiveType, what: str = "padding") -> bytes:
    """One element of padding as bytes, zero bits for None; a packed element sits in the low bits.

    (1, s16) -> b"\\x01\\x00"    (-1, s4) -> b"\\xff"    (None, f8e8m0fnu) -> b"\\x00"

    Raises:
        LayoutError: elements of that type cannot hold the value.
        TypeError: it is not a number.
    """
    if isinstance(value, np.generic) and value.dtype == dtype.numpy:
        return value.tobytes()  # exactly its bits, so a NaN keeps its sign and payload
    number = checked_padding_value(value, dtype, what)
    if dtype.numpy is None:
        raise LayoutError(f"{dtype.name}[] has no elements to pad\n  omit {what}")
    if number is None:
        return bytes(dtype.numpy.itemsize)
    return _element(number, dtype.numpy).tobytes()


def _element(number: PaddingValue, dtype: np.dtype[Any]) -> np.ndarray[Any, np.dtype[Any]]:
    with np.errstate(all="ignore"):
        return np.asarray(number).astype(dtype)


def _python_number(value: object, what: str) -> int | float | complex:
    """The bool, int, float or complex that a Python, NumPy or ml_dtypes scalar represents."""
    if isinstance(value, bool | int | float | complex):
        return value
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError(f"{what}: expected one number, got an array of shape {value.shape}")
    item = getattr(value, "item", None)
    if callable(item):
        value = item()
    if isinstance(value, bool | int | float | complex):
        return value
    if isinstance(value, np.complexfloating):
        return complex(value)
    try:
        if isinstance(value, SupportsIndex):
            return operator.index(value)
        if isinstance(value, SupportsFloat):
            return float(value)
    except (ValueError, ArithmeticError) as error:
        raise LayoutError(
            f"{what} cannot be converted to a Python number: {error}\n  pass an int or a float"
        ) from error
    raise TypeError(f"{what}: expected a number, got {type(value).__name__}")


def _as_float(number: float, dtype: PrimitiveType, what: str) -> float:
    try:
        return float(number)
    except OverflowError:
        raise _unfit(number, dtype, what) from None


def _float_holds(number: float, dtype: PrimitiveType) -> bool:
    """Whether the number is a value of a floating-point type, or rounds to one within its range."""
    if dtype.numpy is None:
        raise AssertionError(f"{dtype.name} is not a floating-point type")
    element = float(_element(number, dtype.numpy))
    if math.isnan(number) or math.isnan(element):
        return math.isnan(number) and math.isnan(element)
    if math.isinf(element):
        return element == number
    if dtype.bits >= 8:
        return math.isfinite(number)
    import ml_dtypes

    # Types without infinity and NaN turn everything beyond their range into the largest value.
    largest = np.array(ml_dtypes.finfo(dtype.numpy).max, dtype.numpy)  # type: ignore[no-untyped-call]
    before = (largest.view(np.uint8) - np.uint8(1)).view(dtype.numpy)
    return abs(number) < float(largest) + (float(largest) - float(before)) / 2


def _as_integer(number: float, dtype: PrimitiveType, what: str) -> int | bool:
    """The integer value of a number, within the range of pred, signed and unsigned types."""
    low, high = dtype.integer_range or (0, 0)
    if not low <= number <= high or number != int(number):
        raise LayoutError(
            f"{what} {_digits(number)} does not fit {dtype.name}\n  pass a whole number from {low} to {high}"
        )
    return bool(number) if dtype.kind == "pred" else int(number)


def _unfit(number: PaddingValue, dtype: PrimitiveType, what: str) -> LayoutError:
    fix = "pass a value that it holds"
    if number == 0:
        fix = f"the dtype has no 0: omit {what} for zero bytes, or {fix}"
    return LayoutError(f"{what} {_digits(number)} does not fit {dtype.name}\n  {fix}")


def _digits(number: PaddingValue) -> str:
    return shown(number) if isinstance(number, int) else repr(number)
