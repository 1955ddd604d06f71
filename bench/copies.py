"""Transposes and image layouts, in cache and out of it; fresh outputs; two threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from bench.arrays import Array, aligned, inside_line, short_name, shrunk
from bench.jobs import Case, fresh, permutation

U8, U16, U32, U64 = (np.dtype(f"u{n}") for n in (1, 2, 4, 8))
F32 = np.dtype(np.float32)
BY_SIZE = (U8, U16, U32, U64)

LARGE_EVEN = ((U8, (8192, 8192)), (U16, (8192, 8192)), (U32, (8192, 4096)), (U64, (4096, 4096)))
LARGE_ODD = ((U8, (8191, 8193)), (U16, (8191, 8193)), (U32, (8191, 4097)), (U64, (4097, 4095)))
HUGE_EVEN = ((U32, (8192, 8192)), (U64, (8192, 4096)))
HUGE_ODD = ((U32, (8191, 8193)), (U64, (8191, 4097)))

INSIDE_LINES = "64-128 MB, even pitch, NumPy's memory"
"""Large arrays that NumPy allocates begin 16 bytes inside a line."""

IMAGES = (
    (U8, (128, 512, 512, 3)),
    (U8, (64, 128, 128, 64)),
    (F32, (24, 512, 512, 3)),
    (F32, (16, 128, 128, 64)),
    (F32, (16, 112, 112, 67)),
)
"""NHWC."""

FRESH = (
    (U32, (4096, 4096), (0, 1)),
    (U32, (16384, 8192), (0, 1)),
    (U32, (8192, 4096), (1, 0)),
    (U8, (8192, 8192), (1, 0)),
)

THREADED = (
    (U32, (256, 256), (1, 0)),
    (U32, (1000, 1000), (1, 0)),
    (U8, (8192, 8192), (1, 0)),
    (U16, (8192, 8192), (1, 0)),
    (U32, (8192, 4096), (1, 0)),
    (U32, (8191, 4097), (1, 0)),
    (U64, (4096, 4096), (1, 0)),
    (F32, (8192, 4096), (0, 1)),
    (F32, (16, 128, 128, 64), (0, 3, 1, 2)),
)


def cases(quick: bool) -> list[Case]:
    """The transposes, the image layouts, and fresh outputs beside given ones."""
    return [
        *(_transpose("in cache, 256²", d, (256, 256), quick) for d in BY_SIZE),
        *(_transpose("1000²", d, (1000, 1000), quick) for d in BY_SIZE),
        *(_transpose("64-128 MB, even pitch", d, dims, quick) for d, dims in LARGE_EVEN),
        *(_transpose("64-128 MB, odd pitch", d, dims, quick) for d, dims in LARGE_ODD),
        *(_transpose(INSIDE_LINES, d, dims, quick, inside_line) for d, dims in LARGE_EVEN),
        *(_transpose("256 MB, even pitch", d, dims, quick) for d, dims in HUGE_EVEN),
        *(_transpose("256 MB, odd pitch", d, dims, quick) for d, dims in HUGE_ODD),
        *(case for dtype, dims in IMAGES for case in _images(dtype, shrunk(dims, dtype, quick))),
        *(case for dtype, dims, order in FRESH for case in _fresh(dtype, shrunk(dims, dtype, quick), order)),
    ]


def threaded(quick: bool) -> list[Case]:
    """The cases that compare one thread with two. `make` gets the number of threads."""
    found = []
    for dtype, full, order in THREADED:
        dims = shrunk(full, dtype, quick)
        name = f"{short_name(dtype)} {'x'.join(map(str, dims))} to {','.join(map(str, order))}"
        found.append(Case("two threads against one", "", name, partial(permutation, dims, order, dtype)))
    return found


def _transpose(
    group: str, dtype: Any, dims: tuple[int, ...], quick: bool, allocate: Callable[..., Array] = aligned
) -> Case:
    dims = shrunk(dims, dtype, quick)
    name = f"{short_name(dtype)} {dims[0]}x{dims[1]}"
    return Case("transposes", group, name, partial(permutation, dims, (1, 0), dtype, allocate=allocate))


def _images(dtype: Any, nhwc: tuple[int, ...]) -> list[Case]:
    """NHWC to NCHW and back."""
    n, h, w, c = nhwc
    return [
        Case(
            "image orders",
            operation,
            f"{short_name(dtype)} {operation} {n}x{h}x{w}x{c}",
            partial(permutation, dims, order, dtype),
        )
        for operation, dims, order in (
            ("NHWC to NCHW", nhwc, (0, 3, 1, 2)),
            ("NCHW to NHWC", (n, c, h, w), (0, 2, 3, 1)),
        )
    ]


def _fresh(dtype: Any, dims: tuple[int, ...], order: tuple[int, ...]) -> list[Case]:
    """One case with `out=` and one without."""
    what = "flat" if order == (0, 1) else "transposed"
    name = f"{short_name(dtype)} {dims[0]}x{dims[1]} {what}"

    def make(given: bool, threads: int) -> Any:
        return fresh(dims, order, dtype, threads, given=given)

    return [
        Case("fresh outputs", label, f"{name}, {label}", partial(make, given))
        for label, given in (("out= given", True), ("fresh", False))
    ]
