"""Arguments of a kernel's call: their part of the plan's key, and numbers as table entries."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np

from codegen import IntegerError, shown


def call_key(value: Any, *, free: bool = False) -> Any:
    """A call's cache key for one argument: the type of a float, the value of an integer.

    Calls that do not depend on integers use only their type.
    """
    if type(value) is np.ndarray:
        return value.shape, value.strides, value.dtype
    if isinstance(value, np.ndarray):
        return type(value), value.shape, value.strides, value.dtype
    return type(value) if free or isinstance(value, float | np.floating) else (type(value), value)


def integer_word(name: str, dtype: str, value: Any) -> int:
    """An integer as a table entry.

    Raises:
        IntegerError: it does not fit the dtype of the argument with this name.
    """
    number = int(value)
    if not -(1 << 63) <= number < 1 << 63:
        if dtype == "u64" and 0 <= number < 1 << 64:
            return number - (1 << 64)
        raise IntegerError(
            f"{name} is {shown(number)}, which does not fit {dtype}\n  pass a float instead, float(n)"
        )
    return number


def bits_of(value: Any, dtype: str) -> int:
    """A number as a table entry."""
    if dtype == "f64":
        return int.from_bytes(struct.pack("<d", value), "little", signed=True)
    if dtype[0] in "iu":
        return integer_word("a number", dtype, value)
    if type(value) is np.float32:
        return int(value.view(np.int32))
    # ctypes rounds as C does, also to infinity; np.float32 would warn, and is slow to silence
    return int.from_bytes(bytes(ctypes.c_float(value)), "little", signed=True)
