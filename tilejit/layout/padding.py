"""The padding value of a shape: checked against the element type, and kept in one form."""

from __future__ import annotations

import operator
from typing import SupportsFloat, SupportsIndex

from codegen.errors import LayoutError
from tilejit.layout.dtypes import PrimitiveType
from tilejit.layout.tokens import shown

PaddingValue = int | float | complex | bool


def checked_padding_value(value: object, dtype: PrimitiveType) -> PaddingValue | None:
    """A padding value as the Python number of the element type's kind; None stays None.

    (0.0, s32) -> 0    (1, pred) -> True    (np.float32(2), bf16) -> 2.0    (-1, c64) -> (-1+0j)

    Raises:
        LayoutError: elements of that type cannot hold it.
        TypeError: it is no number.
    """
    if value is None:
        return None
    number = _python_number(value)
    if dtype.kind == "complex":
        return number if isinstance(number, complex) else complex(_as_float(number, dtype))
    if isinstance(number, complex):
        raise LayoutError(
            f"padding_value {number} is complex, but the elements are {dtype.name}\n  give a real number"
        )
    if dtype.kind == "float":
        return _as_float(number, dtype)
    return _as_integer(number, dtype)


def _python_number(value: object) -> int | float | complex:
    """The bool, int, float or complex that a Python, NumPy or ml_dtypes scalar stands for."""
    if isinstance(value, bool | int | float | complex):
        return value
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "ndim", 0) == 0:
        value = item()
        if isinstance(value, bool | int | float | complex):
            return value
    if isinstance(value, SupportsIndex):
        return operator.index(value)
    if isinstance(value, SupportsFloat):
        return float(value)
    raise TypeError(f"a padding_value is a number, not {type(value).__name__}")


def _as_float(number: float, dtype: PrimitiveType) -> float:
    try:
        return float(number)
    except OverflowError:
        raise LayoutError(
            f"padding_value {_digits(number)} is too large for {dtype.name}\n  give a smaller one"
        ) from None


def _as_integer(number: float, dtype: PrimitiveType) -> int | bool:
    """The integer of a number, within the range of pred, signed and unsigned types."""
    low, high = {
        "pred": (0, 1),
        "unsigned": (0, 2**dtype.bits - 1),
        "signed": (-(2 ** max(dtype.bits - 1, 0)), 2 ** max(dtype.bits - 1, 0) - 1),
    }.get(dtype.kind, (1, 0))
    if low > high:
        raise LayoutError(f"{dtype.name}[] has no elements to pad\n  leave padding_value out")
    if not low <= number <= high or number != int(number):
        raise LayoutError(
            f"padding_value {_digits(number)} does not fit {dtype.name}\n"
            f"  give a whole number from {low} to {high}"
        )
    return bool(number) if dtype.kind == "pred" else int(number)


def _digits(number: float) -> str:
    return shown(number) if isinstance(number, int) else repr(number)
