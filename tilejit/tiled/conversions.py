"""Conversions without a kernel: NumPy converts an array box by box to keep temporary memory small."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilejit.arrays.memory import Array

PIECE_BYTES = 1 << 19
"""Source bytes that NumPy converts at a time."""


def pieces(dims: tuple[int, ...], itemsize: int) -> list[tuple[slice, ...]]:
    """Boxes of at most about `PIECE_BYTES` that cover an array: whole inner dimensions, and parts of one."""
    most = max(1, PIECE_BYTES // max(itemsize, 1))
    inner, k = 1, len(dims)
    while k > 0 and inner * dims[k - 1] <= most:
        k -= 1
        inner *= dims[k]
    if k == 0:
        return [(slice(None),) * len(dims)] if 0 not in dims else []
    step = max(1, most // inner)
    outer = np.ndindex(*dims[: k - 1])
    return [
        (*(slice(i, i + 1) for i in prefix), slice(start, start + step), *(slice(None) for _ in dims[k:]))
        for prefix in outer
        for start in range(0, dims[k - 1], step)
    ]


def converted(piece: Array, dtype: np.dtype[Any]) -> Array:
    """Convert the elements with NumPy; real dtypes take the real parts."""
    return (piece.real if drops_imaginary_parts(piece.dtype, dtype) else piece).astype(dtype)


def drops_imaginary_parts(have: np.dtype[Any], want: np.dtype[Any]) -> bool:
    """Whether a conversion keeps only the real parts."""
    return have.kind == "c" and want.kind not in "cb"
