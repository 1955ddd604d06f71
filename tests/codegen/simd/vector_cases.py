"""Kernels that compute with vectors over arrays: their source, arguments, and NumPy's results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.runtime.kernel import copy_operands, native

Array = NDArray[Any]

INTEGERS = tuple(f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64))
FLOATS = ("f32", "f64")
NUMBERS = (*INTEGERS, *FLOATS)
EVERY = ("i1", *NUMBERS)
PAIRS = 1024
SEED = 20_251_121


def numpy_type(dtype: str) -> np.dtype[Any]:
    """i16 is int16, i1 bool."""
    return np.dtype(bool) if dtype == "i1" else np.dtype(f"{dtype[0]}{int(dtype[1:]) // 8}")


def name_of(dtype: np.dtype[Any]) -> str:
    """int16 is i16."""
    return "i1" if dtype.kind == "b" else f"{dtype.kind}{8 * dtype.itemsize}"


@cache
def specials(dtype: str) -> Array:
    """The values most likely to go wrong."""
    kind = numpy_type(dtype)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        near = (0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, 100, *range(info.max - 2, info.max + 1))
        below = (info.min, info.min + 1, info.min + 2, -1, -2, -7, -8) if kind.kind == "i" else ()
        return np.array([n for n in (*near, *below) if n <= info.max], kind)
    if dtype == "i1":
        return np.array([False, True])
    limits = np.finfo(kind)
    ordinary = [
        0.0,
        0.5,
        1.0,
        1.5,
        2.0,
        2.5,
        3.0,
        7.25,
        1e10,
        2.0**24 + 1,
        2.0**31,
        2.0**32,
        2.0**63,
        2.0**64,
    ]
    extremes = [limits.max, limits.tiny, limits.smallest_subnormal, limits.tiny / 2, np.inf, np.nan]
    both = [
        *ordinary,
        *(127.0, 128.0, 255.0, 256.0, 32767.0, 32768.0, 65535.0, 65536.0, 2.0**31 - 0.5),
        *extremes,
    ]
    with np.errstate(over="ignore"):
        return np.array([sign * x for x in both for sign in (1, -1)]).astype(kind)


@cache
def operands(dtype: str) -> tuple[Array, Array]:
    """Every pair of specials that fits, then random numbers."""
    rng = np.random.default_rng(SEED)
    some = specials(dtype)
    a, b = (x.ravel() for x in np.meshgrid(some, some))
    order = rng.permutation(len(a))[: PAIRS // 2]
    rest = PAIRS - len(order)
    return tuple(np.concatenate([x[order], _random(rng, dtype, rest)]) for x in (a, b))  # type: ignore[return-value]


def _random(rng: np.random.Generator, dtype: str, count: int) -> Array:
    kind = numpy_type(dtype)
    if kind.kind == "f":
        near = rng.normal(scale=10.0 ** rng.integers(-3, 4, count))
        return near.astype(kind)
    if dtype == "i1":
        return rng.integers(0, 2, count).astype(bool)
    info = np.iinfo(kind)
    wide = rng.integers(info.min, info.max, count, kind, endpoint=True)
    return np.where(rng.random(count) < 0.5, wide, wide >> (kind.itemsize * 8 - 5)).astype(kind)


@dataclass(frozen=True, slots=True)
class Operation:
    """An expression of vectors x and y in a kernel, and NumPy's function for it.

    `N` in the text is the number of lanes, `D` the dtype. `whole` means one result for all lanes of a vector.
    """

    text: str
    oracle: Callable[[Array, Array], Array]
    dtypes: Sequence[str]
    whole: bool = False

    def __str__(self) -> str:
        return self.text


HEAD = """def {}(operands, scratch, sizes, begin, end):
    src, dst = addresses_2(operands)
"""
"""The first lines of a kernel with a given name."""


def kernel(body: str) -> Callable[[int, int, int, int, int], None]:
    """A kernel with that body, to be called with src, dst, sizes, begin and end."""
    name = f"vectors_{sha256(body.encode()).hexdigest()[:16]}"
    run = native(name, HEAD.format(name) + body)
    return lambda src, dst, *rest: run(copy_operands(src, dst), 0, *rest)


def computed(operations: Sequence[Operation], dtype: str, lanes: int, x: Array, y: Array) -> list[Array]:
    """The results of all operations on arrays of a multiple of `lanes`, by one kernel."""
    with np.errstate(all="ignore"):
        results = [np.empty(_shape(op, x, lanes), op.oracle(x[:lanes], y[:lanes]).dtype) for op in operations]
    size = x.itemsize
    lines = [
        "    a = int64_at(sizes, 0)",
        "    b = int64_at(sizes, 1)",
        *(f"    out_{k} = int64_at(sizes, {k + 2})" for k in range(len(operations))),
        f"    for k in range(begin, end, {lanes}):",
        f"        x = load_{dtype}x{lanes}(a + k * {size})",
        f"        y = load_{dtype}x{lanes}(b + k * {size})",
    ]
    for k, (op, result) in enumerate(zip(operations, results, strict=True)):
        kind, width = name_of(result.dtype), result.itemsize
        text = op.text.replace("D", dtype).replace("N", str(lanes))
        at = f"out_{k} + k // {lanes} * {width}" if op.whole else f"out_{k} + k * {width}"
        lines.append(f"        store_{kind}x{1 if op.whole else lanes}({at}, {text})")
    table = np.array([array.ctypes.data for array in (x, y, *results)], np.int64)
    kernel("\n".join(lines) + "\n")(0, 0, table.ctypes.data, 0, len(x))
    return results


def computed_each(
    operations: Sequence[Operation], dtype: str, lanes: int, pairs: Sequence[tuple[Array, Array]]
) -> list[Array]:
    """The result of each operation on its own pair of arrays, all of one length, by one kernel."""
    results = []
    lines = []
    for k, (op, (x, y)) in enumerate(zip(operations, pairs, strict=True)):
        with np.errstate(all="ignore"):
            results.append(np.empty(len(x), op.oracle(x[:lanes], y[:lanes]).dtype))
        kind, text = name_of(results[-1].dtype), op.text.replace("D", dtype).replace("N", str(lanes))
        lines += [
            *(f"    {name}_{k} = int64_at(sizes, {3 * k + n})" for n, name in enumerate(("a", "b", "out"))),
            f"    for k in range(begin, end, {lanes}):",
            f"        x = load_{dtype}x{lanes}(a_{k} + k * {x.itemsize})",
            f"        y = load_{dtype}x{lanes}(b_{k} + k * {x.itemsize})",
            f"        store_{kind}x{lanes}(out_{k} + k * {results[-1].itemsize}, {text})",
        ]
    arrays = [a for (x, y), out in zip(pairs, results, strict=True) for a in (x, y, out)]
    table = np.array([a.ctypes.data for a in arrays], np.int64)
    kernel("\n".join(lines) + "\n")(0, 0, table.ctypes.data, 0, len(arrays[0]))
    return results


def _shape(op: Operation, x: Array, lanes: int) -> int:
    return len(x) // lanes if op.whole else len(x)


def assert_same(got: Array, wanted: Array, text: str, *, zeros: bool = True) -> None:
    """The same bits. Any NaN equals any other, and with zeros=False either zero equals the other."""
    assert got.dtype == wanted.dtype, text
    same = got == wanted
    if got.dtype.kind == "f":
        nan = np.isnan(got) & np.isnan(wanted)
        same &= (np.signbit(got) == np.signbit(wanted)) | (got != 0) if zeros else same
        same |= nan
    wrong = np.flatnonzero(~same)
    assert not len(wrong), f"{text}: {got[wrong[:5]]} not {wanted[wrong[:5]]} at {wrong[:5]}"
