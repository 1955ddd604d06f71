"""The arrays to measure: aligned to cache lines, touched, and with values that every peer can read."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

BF16 = np.dtype(ml_dtypes.bfloat16)
INT4 = np.dtype(ml_dtypes.int4)
LINE_BYTES = 64
SHRINK_ABOVE_BYTES = 8 << 20
SHORT_NAMES = {"uint": "u", "int": "s", "float": "f"}


def aligned(shape: tuple[int, ...], dtype: Any) -> Array:
    """An array of zeros that starts on a cache line, its pages touched."""
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    raw = np.empty(size + LINE_BYTES, np.uint8)
    raw[:] = 0
    start = -raw.ctypes.data % LINE_BYTES
    array: Array = raw[start : start + size].view(dtype).reshape(shape)
    return array


def inside_line(shape: tuple[int, ...], dtype: Any) -> Array:
    """The same, 16 bytes after the start of a line, where NumPy's large arrays begin."""
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    array: Array = aligned((size + LINE_BYTES,), np.uint8)[16 : 16 + size].view(dtype).reshape(shape)
    return array


def filled(shape: tuple[int, ...], dtype: Any) -> Array:
    """Like `aligned`, with reproducible values.

    u32 and u64 also hold the bits of floats in [0, 1), so that peers that multiply by one, such as MKL,
    meet neither NaNs nor denormals.
    """
    array = aligned(shape, dtype)
    rng = np.random.default_rng(0)
    if array.dtype == bool:
        array[...] = rng.integers(0, 2, shape, np.uint8).view(bool)
    elif array.dtype == INT4:
        array[...] = rng.integers(-8, 8, shape, np.int8).astype(INT4)
    elif array.itemsize in (4, 8):
        number = np.float32 if array.itemsize == 4 else np.float64
        array[...] = rng.random(shape, number).view(array.dtype)
    elif array.dtype == BF16 or array.dtype.kind == "f":
        array[...] = rng.random(shape, np.float32).astype(array.dtype)
    else:
        flat_bytes(array)[:] = np.frombuffer(rng.bytes(array.nbytes), np.uint8)
    return array


def bits(array: Array) -> Array:
    """The same elements as unsigned integers, which NumPy moves fastest and every peer supports."""
    return array.view(f"u{array.itemsize}")


def flat_bytes(array: Array) -> Array:
    """A contiguous array's memory."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def short_name(dtype: Any) -> str:
    """f32, bf16, u8, …"""
    dtype = np.dtype(dtype)
    name = str(dtype.name)
    if dtype == BF16:
        return "bf16"
    for long, short in SHORT_NAMES.items():
        if name.startswith(long):
            return short + name.removeprefix(long)
    return "pred" if name == "bool" else name


def shrunk(dims: tuple[int, ...], dtype: Any, quick: bool) -> tuple[int, ...]:
    """The dimensions; for a quick run, the dimensions of an eighth of the array. Multiples stay multiples.

    (8192, 4096) -> (1024, 4096)    (8191, 4097) -> (1023, 4097)
    """
    if not quick or math.prod(dims) * np.dtype(dtype).itemsize <= SHRINK_ABOVE_BYTES:
        return dims
    return (max(2, dims[0] // 8), *dims[1:])
