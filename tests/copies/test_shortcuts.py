"""Calls that are repeated often enough for native code to answer them: the same results as the first ones."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from tests.numpy_api.drawn import assert_same, outcome

Array = np.ndarray[Any, Any]

OFTEN = 1200
"""Calls of a kind after which native code answers it."""


def repeated(call: Callable[[], Any]) -> Any:
    """The result of the last of many calls."""
    for _ in range(OFTEN):
        found = call()
    return found


def squares(dtype: Any = np.float32, side: int = 128) -> list[Array]:
    """Arrays of one layout with different elements."""
    return [np.arange(k, side * side + k).astype(dtype).reshape(side, side) for k in range(3)]


FRESH: dict[str, Callable[[Any, Array], Any]] = {
    "C order, by a kernel": lambda m, x: m.ascontiguousarray(x.T),
    "C order, rows": lambda m, x: m.ascontiguousarray(x[::-1]),
    "C order already": lambda m, x: m.ascontiguousarray(x),
    "Fortran's order, columns": lambda m, x: m.asfortranarray(x.T[:, ::-1]),
    "Fortran's order already": lambda m, x: m.asfortranarray(x.T),
}


@pytest.mark.parametrize("side", [128, 300])
@pytest.mark.parametrize("name", FRESH)
def test_fresh_results(name: str, side: int) -> None:
    """Results own the same memory as before: the array's own, or from some size on its base's."""
    call, arrays = FRESH[name], squares(side=side)
    before = call(tj, arrays[0])
    repeated(lambda: call(tj, arrays[0]))
    for x in arrays:
        ours = outcome(call, tj, x)
        assert_same(ours, outcome(call, np, x))
        assert ours[0].flags.owndata == before.flags.owndata
        assert np.shares_memory(ours[0], x) == np.shares_memory(before, arrays[0])


@pytest.mark.parametrize("to", [np.float64, np.dtype("f8"), np.int32, ml_dtypes.bfloat16, np.uint8], ids=str)
@pytest.mark.parametrize("dtype", ["f4", "i8", ml_dtypes.bfloat16], ids=str)
def test_conversions(dtype: Any, to: Any) -> None:
    arrays = squares(dtype)
    repeated(lambda: tj.astype(arrays[0], to))
    for x in arrays:
        assert_same(outcome(tj.astype, x, to), outcome(x.astype, to))


SIGNALLING = np.array([0x7F80_0001], np.uint32).view(np.float32)[0]
FLAGGED = {
    "too large": ("f8", np.float32, 1e300, "overflow"),
    "too small": ("f8", np.float32, 1e-300, "underflow"),
    "a NaN that signals": ("f4", ml_dtypes.bfloat16, SIGNALLING, "invalid value"),
    "no integer": ("f4", np.int32, np.nan, "invalid value"),
}
"""Conversions of one element that NumPy warns of."""


@pytest.mark.full
@pytest.mark.parametrize("name", FLAGGED)
def test_conversions_warn_each_time(name: str) -> None:
    dtype, to, value, said = FLAGGED[name]
    x = squares(dtype)[0]
    repeated(lambda: tj.astype(x, to))
    x[5, 7] = value
    for _ in range(3):
        with np.errstate(all="warn"), pytest.warns(RuntimeWarning, match=f"{said} encountered in cast"):
            tj.astype(x, to)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match=said):
        tj.astype(x, to)
    with np.errstate(all="ignore"):
        assert_same(outcome(tj.astype, x, to), outcome(x.astype, to))
    x[5, 7] = 1
    with np.errstate(all="raise"):
        assert_same(outcome(tj.astype, x, to), outcome(x.astype, to))
    assert tj.astype(x, to, "F").flags.f_contiguous


def test_copies_that_convert_warn_each_time() -> None:
    """Into an existing array, which contains the answer before and after the warning."""
    x, out = squares("f8")[0], np.zeros((128, 128), np.float32)
    repeated(lambda: tj.copyto(out, x))
    x[5, 7] = 1e300
    for _ in range(3):
        with pytest.warns(RuntimeWarning, match="overflow encountered in cast"):
            tj.copyto(out, x)
    with np.errstate(over="ignore"):
        assert (out == x.astype(np.float32)).all()


@pytest.mark.parametrize("view", [lambda x: x.T, lambda x: x[::-1], lambda x: x.astype("f8")])
def test_copies(view: Callable[[Array], Array]) -> None:
    dst, sources = np.zeros((128, 128), np.float32), [view(x) for x in squares()]
    repeated(lambda: tj.copyto(dst, sources[0]))
    for src in sources:
        tj.copyto(dst, src)
        assert (dst == src).all()
    dst.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        tj.copyto(dst, sources[0])
    dst.flags.writeable = True
    with pytest.raises(TypeError, match="'no'"):
        tj.copyto(dst, sources[0].astype("f8"), casting="no")


@pytest.mark.parametrize("step", [1, -1])
def test_overlapping_copies(step: int) -> None:
    """Of the same layouts as the many calls before, whose arrays did not overlap."""
    repeated(lambda: tj.copyto(np.empty(9000, "f4"), np.ones(9000, "f4")[::step]))
    ours, theirs = (np.arange(10000, dtype="f4") for _ in range(2))
    tj.copyto(ours[500:9500], ours[:9000][::step])
    np.copyto(theirs[500:9500], theirs[:9000][::step].copy())
    assert (ours == theirs).all()


def test_forbidden_conversions_stay_forbidden() -> None:
    """`astype` converts by any rule, `copyto` by same_kind."""
    x = squares()[0]
    repeated(lambda: tj.astype(x.T, np.int16, order="C"))
    with pytest.raises(TypeError, match="same_kind"):
        tj.copyto(np.zeros((128, 128), np.int16), x.T)


def test_no_array_is_kept_alive() -> None:
    x, y, _ = squares()
    for call in (
        lambda: tj.ascontiguousarray(x.T),
        lambda: tj.astype(x, np.float64),
        lambda: tj.copyto(y, x),
    ):
        repeated(call)
        counted = [x, y, x.dtype, np.dtype("f8"), np.float64, None]
        before = [sys.getrefcount(value) for value in counted]
        repeated(call)
        after = [sys.getrefcount(value) for value in counted]
        assert all(abs(a - b) < 50 for a, b in zip(after, before, strict=True))


EQUAL = {
    "integers": (np.dtype("l"), np.dtype("q")),
    "metadata": (np.dtype("f4", metadata={"a": 1}), np.dtype("f4", metadata={"a": 2})),
    "records": (np.dtype("i4,i4", align=True), np.dtype("i4,i4")),
    "seconds": (np.dtype("M8[s]"), np.dtype("M8[1000ms]")),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal_dtypes_keep_their_identity(name: str) -> None:
    """Each array's result has its own dtype, whichever came first."""
    arrays = [np.zeros((200, 300), dtype).T for dtype in EQUAL[name]]
    for x in arrays:
        repeated(lambda x=x: tj.ascontiguousarray(x))  # type: ignore[misc]
    for x in arrays:
        assert tj.ascontiguousarray(x).dtype is x.dtype


def test_dtype_arguments_may_change() -> None:
    class Chosen:
        dtype = np.dtype(np.float64)

    x = squares()[0]
    assert repeated(lambda: tj.astype(x, Chosen)).dtype == np.float64
    Chosen.dtype = np.dtype(np.int32)
    assert tj.astype(x, Chosen).dtype == np.int32
