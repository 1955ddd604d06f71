"""Expressions of arrays as one kernel, against NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from platform import machine
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from tests.tools.extent import few_by_default

RNG = np.random.default_rng(5)
X, Y = RNG.random((37, 70), np.float32), RNG.random(70, np.float32)

EXACT: dict[str, Callable[..., Any]] = {
    "a + b + 1 + 2": lambda a, b: a + b + 1 + 2,
    "a polynomial": lambda a, b: ((a * 0.5 + b) * a - 3) * a + 1.25,
    "a choice": lambda a, b: np.where(a > b, a, -b),
    "comparisons": lambda a, b: (a < b) | (a == b),
    "a root": lambda a, b: np.sqrt(a * a + b * b),
    "converted": lambda a, b: a.astype(np.float64) * b,
    "least of two": lambda a, b: np.minimum(a, b) / np.maximum(a, b),
    "reversed sides": lambda a, b: 1.0 - a / (2.0 + b),
}


@pytest.mark.parametrize("name", few_by_default([*EXACT], 4))
@pytest.mark.parametrize("kind", ["rows", "transposed", "every other", "one column"])
def test_the_same_bytes(name: str, kind: str) -> None:
    """Broadcast, strided, in any order."""
    a, b = {
        "rows": (X, Y),
        "transposed": (X.T, Y[:, None]),
        "every other": (X[::2, ::3], Y[::3]),
        "one column": (X[:, :1], Y),
    }[kind]
    got, want = tj.elementwise(EXACT[name])(a, b), EXACT[name](a, b)
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    assert got.tobytes() == np.ascontiguousarray(want).tobytes()


def test_results_go_to_out() -> None:
    double = tj.elementwise(lambda a, b: (a + b, a - b))
    out = np.empty_like(X), np.empty(X.shape)
    assert double(X, Y, out=out)[0] is out[0]
    assert (out[0] == X + Y).all()
    assert (out[1] == X - Y).all()
    kept, mask = np.ones_like(X), X > 0.3
    tj.elementwise(lambda a: a * 2)(X, out=kept, where=mask)
    assert (kept == np.where(mask, X * 2, 1)).all()


def test_outputs_may_be_inputs() -> None:
    add = tj.elementwise(lambda a, b: a + b)
    line = RNG.random(1000, np.float32)
    want = line.copy()
    want[1:] = want[1:] + line[:-1]
    add(line[1:], line[:-1], out=line[1:])
    assert (line == want).all()


@pytest.mark.full
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint16, np.int64, bool])
def test_reductions(dtype: Any) -> None:
    x = (RNG.random((31, 65)) * 100).astype(dtype)
    for view in (x, x.T, x[::2, 1::3]):
        least, largest, total = tj.elementwise(lambda a: (a.min(), a.max(), np.sum(a)))(view)
        assert (least, largest) == (view.min(), view.max())
        assert total.dtype == view.sum().dtype
        assert total == view.sum() if np.dtype(dtype).kind != "f" else abs(total / view.sum() - 1) < 1e-6


def test_floats_are_arguments_of_one_kernel() -> None:
    scale = tj.elementwise(lambda a, s: a * s)
    for s in (2.0, 0.1, float("nan"), np.float32(3)):
        assert np.array_equal(scale(X, s), X * s, equal_nan=True)
    source = scale.source
    scale(X, 7.5)
    scale(X, np.float32(3))
    assert scale.source == source


def test_the_source_has_the_names_of_the_parameters() -> None:
    blend = tj.elementwise(lambda a, b, t: a + (b - a) * t)
    blend(X, X, 0.5)
    first, *_ = blend.source.splitlines()[1:]
    assert "out[i] from a[i], b[i];" in first


NAMES: dict[str, Callable[..., Any]] = {
    "a loop": lambda i, j: i * 2 - j,
    "a result": lambda out, out0: (out - out0, out * out0),
    "a prefix of a result": lambda output, outer: output - outer,
    "other arguments": lambda x1, x0: x1 * 2 - x0,
    "a reduction": lambda r0, near0: (r0 - near0.sum()) * 2,
    "what a kernel takes": lambda begin, sizes: begin * 2 - sizes,
    "an operation": lambda where, min: np.where(where > 2, where, min),
    "Python's names": lambda range, len: range * 2 - len,
    "no names": lambda *several: several[0] * 2 - several[1],
    "some names": lambda a, *several: a * 2 - several[0],
    "blocks": lambda i_block, panel: i_block * 2 - panel,
    "a C function": np.subtract,
}


@pytest.mark.parametrize("name", NAMES)
def test_any_names_of_parameters_work(name: str) -> None:
    x, y = np.arange(300.0), np.arange(300.0)[::-1] * 3
    got, want = (f(x, y) for f in (tj.elementwise(NAMES[name]), NAMES[name]))
    assert np.array_equal(got, want)


def test_functions_without_names_are_compiled() -> None:
    class Scale:
        def __call__(self, a: Any) -> Any:
            return a * 3

    x = np.arange(10.0)
    for python in (partial(lambda s, a: a * s, 3.0), Scale()):
        f = tj.elementwise(python)
        assert np.array_equal(f(x), x * 3)
        assert type(python).__name__ in repr(f)
        assert f.report().startswith(f"elementwise {type(python).__name__}")


def test_converted_integers_have_names_of_their_own() -> None:
    f = tj.elementwise(lambda n, n_i64, a: (n * a + n_i64).astype(np.int64))
    a = np.arange(5)
    assert np.array_equal(f(3, 4, a), 3 * a + 4)


MEETINGS: dict[str, Callable[..., Any]] = {
    "x * n + 1": lambda x, n: x * n + 1,
    "n - x": lambda x, n: n - x,
    "x < n": lambda x, n: x < n,
    "x / n": lambda x, n: x / n,
    "where": lambda x, n: np.where(x > n, x, n),
    "minimum": lambda x, n: np.minimum(x, n),
    "sum": lambda x, n: (x + n).sum(axis=0),
    "sums and elements": lambda x, n: x - (x * n).max(),
    "hypot": lambda x, n: np.hypot(x, n).astype(np.float32),
}
INTEGERS = (3, -3, 0, 100, 127, 200, 70_000, 2**31, -(2**40), np.int16(-5))


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("name", "dtype"),
    [*((name, dtype) for name in MEETINGS for dtype in ("f4", "i1")), ("x * n + 1", "f2"), ("x / n", "?")],
)
def test_integers_are_arguments_of_one_kernel(name: str, dtype: Any) -> None:
    function = MEETINGS[name]
    run, x = tj.elementwise(function), (RNG.random((7, 9)) * 60).astype(dtype)
    sources: set[str] = set()
    for n in INTEGERS:
        try:
            want = function(x, n)
        except OverflowError:
            with pytest.raises(OverflowError, match="does not fit"):
                run(x, n)
            continue
        got = run(x, n)
        assert got.dtype == want.dtype
        near = {"equal_nan": True, "rtol": 1e-3 if want.dtype == np.float16 else 1e-6 * (name == "hypot")}
        assert np.allclose(got, want, atol=0, **near) if want.dtype.kind == "f" else np.array_equal(got, want)
        if type(n) is int and abs(n) < 128:  # a comparison with a value outside i8 has another kernel
            sources.add(run.source)
    assert len(sources) == 1


@pytest.mark.full
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.float64])
def test_repeated_and_new_integers(dtype: Any) -> None:
    """Calls that native code answers use the integer of each call, also in sums."""
    x, out = np.arange(12).astype(dtype), np.empty(12, dtype)
    for function in (lambda x, n: x * n, lambda x, n: (x * n).sum(), lambda x, n: x - (x * n).max()):
        run = tj.elementwise(function)
        for n in (2, 2, 2, 2, 5, 2, 1000, 5, 5, 5, 5, 2):
            assert np.array_equal(run(x, n), function(x, n))
            if np.ndim(run(x, n)):
                assert np.array_equal(run(x, n, out=out), function(x, n))


@pytest.mark.full
def test_integers_that_the_function_needs_are_constants() -> None:
    """They are in the kernel if the function computes with them before they meet an array."""

    def branches(x: Any, n: Any) -> Any:
        return x * 2 if n > 1 else x

    def dimensions(x: Any, n: Any) -> Any:
        return np.sum(x, axis=n) if isinstance(n, int) else x

    def steps(x: Any, n: Any) -> Any:
        for k in range(n):
            x = x + k
        return x * (n + 1)

    def tried(x: Any, n: Any) -> Any:
        try:
            return x * (2, 3, 4)[n]
        except Exception:
            return x

    def named(x: Any, n: Any) -> Any:
        return x * 2 if f"{n}" == "1" and not hasattr(n, "name") and {n: 1} else x

    for function in (
        branches,
        dimensions,
        steps,
        tried,
        named,
        lambda x, n: x**n,
        lambda x, n: x.astype(np.int32) // (n + 1),
    ):
        run = tj.elementwise(function)
        for n in (0, 1, 1, 0):
            assert np.allclose(run(X, n), function(X, n), rtol=1e-6)


@pytest.mark.full
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_clip(dtype: Any) -> None:
    x = np.arange(-60, 61, dtype=dtype)
    y = x[::-1] // 2
    for function in (
        lambda a, b: np.clip(a, -3, 40),
        lambda a, b: a.clip(b, 40),
        lambda a, b: np.clip(a, None, b),
        lambda a, b: np.clip(a, a_min=-7, a_max=None) * 2,
        lambda a, b: a.clip(max=3).astype(np.float64) if a.ndim == 1 and a.dtype == dtype else a,
    ):
        got, want = tj.elementwise(function)(x, y), function(x, y)
        assert got.dtype == want.dtype
        assert np.array_equal(got, want)
    limits = tj.elementwise(lambda a, low, high: a.clip(low, high))
    for low, high in ((-5, 5), (0, 100), (-128, 7)):
        assert np.array_equal(limits(x, low, high), x.clip(low, high))


@pytest.mark.full
def test_python_numbers_stay_weak() -> None:
    """The result of floats alone takes the dtype of the array that it meets, with any operator."""
    for function in (
        lambda a, s: a * (s**2),
        lambda a, s: a + s // 0.5,
        lambda a, s: np.where(s > 1.0, a, -a),
        lambda a, s: a - abs(-s) % 0.75,
    ):
        got, want = tj.elementwise(function)(X, 1.5), function(X, 1.5)
        assert got.dtype == want.dtype == np.float32
        assert got.tobytes() == want.tobytes()


@pytest.mark.full
def test_bfloat16_is_rounded_as_ml_dtypes_does() -> None:
    a = X.astype(ml_dtypes.bfloat16)
    got = tj.elementwise(lambda x: x * x + x)(a)
    assert got.dtype == ml_dtypes.bfloat16
    assert got.tobytes() == (a * a + a).tobytes()
    for function in (lambda x: x + 1.5, lambda x: np.where(x > 0.5, x, 0.0)):
        got, wide = tj.elementwise(function)(a), function(a.astype(np.float32))
        assert got.dtype == ml_dtypes.bfloat16
        assert got.tobytes() == wide.astype(ml_dtypes.bfloat16).tobytes()


@pytest.mark.full
def test_doubles_to_halves_are_rounded_once() -> None:
    """Closer to the midpoint of two halves than float32 can tell, in lanes, tails and numbers."""
    halves = np.arange(0x7BFF, dtype=np.uint16).view(np.float16).astype(np.float64)
    middles = (halves[:-1] + halves[1:]) / 2
    beside = np.concatenate([np.nextafter(middles, s) for s in (-np.inf, np.inf)] + [middles, -middles])
    x = np.concatenate([beside, [0.0, -0.0, np.inf, -np.inf, np.nan, 65519.99999999, 65520, 1e300, 5e-324]])
    for function in (lambda v: v.astype(np.float16), lambda v: v.astype(ml_dtypes.bfloat16)):
        compiled = tj.elementwise(function)
        with np.errstate(over="ignore"):
            want, few = function(x), function(x[:3])
        assert compiled(x).tobytes() == want.tobytes()
        assert compiled(x[:3]).tobytes() == few.tobytes()
    assert tj.elementwise(lambda h, s: h * 0 + s)(np.ones(3, np.float16), 2049.0000005)[0] == 2050


@pytest.mark.full
def test_tiled_arrays_slot_by_slot() -> None:
    layout = "{1,0:T(8,128)}"
    t, u = tj.pack(X, layout, padding=0), tj.pack(X * 2, layout)
    got = tj.elementwise(lambda a, b: a / b + 1)(t, u)
    assert got.layout == t.layout
    assert (got.unpack() == X / (X * 2) + 1).all()
    other = tj.pack(np.zeros_like(X), "{1,0:T(32,32)(16,16)}")
    assert tj.elementwise(lambda a, b: a + b)(t, Y, out=other) is other
    assert (other.unpack() == X + Y).all()
    tj.elementwise(lambda a, b: a * b)(X, Y, out=other)
    assert (other.unpack() == X * Y).all()
    same = tj.elementwise(lambda a: a + a)(t, out=t)
    assert same.buffer is t.buffer
    assert (t.unpack() == X + X).all()


BEYOND: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "compared with a value outside i8": (lambda a: (a < 200, a > -(2**70), a == 2**70), ("i1",)),
    "compared with a value outside u64": (lambda a: (a > -1, a != 2**64, a <= -1), ("u8",)),
    "u64 and i64": (lambda a, b: (a < b, a >= b, b == a, b <= a, a != b, b > a), ("u8", "i8")),
    "an integer beyond i8 in where": (lambda a: np.where(a > 1, a, 200), ("i1",)),
    "a negative integer in where of u64": (lambda a: np.where(a > 1, -1, a), ("u8",)),
    "2**63 in where of booleans": (lambda a: np.where(a, a, 2**63), ("?",)),
    "where of two integers": (lambda a: np.where(a > 1, 200, 100) + a, ("i1",)),
    "where of 2**63 and 1": (lambda a: a * np.where(a > 1, 2**63, 1), ("i1",)),
    "where of two floats": (lambda a: (a * np.where(a > 1, 0.1, 2), a + np.where(a, True, False)), ("f4",)),
    "no 64 bits": (lambda a: np.where(a > 1, a, 2**64), ("i1",)),
    "does not fit": (lambda a: a + 200, ("i1",)),
    "bounds of None": (lambda a: np.clip(a, -200, 200), ("i1",)),
    "a bound outside i8": (lambda a: np.clip(a, 200, None), ("i1",)),
    "squares of booleans": (lambda a: np.square(a), ("?",)),
    "plus a boolean": (lambda a: +a, ("?",)),
    "minus a boolean": (lambda a: -a, ("?",)),
    "bits of floats": (lambda a: a ^ 3, ("f4",)),
    "a negative power": (lambda a: a**-1, ("i4",)),
    "negative powers": (lambda a, b: a**b, ("i4", "i4")),
    "powers that are not negative": (lambda a, b: a ** (b + 1) + (2 ** abs(b)).max(), ("i4", "i4")),
    "powers of floats": (lambda a, b: a**b, ("f8", "i4")),
    "powers of booleans": (lambda a: (a**2, a**1, a**0, a**3, a**2.0, a**True, np.power(a, 2)), ("?",)),
    "known powers of integers": (lambda a: (a**2, a**1, a**0, a**-1.0, a**0.5, np.power(a, 2)), ("i1",)),
    "the other byte order": (lambda a, b: a + b, (">f4", ">i2")),
}


BEYOND_VALUES = [0, 1, 2, -3, 7], [2, 1, 0, -1, -1]


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", BEYOND)
def test_numpys_results_and_exceptions(name: str) -> None:
    """NumPy's results, bit for bit, or its exceptions."""
    function, dtypes = BEYOND[name]
    arrays = [np.array(x).astype(dtype) for x, dtype in zip(BEYOND_VALUES, dtypes, strict=False)]
    try:
        want = function(*arrays)
    except (OverflowError, TypeError, ValueError) as error:
        refusal = next(kind for kind in (OverflowError, TypeError, ValueError) if isinstance(error, kind))
        with pytest.raises(refusal) as ours:
            tj.elementwise(function)(*arrays)
        assert isinstance(ours.value, tj.KernelError)
        return
    got = tj.elementwise(function)(*arrays)
    for one, two in zip(*((x if isinstance(x, tuple) else (x,)) for x in (got, want)), strict=True):
        assert one.dtype == two.dtype
        assert one.tobytes() == two.tobytes()


@pytest.mark.full
@pytest.mark.parametrize("several", [False, True])
def test_a_value_used_twice_is_computed_once(several: bool) -> None:
    """A text with 2**30 squares would never be compiled."""

    def squares(x: Any) -> Any:
        for _ in range(30):
            x = x**2 * 0.5 + 0.25
        return (x, x + 1) if several else x

    compiled, x = tj.elementwise(squares), RNG.random(100)
    for got, want in zip(*(np.atleast_2d(f(x)) for f in (compiled, squares)), strict=True):
        assert got.tobytes() == want.tobytes()
    assert compiled.source.count("0.25") < 200


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.skipif(machine() not in ("x86_64", "AMD64"), reason="NumPy's choice of zeros is its CPU's")
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_the_minimum_of_two_zeros_is_numpys(dtype: Any) -> None:
    """In lanes, tails and numbers; NaNs too."""
    values = np.array([0.0, -0.0, np.nan, 1.0, -1.0, -0.0, 0.0], dtype)
    a, b = (x.ravel() for x in np.meshgrid(values, values))
    for function in (lambda x, y: np.minimum(x, y), lambda x, y: np.maximum(x, y)):
        compiled = tj.elementwise(function)
        for size in (len(a), 9):
            assert compiled(a[:size], b[:size]).tobytes() == function(a[:size], b[:size]).tobytes()
        assert compiled(a[1], b[:1]).tobytes() == function(a[1], b[:1]).tobytes()


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_known_powers_are_numpys(dtype: Any) -> None:
    """Squares, quotients and roots bit for bit, by operator and by function. bf16 stays bf16."""
    x = np.concatenate([RNG.uniform(-9, 9, 500), RNG.uniform(0, 1e5, 500), [0.0, -0.0, np.inf, -np.inf]])
    x = x.astype(dtype)
    for power in (lambda a, b: a**b, np.power):
        for exponent in (2, -1, 0.5, 0, 1):
            # ml_dtypes gives float32 for it and a Python float, and keeps its own dtype for two numbers
            other = dtype(exponent) if dtype is ml_dtypes.bfloat16 and power is np.power else exponent
            want = power(x, other).astype(dtype)
            got = tj.elementwise(lambda a, power=power, other=other: power(a, other))(x)
            assert got.dtype == dtype
            bits = f"u{got.itemsize}"
            same = (got.view(bits) == want.view(bits)) | np.isnan(got) & np.isnan(want)
            assert same.all(), (power, exponent)


def test_negative_powers_write_nothing() -> None:
    """The padding of a tiled array does not count as an exponent."""
    run, x = tj.elementwise(lambda a, b: a**b), np.arange(1, 7, dtype=np.int32).reshape(2, 3)
    out = np.ones_like(x)
    with pytest.raises(ValueError, match="negative integer powers"):
        run(x, x - 2, out=out)
    assert (out == 1).all()
    bases, powers = tj.pack(x, "{1,0:T(8,128)}"), tj.pack(x, "{1,0:T(8,128)}", padding=-1)
    assert np.array_equal(run(bases, powers, out=bases).unpack(), x**x)
    assert run(x[:0], x[:0] - 1).shape == (0, 3)


@pytest.mark.parametrize("size", [5, 1000, 100_000])
@pytest.mark.parametrize("masked", [True, False])
def test_several_results_over_their_arguments(size: int, masked: bool) -> None:
    """All arguments are read before a result is written."""
    a, b = RNG.random(size, np.float32), RNG.random(size, np.float32)
    mask = a > 0.5 if masked else np.ones(size, bool)
    want = [np.where(mask, new, old) for new, old in ((a + b, b), (a * b, a))]
    tj.elementwise(lambda a, b: (a + b, a * b))(a, b, out=(b, a), where=mask if masked else True)
    assert np.array_equal(b, want[0])
    assert np.array_equal(a, want[1])


@pytest.mark.full
def test_several_tiled_results_over_their_arguments() -> None:
    a, b = (tj.pack(x, "{1,0:T(8,128)}") for x in (X, X.T.reshape(X.shape)))
    want = a.unpack() + b.unpack(), a.unpack() * b.unpack()
    tj.elementwise(lambda a, b: (a + b, a * b))(a, b, out=(a, b))
    assert np.array_equal(a.unpack(), want[0])
    assert np.array_equal(b.unpack(), want[1])


@pytest.mark.full
@pytest.mark.parametrize("view", ["F", "swapped", "reversed", "repeated", "both orders", "a row"])
def test_results_have_numpys_memory_order(view: str) -> None:
    """It is the common order of the arguments, also in calls that are answered directly."""
    x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    a, b = {
        "F": (np.asfortranarray(x),) * 2,
        "swapped": (x.swapaxes(0, 1),) * 2,
        "reversed": (x.T[::-1, :, ::-1],) * 2,
        "repeated": (np.broadcast_to(x[:, :1], x.shape), x),
        "both orders": (np.asfortranarray(x), x),
        "a row": (x.T, x.T[0]),
    }[view]
    run, want = tj.elementwise(lambda a, b: a + b), a + b
    for _ in range(3):
        got = run(a, b)
        assert np.array_equal(got, want)
        assert got.strides == want.strides


def test_results_without_dimensions_are_numbers() -> None:
    one = np.array(1.5)
    run = tj.elementwise(lambda a, b: a + b)
    for _ in range(3):
        assert type(run(one, one)) is np.float64
    assert type(run(one, one, out=one)) is np.ndarray
    assert tj.elementwise(lambda a: (a.sum(axis=0), a.max(-1)))(one) == (3.0, 3.0)


def test_on_fail() -> None:
    x, total = np.ones(20, np.float32), np.zeros((), np.float32)
    with pytest.raises(tj.KernelError, match=r"not fully vectorized\n.*reduction-not-asked"):
        tj.elementwise(np.sum, vectorize_reductions=False, on_fail="raise")(x, out=total)
    assert total == 0
    run = tj.elementwise(np.sum, vectorize_reductions=False, on_fail="warn")
    with pytest.warns(tj.KernelWarning, match="reduction-not-asked") as found:
        assert run(x) == 20
    assert found[0].filename == __file__
    assert tj.elementwise(np.sum, on_fail="raise")(x) == 20


def added_in_place(x: Any, y: Any = 1) -> Any:
    x += y
    return x


def set_to_zero(x: Any) -> Any:
    x[x < 0] = 0
    return x


def converted_often(x: Any) -> Any:
    for k in range(3000):
        x = x.astype((np.float64, np.float32)[k % 2])
    return x


REFUSED: dict[str, tuple[Callable[..., Any], tuple[Any, ...], type[Exception], str]] = {
    "shapes": (lambda a, b: a + b, (X, np.ones(3)), tj.LayoutError, "broadcast"),
    "a branch": (lambda a: a if a > 0 else -a, (X,), tj.KernelError, "np.where"),
    "no array": (lambda a: a, (1,), TypeError, "expected an array among the arguments"),
    "sorted": (lambda a: np.sort(a), (X,), tj.KernelError, "np.sort"),
    "text": (lambda a: a, ("text",), tj.KernelError, "do not support"),
    "nothing": (lambda a: None, (X,), tj.KernelError, "NoneType"),
    "a part": (lambda a: a[0], (X,), tj.KernelError, "one element"),
    "in place": (added_in_place, (X,), tj.KernelError, r"line \d+\n    x \+= y\n    \^\n  write y = y \+ x"),
    "into an argument": (lambda a: np.add(a, 1, out=a), (X,), tj.KernelError, "out= to the call"),
    "a shape": (
        lambda a: a / a.shape[0],
        (X,),
        tj.KernelError,
        "no attribute shape.*\n.*\n.*\n.*\n.*x.shape.0",
    ),
    "transposed": (lambda a: a + a.T, (X,), tj.KernelError, "f.x.T."),
    "no such thing": (lambda a: a.foo, (X,), AttributeError, "no attribute foo"),
    "a length": (lambda a: len(a), (X,), tj.KernelError, "no length"),
    "math's": (lambda a: math.exp(a), (X,), tj.KernelError, "np.exp"),
    "chained": (lambda a: 0 < a < 1, (X,), tj.KernelError, "&"),
    "made an array": (lambda a: np.asarray(a), (X,), tj.KernelError, "not a NumPy array"),
    "written": (set_to_zero, (X,), tj.KernelError, "np.where"),
    "a keyword": (lambda a: np.sqrt(a, dtype=np.float64), (X,), tj.KernelError, "astype"),
    "an array from outside": (lambda a: a + X, (X,), tj.KernelError, "argument of the function"),
    "too long": (lambda a: sum([a] * 3000), (X,), tj.KernelError, r"than 256 operations.*\n.*line"),
    "too many casts": (converted_often, (X,), tj.KernelError, r"than 256 operations.*\n.*line"),
    "a norm": (lambda a: np.linalg.norm(a), (X,), tj.KernelError, r"np\.linalg\.norm cannot"),
    "a list inside": (
        lambda a: np.add(a, [1]),
        (X,),
        tj.KernelError,
        "a list is not a number(.*\n)+.*arguments",
    ),
    "33 dimensions": (lambda a: a + 1, (X.reshape(37, 70, *[1] * 31),), tj.KernelError, "got 33\n.*a view"),
    "complex": (lambda a, b: a + b, (X, X + 0j), tj.KernelError, r"argument 1 is complex.*\n  use one of"),
}


@pytest.mark.full
def test_more_dimensions_than_python_nests_loops() -> None:
    a = np.arange(1 << 11, dtype=np.float32).reshape((2,) * 11)
    b = a.transpose(np.random.default_rng(0).permutation(11))
    add = tj.elementwise(lambda x, y: x + y)
    out = np.full_like(b, 7.0)
    assert add(a, b, out=out, where=a % 3 == 0) is out
    assert (out == np.where(a % 3 == 0, a + b, 7.0)).all()


@pytest.mark.full
def test_long_expressions() -> None:
    """Python cannot parse as many parentheses as there are operations."""
    run = tj.elementwise(lambda x: sum([x] * 205), virtual_vector_size="1*hw", tail="scalar")
    x = np.arange(37, dtype=np.float32)
    np.testing.assert_array_equal(run(x), x * 205)


def test_arguments_by_position() -> None:
    run = tj.elementwise(lambda x, y: x + y)
    with pytest.raises(TypeError, match=r"unexpected keyword y\n  pass arguments by position: f\(…, y\)"):
        run(X, y=Y)


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_arguments_are_refused(name: str) -> None:
    function, arguments, error, match = REFUSED[name]
    with pytest.raises(error, match=match):
        tj.elementwise(function)(*arguments)


def test_an_out_that_does_not_fit_is_untouched() -> None:
    out = np.ones((3, 3), np.int32)
    for given in ((X, out), (np.ones((3, 3)), out)):
        with pytest.raises((tj.LayoutError, TypeError)):
            tj.elementwise(lambda a: a * 0)(given[0], out=given[1])
    assert (out == 1).all()


@pytest.mark.full
@pytest.mark.parametrize(
    ("function", "arrays"),
    [
        (lambda x, y: x + y, lambda c: (c, np.ones(3))),
        (lambda x: x * 2, lambda c: (c[:, ::2],)),
        (lambda x: x / np.sum(x, axis=1, keepdims=True), lambda c: (c,)),
        (lambda x, y: x - y, lambda c: (c, c[:1].copy())),
    ],
    ids=["broadcast", "strided", "reduced", "a row"],
)
def test_an_argument_is_the_result_in_place(function: Any, arrays: Any) -> None:
    """Repeated or strided arguments too: the argument may be a read-only view."""
    ours, theirs = (np.arange(1.0, 7.0).reshape(2, 3) for _ in range(2))
    run = tj.elementwise(function)
    for _ in range(3):  # the third call is answered directly, if such calls are supported
        given, expected = arrays(ours), arrays(theirs)
        assert run(*given, out=given[0]) is given[0]
        expected[0][...] = function(*expected)
        np.testing.assert_allclose(ours, theirs, rtol=1e-15)


def test_array_subclasses_with_their_own_rules_are_refused() -> None:
    run = tj.elementwise(lambda x: x + 1)
    for given in (np.ma.array([1.0, 2.0], mask=[0, 1]), np.asmatrix([[1.0, 2.0]])):
        with pytest.raises(TypeError, match="expected a plain NumPy array"):
            run(given)
        with pytest.raises(TypeError, match="plain or tiled"):
            run(np.asarray(given), out=given.copy())
    with pytest.raises(TypeError, match="where: expected a plain NumPy array, got MaskedArray"):
        run(np.zeros(2), where=np.ma.array([True, True], mask=[0, 1]))


def test_reports_of_expressions_name_no_line() -> None:
    run = tj.elementwise(lambda a, b: a * b)
    run(np.ones(100, "f4"), np.ones(100, "f4"))
    head, line = run.report().splitlines()
    assert head == "elementwise <lambda>"
    assert line.startswith("  loop i: vectorized by ")


CONSTANT = {
    "a function": lambda x, y: np.rint(1.5),
    "a number": lambda x, y: 2.5,
    "a number beside an array": lambda x, y: (x * y, 2.5),
    "one of two arrays": lambda x, y: (y + 1, 3, np.sum(x, axis=0)),
}


@pytest.mark.full
@pytest.mark.parametrize("function", CONSTANT.values(), ids=CONSTANT)
def test_results_that_use_no_array_have_no_dimensions(function: Any) -> None:
    x, y = np.ones((2, 3), np.float32), np.ones(3, np.float32)
    made, wanted = tj.elementwise(function)(x, y), function(x, y)
    several = isinstance(wanted, tuple)
    for one, other in zip(made if several else [made], wanted if several else [wanted], strict=True):
        assert np.shape(one) == np.shape(other)
        assert np.array_equal(one, other)


def test_results_that_use_no_array_fit_no_other_shape() -> None:
    x = np.ones((2, 3), np.float32)
    constant = tj.elementwise(lambda x: np.rint(1.5))
    with pytest.raises(tj.LayoutError, match=r"the result has the shape \(\)"):
        constant(x, out=np.zeros((2, 3)))
    with pytest.raises(tj.LayoutError, match="layout= applies only to results that depend on all arrays"):
        constant(x, layout="{1,0:T(8,128)}")
    assert constant(x, where=np.array([True, False])).tolist() == [2.0, 0.0]
