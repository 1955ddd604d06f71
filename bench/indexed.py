"""Kernels with indexed accesses against NumPy's fancy indexing and numba's loops, on random indices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tilejit as tj
from bench.arrays import Array, aligned, filled, flat_bytes, short_name
from bench.jobs import Case, Job
from bench.peers import Call

TABLE = "indexed accesses"
SIZES = (1 << 12, 1 << 16, 1 << 20, 1 << 23)
DTYPES = (np.uint8, np.uint16, np.float32, np.float64)
INDICES = (np.int32, np.int64)
ROW = 64
"""Elements of a row."""


def gather(y: Any, x: Any, idx: Any) -> None:
    for i in range(len(y)):
        y[i] = x[idx[i]]


def scatter(y: Any, x: Any, idx: Any) -> None:
    for i in range(len(x)):
        y[idx[i]] = x[i]


def scatter_apart(y: Any, x: Any, idx: Any) -> None:
    for i in range(len(x)):
        y[tj.permutation(idx)[i]] = x[i]


def add_at(y: Any, x: Any, idx: Any) -> None:
    for i in range(len(x)):
        y[idx[i]] += x[i]


def gather_rows(y: Any, x: Any, idx: Any) -> None:
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j] = x[idx[i], j]


@dataclass(frozen=True, slots=True)
class Access:
    """A function of y, x and the indices, and its NumPy equivalent."""

    function: Callable[[Any, Any, Any], None]
    numpy: Callable[[Array, Array, Array], object]
    rows: bool = False
    numba: Callable[[Any, Any, Any], None] | None = None


def _take(y: Array, x: Array, idx: Array) -> None:
    y[...] = x[idx]


def _put(y: Array, x: Array, idx: Array) -> None:
    y[idx] = x


def _add(y: Array, x: Array, idx: Array) -> None:
    np.add.at(y, idx, x)


ACCESSES = (
    Access(gather, _take),
    Access(scatter, _put),
    Access(scatter_apart, _put, numba=scatter),
    Access(add_at, _add),
    Access(gather_rows, _take, rows=True),
)


def cases(quick: bool) -> list[Case]:
    """Each access, element type and size. Gathers of f32 also have both index widths."""
    sizes = SIZES[:1] if quick else SIZES
    return [
        Case(
            TABLE,
            access.function.__name__,
            _name(access, dtype, index, size),
            partial(_job, access, dtype, index, size),
        )
        for access in ACCESSES
        for dtype in DTYPES
        for index in INDICES
        for size in sizes
        if index == np.int64 or (access.function is gather and dtype == np.float32)
    ]


def _name(access: Access, dtype: Any, index: Any, size: int) -> str:
    return f"{access.function.__name__} {short_name(dtype)}[{size}] by {short_name(index)}"


def _job(access: Access, dtype: Any, index: Any, size: int, threads: int) -> Job:
    shape = (size // ROW, ROW) if access.rows else (size,)
    x, y = filled(shape, dtype), aligned(shape, dtype)
    y[...] = 0
    idx = aligned(shape[:1], index)
    idx[...] = np.random.default_rng(0).permutation(shape[0])
    expected = np.zeros_like(y)
    access.numpy(expected, x, idx)
    return Job(
        moved_bytes=x.nbytes + y.nbytes + idx.nbytes,
        out=y,
        expected=flat_bytes(expected).copy(),
        ours=lambda: _ours(access, y, x, idx, threads),
        peers={
            "numpy": lambda: _from_zero(access, y, partial(access.numpy, y, x, idx)),
            "numba": lambda: _by_numba(access, y, x, idx),
        },
    )


def _ours(access: Access, y: Array, x: Array, idx: Array, threads: int) -> Call:
    kernel = tj.kernel(parallel=False if threads == 1 else None)(access.function)
    return _from_zero(access, y, partial(kernel, y, x, idx))


def _by_numba(access: Access, y: Array, x: Array, idx: Array) -> Call:
    from numba import njit

    compiled = njit(access.numba or access.function)
    return _from_zero(access, y, partial(compiled, y, x, idx))


def _from_zero(access: Access, y: Array, call: Call) -> Call:
    """Zero the destination before each call of a sum."""
    if access.function is not add_at:
        return call

    def run() -> None:
        y[...] = 0
        call()

    return run
