"""Scans in lanes: running sums, products, extremes and bit operations against the function undecorated."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import fsum
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilejit as tj
from tests.codegen.simd.levels import AtLevels, turn
from tests.conftest import SEED
from tests.kernels.scans import (
    BITS,
    EXACT,
    EXTREMES,
    ands,
    counted,
    differences,
    maxima,
    minima,
    ors,
    sums,
    sums_before,
    xors,
)
from tests.tools.extent import examples, few_by_default, in_pairs
from tests.tools.guard import Guarded

TAILS = ("mask", "scalar", "shift")
INTEGERS = tuple(np.dtype(f"{sign}{size}") for sign in "iu" for size in (1, 2, 4, 8))
FLOATS = tuple(map(np.dtype, (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)))
SIZES = ("auto", 2, 5, 128, 1000, "2*hw")
COUNTS = (0, 1, 2, 7, 16, 63, 64, 65, 200, 517)


@lru_cache(4)
def scans(function: Callable[..., Any], **options: Any) -> tj.Kernel[..., Any]:
    """The kernel of a function, made once for all counts and examples of a test."""
    kernel = tj.kernel(vectorize_scans=True, **options)(function)
    assert isinstance(kernel, tj.Kernel)
    return kernel


def values(dtype: Any, count: int) -> Any:
    """Values of all sizes: sums and products of integers wrap around."""
    rng = np.random.default_rng(SEED + count)
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, count, dtype, endpoint=True)
    return rng.integers(-99, 99, count).astype(dtype)


def same(kernel: tj.Kernel[..., Any], a: Any, start: Any) -> None:
    """The kernel and Python leave the same array, bit for bit, and return the same."""
    y, expected = np.full_like(a, 77), np.full_like(a, 77)
    with np.errstate(all="ignore"):
        wanted = kernel.python(a, expected, start)
    found = kernel(a, y, start)
    assert "is scanned by" in kernel.report()
    as_numbers = np.float64 if y.dtype in FLOATS else y.dtype
    for one, two in ((y, expected), (found, wanted)):
        assert one.dtype == two.dtype
        np.testing.assert_array_equal(one.astype(as_numbers), two.astype(as_numbers))
    if kernel.python not in (minima, maxima):  # NumPy's array loops and its scalars order zeros differently
        np.testing.assert_array_equal(np.signbit(y), np.signbit(expected))


@pytest.mark.parametrize(
    ("function", "dtype"),
    few_by_default([(f, dtype) for n, f in enumerate([*EXACT, *BITS]) for dtype in INTEGERS[n % 4 :: 4]], 4),
    ids=lambda given: getattr(given, "__name__", str(given)),
)
def test_integers_are_exact(function: Callable[..., Any], dtype: Any) -> None:
    """They wrap around as NumPy's do. Functions share the widths, each with and without a sign."""
    tail = TAILS[INTEGERS.index(dtype) % len(TAILS)]
    kernel = scans(function, virtual_vector_size=64, tail=tail)
    for count in COUNTS:
        same(kernel, values(dtype, count), values(dtype, 3)[1])


@pytest.mark.full
@pytest.mark.parametrize("size", SIZES)
def test_the_size_does_not_change_integers(size: Any) -> None:
    kernel = scans(sums_before, virtual_vector_size=size)
    for count in COUNTS:
        same(kernel, values(np.int32, count), np.int32(-5))


@pytest.mark.full
@pytest.mark.parametrize("function", [ands, ors, xors], ids=lambda f: f.__name__)
def test_booleans(function: Callable[..., Any]) -> None:
    for count in COUNTS:
        for start in (np.bool_(False), np.bool_(True)):
            same(scans(function, virtual_vector_size=32), values(np.uint8, count) > 9, start)


SPECIAL = (0.0, -0.0, 1.5, -2.5, float("inf"), float("-inf"), float("nan"), 3.0)


@pytest.mark.full
@pytest.mark.parametrize(
    ("function", "dtype"),
    [(f, dtype) for n, f in enumerate(EXTREMES) for dtype in FLOATS[n % 2 :: 2]],
    ids=lambda given: getattr(given, "__name__", str(given)),
)
@settings(max_examples=examples(10, full=40))
@given(data=st.data())
def test_extremes_of_floats_are_exact(function: Callable[..., Any], dtype: Any, data: st.DataObject) -> None:
    """NaN, infinities and signed zeros as in Python's loop, including which NaN and which zero is kept."""
    numbers = data.draw(st.lists(st.sampled_from(SPECIAL), max_size=70))
    start = data.draw(st.sampled_from(SPECIAL))
    same(scans(function, virtual_vector_size=32), np.array(numbers, dtype), dtype.type(start))


@pytest.mark.full
@pytest.mark.parametrize(
    ("function", "dtype", "tail"),
    in_pairs((sums, sums_before, differences), (np.float32, np.float64), TAILS),
    ids=lambda given: getattr(given, "__name__", str(given)),
)
@settings(max_examples=examples(10, full=50))
@given(data=st.data())
def test_sums_of_floats_keep_the_loops_error_bound(
    function: Callable[..., Any], dtype: Any, tail: str, data: st.DataObject
) -> None:
    """Element k differs from the exact sum by at most (k + 1) * eps / 2 times the sum of magnitudes."""
    numbers = data.draw(st.lists(st.floats(-1e6, 1e6, width=32), max_size=300))
    a, start = np.array(numbers, dtype), dtype(0.5)
    y = np.zeros_like(a)
    last = scans(function, virtual_vector_size=64, tail=tail)(a, y, start)
    sign = -1 if function is differences else 1
    terms = [float(start), *(sign * float(x) for x in a)]
    found = [*map(float, y), float(last)] if function is sums_before else [float(start), *map(float, y)]
    for k, each in enumerate(found):
        bound = (k + 1) * float(np.finfo(dtype).eps) / 2 * fsum(map(abs, terms[: k + 1]))
        assert abs(each - fsum(terms[: k + 1])) <= bound * 1.001


@pytest.mark.full
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_small_integers_are_exact_in_every_dtype(dtype: Any) -> None:
    """Sums that every float represents exactly do not depend on the grouping. Dtypes share the functions."""
    functions = (sums, sums_before, counted)[FLOATS.index(dtype) % 2 :: 2]
    for count in COUNTS:
        a = np.random.default_rng(count).choice([1, 1, -1], count).astype(dtype)
        for function in functions:
            same(scans(function, virtual_vector_size=32), a, dtype.type(3))


def test_sums_stay_infinite() -> None:
    """An infinity or NaN reaches all later elements, and no earlier ones."""
    a = np.ones(100, np.float32)
    a[41], a[67] = np.inf, np.nan
    y = np.zeros_like(a)
    scans(sums)(a, y, np.float32(0))
    assert y[40] == 41
    assert np.isposinf(y[41:67]).all()
    assert np.isnan(y[67:]).all()


@pytest.mark.full
@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.float64])
def test_nothing_is_touched_beyond_the_arrays(dtype: Any, tail: str) -> None:
    source, target = Guarded(1 << 14), Guarded(1 << 14)
    size = np.dtype(dtype).itemsize
    for function in (sums, sums_before):
        kernel = scans(function, virtual_vector_size=64, tail=tail)
        for count in (1, 2, 17, 63, 64, 65, 200):
            for at_end in (False, True):
                a = source.place(count * size, at_end=at_end).view(dtype)
                y = target.place(count * size, at_end=at_end).view(dtype)
                a[:] = np.arange(count)
                kernel(a, y, dtype(0))
                before = function is sums_before
                np.testing.assert_array_equal(y, np.cumsum(a, dtype=dtype) - (a if before else 0))
                assert target.untouched()
                assert source.untouched()


def test_in_place() -> None:
    """One array may be both arguments. If arrays overlap in other ways, the loop runs in order."""
    kernel = scans(sums, virtual_vector_size=32)
    a = values(np.int64, 101)
    expected = np.cumsum(a)
    kernel(a, a, np.int64(0))
    np.testing.assert_array_equal(a, expected)
    one, two = values(np.int64, 101), values(np.int64, 101)
    kernel(one[:-1], one[1:], np.int64(0))
    with np.errstate(over="ignore"):
        sums(two[:-1], two[1:], np.int64(0))
    np.testing.assert_array_equal(one, two)


def rows(a, y):
    for i in range(a.shape[0]):
        s = a[i, 0] - a[i, 0]
        for j in range(a.shape[1]):
            s += a[i, j]
            y[i, j] = s


def columns(a, y):
    for j in range(a.shape[1]):
        s = a[0, j] - a[0, j]
        for i in range(a.shape[0]):
            s += a[i, j]
            y[i, j] = s


@pytest.mark.full
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("function", "axis"), [(rows, 1), (columns, 0)])
def test_along_an_axis(function: Callable[..., Any], axis: int, threads: int) -> None:
    """Along rows, lanes are in a row. Along columns, each lane is a column."""
    for shape in ((1, 1), (3, 70), (33, 64), (70, 5)):
        a = values(np.int32, shape[0] * shape[1]).reshape(shape)
        y = np.zeros_like(a)
        kernel = scans(function, virtual_vector_size=32, parallel=threads)
        kernel(a, y)
        np.testing.assert_array_equal(y, np.cumsum(a, axis, dtype=np.int32))
        assert ("is scanned by add" in kernel.report()) == (axis == 1)


@pytest.mark.parametrize("step", [-1, 2])
def test_strided_arrays(step: int) -> None:
    a, y = values(np.int32, 200)[::step], np.zeros(200, np.int32)[::step]
    scans(sums)(a, y, np.int32(0))
    np.testing.assert_array_equal(y, np.cumsum(a, dtype=np.int32))


def marked(a, y):
    s = 0.0
    for i in tj.scan(range(a.shape[0])):
        s += a[i]
        y[i] = s


def test_a_loop_may_be_marked_as_a_scan() -> None:
    kernel = tj.kernel(marked)
    a, y = np.ones(100), np.zeros(100)
    kernel(a, y)
    np.testing.assert_array_equal(y, np.arange(1, 101))
    assert "vectorized by" in kernel.report()
    marked(a, y)
    np.testing.assert_array_equal(y, np.arange(1, 101))


def unscanned(a, y):
    for i in tj.scan(range(a.shape[0])):
        y[i] = a[i]


def test_a_loop_marked_as_a_scan_must_be_one() -> None:
    with pytest.raises(tj.KernelError, match="nothing is scanned in this loop\n"):
        tj.kernel(unscanned)(np.ones(3), np.ones(3))


def test_scans_run_in_order_by_default() -> None:
    """Floats keep their rounding, and integers are no exception."""
    a = np.random.default_rng(SEED).standard_normal(1000).astype(np.float32)
    y, expected = np.zeros_like(a), np.zeros_like(a)
    kernel = tj.kernel(sums)
    kernel(a, y, np.float32(0))
    sums(a, expected, np.float32(0))
    np.testing.assert_array_equal(y, expected)
    assert "scan-not-asked: s.1 is scanned by add" in kernel.report()
    with pytest.raises(tj.KernelError, match="scan-not-asked"):
        tj.kernel(sums, on_fail="raise", vectorize_reductions=True)(a, y, np.float32(0))


def filtered(a, y, s):
    for i in range(a.shape[0]):
        s = s * 0.5 + a[i]
        y[i] = s


def last_nan(a, y, s):
    for i in range(a.shape[0]):
        s = max(a[i], s)
        y[i] = s


@pytest.mark.parametrize("function", [filtered, last_nan])
def test_other_loops_stay_in_order(function: Callable[..., Any]) -> None:
    """A recurrence, and a maximum that starts over after a NaN."""
    kernel = scans(function)
    a, y, expected = np.array([1.0, np.nan, 0.5, 2.0] * 20), np.zeros(80), np.zeros(80)
    kernel(a, y, np.float64(3))
    function(a, expected, np.float64(3))
    np.testing.assert_array_equal(y, expected)
    assert "carried-value" in kernel.report()


def test_the_steps_are_visible() -> None:
    """MLIR's scan in super-vectors; in registers, log steps and the last lane of the previous register."""
    kernel = scans(sums, virtual_vector_size=32).specialize(np.ones(3, "f4"), np.ones(3, "f4"), np.float32(0))
    assert "vector.scan <add>" in kernel.vectorized
    for text in ("below_1(", "below_2(", "(last(", "s = s + last("):
        assert text in kernel.source.replace("s_1 = s_1 + last(", "s = s + last(")


def test_scans_and_reductions_in_one_loop() -> None:
    def both(a, y):
        s = a[0] - a[0]
        total = s
        for i in range(a.shape[0]):
            s += a[i]
            total += s
            y[i] = s
        return total

    a = values(np.int64, 333)
    y = np.zeros_like(a)
    kernel = scans(both, vectorize_reductions=True)
    assert kernel(a, y) == np.cumsum(np.cumsum(a))[-1]
    np.testing.assert_array_equal(y, np.cumsum(a))
    assert "total is reduced by add" in kernel.report()


def at_lower_levels(level: str) -> AtLevels:
    cases = [f"test_small_integers_are_exact_in_every_dtype[{dtype}]" for dtype in FLOATS[::3]]
    cases += turn([f"test_the_size_does_not_change_integers[{size}]" for size in SIZES], level)
    others = ("test_booleans", "test_nothing_is_touched_beyond_the_arrays")
    return AtLevels(__file__, [*cases, *others], len(cases) + 3 + 9)
