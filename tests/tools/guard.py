"""Memory between two guard pages: one byte out of bounds ends the process."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

PAGE = mmap.PAGESIZE
CANARY = 0xA5
OPEN_SIDE = 256
"""Bytes beside the array, on the side away from its guard page, that must keep the canary."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Guarded:
    """A segment of memory between two unreadable pages."""

    def __init__(self, capacity: int) -> None:
        self._map = mmap.mmap(-1, -(-capacity // PAGE) * PAGE + 2 * PAGE)
        whole = np.frombuffer(self._map, np.uint8)
        address = whole.ctypes.data
        self.bytes: NDArray[np.uint8] = whole[PAGE:-PAGE]
        for page in (address, address + len(whole) - PAGE):
            if _libc.mprotect(page, PAGE, 0):
                raise OSError(ctypes.get_errno(), "mprotect")
        self._used: tuple[int, int] = (0, len(self.bytes))

    def place(self, size: int, *, at_end: bool, gap: int = 0) -> NDArray[np.uint8]:
        """`size` bytes flush against a guard page, `gap` bytes from it; canaries on the open side."""
        assert size + gap <= len(self.bytes), f"{size} bytes and a gap of {gap} in {len(self.bytes)}"
        start = len(self.bytes) - size - gap if at_end else gap
        low, high = max(0, start - OPEN_SIDE), min(len(self.bytes), start + size + OPEN_SIDE)
        self.bytes[low:high] = CANARY
        self._used = (start, start + size)
        return self.bytes[start : start + size]

    def untouched(self) -> bool:
        """Whether the bytes beside the array still hold the canary."""
        start, stop = self._used
        around = self.bytes[max(0, start - OPEN_SIDE) : start], self.bytes[stop : stop + OPEN_SIDE]
        return all(side.tobytes().count(CANARY) == len(side) for side in around)


def strided_view(
    data: NDArray[np.uint8], dtype: np.dtype[Any], dims: tuple[int, ...], strides: tuple[int, ...]
) -> NDArray[Any]:
    """An array over `data` whose lowest element starts at its first byte."""
    low = sum(min(0, (n - 1) * s) for n, s in zip(dims, strides, strict=True))
    return np.ndarray(dims, dtype, data.data, -low if 0 not in dims else 0, strides)


def span_bytes(itemsize: int, dims: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Bytes from the lowest to the highest that an array with those strides touches."""
    return 0 if 0 in dims else itemsize + sum((n - 1) * abs(s) for n, s in zip(dims, strides, strict=True))
