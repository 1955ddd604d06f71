"""Arguments of a kernel's call: what its plan depends on, and numbers as entries of a table."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np

from codegen import IntegerError, shown


def call_key(value: Any, *, free: bool = False) -> Any:
    """What the plan of a call hangs on of an argument: of a float only its type, of an integer all, unless
    calls are free of it.
    """
    if type(value) is np.ndarray:
        return value.shape, value.strides, value.dtype
    if isinstance(value, np.ndarray):
        return type(value), value.shape, value.strides, value.dtype
    return type(value) if free or isinstance(value, float | np.floating) else (type(value), value)


def integer_word(name: str, dtype: str, value: Any) -> int:
    """An integer as the entry of a table.

    Raises:
        IntegerError: it does not fit the argument of this name and dtype.
    """
    number = int(value)
    if not -(1 << 63) <= number < 1 << 63:
        if dtype == "u64" and 0 <= number < 1 << 64:
            return number - (1 << 64)
        raise IntegerError(
            f"{name} is {shown(number)}, which does not fit {dtype}\n  give a float instead, float(n)"
        )
    return number


def bits_of(value: Any, dtype: str) -> int:
    """A number as the entry of a table."""
    if dtype == "f64":
        return int.from_bytes(struct.pack("<d", value), "little", signed=True)
    if dtype[0] in "iu":
        return integer_word("a number", dtype, value)
    if type(value) is np.float32:
        return int(value.view(np.int32))
    # ctypes rounds as C does, to infinity too; np.float32 would warn of that, and is slower to keep quiet
    return int.from_bytes(bytes(ctypes.c_float(value)), "little", signed=True)
