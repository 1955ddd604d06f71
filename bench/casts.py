"""Conversions fused with copies, flat and transposed. Shares of memcpy count bytes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bench.arrays import BF16, short_name, shrunk
from bench.jobs import Case, conversion

F16, F32, F64 = (np.dtype(f"f{n}") for n in (2, 4, 8))
FLAT, TRANSPOSED = (0, 1), (1, 0)
DIMS = (4096, 6144)

CASES: tuple[tuple[Any, Any], ...] = ((F32, BF16), (BF16, F32), (F32, F16), (F16, F32), (F64, F32))
"""(source dtype, destination dtype)."""


def cases(quick: bool) -> list[Case]:
    """A flat and a transposed case for each pair of dtypes."""
    return [
        _case(source, to, shrunk(DIMS, source, quick), order)
        for source, to in CASES
        for order in (FLAT, TRANSPOSED)
    ]


def _case(source: Any, to: Any, dims: tuple[int, ...], order: tuple[int, int]) -> Case:
    what = "flat" if order == FLAT else "transposed"
    name = f"{short_name(source)} to {short_name(to)} {what} {dims[0]}x{dims[1]}"
    return Case("casts", what, name, partial(conversion, dims, order, source, to))
