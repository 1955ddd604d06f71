"""Reductions of expressions along dimensions, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import tilejit as tj
from tests.tools.extent import examples
from tests.tools.guard import Guarded

RNG = np.random.default_rng(11)
SUMS = {
    which: {
        axis: tj.elementwise(lambda a, axis=axis, which=which: getattr(a, which)(axis=axis)) for axis in axes
    }
    for which, axes in dict.fromkeys(
        ("sum", "min", "max", "mean"), (None, 0, 1, 2, -1, (0, 2), (1, 2))
    ).items()
}
DTYPES = (np.float32, np.float64, np.int8, np.uint16, np.int32, np.uint64, np.bool_)


def close(got: Any, want: Any, terms: int, magnitude: Any) -> bool:
    """Within the documented bound: 64 ulp of the sum of magnitudes."""
    if want.dtype.kind != "f":
        return bool(np.all(got == want))
    return bool(
        np.all(np.abs(np.subtract(got, want, dtype="f8")) <= 64 * np.finfo(want.dtype).eps * magnitude)
    )


@pytest.mark.full
@seed(5)
@settings(max_examples=examples(5, full=25), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    shape=st.tuples(*[st.sampled_from((1, 2, 3, 17, 65, 130))] * 3),
    which=st.sampled_from(("sum", "min", "max", "mean")),
    axis=st.sampled_from((None, 0, 1, 2, -1, (0, 2), (1, 2))),
    dtype=st.sampled_from(DTYPES[:4]),
    view=st.sampled_from(("plain", "transposed", "steps", "reversed")),
)
def test_along_any_dimensions(shape: Any, which: str, axis: Any, dtype: Any, view: str) -> None:
    x = (np.random.default_rng(sum(shape)).random(shape) * 100).astype(dtype)
    x = {"plain": x, "transposed": x.transpose(2, 0, 1), "steps": x[::2, :, ::3], "reversed": x[:, ::-1]}[
        view
    ]
    got, want = SUMS[which][axis](x), getattr(x, which)(axis=axis)
    assert type(got) is type(want)
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    magnitude = np.mean(np.abs(x), axis=axis, dtype="f8") if which == "mean" else np.sum(np.abs(x), axis=axis)
    assert close(got, want, x.size, magnitude)


@pytest.mark.full
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_are_numpys(dtype: Any) -> None:
    x = (RNG.random((40, 9)) * 100).astype(dtype)
    function = tj.elementwise(
        lambda a: (a.sum(axis=1, keepdims=True), a.max(0), np.mean(a), np.sum(a, dtype="f4"))
    )
    want = x.sum(axis=1, keepdims=True), x.max(0), np.mean(x), np.sum(x, dtype="f4")
    for got, each in zip(function(x), want, strict=True):
        assert (got.dtype, got.shape, type(got)) == (each.dtype, each.shape, type(each))
        assert np.allclose(got, each, rtol=1e-6)


@pytest.mark.full
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_halves_are_summed_in_wider_numbers(dtype: Any) -> None:
    x = RNG.random((300, 70)).astype(dtype)
    total, mean = tj.elementwise(lambda a: (a.sum(axis=0), a.mean(axis=0)))(x)
    assert total.dtype == mean.dtype == dtype
    assert np.array_equal(total, x.astype("f8").sum(axis=0).astype(dtype))
    assert np.array_equal(mean, x.astype("f8").mean(axis=0).astype(dtype))


@pytest.mark.full
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1_000_003,), (5000, 40), (40, 5000)])
def test_long_sums_are_as_good_as_pairwise(dtype: Any, shape: Any) -> None:
    """Terms of both signs and of many sizes: the error is within 64 ulp of the sum of magnitudes."""
    rng = np.random.default_rng(3)
    x = (rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4, shape)).astype(dtype)
    for axis in (None, 0):
        got = tj.elementwise(lambda a, axis=axis: np.sum(a, axis=axis))(x)
        exact, all_of_it = (np.sum(y.astype(np.longdouble), axis=axis) for y in (x, np.abs(x)))
        assert np.all(np.abs(got - exact) <= 64 * np.finfo(dtype).eps / 2 * all_of_it)


def test_sums_keep_small_terms() -> None:
    """f64 sums are compensated from block to block, so small terms survive a large one."""
    x = np.full(400_000, 2.0**-40)
    x[0] = 2.0**20
    assert tj.elementwise(np.sum)(x) == 2.0**20 + 399_999 * 2.0**-40


@pytest.mark.full
@pytest.mark.parametrize("threads", [2, 3])
def test_threads(threads: int) -> None:
    x = RNG.random((1001, 2003), np.float32)
    for axis in (None, 0, 1):
        got = tj.elementwise(lambda a, axis=axis: (a.sum(axis), a.max(axis)), parallel=threads)(x)
        assert np.allclose(got[0], x.sum(axis, dtype="f8"), rtol=1e-6)
        assert np.array_equal(got[1], x.max(axis))


X = RNG.random((37, 70), np.float32)
AFTERWARDS: dict[str, Callable[..., Any]] = {
    "shares": lambda a: a / np.sum(a, axis=1, keepdims=True),
    "softmax": lambda a: (
        np.exp(a - a.max(axis=-1, keepdims=True))
        / np.exp(a - a.max(-1, keepdims=True)).sum(-1, keepdims=True)
    ),
    "variance": lambda a: np.mean((a - np.mean(a, axis=0)) ** 2, axis=0),
    "length": lambda a: np.sqrt(np.sum(a * a)),
    "mixed": lambda a: (a * 2, np.sum(a, axis=1), a.max()),
    "nothing goes": lambda a: np.sum(a, axis=()),
}


@pytest.mark.full
@pytest.mark.parametrize("name", AFTERWARDS)
def test_expressions_may_follow_reductions(name: str) -> None:
    got, want = tj.elementwise(AFTERWARDS[name])(X), AFTERWARDS[name](X)
    for one, two in zip(*((x if isinstance(x, tuple) else (x,)) for x in (got, want)), strict=True):
        assert (one.dtype, one.shape, type(one)) == (two.dtype, two.shape, type(two))
        assert np.allclose(one, two, rtol=1e-5)


@pytest.mark.full
def test_each_result_has_its_own_shape() -> None:
    one, two, three = tj.elementwise(lambda a, b: (a + b, b * 2, np.sum(b)))(X, X[0])
    assert np.array_equal(one, X + X[0])
    assert np.array_equal(two, X[0] * 2)
    assert np.isclose(three, X[0].sum())


def test_numbers_and_arrays_in_turn() -> None:
    """The sum of an array without dimensions is its element; its plan must not be used for other arrays."""
    function = tj.elementwise(lambda a, b: a * b.sum())
    out = np.empty(1, np.float32)
    function(np.ones(1, np.float32), np.array(2, np.float32), out=out)
    v = np.arange(4, dtype=np.float32)
    assert np.array_equal(function(v, v, out=np.empty_like(v)), v * 6)


@pytest.mark.full
def test_products_of_vectors() -> None:
    v, w, whole = X[0], X[1], (X * 100).astype(np.int8)
    for function in (np.dot, np.vdot, lambda a, b: a @ b, lambda a, b: a.dot(b)):
        assert np.isclose(tj.elementwise(function)(v, w), function(v, w))
    assert np.allclose(tj.elementwise(np.dot)(X, w), X @ w)
    got, want = tj.elementwise(np.dot)(whole[0], whole[1]), np.dot(whole[0], whole[1])
    assert got == want
    assert got.dtype == want.dtype


@pytest.mark.full
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_not_a_number_and_infinities(axis: Any) -> None:
    x = RNG.random((50, 60))
    x[3, 5], x[7, 50], x[44, 1] = np.nan, np.inf, -np.inf
    for part in (x, x[4:], x[20:40]):
        with np.errstate(invalid="ignore"):
            want = part.min(axis), part.max(axis), part.sum(axis)
        got = tj.elementwise(lambda a: (a.min(axis), a.max(axis), a.sum(axis)))(part)
        for one, two in zip(got, want, strict=True):
            assert np.allclose(one, two, equal_nan=True)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_empty_dimensions(shape: Any, axis: Any) -> None:
    x = np.zeros(shape, np.float32)
    assert np.array_equal(tj.elementwise(lambda a: a.sum(axis=axis))(x), x.sum(axis=axis))
    try:
        want = x.min(axis=axis)
    except ValueError as error:
        with pytest.raises(ValueError, match=str(error)[:40]):
            tj.elementwise(lambda a: a.min(axis=axis))(x)
    else:
        assert np.array_equal(tj.elementwise(lambda a: a.min(axis=axis))(x), want)


@pytest.mark.full
def test_out() -> None:
    x, total, scaled = X.copy(), np.empty(70), np.empty_like(X)
    function = tj.elementwise(lambda a: (a.sum(axis=0), a / a.max()))
    got = function(x, out=(total, scaled))
    assert got[0] is total
    assert np.allclose(total, X.sum(axis=0))
    assert np.array_equal(scaled, X / X.max())
    assert function(x, out=(total, x))[1] is x
    assert np.array_equal(x, scaled)


REFUSED: dict[str, tuple[Callable[..., Any], tuple[Any, ...], type[Exception], str]] = {
    "no such axis": (
        lambda a: a.sum(axis=2),
        (X,),
        np.exceptions.AxisError.__mro__[1],
        "axis 2 is out of bounds",
    ),
    "twice": (lambda a: a.sum(axis=(0, -2)), (X,), ValueError, "duplicate value"),
    "a truth": (lambda a: a.sum(axis=True), (X,), TypeError, "integer"),
    "no number": (lambda a: a.sum(axis="x"), (X,), TypeError, "integer"),
    "initial": (lambda a: np.sum(a, initial=3), (X,), tj.KernelError, "initial"),
    "where": (lambda a: np.sum(a, where=True), (X,), tj.KernelError, "np.where"),
    "no keyword": (lambda a: a.min(dtype="f4"), (X,), TypeError, "dtype"),
    "lengths": (np.dot, (X[0], X[0, :5]), ValueError, "not aligned|broadcast"),
    "one is not repeated": (np.dot, (X[0], X[0, :1]), ValueError, "not aligned"),
    "matrices": (np.dot, (X, X), tj.KernelError, "call NumPy for matrices"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_arguments_are_refused(name: str) -> None:
    function, arguments, error, match = REFUSED[name]
    with pytest.raises(error, match=match):
        tj.elementwise(function)(*arguments)


def test_a_mask_does_not_apply_to_a_reduction() -> None:
    with pytest.raises(tj.KernelError, match=r"np\.where"):
        tj.elementwise(np.sum)(X, where=X > 0)


def test_many_arguments_keep_their_order() -> None:
    # Once native code answers calls, it passes the arguments in the order of the call.
    names = [f"a{k}" for k in range(12)]
    terms = " + ".join(f"{k} * {name}" for k, name in enumerate(names))
    f = tj.elementwise(eval(f"lambda {', '.join(names)}: ({terms}).sum()"))
    arrays = [np.full(100, 3.0**k) for k in range(12)]
    want = sum(k * x for k, x in enumerate(arrays)).sum()
    assert [f(*arrays) for _ in range(5)] == [want] * 5


@pytest.mark.full
@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize("shape", [(3, 5), (40, 67), (35, 33)])
def test_nothing_outside_the_array_is_read(shape: Any, at_end: bool) -> None:
    size = int(np.prod(shape)) * 4
    x = Guarded(size).place(size, at_end=at_end).view(np.float32).reshape(shape)
    x[...] = RNG.random(shape)
    for view in (x, x.T, x[:, ::-1], x[::2, 1:]):
        for axis in (None, 0, 1):
            assert np.allclose(SUMS["sum"][axis](view), view.sum(axis=axis), rtol=1e-5)
            assert np.array_equal(SUMS["max"][axis](view), view.max(axis=axis))
