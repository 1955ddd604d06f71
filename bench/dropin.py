"""TileJIT's versions of NumPy's routines against NumPy's, with `out=` and fresh, on small to large arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

import tilejit as tj
from bench.arrays import Array, aligned, filled, flat_bytes, short_name
from bench.jobs import Case, Job
from bench.peers import Call

U8, U16, F16, F32, F64 = (np.dtype(name) for name in ("u1", "u2", "f2", "f4", "f8"))
BF16 = np.dtype(ml_dtypes.bfloat16)

SIDES = {"1 KiB": 16, "64 KiB": 128, "1 MiB": 512, "8 MiB": 1448, "64 MiB": 4096}
"""Bytes of an array, and the side of an f32 square of that size. Other dtypes have as many bytes."""

OUT_OF_CACHE = "64 MiB"
"""Sizes at which transposes are a separate group."""

QUICK_SIDES = {"1 KiB": 16, "64 KiB": 128}

Routine = Callable[[Any, Array], Any]
"""Calls a routine of a module, numpy or tilejit, on an array."""


def cases(quick: bool) -> list[Case]:
    """Every routine at every size."""
    found = []
    for size, side in (QUICK_SIDES if quick else SIDES).items():
        for what, dtype, shape, call, takes_out in _rows(side):
            name = f"{what} {short_name(dtype)} {'x'.join(map(str, shape))}"
            group = f"{size} transposed" if size == OUT_OF_CACHE and call in TRANSPOSED else size
            kinds = (("fresh", group), ("out=", group), ("plan", f"{size} plans"))
            for kind, section in kinds if takes_out else kinds[:1]:
                make = partial(_job, dtype, shape, call, kind)
                found.append(Case("dropin", section, f"{name}, {kind}", make, alternates=True))
    return found


def _rows(side: int) -> list[tuple[str, Any, tuple[int, ...], Routine, bool]]:
    """Name, dtype, shape, routine, and whether the view is also copied to a given array."""
    part = max(side // 16, 2)
    image = (4, max(side // 4, 2), max(side // 4, 2), 4)
    return [
        *(("transpose", d, _square(side, d), _transposed, True) for d in (U8, U16, F32, F64)),
        *(("permute 3,1,2,0", d, (16, part, 16, part), _permuted, True) for d in (U16, F32)),
        *(("NHWC to NCHW", d, image, _channels_first, True) for d in (U8, F32)),
        *(("flip 0", d, _square(side, d), partial(_flipped, 0), True) for d in (U8, F32)),
        *(("flip 1", d, _square(side, d), partial(_flipped, 1), True) for d in (U8, F32)),
        *((f"cast to {short_name(to)}", d, _square(side, d), partial(_cast, to), False) for d, to in CASTS),
        ("concatenate 0", F32, (side, side), partial(_concatenated, 0), False),
        ("concatenate 1", F32, (side, side), partial(_concatenated, 1), False),
        ("concatenate T", F32, (side, side), _concatenated_transposed, False),
        ("stack -1", F32, (side, side), _stacked, False),
        ("pad constant", F32, (side, side), partial(_padded, "constant"), False),
        ("pad edge", U8, _square(side, U8), partial(_padded, "edge"), False),
        ("take of T", F32, (side, side), _taken, False),
        *((f"take_along_axis {k}", F32, (side, side), partial(_taken_along, k), False) for k in (0, 1)),
        *((f"put_along_axis {k}", F32, (side, side), partial(_put_along, k), False) for k in (0, 1)),
        ("put", F32, (side, side), _put, False),
        ("put into T", F32, (side, side), _put_transposed, False),
    ]


CASTS = ((F32, BF16), (BF16, F32), (F32, F16), (F16, F32), (F32, F64), (F64, F32), (U8, F32), (F32, U8))


def _square(side: int, dtype: np.dtype[Any]) -> tuple[int, int]:
    """Rows and columns of a square with about as many bytes as the f32 square."""
    return side, side * 4 // dtype.itemsize


def _transposed(module: Any, x: Array) -> Any:
    return module.ascontiguousarray(x.T)


def _permuted(module: Any, x: Array) -> Any:
    return module.ascontiguousarray(x.transpose(3, 1, 2, 0))


def _channels_first(module: Any, x: Array) -> Any:
    return module.ascontiguousarray(x.transpose(0, 3, 1, 2))


def _flipped(axis: int, module: Any, x: Array) -> Any:
    return module.ascontiguousarray(np.flip(x, axis))


def _cast(to: np.dtype[Any], module: Any, x: Array) -> Any:
    return tj.astype(x, to) if module is tj else x.astype(to)


def _concatenated(axis: int, module: Any, x: Array) -> Any:
    return module.concatenate([x, x], axis)


def _concatenated_transposed(module: Any, x: Array) -> Any:
    return module.concatenate([x.T, x], 0)


def _stacked(module: Any, x: Array) -> Any:
    return module.stack([x, x, x], -1)


def _padded(mode: str, module: Any, x: Array) -> Any:
    return module.pad(x, ((1, 2), (3, 4)), mode)


def _taken(module: Any, x: Array) -> Any:
    return module.take(x.T, range(0, x.shape[1], 2), 0)


def _taken_along(axis: int, module: Any, x: Array) -> Any:
    return module.take_along_axis(x, _order(x.shape, axis), axis)


def _put_along(axis: int, module: Any, x: Array) -> Any:
    out = _room(x.shape, x.dtype)
    module.put_along_axis(out, _order(x.shape, axis), x, axis)
    return out


def _put(module: Any, x: Array) -> Any:
    out = _room(x.shape, x.dtype)
    module.put(out, _order((x.size,), 0), x)
    return out


def _put_transposed(module: Any, x: Array) -> Any:
    out = _room(x.shape, x.dtype).T
    module.put(out, _order((x.size,), 0)[: x.size // 2], x)
    return out


@lru_cache(maxsize=2)
def _order(shape: tuple[int, ...], axis: int) -> Array:
    """A random order of each slice along the axis."""
    return np.random.default_rng(0).random(shape).argsort(axis)


@lru_cache(maxsize=1)
def _room(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """The memory that the calls of one case write to."""
    return aligned(shape, dtype)


TRANSPOSED = (_transposed, _permuted, _channels_first)


class _Views:
    """A module whose routines only create the view to copy."""

    @staticmethod
    def ascontiguousarray(view: Array) -> Array:
        return view


def _job(dtype: Any, shape: tuple[int, ...], call: Routine, kind: str, threads: int) -> Job:
    """TileJIT's and NumPy's calls for one result, on existing arrays.

    Routines read the number of threads from the settings.
    """
    x = filled(shape, dtype)
    expected = call(np, x)
    out = aligned(expected.shape, expected.dtype)
    moved = x.nbytes + prod(expected.shape) * expected.itemsize
    answer = flat_bytes(np.ascontiguousarray(expected)).copy()
    if kind == "fresh":
        return Job(moved, out, answer, lambda: _fresh(call, tj, x), {"numpy": lambda: _fresh(call, np, x)})
    view = call(_Views, x)
    numpys = {"numpy": lambda: lambda: np.copyto(out, view)}
    if kind == "plan":
        plan = tj.plan_copy(out, view, threads=threads)
        return Job(moved, out, answer, lambda: lambda: plan(out, view), numpys)
    return Job(moved, out, answer, lambda: lambda: tj.copyto(out, view), numpys)


def _fresh(call: Routine, module: Any, x: Array) -> Call:
    return lambda: call(module, x)
