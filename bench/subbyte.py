"""Four-bit integers and one-bit booleans, 128 MiB read and written, in order and in the TPU's tiles."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bench.arrays import INT4, short_name, shrunk
from bench.jobs import Case, packing, unpacking
from bench.recipe import Recipe

Split = tuple[tuple[int, ...], ...]

CASES: tuple[tuple[Any, int, tuple[int, int], str, Split, tuple[int, ...]], ...] = (
    (INT4, 4, (8192, 10880), "{1,0:E(4)}", ((), ()), (0, 1)),
    (INT4, 4, (8192, 10880), "{1,0:T(64,128)(8,1)E(4)}", ((8, 8), (128,)), (0, 3, 1, 4, 2)),
    (np.bool_, 1, (8192, 14592), "{1,0:E(1)}", ((), ()), (0, 1)),
    (np.bool_, 1, (8192, 14592), "{1,0:T(32,128)(32,1)E(1)}", ((32,), (128,)), (0, 2, 3, 1)),
)
"""Element, width, dimensions, layout, and the recipe's split and order."""


def cases(quick: bool) -> list[Case]:
    """A pack and an unpack for each layout."""
    return [
        Case("sub-byte", operation, _name(operation, d, dims, layout), partial(_make, make, case, quick))
        for case in CASES
        for d, _, full, layout, *_ in (case,)
        for dims in (shrunk(full, d, quick),)
        for operation, make in (("pack", packing), ("unpack", unpacking))
    ]


def _name(operation: str, dtype: Any, dims: tuple[int, ...], layout: str) -> str:
    return f"{operation} {short_name(dtype)}[{dims[0]},{dims[1]}] {layout[5:-1]}"


def _make(make: Any, case: Any, quick: bool, threads: int) -> Any:
    dtype, width, dims, layout, split, order = case
    return make(layout, Recipe(shrunk(dims, dtype, quick), split, order), dtype, threads, width)
