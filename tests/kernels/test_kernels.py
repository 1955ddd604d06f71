"""`tilejit.kernel`: loops in Python against the same function undecorated."""

from __future__ import annotations

import copy
import functools
import inspect
import math
import pickle
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.codegen.passes.table import REASONS
from tests.codegen.simd.levels import AtLevels, turn
from tests.conftest import SEED
from tests.tools.extent import few_by_default
from tests.tools.guard import Guarded

TAILS = ("mask", "scalar", "shift")


def scaled(a, b, c, alpha):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = (a[i, j] + b[i]) * alpha


def stepped(a, b, c, alpha):
    for i in range(1, a.shape[0], 3):
        for j in range(2, a.shape[1], 2):
            c[i, j] = a[i, j] - b[i] * alpha


def reversed_rows(a, b, c, alpha):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, a.shape[1] - 1 - j] + alpha


def triangle(a, b, c, alpha):
    for i in range(a.shape[0]):
        for j in range(min(i, a.shape[1])):
            c[i, j] = a[i, j] * b[i]


def floor_and_mod(a, b, c, alpha):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j // 2] + a[i, j % 16] + alpha


def doubled_index(a, b, c, alpha):
    for i in range(a.shape[0]):
        for j in range(a.shape[1] // 2):
            c[i, j] = a[i, 2 * j]


def partial_row(a, b, c, alpha):
    for i in range(a.shape[0]):
        for j in range(3, a.shape[1] - 5):
            c[i, j] = a[i, j - 3] + a[i, j + 5]


def down_columns(a, b, c, alpha):
    for j in range(a.shape[1]):
        for i in range(a.shape[0]):
            c[i, j] = a[i, j] + b[i]


def carried(a, b, c, alpha):
    for i in range(a.shape[0]):
        for j in range(1, a.shape[1]):
            c[i, j] = c[i, j - 1] + a[i, j]


def forward(a, b, c, alpha):
    for i in range(a.shape[0]):
        for j in range(a.shape[1] - 1):
            c[i, j] = c[i, j + 1] + a[i, j]


def far_carried(a, b, c, alpha):
    for i in range(a.shape[0]):
        for j in range(16, a.shape[1]):
            c[i, j] = c[i, j - 16] + a[i, j]


def chosen(a, b, c, alpha):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            t = a[i, j] * a[i, j]
            c[i, j] = t if a[i, j] > b[i] else -t


def index_used(a, b, c, alpha):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] * j + i


def accumulating(a, b, c, alpha):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] += a[i, j] * b[i]


def sums_inside(a, b, c, alpha):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s = np.float32(0)
            for k in range(min(a.shape[0], a.shape[1])):
                s += a[i, k] * a[k, j]
            c[i, j] = s


def two_nests(a, b, c, alpha):
    for i in range(a.shape[0]):
        b[i] = b[i] + a[i, 0]
        for j in range(a.shape[1]):
            c[i, j] = b[i] + a[i, j]
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = math.sqrt(abs(c[i, j]))


FUNCTIONS = (
    scaled,
    stepped,
    reversed_rows,
    triangle,
    floor_and_mod,
    doubled_index,
    partial_row,
    down_columns,
    carried,
    forward,
    far_carried,
    chosen,
    index_used,
    accumulating,
    sums_inside,
    two_nests,
)


def arguments(dtype: Any, rows: int = 19, columns: int = 83) -> list[Any]:
    rng = np.random.default_rng(SEED)
    draw = [(rng.standard_normal(s) * 40).astype(dtype) for s in ((rows, columns), (rows,), (rows, columns))]
    return [*draw, 3]


def same(kernel: Callable[..., Any], python: Callable[..., Any], given: list[Any]) -> None:
    """Both leave the same in every array, and return the same."""
    other = [x.copy("K") if isinstance(x, np.ndarray) else x for x in given]
    with np.errstate(all="ignore"):
        expected = python(*other)
    found = kernel(*given)
    for one, two in zip(given, other, strict=True):
        np.testing.assert_array_equal(one, two, strict=True)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("size", [16, 256, (4, 32)], ids=str)
@pytest.mark.parametrize("function", few_by_default(FUNCTIONS, 8), ids=lambda f: f.__name__)
def test_kernels_agree_with_python(function: Callable[..., Any], size: Any) -> None:
    same(tj.kernel(virtual_vector_size=size)(function), function, arguments(np.float32))


@pytest.mark.full
@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_tails(function: Callable[..., Any], tail: str) -> None:
    made = tj.kernel(virtual_vector_size=64, tail=tail)(function)
    for columns in (1, 15, 16, 64, 131):
        same(made, function, arguments(np.float32, 5, columns))


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f8"])
@pytest.mark.parametrize("function", [scaled, chosen, index_used, accumulating], ids=lambda f: f.__name__)
def test_dtypes(function: Callable[..., Any], dtype: str) -> None:
    given = arguments(np.int64)
    given = [np.abs(x).astype(dtype) if isinstance(x, np.ndarray) else x for x in given]
    same(tj.kernel(function), function, given)


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("function", [scaled, chosen, accumulating], ids=lambda f: f.__name__)
def test_halves_round_after_each_operation(function: Callable[..., Any], dtype: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = np.float16 if dtype == "float16" else ml_dtypes.bfloat16
    given = [x.astype(kind) if isinstance(x, np.ndarray) else x for x in arguments(np.float32)]
    same(tj.kernel(function), function, given)


def total(x, y):
    s = np.float32(0)
    for i in range(x.shape[0]):
        s += x[i] * y[i]
    return s


def least_and_largest(x, y):
    low = x[0]
    high = y[0]
    for i in range(x.shape[0]):
        low = np.minimum(low, x[i])
        high = np.maximum(high, y[i])
    return low, high


def bits(x, y):
    a = x[0]
    o = x[0]
    e = x[0]
    p = y[0]
    for i in range(1, x.shape[0]):
        a &= x[i]
        o |= x[i]
        e ^= x[i]
        p *= y[i]
    return a, o, e, p


def sum_of_part(x, y):
    s = np.float32(0)
    for i in range(3, x.shape[0] - 2, 3):
        s += x[i]
    return s


def vector(dtype: Any, count: int) -> list[Any]:
    rng = np.random.default_rng(SEED)
    return [rng.integers(-9, 9, count).astype(dtype) for _ in "xy"]


@pytest.mark.full
@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("size", [8, 128, 500])
def test_reductions_in_lanes(size: int, tail: str) -> None:
    """Sums of small integers are exact in any order."""
    made = [tj.kernel(virtual_vector_size=size, tail=tail, vectorize_reductions=True)(f) for f in REDUCTIONS]
    for count in (1, 7, 64, 127, 1000):
        for kernel in made:
            dtype = np.int32 if kernel.python is bits else np.float32
            same(kernel, kernel.python, vector(dtype, count))
    assert all("vectorized by" in kernel.report() for kernel in made)


REDUCTIONS = (total, least_and_largest, bits, sum_of_part)


def test_reductions_keep_their_order_by_default() -> None:
    x = [np.random.default_rng(SEED).standard_normal(999).astype(np.float32) for _ in "xy"]
    kernel = tj.kernel(total)
    same(kernel, total, x)
    assert "reduction-not-asked" in kernel.report()


def test_a_sum_in_lanes_is_close() -> None:
    x = [np.random.default_rng(SEED).standard_normal(10_000).astype(np.float32) for _ in "xy"]
    exact = float(np.dot(x[0].astype(np.float64), x[1].astype(np.float64)))
    bound = 2**-24 * len(x[0]) * float(np.abs(x[0] * x[1]).sum())
    assert abs(float(tj.kernel(fastmath=True)(total)(*x)) - exact) <= bound


def shift_by_one(x, y):
    for i in range(x.shape[0]):
        y[i] = x[i] + x[i]


@pytest.mark.parametrize("offset", [-20, -3, -1, 0, 1, 3, 20])
def test_arrays_that_overlap(offset: int) -> None:
    """Element by element in the order of the loop, as in Python."""
    memory = np.arange(400, dtype=np.float64)
    kernel = tj.kernel(virtual_vector_size=16)(shift_by_one)
    other = memory.copy()
    shift_by_one(other[40:300], other[40 + offset : 300 + offset])
    kernel(memory[40:300], memory[40 + offset : 300 + offset])
    np.testing.assert_array_equal(memory, other)


def test_interleaved_arrays_do_not_overlap() -> None:
    memory = np.arange(400, dtype=np.float32)
    tj.kernel(shift_by_one)(memory[::2], memory[1::2])
    np.testing.assert_array_equal(memory[1::2], 2 * np.arange(0, 400, 2))


def test_one_array_as_both_arguments() -> None:
    kernel = tj.kernel(virtual_vector_size=16)(shift_by_one)
    x = np.arange(100, dtype=np.float32)
    kernel(x, x)
    np.testing.assert_array_equal(x, 2 * np.arange(100))


def running(x, y):
    for i in range(1, x.shape[0]):
        y[i] = x[i - 1] + np.float32(1)


def test_one_array_as_both_arguments_may_carry_a_dependence() -> None:
    x = np.zeros(100, np.float32)
    tj.kernel(virtual_vector_size=16)(running)(x, x)
    np.testing.assert_array_equal(x, np.arange(100))


def test_elements_that_share_memory_are_written_in_order() -> None:
    x, y = np.arange(100, dtype=np.float32), np.zeros(1, np.float32)
    shared = np.lib.stride_tricks.as_strided(y, (100,), (0,))
    tj.kernel(shift_by_one)(x, shared)
    assert y[0] == 198


def beyond(x, y):
    for i in range(x.shape[0]):
        y[i] = x[i + 1]


def below(x, y):
    for i in range(x.shape[0]):
        y[i] = x[i - 1]


@pytest.mark.parametrize(("function", "access"), [(beyond, r"x\[i \+ 1\]"), (below, r"x\[i - 1\]")])
def test_bounds_are_checked_before_anything_is_written(function: Callable[..., Any], access: str) -> None:
    x, y = np.ones(50, np.float32), np.zeros(50, np.float32)
    with pytest.raises(tj.KernelError, match=access) as refused:
        tj.kernel(function)(x, y)
    assert isinstance(refused.value, IndexError)
    assert not y.any()


def test_empty_loops_touch_nothing() -> None:
    memory = np.full(9, 7, np.float32)
    tj.kernel(beyond)(memory[3:3], memory[5:5])
    assert (memory == 7).all()


def test_a_shorter_output_is_an_error() -> None:
    with pytest.raises(tj.KernelError, match=r"y\[i\].*extent is 9"):
        tj.kernel(shift_by_one)(np.ones(10, np.float32), np.ones(9, np.float32))


def test_read_only_arrays() -> None:
    x, y = np.ones(10, np.float32), np.zeros(10, np.float32)
    x.flags.writeable = False
    kernel = tj.kernel(shift_by_one)
    kernel(x, y)
    with pytest.raises(tj.KernelError, match="y is read-only") as refused:
        kernel(y, x)
    assert isinstance(refused.value, ValueError)


def test_assume_divisible_is_checked() -> None:
    kernel = tj.kernel(virtual_vector_size=16, tail="assume_divisible")(shift_by_one)
    same(kernel, shift_by_one, vector(np.float32, 64))
    x, y = vector(np.float32, 65)
    with pytest.raises(tj.KernelError, match="65 times, which is not a multiple of 16") as refused:
        kernel(x, y)
    assert isinstance(refused.value, ValueError)


def rows_in_parallel(a, b, c, alpha):
    for i in tj.parallel(range(a.shape[0])):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] * b[i] + alpha


def one_loop_in_parallel(x, y):
    for i in tj.parallel(range(2, x.shape[0], 3)):
        y[i] = x[i] * x[i]


@pytest.mark.parametrize("threads", [None, True, False, 1, 2, 3, 7])
def test_threads(threads: Any) -> None:
    same(tj.kernel(parallel=threads)(rows_in_parallel), rows_in_parallel, arguments(np.float32))
    made = tj.kernel(parallel=threads, virtual_vector_size=32)(one_loop_in_parallel)
    for count in (0, 1, 2, 3, 100, 1001):
        same(made, one_loop_in_parallel, vector(np.float32, count))


@pytest.mark.full
def test_orders_and_strides() -> None:
    for view in (lambda x: x.T.copy().T, lambda x: x[::2, ::3], lambda x: x[::-1, ::-1], lambda x: x[:, :50]):
        a, b, c, alpha = arguments(np.float32)
        same(tj.kernel(scaled), scaled, [view(a), b, view(c), alpha])


def test_attributes_before_and_after_a_call() -> None:
    kernel = tj.kernel(virtual_vector_size=(4, 32))(scaled)
    for name in ("nest", "vectorized", "schedule", "source"):
        with pytest.raises(tj.KernelError, match="specialized"):
            getattr(kernel, name)
    with pytest.raises(tj.KernelError, match="specialized"):
        kernel.report()
    assert kernel.specialize(*arguments(np.float32)) is kernel
    assert "vector<4x32xf32>" in kernel.vectorized
    assert "affine.for" in kernel.nest
    assert "def scaled" in kernel.source
    assert "i=4, j=32" in kernel.schedule
    assert kernel.python is scaled


def double(x, y):
    for i in range(x.shape[0]):
        y[i] = x[i] * 2


def blurred(x, y):
    return x * 0.5 + y


def summed_up(x, y):
    for i in range(1, x.shape[0]):
        y[i] = y[i - 1] + x[i]


def test_on_fail() -> None:
    given = vector(np.float32, 20)
    with pytest.raises(tj.KernelError, match="carried-dependence"):
        tj.kernel(on_fail="raise")(summed_up).specialize(*given)
    with pytest.warns(tj.KernelWarning, match="carried-dependence"):
        tj.kernel(on_fail="warn")(summed_up).specialize(*given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(tj.kernel(summed_up), summed_up, given)


def test_warnings_name_the_line_of_the_call() -> None:
    x, y = vector(np.float32, 20)
    ways = (
        lambda kernel: kernel(x, y),
        lambda kernel: kernel(x, y=y),
        lambda kernel: kernel.specialize(x, y),
        lambda kernel: tj.kernel(on_fail="warn")(summed_up)(x, y),
    )
    for way in ways:
        with pytest.warns(tj.KernelWarning) as found:
            way(tj.kernel(on_fail="warn")(summed_up))
        assert (found[0].filename, found[0].lineno) == (__file__, way.__code__.co_firstlineno)


FACTOR = 2


@pytest.mark.full
def test_globals_keep_their_values_until_specialized_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the docstrings say: until the function is specialized again."""

    @tj.kernel
    def times(x, y):
        for i in range(x.shape[0]):
            y[i] = x[i] * FACTOR

    multiplied = tj.elementwise(lambda x: x * FACTOR)
    x, y = np.arange(4.0), np.zeros(4)
    for factor in (2, 3):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        times(x, y)
        assert np.array_equal(y, x * 2)
        assert np.array_equal(multiplied(x), x * 2)
    assert np.array_equal(multiplied(x.astype(np.float32)), x * 3)
    single, out = x.astype(np.float32), np.zeros(4, np.float32)
    times(single, out)
    assert np.array_equal(out, x * 3)


@tj.kernel(virtual_vector_size=8)
def named_twice(x, y):
    for i in range(x.shape[0]):
        y[i] = x[i] * 2


@tj.elementwise
def named_sum(x, y):
    return x + y


double_again = tj.kernel(virtual_vector_size=16)(double)
gauss = tj.elementwise(blurred, fastmath=True)


@pytest.mark.full
@pytest.mark.parametrize("kernel", [named_twice, named_sum, double_again, gauss], ids=lambda k: k.__name__)
def test_copies_and_pickles(kernel: Any) -> None:
    """Before a call and after several, which native code answers: the same function and options."""
    given = np.arange(9.0), np.arange(9.0) - 4
    for _ in range(4):
        for take in (lambda k: pickle.loads(pickle.dumps(k)), copy.deepcopy, copy.copy):
            other = take(kernel)
            assert type(other) is type(kernel)
            assert (other.python, other.options) == (kernel.python, kernel.options)
            ours, theirs = ([x.copy() for x in given] for _ in range(2))
            assert np.array_equal(other(*ours), kernel.python(*theirs))
            assert np.array_equal(ours, theirs)
        kernel(*(x.copy() for x in given))
    assert pickle.loads(pickle.dumps(named_sum)) is named_sum


def test_kernels_of_lambdas_are_copied() -> None:
    half = tj.elementwise(lambda x: x * 0.5)
    x = np.arange(5.0)
    half(x)
    assert np.array_equal(copy.deepcopy(half)(x), half(x))


@pytest.mark.full
def test_keywords_and_defaults() -> None:
    @tj.kernel
    def power(x, y, factor=2, more=1.5):
        for i in range(x.shape[0]):
            y[i] = x[i] * factor + more

    x, y = np.arange(40, dtype=np.float32), np.zeros(40, np.float32)
    power(x, y)
    np.testing.assert_array_equal(y, x * np.float32(2) + np.float32(1.5))
    power(y=y, x=x, more=0.25)
    np.testing.assert_array_equal(y, x * np.float32(2) + np.float32(0.25))
    power(x, y, 7)
    np.testing.assert_array_equal(y, x * np.float32(7) + np.float32(1.5))


@pytest.mark.parametrize(
    "options",
    [
        {"tail": "none"},
        {"on_fail": 3},
        {"vectorize_at": "now"},
        {"virtual_vector_size": 0},
        {"virtual_vector_size": (8, -1)},
        {"virtual_vector_size": (1,) * 9},
        {"virtual_vector_size": ()},
        {"virtual_vector_size": "wide"},
        {"virtual_vector_size": 1 << 30},
        {"virtual_vector_size": 1 << 20_000},
        {"virtual_vector_size": (1 << 12, 1 << 12)},
        {"virtual_vector_size": "9999999*hw"},
        {"virtual_vector_size": "999999999999*hw"},
        {"fastest_varying": (0, 1), "virtual_vector_size": 8},
        {"fastest_varying": -1},
        {"parallel": 0},
        {"parallel": -(1 << 20_000)},
        {"tail": np.arange(2)},
        {"on_fail": []},
    ],
    ids=lambda options: ", ".join(options),
)
def test_unknown_options_are_refused(options: dict[str, Any]) -> None:
    for decorator in (tj.kernel, tj.elementwise):
        with pytest.raises(tj.KernelError, match=r"\n  .*(write|one of|count|give|pass|use)") as found:
            decorator(**options)
        assert len(str(found.value)) < 250
        assert isinstance(found.value, ValueError)


def test_unsupported_types_are_refused() -> None:
    for options in (
        {"virtual_vector_size": 2.5},
        {"virtual_vector_size": None},
        {"parallel": "two"},
        {"parallel": np.arange(2)},
        {"fastest_varying": "first"},
        {"fastmath": "no"},
        {"fastmath": np.arange(2)},
        {"vectorize_reductions": 1},
        {"tune": None},
    ):
        for decorator in (tj.kernel, tj.elementwise):
            with pytest.raises(TypeError, match=rf"^{next(iter(options))}: expected "):
                decorator(**options)
    assert tj.kernel(fastmath=np.True_, parallel=np.False_)(shift_by_one).options.fastmath is True
    for decorator in (tj.kernel, tj.elementwise):
        with pytest.raises(TypeError, match=rf"{decorator.__name__} has no option vector\n.*tail, on_fail"):
            decorator(vector=2)
    with pytest.raises(TypeError):
        tj.kernel(3)
    kernel = tj.kernel(shift_by_one)
    for thing in ([1.0], {}, "text"):
        with pytest.raises(
            TypeError, match=rf"^expected an array or a number for x, got {type(thing).__name__}"
        ):
            kernel(thing, np.zeros(1))
    for dtype in (complex, object, [("f", "f4")]):
        with pytest.raises(tj.KernelError, match=r"^y is .*, which kernels do not support\n  use one of"):
            kernel(np.zeros(1), np.zeros(1, dtype))
    for thing in (int, np.float32, len):
        with pytest.raises(TypeError, match="expected a Python function to compile, got"):
            tj.kernel(thing)(np.zeros(1))
    with pytest.raises((TypeError, tj.KernelError)):
        kernel(np.zeros(1))
    with pytest.raises((TypeError, tj.KernelError)):
        kernel(np.zeros(1), np.zeros(1), np.zeros(1))


def test_numbers_outside_their_dtype_are_refused() -> None:
    @tj.kernel
    def filled(x, n):
        for i in range(x.shape[0]):
            x[i] = n

    for bits in (70, 20_000):
        with pytest.raises(
            tj.KernelError, match=f"^n .*is a number of {bits + 1} bits.* not fit i64"
        ) as found:
            filled(np.zeros(3, np.int64), 1 << bits)
        assert isinstance(found.value, OverflowError)


def raised(x, y, n):
    for i in range(x.shape[0]):
        y[i] = x[i] + (n - 5)


def filled(x, y, n):
    for i in range(x.shape[0]):
        y[i] = n


@pytest.mark.full
@pytest.mark.parametrize(("n", "fits"), [(200, True), (5, True), (4, False), (300, False), (1 << 40, False)])
@pytest.mark.parametrize("function", [raised, filled], ids=lambda f: f.__name__)
def test_python_integers_fit_or_are_refused(function: Callable[..., Any], n: int, fits: bool) -> None:
    """As in NumPy. NumPy's own integers wrap around or widen."""
    x, kernel = np.arange(40, dtype=np.uint8), tj.kernel(function)
    if fits or (function is filled and n < 256):
        same(kernel, function, [x, np.zeros(40, np.uint8), n])
    else:
        y = np.zeros(40, np.uint8)
        with pytest.raises(OverflowError):
            function(x, y.copy(), n)
        with pytest.raises(tj.KernelError, match=r"does not fit u8, which holds 0 to 255"):
            kernel(x, y, n)
        assert not y.any()
    same(kernel, function, [x, np.zeros(40, np.uint8), np.int64(n)])


EVEN_SIZES = [(16, (5, 64), (5, 65)), ((4, 16), (8, 32), (6, 32)), ((2, 8), (4, 24), (4, 25))]


@pytest.mark.full
@pytest.mark.parametrize(("size", "even", "odd"), EVEN_SIZES, ids=str)
def test_assume_divisible_in_two_dimensions(size: Any, even: Any, odd: Any) -> None:
    kernel = tj.kernel(virtual_vector_size=size, tail="assume_divisible")(scaled)
    same(kernel, scaled, arguments(np.float32, *even))
    given = arguments(np.float32, *odd)
    before = given[2].copy()
    with pytest.raises(tj.KernelError, match="not a multiple of"):
        kernel(*given)
    np.testing.assert_array_equal(given[2], before)


def test_assume_divisible_in_reductions() -> None:
    kernel = tj.kernel(virtual_vector_size=32, tail="assume_divisible", vectorize_reductions=True)(total)
    same(kernel, total, vector(np.float32, 96))
    with pytest.raises(tj.KernelError, match="runs 97 times"):
        kernel(*vector(np.float32, 97))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_reports_name_every_loop(function: Callable[..., Any]) -> None:
    """The report says how it was vectorized, or gives a documented reason and the obstacle."""
    kernel = tj.kernel(virtual_vector_size=16)(function).specialize(*arguments(np.float32))
    head, *loops, schedule = kernel.report().splitlines()
    assert head.startswith(f"kernel {function.__name__}(")
    assert schedule.startswith("  schedule ")
    assert len(loops) == inspect.getsource(function).count("for ")
    for line in loops:
        found = re.fullmatch(r"  line \d+, loop \S+: (vectorized by [x\d]+|scalar, (?P<code>\S+)): .+", line)
        assert found is not None, line
        assert found["code"] is None or found["code"] in REASONS


def squares_and_roots(x, y, s):
    for i in range(x.shape[0]):
        y[i, 0] = (x[i] + x[i]) ** 2
        y[i, 1] = x[i] ** -1
        y[i, 2] = x[i] ** 0.5
        y[i, 3] = pow(x[i], 1) + np.power(x[i], 0)
        y[i, 4] = i**2 + s**2
        y[i, 4] **= 2


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_known_powers(dtype: Any) -> None:
    """Numbers whose products, quotients and roots are exact, and those whose roots are special."""
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, 2.25, 4, 16, 0.25, 64, np.inf], dtype)
    ours, theirs = np.zeros((2, len(x), 5), dtype)
    tj.kernel(squares_and_roots)(x, ours, 1.5)
    squares_and_roots(x, theirs, 1.5)
    assert np.array_equal(ours, theirs, equal_nan=True)
    assert np.array_equal(np.signbit(ours[:4]), np.signbit(theirs[:4]))


def without_exceptions(x, y, n):
    for i in range(x.shape[0]):
        y[i, 0] = (i + 2**62) * 2 + 2**62
        y[i, 1] = (i + 1) // n + (i + 1) % n
        y[i, 2] = math.isnan(math.sqrt(x[i]))


@pytest.mark.full
def test_kernels_compute_where_python_raises() -> None:
    y = np.zeros((3, 3), np.int64)
    tj.kernel(without_exceptions)(np.array([-1.0, 4.0, -2.0]), y, 0)
    whole = [(k + 2**62) * 2 + 2**62 for k in range(3)]
    assert y.tolist() == [[w - 2**64 if w >= 2**63 else w, 0, k != 1] for k, w in enumerate(whole)]


def powers(x, y, n):
    for i in range(1, x.shape[0]):
        y[i] = x[i] ** n + i**-2 + 2.5**-i + (-1) ** i + x[i] ** (x.shape[0] - i) + np.power(2, -1.0)


def test_powers() -> None:
    x, kernel = np.arange(20, dtype=np.int64), tj.kernel(powers)
    for n in (3, 0):
        ours, theirs = np.zeros(20), np.zeros(20)
        kernel(x, ours, n)
        powers(x, theirs, n)
        np.testing.assert_allclose(ours, theirs, rtol=1e-14)
    before = ours.copy()
    for n in (-1, np.int32(-3)):
        with pytest.raises(ValueError, match="negative integer powers"):
            powers(x, np.zeros(20), n)
        with pytest.raises(tj.KernelError, match=rf"power of n in the loop of line \d+, which may be {n}:"):
            kernel(x, ours, n)
    np.testing.assert_array_equal(ours, before)


def test_exponents_of_arrays() -> None:
    """An integer to a negative power that only the array knows is 0, in lanes as well as in tails."""

    def raised(x, n, y):
        for i in range(x.shape[0]):
            y[i] = x[i] ** n[i]

    x, n = np.arange(-10, 10, dtype=np.int32), np.tile(np.array([2, -1, 0, -3], np.int32), 5)
    expected = np.where(n < 0, 0, x ** np.abs(n))
    for size in (16, 1):
        found = np.full(20, 7, np.int32)
        tj.kernel(virtual_vector_size=size)(raised)(x, n, found)
        np.testing.assert_array_equal(found, expected)


def test_loops_marked_as_reductions_run_in_lanes() -> None:
    def sums(x, y):
        s = np.float32(0)
        for i in tj.reduction(range(x.shape[0])):
            s += x[i] * y[i]
        return s

    kernel = tj.kernel(virtual_vector_size=8)(sums)
    same(kernel, sums, vector(np.float32, 127))
    assert "vectorized by 8: x[i] contiguous, y[i] contiguous, s is reduced by add" in kernel.report()


def test_arguments_may_have_names_of_routines() -> None:
    @tj.kernel
    def odd(sizes, begin, splat_f32x16):
        for range_ in range(sizes.shape[0]):
            begin[range_] = sizes[range_] * splat_f32x16

    x, y = np.arange(40, dtype=np.float32), np.zeros(40, np.float32)
    odd(x, y, 2.0)
    np.testing.assert_array_equal(y, x * 2)


def test_arguments_may_have_names_of_tables() -> None:
    @tj.kernel
    def odd(results, operands, addresses_2, scratch):
        s = np.float32(0)
        for i in range(results.shape[0]):
            operands[i] = results[i] * addresses_2
            s += results[i] * scratch
        return s

    x, y = np.arange(40, dtype=np.float32), np.zeros(40, np.float32)
    assert odd(x, y, 2.0, 3.0) == 3 * x.sum()
    np.testing.assert_array_equal(y, x * 2)


def test_several_shapes_share_one_kernel() -> None:
    kernel, sources = tj.kernel(shift_by_one), set()
    for count in (3, 50, 1000):
        kernel(*vector(np.float32, count))
        sources.add(kernel.source)
    assert len(sources) == 1


def parallel(loop):
    """Not tilejit.parallel."""
    return list(loop)[::2]


def test_user_functions_named_parallel_have_no_effect() -> None:
    """Marks of loops are recognized by the function object, not by its name."""

    @tj.kernel
    def misled(x):
        for i in parallel(range(x.shape[0])):
            x[i] = 1

    x = np.zeros(9)
    with pytest.raises(tj.KernelError, match=r"loops of kernels must be over range"):
        misled(x)
    assert not x.any()
    said = tj.parallel

    @tj.kernel
    def otherwise_named(x):
        for i in said(range(x.shape[0])):
            x[i] = 1

    otherwise_named(x)
    assert x.all()
    assert otherwise_named.program.shared


def test_kernels_named_parallel() -> None:
    def outer() -> Callable[..., Any]:
        def parallel(x):
            for i in tj.parallel(range(x.shape[0])):
                x[i] = i

        return parallel

    for made in (tj.kernel(outer()), tj.kernel(parallel=2)(outer())):
        x = np.zeros(1000)
        made(x)
        assert x.tolist() == list(range(1000))
        assert made.__name__ == "parallel"

    @tj.kernel
    def within(x):
        for i in made(range(x.shape[0])):
            x[i] = 1

    with pytest.raises(tj.KernelError, match=r"loops of kernels must be over range"):
        within(np.zeros(9))


def test_wrapped_functions_are_refused() -> None:
    """The code of the wrapper would be omitted silently."""

    def doubled(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(x: Any, y: Any) -> None:
            function(2 * x, y)

        return wrapper

    x, y = vector(np.float32, 20)
    before = y.copy()
    for kernel in (tj.kernel(doubled(shift_by_one)), tj.kernel(functools.cache(shift_by_one))):
        for _ in range(2):
            with pytest.raises((tj.KernelError, TypeError)) as caught:
                kernel(x, y)
            np.testing.assert_array_equal(y, before)
    assert isinstance(caught.value, TypeError)
    with pytest.raises(tj.KernelError, match=r"shift_by_one is wrapped (.|\n)*next to the function"):
        tj.kernel(doubled(shift_by_one))(x, y)


def _own(made: Any) -> list[str]:
    """The names of an object's attributes that functions do not have."""
    return [name for name in vars(made) if not name.startswith("__")]


def test_attributes_of_a_function_do_not_affect_the_kernel() -> None:
    def shifted(x, y):
        for i in range(x.shape[0] - 1):
            y[i] = x[i + 1]

    for name in _own(tj.kernel(shift_by_one)):
        setattr(shifted, name, "the user's")
    kernel = tj.kernel(shifted)
    x, y = vector(np.float32, 20)
    for _ in range(40):
        kernel(x, y)
    np.testing.assert_array_equal(y[: len(x) - 1], x[1:])
    add = lambda a, b: a + b  # noqa: E731
    for name in _own(tj.elementwise(blurred)):
        setattr(add, name, "the user's")
    np.testing.assert_array_equal(tj.elementwise(add)(x, x), x + x)


def wide_and_narrow(x, y):
    for i in range(x.shape[0] - 1):
        y[i] = x[i] + x[i + 1]


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_nothing_is_touched_beyond_the_arrays(dtype: Any, tail: str) -> None:
    source, target = Guarded(1 << 14), Guarded(1 << 14)
    kernel = tj.kernel(virtual_vector_size=64, tail=tail)(wide_and_narrow)
    for count in (1, 2, 17, 63, 64, 65, 200):
        for at_end in (False, True):
            x = source.place(count * np.dtype(dtype).itemsize, at_end=at_end).view(dtype)
            y = target.place((count - 1) * np.dtype(dtype).itemsize, at_end=at_end).view(dtype)
            x[:] = np.arange(count)
            kernel(x, y)
            np.testing.assert_array_equal(y, x[:-1] + x[1:])
            assert target.untouched()


def picked(a, b, c, alpha):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j // 2] + a[i % 4, (3 * j + 1) // 4] * alpha


@pytest.mark.full
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tail", TAILS)
def test_each_lane_has_its_own_subscripts(tail: str, dtype: Any) -> None:
    kernel = tj.kernel(virtual_vector_size=32, tail=tail)(picked)
    for columns in (1, 32, 83):
        same(kernel, picked, arguments(dtype, 5, columns))
    assert "a[i, j // 2] gathered" in kernel.report()
    assert "vector.gather" in kernel.vectorized


def test_nothing_is_gathered_beyond_an_array() -> None:
    source = Guarded(1 << 12)
    kernel = tj.kernel(virtual_vector_size=64)(halved)
    for count in (1, 2, 17, 64, 65):
        for at_end in (False, True):
            x = source.place(((count + 1) // 2) * 4, at_end=at_end).view(np.float32)
            x[:] = np.arange(x.size)
            y = np.zeros(count, np.float32)
            kernel(x, y)
            np.testing.assert_array_equal(y, np.arange(count) // 2)
    assert "gathered" in kernel.report()


def halved(x, y):
    for i in range(y.shape[0]):
        y[i] = x[i // 2]


@pytest.mark.full
def test_fastmath_contracts_and_stays_close() -> None:
    def polynomial(a, b, c, alpha):
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                c[i, j] = ((a[i, j] * alpha + 1) * a[i, j] - b[i]) / 3

    fast, exact = arguments(np.float64), arguments(np.float64)
    tj.kernel(fastmath=True)(polynomial)(*fast)
    tj.kernel(polynomial)(*exact)
    np.testing.assert_allclose(fast[2], exact[2], rtol=1e-12, atol=1e-12)


def at_lower_levels(level: str) -> AtLevels:
    cases = [f"test_reductions_in_lanes[{size}-{tail}]" for size in (8, 128, 500) for tail in TAILS]
    chosen = [*turn(cases, level), "test_threads[3]"]  # levels differ in lanes, not in threads
    others = ("test_halves_round_after_each_operation", "test_each_lane_has_its_own_subscripts")
    return AtLevels(__file__, [*chosen, *others], len(chosen) + 6 + 6)


@pytest.mark.full
def test_memory_mapped_arrays_are_distinguished_by_dtype(tmp_path: Path) -> None:
    """A kernel for one dtype, order and rank of numpy.memmap arrays runs for no other."""

    def mapped(name: str, dtype: str, shape: tuple[int, ...]) -> Any:
        return np.memmap(tmp_path / name, dtype, "w+", shape=shape)

    @tj.kernel
    def scale(a, b):
        for i in range(a.shape[0]):
            b[i] = a[i] * 2.5

    scale(mapped("a", "f8", (10,)), mapped("b", "f8", (10,)))
    x, y = mapped("c", "f4", (10,)), mapped("d", "f4", (64,))
    x[:], y[:] = np.arange(10), 7
    scale(x, y[:10])
    assert y.tolist() == [*(np.arange(10) * 2.5), *[7] * 54]
    scale(x[::2], y[:20:4])
    assert y[:20:4].tolist() == [0, 5, 10, 15, 20]


def test_a_loop_that_does_nothing() -> None:
    @tj.kernel
    def idle(a):
        s = 0.0
        for _ in range(a.shape[0]):
            s = s
        a[0] = 1
        return s

    x = np.zeros(3)
    assert idle(x) == 0
    assert x.tolist() == [1, 0, 0]


def to_number(a, n):
    for i in range(min(n, a.shape[0])):
        a[i] = 0


def from_number(a, n):
    for i in range(n, a.shape[0]):
        a[i] = 0


def at_number(a, n):
    for i in range(a.shape[0]):
        a[n] = i


def of_number(a, n):
    for i in range(a.shape[0]):
        a[i] = n // 2


@pytest.mark.parametrize("python", [to_number, from_number, at_number])
def test_unsigned_numbers_of_64_bits_cannot_be_bounds(python: Callable[..., None]) -> None:
    """They would count as negative numbers, and loops would not run."""
    kernel, a = tj.kernel(python), np.ones(3)
    for number in (2**63, 2**64 - 1):
        with pytest.raises(tj.IntegerError, match=str(number)):
            kernel(a, np.uint64(number))
        assert a.tolist() == [1, 1, 1]
    kernel(a, np.uint64(2))
    expected = np.ones(3)
    python(expected, 2)
    assert (a == expected).all()


def test_unsigned_numbers_of_64_bits_are_values() -> None:
    a = np.zeros(3)
    tj.kernel(of_number)(a, np.uint64(2**64 - 2))
    assert (a == float(2**63 - 1)).all()


@pytest.mark.full
@pytest.mark.parametrize("size", [64, "auto"])
def test_specialized_kernels(size: Any) -> None:
    """Each shape has a kernel with its sizes as literals, which gives the same as the shared one."""
    options = {"virtual_vector_size": size}
    shared, sized = tj.kernel(scaled, **options), tj.kernel(scaled, specialize="sizes", **options)
    rng = np.random.default_rng(SEED)
    for dims in ((3, 200), (7, 33), (1, 64), (0, 5), (3, 200)):
        a, b = rng.random(dims).astype(np.float32), rng.random(dims[0]).astype(np.float32)
        made = [np.zeros(dims, np.float32) for _ in range(2)]
        shared(a, b, made[0], 1.5)
        sized(a, b, made[1], 1.5)
        assert made[0].tobytes() == made[1].tobytes()
        assert ".shape" not in sized.nest.split("{", 1)[1]
        assert str(dims[1]) in sized.nest
    assert "%a" in shared.nest
    with pytest.raises(tj.KernelError):
        sized(a, b, made[1][:2], 1.5)


def test_specialize_is_an_option_of_kernels() -> None:
    with pytest.raises(tj.KernelError, match="specialize"):
        tj.kernel(scaled, specialize="shape")
    with pytest.raises(TypeError, match="specialize"):
        tj.elementwise(lambda x: x, specialize="sizes")


def test_sizes_are_numbers_in_values_and_results() -> None:
    a, b = np.ones((5, 7)), np.zeros(5)
    kernel = tj.kernel(of_rows, specialize="sizes")
    assert kernel(a, b) == of_rows(a, np.zeros(5))
    assert b.tolist() == [5] * 5


def of_rows(a, b):
    n = 0
    for i in range(a.shape[0]):
        b[i] = a[i, 0] * a.shape[0]
        n = n + 1
    return n
