"""The sizes of super-vectors as cases, one each: what the sweep measures, for `pytest bench`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import tilejit as tj
from bench.arrays import aligned, filled, flat_bytes, short_name
from bench.jobs import Case, Job
from bench.sweep import SIZES, add

SIDE, QUICK_SIDE = 1000, 300


def cases(quick: bool) -> list[Case]:
    """a+b+1+2 of a matrix at every size."""
    side = QUICK_SIDE if quick else SIDE
    return [
        Case(
            "sweep",
            f"kernel add {short_name(dtype)} {side}x{side}",
            f"virtual_vector_size={_text(size)}",
            partial(_job, size, side, dtype),
        )
        for dtype in (np.float32, np.float64)
        for size in SIZES
    ]


def _job(size: Any, side: int, dtype: Any, threads: int) -> Job:
    a, b, c = filled((side, side), dtype), filled((side, side), dtype), aligned((side, side), dtype)
    kernel = tj.kernel(virtual_vector_size=size, parallel=threads)(add)
    return Job(
        moved_bytes=3 * a.nbytes,
        out=c,
        expected=flat_bytes(a + b + 1 + 2).copy(),
        ours=lambda: lambda: kernel(a, b, c),
        peers={},
    )


def _text(size: Any) -> str:
    return "x".join(map(str, size)) if isinstance(size, tuple) else str(size)
