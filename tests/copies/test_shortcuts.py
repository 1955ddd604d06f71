"""Native code answers frequent calls with the same results as before."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from codegen.runtime.direct_calls import supported
from tests.numpy_api.drawn import assert_same, outcome
from tilejit.copies.plan import cached_plan
from tilejit.copies.shortcuts import Shortcut
from tilejit.numpy_api.copyto import known_copy, known_on_one_thread
from tilejit.numpy_api.known import known_cast, known_in_c_order, known_in_f_order
from tilejit.programs.copy_programs import copy_program
from tilejit.programs.direct_policy import SOON_FROM

Array = np.ndarray[Any, Any]

pytestmark = pytest.mark.skipif(not supported(), reason="direct calls are not supported here")

OFTEN = 5
"""The number of calls after which a call is direct here."""


@pytest.fixture(autouse=True)
def _soon_direct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilejit.programs.direct_policy.DIRECT_FROM", OFTEN)
    for shortcut in (known_copy, known_on_one_thread, known_cast, known_in_c_order, known_in_f_order):
        shortcut.forget()


def is_direct(shortcut: Shortcut, call: Callable[[], Any]) -> bool:
    """Whether native code answers a call."""
    shortcut._answered_in_python()
    call()
    return shortcut._last_answer() is not None


def learned(shortcut: Shortcut, call: Callable[[], Any]) -> None:
    """Repeat a call until native code answers it."""
    for _ in range(OFTEN):
        assert not is_direct(shortcut, call)
    assert is_direct(shortcut, call)


def squares(dtype: Any = np.float32, side: int = 128) -> list[Array]:
    """Arrays of one layout with different elements."""
    return [np.arange(k, side * side + k).astype(dtype).reshape(side, side) for k in range(3)]


FRESH: dict[str, tuple[Shortcut, Callable[[Any, Array], Any]]] = {
    "C order, by a kernel": (known_in_c_order, lambda m, x: m.ascontiguousarray(x.T)),
    "C order, rows": (known_in_c_order, lambda m, x: m.ascontiguousarray(x[::-1])),
    "C order already": (known_in_c_order, lambda m, x: m.ascontiguousarray(x)),
    "Fortran's order, columns": (known_in_f_order, lambda m, x: m.asfortranarray(x.T[:, ::-1])),
    "Fortran's order already": (known_in_f_order, lambda m, x: m.asfortranarray(x.T)),
}


@pytest.mark.parametrize("side", [128, 300])
@pytest.mark.parametrize("name", FRESH)
def test_fresh_results(name: str, side: int) -> None:
    """Results own the same memory as before: the array's own, or from some size on its base's."""
    shortcut, call = FRESH[name]
    arrays = squares(side=side)
    before = call(tj, arrays[0])
    shortcut.forget()
    learned(shortcut, lambda: call(tj, arrays[0]))
    for x in arrays:
        ours = outcome(call, tj, x)
        assert_same(ours, outcome(call, np, x))
        assert ours[0].flags.owndata == before.flags.owndata
        assert np.shares_memory(ours[0], x) == np.shares_memory(before, arrays[0])


@pytest.mark.parametrize("to", [np.float64, np.dtype("f8"), np.int32, ml_dtypes.bfloat16, np.uint8], ids=str)
@pytest.mark.parametrize("dtype", ["f4", "i8", ml_dtypes.bfloat16], ids=str)
def test_conversions(dtype: Any, to: Any) -> None:
    arrays = squares(dtype)
    for _ in range(OFTEN + 1):
        tj.astype(arrays[0], to)
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


@pytest.mark.parametrize("name", FLAGGED)
def test_conversions_are_learned_and_warn_each_time(name: str) -> None:
    """Native code converts, sees the flag, and leaves the conversion to Python."""
    dtype, to, value, said = FLAGGED[name]
    x = squares(dtype)[0]
    learned(known_cast, lambda: tj.astype(x, to))
    x[5, 7] = value
    for _ in range(3):
        with np.errstate(all="warn"), pytest.warns(RuntimeWarning, match=f"{said} encountered in cast"):
            assert is_direct(known_cast, lambda: tj.astype(x, to))
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
    learned(known_copy, lambda: tj.copyto(out, x))
    x[5, 7] = 1e300
    with pytest.warns(RuntimeWarning, match="overflow encountered in cast"):
        assert is_direct(known_copy, lambda: tj.copyto(out, x))
    with np.errstate(over="ignore"):
        assert (out == x.astype(np.float32)).all()


def test_similar_calls_are_learned_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the code exists already, calls that take turns are learned one by one, calls of many kinds never."""
    arrays = [np.ones((128, 128 + k), np.float32) for k in range(SOON_FROM + 1)]
    learned(known_in_c_order, lambda: tj.ascontiguousarray(arrays[0].T))
    monkeypatch.setattr("tilejit.programs.direct_policy.DIRECT_FROM", 1 << 60)
    known_in_c_order.forget()
    for x in 2 * arrays:
        assert not is_direct(known_in_c_order, lambda x=x: tj.ascontiguousarray(x.T))  # type: ignore[misc]
    known_in_c_order.forget()
    for k in range(6 * SOON_FROM):
        tj.ascontiguousarray(arrays[k % 2].T)
    assert is_direct(known_in_c_order, lambda: tj.ascontiguousarray(arrays[0].T))
    assert is_direct(known_in_c_order, lambda: tj.ascontiguousarray(arrays[1].T))
    assert not is_direct(known_in_c_order, lambda: tj.ascontiguousarray(arrays[2].T))


@pytest.mark.parametrize("view", [lambda x: x.T, lambda x: x[::-1], lambda x: x.astype("f8")])
def test_copies(view: Callable[[Array], Array]) -> None:
    dst, sources = np.zeros((128, 128), np.float32), [view(x) for x in squares()]
    learned(known_copy, lambda: tj.copyto(dst, sources[0]))
    for src in sources:
        assert is_direct(known_copy, lambda src=src: tj.copyto(dst, src))  # type: ignore[misc]
        assert (dst == src).all()
    dst.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        tj.copyto(dst, sources[0])
    dst.flags.writeable = True
    with pytest.raises(TypeError, match="'no'"):
        tj.copyto(dst, sources[0].astype("f8"), casting="no")


@pytest.mark.parametrize("step", [1, -1])
def test_overlapping_copies(step: int) -> None:
    """The layouts are the learned ones, but the arrays overlap."""
    learned(known_copy, lambda: tj.copyto(np.empty(9000, "f4"), np.ones(9000, "f4")[::step]))
    ours, theirs = (np.arange(10000, dtype="f4") for _ in range(2))
    tj.copyto(ours[500:9500], ours[:9000][::step])
    np.copyto(theirs[500:9500], theirs[:9000][::step].copy())
    assert (ours == theirs).all()


def test_forbidden_conversions_are_not_learned() -> None:
    """`copy_plain` converts by any rule, `copyto` by same_kind, and both ask one shortcut."""
    x = squares()[0]
    for _ in range(3 * OFTEN):
        tj.astype(x.T, np.int16, order="C")
    with pytest.raises(TypeError, match="same_kind"):
        tj.copyto(np.zeros((128, 128), np.int16), x.T)


def test_code_outlives_its_plan() -> None:
    x = squares(np.uint16)[0]
    learned(known_in_c_order, lambda: tj.ascontiguousarray(x.T))
    cached_plan.cache_clear()
    copy_program.cache_clear()
    gc.collect()
    assert is_direct(known_in_c_order, lambda: tj.ascontiguousarray(x.T))
    assert (tj.ascontiguousarray(x.T) == x.T).all()


def test_no_array_is_kept_alive() -> None:
    x, y, _ = squares()
    calls = [
        (known_in_c_order, lambda: tj.ascontiguousarray(x.T)),
        (known_cast, lambda: tj.astype(x, np.float64)),
        (known_copy, lambda: tj.copyto(y, x)),
    ]
    for shortcut, call in calls:
        learned(shortcut, call)
        counted = [x, x.dtype, np.dtype("f8"), np.float64, None, shortcut]
        before = [sys.getrefcount(value) for value in counted]
        for _ in range(1000):
            call()
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
    """Each array's result has its own dtype, whichever was learned first. Both stay learned."""
    first, second = (np.zeros((200, 300), dtype).T for dtype in EQUAL[name])
    assert second.dtype == first.dtype
    tj.ascontiguousarray(first)  # the plan belongs to this array
    known_in_c_order.forget()
    learned(known_in_c_order, lambda: tj.ascontiguousarray(second))
    learned(known_in_c_order, lambda: tj.ascontiguousarray(first))
    for x in (first, second):
        assert is_direct(known_in_c_order, lambda x=x: tj.ascontiguousarray(x))  # type: ignore[misc]
        assert tj.ascontiguousarray(x).dtype is x.dtype


def test_types_and_their_dtypes_are_learned_side_by_side() -> None:
    """np.float64 == np.dtype("f8"), but native code looks for the identical object."""
    x = squares("i4")[0]
    calls = [lambda: tj.astype(x, np.float64), lambda: tj.astype(x, np.dtype("f8"))]
    for call in calls:
        learned(known_cast, call)
    assert all(is_direct(known_cast, call) for call in calls)


def test_dtype_arguments_that_may_change_are_not_learned() -> None:
    class Chosen:
        dtype = np.dtype(np.float64)

    x = squares()[0]
    for _ in range(3 * OFTEN):
        assert tj.astype(x, Chosen).dtype == np.float64
    Chosen.dtype = np.dtype(np.int32)
    assert tj.astype(x, Chosen).dtype == np.int32


def test_only_calls_with_other_layouts_go_through_python() -> None:
    x = squares()[0]
    learned(known_in_c_order, lambda: tj.ascontiguousarray(x.T))
    assert not is_direct(known_in_c_order, lambda: tj.ascontiguousarray(x[:, ::-1]))
    assert is_direct(known_in_c_order, lambda: tj.ascontiguousarray(x.T))
    known_in_c_order.forget()
    assert not is_direct(known_in_c_order, lambda: tj.ascontiguousarray(x.T))
