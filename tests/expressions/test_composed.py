"""NumPy's elementwise functions composed from others: the same dtypes, bits and errors."""

from __future__ import annotations

from collections.abc import Callable
from platform import machine
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
INTEGERS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)
SPECIAL = [0.0, -0.0, np.nan, -np.nan, 1.5, -1.5, np.inf, -np.inf]
ONE: dict[str, Callable[..., Any]] = {
    "sign": np.sign,
    "conjugate": np.conjugate,
    "conj of it": lambda x: x.conj() * 1,
    "real": lambda x: np.real(x) * 1,
    "real of it": lambda x: x.real * 1,
}
TWO: dict[str, Callable[..., Any]] = {"fmin": np.fmin, "fmax": np.fmax}


def values(dtype: Any) -> Any:
    if np.dtype(dtype).kind in "iu":
        limits = np.iinfo(dtype)
        return np.array([limits.min, limits.max, 0, 1, 2, 100, limits.max - 1, limits.min + 1], dtype)
    return np.array(SPECIAL, dtype)


def same_bits(got: Any, want: Any) -> None:
    assert got.dtype == want.dtype
    assert got.tobytes() == want.tobytes(), (got, want)


@pytest.mark.full
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=lambda x: x.__name__)
@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_array(name: str, dtype: Any) -> None:
    """In lanes and tails."""
    run, x = tj.elementwise(ONE[name]), np.tile(values(dtype), 9)
    for given in (x, x[:13], x[3:4]):
        same_bits(run(given), ONE[name](given))


@pytest.mark.full
@pytest.mark.skipif(
    machine() not in ("x86_64", "AMD64"), reason="which zero NumPy returns depends on the CPU"
)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=lambda x: x.__name__)
@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_arrays(name: str, dtype: Any) -> None:
    """Bit for bit. For 0.0 and -0.0, NumPy may return one in its lanes and the other in the rest."""
    run = tj.elementwise(TWO[name])
    a, b = (x.ravel() for x in np.meshgrid(values(dtype), values(dtype)))
    same_bits(run(a, b), TWO[name](a, b))
    for size in (13, 1):
        got, want = run(a[:size], b[:size]), TWO[name](a[:size], b[:size])
        sure = (a[:size] != 0) | (b[:size] != 0)
        same_bits(got[sure], want[sure])
        assert (got[~sure] == want[~sure]).all()


@pytest.mark.full
@pytest.mark.parametrize("name", TWO)
def test_with_numbers(name: str) -> None:
    x = np.array(SPECIAL, np.float32)
    for other in (2, 2.5, float("nan"), np.float64(2.5), np.float32("nan")):
        same_bits(tj.elementwise(TWO[name])(x, other), TWO[name](x, other))
        same_bits(tj.elementwise(lambda a, other=other: TWO[name](other, a))(x), TWO[name](other, x))


@pytest.mark.full
def test_of_several_dtypes() -> None:
    x, n = np.array(SPECIAL, np.float32), np.arange(-3, 5)
    for function in TWO.values():
        same_bits(tj.elementwise(function)(x, n), function(x, n))
        same_bits(tj.elementwise(function)(n, x), function(n, x))


@pytest.mark.full
def test_of_booleans() -> None:
    x = np.array([True, False])
    same_bits(tj.elementwise(np.conjugate)(x), np.conjugate(x))
    same_bits(tj.elementwise(np.fmin)(x, x[::-1]), np.fmin(x, x[::-1]))
    with pytest.raises(TypeError):
        np.sign(x)
    with pytest.raises(TypeError, match="undefined for booleans") as refused:
        tj.elementwise(np.sign)(x)
    assert isinstance(refused.value, tj.KernelError)


def test_in_expressions() -> None:
    x, y = np.linspace(-2, 2, 37), np.linspace(1, -1, 37)
    run = tj.elementwise(lambda a, b: np.sign(a) * np.fmax(a, b) + np.conj(b).real)
    same_bits(run(x, y), np.sign(x) * np.fmax(x, y) + y)
