"""put, take_along_axis and put_along_axis: every element and every error as in NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tests.numpy_api.drawn as drawn
import tilejit as tj
from tests.numpy_api.drawn import assert_same, outcome
from tests.tools.extent import examples
from tests.tools.guard import Guarded

pytestmark = pytest.mark.usefixtures("kernels_for_all_sizes")

EXAMPLES = settings(max_examples=examples(16, full=300), deadline=None)
MODES = ("raise", "wrap", "clip")
INTEGERS = ("i8", "i4", "i2", "u1", "u4", "u8", ">i8", ">u2")


def copied(x: Any) -> Any:
    """The same elements at the same strides, in separate writable memory."""
    if not isinstance(x, np.ndarray) or not x.ndim or 0 in x.strides:
        return np.array(x)
    flips = tuple(slice(None, None, -1) if s < 0 else slice(None) for s in x.strides)
    base = x[flips]
    order = sorted(range(x.ndim), key=lambda k: -base.strides[k])
    room = np.empty([2 * base.shape[k] for k in order], x.dtype)
    view = room[tuple(slice(0, 2 * base.shape[k], 2) for k in order)].transpose(np.argsort(order))
    view = view[flips]
    view[...] = x
    return view


def assert_writes_alike(name: str, x: Any, *arguments: Any) -> None:
    """TileJIT's routine and NumPy's leave the same array, and raise the same error.

    If `put` raises, NumPy may have written elements, whereas TileJIT has written none.
    """
    ours, theirs, before = copied(x), copied(x), copied(x)
    mine = outcome(getattr(tj, name), ours, *arguments)
    other = outcome(getattr(np, name), theirs, *arguments)
    assert mine == other
    failed = isinstance(other[0], tuple)
    assert_same((ours, []), (before if failed and name == "put" and ours.size > 0 else theirs, []))


def indices_for(draw: Any, shape: tuple[int, ...], extent: int, dtype: str) -> Any:
    """Random indices, most of them in bounds, some with axes in another order."""
    kind = np.dtype(dtype)
    reach = draw(st.sampled_from((extent, extent, extent, extent + 1)))
    low = -reach if kind.kind == "i" else 0
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    made = rng.integers(low, max(reach, low + 1), shape).astype(kind)
    order = draw(st.permutations(range(len(shape))))
    return np.ascontiguousarray(made.transpose(order)).transpose(np.argsort(order)) if shape else made


@EXAMPLES
@given(drawn.arrays(), st.data())
def test_take_along_axis(x: Any, data: Any) -> None:
    axis = data.draw(st.one_of(st.none(), st.integers(-x.ndim - 1, x.ndim)))
    shape = [data.draw(st.sampled_from((n, n, n, 1, 2))) for n in x.shape]
    indices = indices_for(
        data.draw, (x.size,) if axis is None else tuple(shape), 3, data.draw(st.sampled_from(INTEGERS))
    )
    ours, theirs = (outcome(m.take_along_axis, x, indices, axis) for m in (tj, np))
    assert_same(ours, theirs, strides=False)


@EXAMPLES
@given(drawn.arrays(), st.data())
def test_put_along_axis(x: Any, data: Any) -> None:
    axis = data.draw(st.integers(-x.ndim - 1, x.ndim))
    shape = tuple(data.draw(st.sampled_from((n, n, n, 1, 2))) for n in x.shape)
    indices = indices_for(data.draw, shape, 3, data.draw(st.sampled_from(INTEGERS)))
    values = drawn.content(x.dtype, data.draw(st.sampled_from((shape, shape[1:], shape[-1:], ()))), 5)
    assert_writes_alike("put_along_axis", x, indices, values, axis)


@EXAMPLES
@given(drawn.arrays(), st.data())
def test_put(x: Any, data: Any) -> None:
    count = data.draw(st.integers(0, 30))
    indices = indices_for(data.draw, (count,), max(x.size, 1), data.draw(st.sampled_from(INTEGERS)))
    values = drawn.content(x.dtype, (data.draw(st.sampled_from((0, 1, 3, count, count + 2))),), 5)
    assert_writes_alike("put", x, indices, values, data.draw(st.sampled_from(MODES)))


X = np.arange(48.0).reshape(6, 8)
FAR = np.array([[7], [-9], [0], [2], [1], [5]])


@pytest.mark.parametrize("mode", [*MODES, "nonsense", 1, None])
@pytest.mark.parametrize("x", [X, X.T, X[::2, ::-1], X.astype(">i2"), X.astype(ml_dtypes.bfloat16)])
@pytest.mark.parametrize(
    "indices",
    [
        *([3, -1, 3, 3], [0, 500, 1], [-500, 5], [[1, 2], [3, 4]]),
        *(np.arange(20)[::-3], np.array([1.5, 2]), np.array([True, False]), np.array([5], "u8"), []),
    ],
    ids=str,
)
def test_modes_of_put(mode: Any, x: Any, indices: Any) -> None:
    """As lists and as arrays. For duplicate indices, the last value stays."""
    assert_writes_alike("put", x, np.asarray(indices, None if len(indices) else int), [1, 2, 3], mode)
    assert_writes_alike("put", x, indices, np.arange(1, 4).astype(x.dtype), mode)


VALUES = (
    7,
    300,
    -1,
    2.5,
    1 + 2j,
    True,
    np.float32(3),
    "7",
    "x",
    [1, 2, 3],
    np.arange(8),
    np.ones(8, ">f4"),
    None,
)


@pytest.mark.parametrize("dtype", ["u1", "i4", "f4", "c8", "?", "S3", "M8[s]", "O"])
@pytest.mark.parametrize("value", VALUES, ids=str)
def test_values_are_converted(dtype: str, value: Any) -> None:
    """By NumPy's rules, with its warnings and errors."""
    x = np.zeros((6, 8), dtype)
    assert_writes_alike("put", x, np.arange(0, 48, 5), value)
    assert_writes_alike("put_along_axis", x, np.zeros((6, 8), int), value, 1)


@pytest.mark.parametrize("axis", [0, 1, -1, -2, 2, None, 1.0, "0", True])
def test_wrong_arguments_raise_numpys_errors(axis: Any) -> None:
    """Axes, ranks and dtypes that do not fit raise what NumPy raises."""
    for x in (X, X[0], X.tolist(), X[:, None], np.zeros((0, 3)), np.zeros(())):
        for indices in (
            FAR,
            FAR % 6,
            FAR.astype("u8"),
            FAR.astype(float),
            FAR > 0,
            FAR.tolist(),
            FAR[0],
            FAR[:2] % 6,
        ):
            assert_same(*(outcome(m.take_along_axis, x, indices, axis) for m in (tj, np)), strides=False)
            if isinstance(x, np.ndarray):
                assert_writes_alike("put_along_axis", x, indices, 5, axis)


def test_the_default_axis_is_the_last() -> None:
    order = np.argsort(X * 37 % 11)
    assert_same((tj.take_along_axis(X, order), []), (np.take_along_axis(X, order), []))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_narrow_indices_into_large_arrays(dtype: str) -> None:
    """Extents and slice distances exceed the range of the index dtype."""
    x = np.arange(100 * 1000.0).reshape(100, 1000)
    indices = (np.arange(3000).reshape(3, 1000) % 100).astype(dtype)
    indices -= np.array(100 * (np.dtype(dtype).kind == "i"), dtype)
    assert_same((tj.take_along_axis(x, indices, 0), []), (np.take_along_axis(x, indices, 0), []))
    assert_writes_alike("put_along_axis", x, indices, 5, 0)
    for mode in MODES:
        assert_writes_alike("put", x, indices, 5, mode)


@pytest.mark.parametrize("order", ["C", "F"])
def test_results_have_numpys_memory_order(order: Any) -> None:
    """It is the order of the indices."""
    indices = np.asarray(np.argsort(X, 0), order=order)
    assert_same(*(outcome(m.take_along_axis, X, indices, 0) for m in (tj, np)))


def test_nothing_is_written_on_an_error() -> None:
    """`put` checks all indices first, whereas NumPy writes up to the first wrong one."""
    x = np.zeros(48)
    with pytest.raises(IndexError, match="index 48 is out of bounds for axis 0 with size 48"):
        tj.put(x, np.array([1, 2, 48]), 1)
    with pytest.raises(IndexError, match="index -9 is out of bounds for axis 1 with size 8"):
        tj.put_along_axis(x.reshape(6, 8), FAR, 1, 1)
    assert not x.any()


@pytest.mark.full
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_do_not_change_results(axis: int, threads: int) -> None:
    """For equal indices in a slice the last one counts, whichever thread has it."""
    x = np.arange(5 * 6 * 7.0).reshape(5, 6, 7)
    indices = np.random.default_rng(axis).integers(-5, 5, (5, 6, 7))
    values = np.arange(5 * 6 * 7.0).reshape(5, 6, 7)
    assert (
        tj.take_along_axis(x, indices, axis, threads=threads) == np.take_along_axis(x, indices, axis)
    ).all()
    for put in (values, 7):
        ours, theirs = x.copy(), x.copy()
        tj.put_along_axis(ours, indices, put, axis, threads=threads)
        np.put_along_axis(theirs, indices, put, axis)
        assert (ours == theirs).all()
    ours, theirs = x.copy().T, x.copy().T
    tj.put(ours, indices, values, threads=threads)
    np.put(theirs, indices, values)
    assert (ours == theirs).all()
    with pytest.raises(IndexError):
        tj.take_along_axis(x, indices + 7, axis, threads=threads)


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2"])
def test_threads_are_checked(threads: Any) -> None:
    for name, arguments in (("put", (1,)), ("take_along_axis", (0,)), ("put_along_axis", (1, 0))):
        with pytest.raises((tj.KernelError, TypeError), match="threads"):
            getattr(tj, name)(np.zeros(9), np.arange(9), *arguments, threads=threads)


def test_read_only_arrays() -> None:
    x = X.copy()
    x.flags.writeable = False
    assert_same(*(outcome(m.put, x, np.arange(9), 1) for m in (tj, np)))
    assert_same(*(outcome(m.put_along_axis, x, FAR % 6, 1, 0) for m in (tj, np)))
    assert (x == X).all()
    assert (tj.take_along_axis(x, FAR % 8, 1) == np.take_along_axis(x, FAR % 8, 1)).all()


@pytest.mark.parametrize("mode", MODES)
def test_arguments_that_share_memory(mode: Any) -> None:
    """Values and indices are read before the first element is written."""
    found = []
    for m in (tj, np):
        x = np.arange(48)[::-1].copy()
        m.put(x, x, x[5:20], mode)
        m.put(x, x[3:9], x[::-1], mode)
        y = x.reshape(6, 8) % 6
        m.put_along_axis(y, y, y[::-1], 0)
        m.put_along_axis(y, y[:, ::-1], 3, 0)
        found.append((x.tolist(), y.tolist()))
    assert found[0] == found[1]


def test_an_array_that_overlaps_itself() -> None:
    found = []
    for m in (tj, np):
        x = np.arange(10)
        rows = np.lib.stride_tricks.as_strided(x, (4, 4), (16, 8))
        m.put(rows, np.arange(16), np.arange(16) * 3)
        m.put_along_axis(rows, np.tile(np.arange(4), (4, 1)), np.arange(16).reshape(4, 4), 1)
        found.append(x.tolist())
    assert found[0] == found[1]


def test_the_last_of_equal_indices_stays() -> None:
    for indices in (np.zeros((6, 8), int), np.zeros((6, 8), int).T.copy().T, np.zeros((12, 8), int)[::-2]):
        values = np.arange(48).reshape(6, 8)
        assert_writes_alike("put_along_axis", X, indices, values, 0)
        assert_writes_alike("put_along_axis", X, indices, values, 1)
        assert_writes_alike("put", X, indices, values)


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "c16", "V3"])
def test_nothing_outside_is_touched(dtype: str) -> None:
    """Between guard pages, at either end of a page, with the first and the last index on both sides."""
    count, size = 40, np.dtype(dtype).itemsize
    room = Guarded(size * count)
    ends = np.array([0, count - 1, -1, -count])
    for at_end in (True, False):
        x = room.place(size * count, at_end=at_end).view(dtype)
        x[...] = np.arange(count).astype("u1").astype(dtype) if dtype != "V3" else np.zeros(count, "V3")
        before = x.copy()
        assert tj.take_along_axis(x, ends, 0).tobytes() == before[ends].tobytes()
        assert tj.take_along_axis(x[::-1], ends, 0).tobytes() == before[::-1][ends].tobytes()
        tj.put(x, ends, before[[5, 6]])
        tj.put_along_axis(x[::-1], ends, before[[7, 8, 7, 8]], 0)
        before.put(ends, before[[5, 6]])
        np.put_along_axis(before[::-1], ends, before[[7, 8, 7, 8]], 0)
        for hostile in (count, -count - 1, 1 << 62, -(1 << 62)):
            bad = np.array([0, hostile])
            for name, more in (
                ("put", (x[:1],)),
                ("take_along_axis", (0,)),
                ("put_along_axis", (x[:1], 0)),
            ):
                with pytest.raises(IndexError):
                    getattr(tj, name)(x, bad, *more)
        assert x[1:-1].tobytes() == before[1:-1].tobytes()


def test_accelerated_routines_leave_small_arrays_and_other_types_to_numpy() -> None:
    class Own:
        def put(self, *args: Any, **kwargs: Any) -> str:
            return "its own"

    with tj.accelerate(smallest=40):
        assert np.put(Own(), [0], 1) == "its own"  # type: ignore[call-overload,func-returns-value]
        x = np.arange(100.0)
        np.put(x, np.arange(50), 0)
        np.put_along_axis(x, np.arange(50), 1, 0)
        assert (np.take_along_axis(x, np.arange(-50, 50), 0) == np.roll(x, 50)).all()
        masked = np.ma.masked_array(x, x > 70)
        np.put(masked, [0], 5)
        assert isinstance(np.take_along_axis(masked, np.arange(60), 0), np.ma.MaskedArray)
