"""Kernels with accesses that instructions reorder: reversals, interleaves and their inverses."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from tests.codegen.simd.levels import AtLevels
from tests.tools.guard import Guarded

Sizes = Callable[[int], tuple[Any, ...]]
EXTENTS = (0, 1, 2, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 130)
DTYPES = ("u1", "i2", "f4", "f8", "bf16", "f2", "bool")


def reversed_load(c: Any, a: Any) -> None:
    for i in range(c.shape[0]):
        c[i] = a[c.shape[0] - 1 - i] + a[i]


def reversed_store(c: Any, a: Any) -> None:
    for i in range(c.shape[0]):
        c[c.shape[0] - 1 - i] = a[i]


def interleaved(c: Any, a: Any, b: Any) -> None:
    for i in range(a.shape[0]):
        c[2 * i] = a[i]
        c[2 * i + 1] = b[i] + a[i]


def interleaved_rows(c: Any, a: Any) -> None:
    for i in range(a.shape[1]):
        for j in range(3):
            c[3 * i + j] = a[j, i]


def interleaved_sums(c: Any, a: Any) -> None:
    for i in range(a.shape[1]):
        for j in range(4):
            t = a[j, i] + a[0, i]
            c[4 * i + j] = t + t


def deinterleaved(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0]):
        a[i] = c[2 * i]
        b[i] = c[2 * i + 1]


def deinterleaved_rows(a: Any, c: Any) -> None:
    for i in range(a.shape[1]):
        for j in range(3):
            a[j, i] = c[3 * i + j]


def deinterleaved_sums(a: Any, c: Any) -> None:
    for i in range(a.shape[0]):
        a[i] = c[8 * i] + c[8 * i + 2] + c[8 * i + 1] + c[8 * i + 3]
        a[i] += c[8 * i + 7] + c[8 * i + 6] + c[8 * i + 5] + c[8 * i + 4]


def exchanged(c: Any) -> None:
    for i in range(c.shape[0] // 2):
        x = c[2 * i]
        y = c[2 * i + 1]
        c[2 * i] = x + y
        c[2 * i + 1] = y


CASES: dict[Callable[..., None], tuple[Sizes, str]] = {
    reversed_load: (lambda n: (n, n), "reversed_elements"),
    reversed_store: (lambda n: (n, n), "reversed_elements"),
    interleaved: (lambda n: (2 * n, n, n), "interleaved"),
    interleaved_rows: (lambda n: (3 * n, (3, n)), "interleaved"),
    interleaved_sums: (lambda n: (4 * n, (4, n)), "interleaved|transposed"),
    deinterleaved: (lambda n: (n, n, 2 * n), "deinterleaved_2"),
    deinterleaved_rows: (lambda n: ((3, n), 3 * n), "deinterleaved_3"),
    deinterleaved_sums: (lambda n: (n, 8 * n), "deinterleaved_8"),
    exchanged: (lambda n: (2 * n,), "interleaved"),
}
"""The shapes of the arguments by the number of iterations, and an instruction that runs them, or two."""


def dtype_named(name: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16 if name == "bf16" else name)


@pytest.mark.parametrize("size", ["auto", 8, 256], ids=str)
@pytest.mark.parametrize("function", CASES, ids=lambda x: x.__name__)
@pytest.mark.parametrize("dtype", DTYPES)
def test_results_between_guard_pages(function: Any, size: Any, dtype: str) -> None:
    kind, (shapes, _) = dtype_named(dtype), CASES[function]
    kernel, rng = tj.kernel(function, virtual_vector_size=size), np.random.default_rng(3)
    rooms = [Guarded(8 * 8 * EXTENTS[-1]) for _ in shapes(0)]
    for n in EXTENTS:
        before = [rng.integers(0, 9, shape).astype(kind) for shape in shapes(n)]
        expected, given = [x.copy() for x in before], []
        for room, x in zip(rooms, before, strict=True):
            given.append(room.place(x.nbytes, at_end=n % 2 == 0).view(kind).reshape(x.shape))
            given[-1][...] = x
        function(*expected)
        kernel(*given)
        for got, wanted in zip(given, expected, strict=True):
            assert got.tobytes() == wanted.tobytes(), n
        assert all(room.untouched() for room in rooms), n


@pytest.mark.parametrize("function", CASES, ids=lambda x: x.__name__)
def test_instructions_are_selected(function: Any) -> None:
    shapes, name = CASES[function]
    kernel = tj.kernel(function)
    kernel(*(np.ones(shape, np.float32) for shape in shapes(100)))
    assert re.search(rf"\b({name})\(", kernel.source)


@pytest.mark.parametrize(
    ("function", "result", "source", "routines"),
    [
        (reversed_store, 1000, np.zeros(1000, "f4")[::-1], "load_u32x16 reversed_elements store_u32x16"),
        (interleaved_rows, (1000, 3), np.zeros((3, 1000), "f4").T, "load_u32x3x16 interleaved store_u32x48"),
        (
            deinterleaved_rows,
            (3, 1000),
            np.zeros((1000, 3), "f4").T,
            "load_u32x48 deinterleaved_3 store_u32x3x16",
        ),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_loops_are_those_of_the_copy(function: Any, result: Any, source: Any, routines: str) -> None:
    """A super-vector of a kernel is loaded, reordered and stored by the routines of the copy."""
    kernel = tj.kernel(function)
    kernel(*(np.ones(shape, np.float32) for shape in CASES[function][0](1000)))
    copy = tj.explain(np.zeros(result, "f4"), source)
    for text in (kernel.source.replace("f32", "u32"), copy.source):
        assert set(routines.split()) <= set(re.findall(r"\w+(?=\()", text))


def overwritten(c: Any) -> None:
    for i in range(c.shape[0] // 2):
        c[2 * i] = c[2 * i + 1] + c[2 * i]
        c[2 * i + 1] = c[2 * i]


def stored_between(c: Any, a: Any) -> None:
    for i in range(c.shape[0]):
        t = a[2 * i]
        a[2 * i + 1] = t
        c[i] = a[2 * i + 1]


@pytest.mark.parametrize("function", [overwritten, stored_between], ids=lambda x: x.__name__)
def test_stores_between_accesses_keep_their_order(function: Any) -> None:
    kernel, rng = tj.kernel(function), np.random.default_rng(4)
    for n in EXTENTS:
        given = [rng.integers(0, 9, 2 * n).astype("f4")]
        given = given if function is overwritten else [np.zeros(n, "f4"), *given]
        expected = [x.copy() for x in given]
        function(*expected)
        kernel(*given)
        assert all(map(np.array_equal, given, expected)), n
    assert "strided_load" in kernel.source
    assert "interleaved(" not in kernel.source


def transposed(c: Any, a: Any) -> None:
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = a[j, i]


def gray(c: Any, a: Any) -> None:
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = a[i, j, 0] + a[i, j, 1] + a[i, j, 2]


@pytest.mark.parametrize("rows", [2, 3, 4])
@pytest.mark.parametrize("dtype", ["u1", "f4", "f8"])
def test_rows_of_a_few_elements_are_interleaved(rows: int, dtype: str) -> None:
    """Kernels of dense rows know their length; other arrays run by the kernel of all sizes."""
    kernel, room = tj.kernel(transposed), Guarded(8 * 4 * EXTENTS[-1])
    for n in (*EXTENTS[1:], 1000):
        a = np.random.default_rng(n).integers(0, 9, (rows, n)).astype(dtype)
        small = room.place(a.nbytes, at_end=True) if n < 1000 else np.zeros(a.nbytes, "u1")
        dense = small.view(dtype).reshape(n, rows)
        apart = np.full((n, rows + 1), 7, dtype)
        kernel(apart[:, :rows], a)
        source = kernel.source
        kernel(dense, a)
        assert np.array_equal(dense, a.T)
        assert np.array_equal(apart[:, :rows], a.T)
        assert (apart[:, rows] == 7).all()
        assert room.untouched()
        assert "interleaved(" in kernel.source or "transposed(" in kernel.source
        assert "interleaved(" not in source


@pytest.mark.parametrize("gap", [0, 1])
@pytest.mark.parametrize("function", [transposed, gray], ids=lambda x: x.__name__)
def test_strides_of_one_size_are_literals(function: Any, gap: int) -> None:
    """Each shape has a kernel of its own, and so do the strides of its arrays."""
    kernel = tj.kernel(function, specialize="sizes")
    for n in (1, 15, 16, 17, 100):
        rng = np.random.default_rng(n)
        a = rng.integers(0, 9, (3, n) if function is transposed else (2, n, 3)).astype("f4")
        shape = (n, 3) if function is transposed else (2, n)
        c, expected = np.zeros((shape[0], shape[1] + gap), "f4")[:, : shape[1]], np.zeros(shape, "f4")
        function(expected, a)
        kernel(c, a)
        assert np.array_equal(c, expected), n
    assert "_stride_" not in kernel.source
    name = "block = load_f32x3x16" if function is transposed else "deinterleaved_3"
    assert (name in kernel.source) == (not gap or function is gray)


def at_lower_levels(level: str) -> AtLevels:
    tests = ["test_results_between_guard_pages", "test_stores_between_accesses_keep_their_order"]
    return AtLevels(__file__, tests, 3 * len(CASES) * len(DTYPES) + 2)
