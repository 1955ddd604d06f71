"""Loops compiled by `tilejit.kernel`: maps, stencils, transposes, reductions, scans; in and out of cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tilejit as tj
from bench.arrays import Array, aligned, flat_bytes, short_name
from bench.jobs import UNTOUCHED, Case, Job, answer_of
from bench.peers import Call
from bench.sweep import add, transposed

TABLE = "kernels"
F32, F64, S32 = (np.dtype(name) for name in ("f4", "f8", "i4"))
SIDES, QUICK_SIDES = (256, 4096), (256,)


def triad(a: Array, b: Array, c: Array) -> None:
    """One multiplication and one addition per element."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] * 2 + b[i, j]


def stencil(a: Array, c: Array) -> None:
    """The sum of an element's neighbors; the edges stay as they are."""
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            c[i, j] = a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]


def row_sums(a: Array, c: Array) -> None:
    """One sum per row."""
    for i in range(a.shape[0]):
        c[i] = 0
        for j in range(a.shape[1]):
            c[i] += a[i, j]


def running_sums(a: Array, c: Array) -> None:
    """The sum of each row up to each element."""
    for i in range(a.shape[0]):
        s = a[i, 0]
        c[i, 0] = s
        for j in range(1, a.shape[1]):
            s += a[i, j]
            c[i, j] = s


def running_maxima(a: Array, c: Array) -> None:
    """The largest element of each row up to each one."""
    for i in range(a.shape[0]):
        s = a[i, 0]
        c[i, 0] = s
        for j in range(1, a.shape[1]):
            s = max(s, a[i, j])
            c[i, j] = s


def _stencil(a: Array, c: Array) -> None:
    c[1:-1, 1:-1] = a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]


@dataclass(frozen=True, slots=True)
class Loops:
    """A kernel, the number of arrays that it reads, and its NumPy equivalent.

    The last argument is written.
    """

    group: str
    name: str
    python: Callable[..., None]
    dtype: np.dtype[Any]
    reads: int
    numpys: Callable[..., object]


KERNELS = (
    *(
        Loops("maps", "a+b+1+2", add, dtype, 2, lambda a, b, c: np.copyto(c, a + b + 1 + 2))
        for dtype in (F32, F64)
    ),
    *(
        Loops("maps", "triad", triad, dtype, 2, lambda a, b, c: np.copyto(c, a * 2 + b))
        for dtype in (F32, S32)
    ),
    Loops("stencils", "four neighbors", stencil, F32, 1, _stencil),
    Loops("transposed", "a+1 transposed", transposed, F32, 1, lambda a, c: np.copyto(c, (a + 1).T)),
    *(
        Loops("reductions", "row sums", row_sums, dtype, 1, lambda a, c: np.sum(a, 1, a.dtype, c))
        for dtype in (S32, F32)
    ),
    *(
        Loops("scans", "running sums", running_sums, dtype, 1, lambda a, c: np.cumsum(a, 1, a.dtype, c))
        for dtype in (S32, F32, F64)
    ),
    *(
        Loops(
            "scans",
            "running maxima",
            running_maxima,
            dtype,
            1,
            lambda a, c: np.maximum.accumulate(a, 1, None, c),
        )
        for dtype in (S32, F32)
    ),
)


def cases(quick: bool) -> list[Case]:
    """Each kernel on square matrices."""
    return [
        Case(
            TABLE,
            loops.group,
            f"kernel {loops.name} {short_name(loops.dtype)} {side}x{side}",
            partial(_job, loops, side),
        )
        for loops in KERNELS
        for side in (QUICK_SIDES if quick else SIDES)
    ]


def _job(loops: Loops, side: int, threads: int) -> Job:
    given = [_numbers(loops.dtype, side, seed) for seed in range(loops.reads)]
    out = aligned((side,) if loops.group == "reductions" else (side, side), loops.dtype)
    flat_bytes(out)[:] = UNTOUCHED
    return Job(
        moved_bytes=sum(x.nbytes for x in given) + out.nbytes,
        out=out,
        expected=answer_of(lambda: loops.numpys(*given, out), out),
        ours=lambda: _bound(_kernel(loops.python, threads), given, out),
        peers={
            "numpy": lambda: _bound(loops.numpys, given, out),
            "numba": lambda: _bound(_compiled(loops.python), given, out),
        },
    )


def _numbers(dtype: np.dtype[Any], side: int, seed: int) -> Array:
    """Small integers, whose sums are exact in any order."""
    x = aligned((side, side), dtype)
    x[...] = np.random.default_rng(seed).integers(0, 8, x.shape)
    return x


def _bound(function: Callable[..., object], given: list[Array], out: Array) -> Call:
    """A call that returns nothing, because the answer is in `out`."""

    def run() -> None:
        function(*given, out)

    return run


def _kernel(python: Callable[..., None], threads: int) -> Callable[..., object]:
    return tj.kernel(vectorize_reductions=True, vectorize_scans=True, parallel=threads)(python)


def _compiled(python: Callable[..., None]) -> Callable[..., object]:
    import numba

    compiled: Callable[..., object] = numba.njit(python, fastmath=True)
    return compiled
