"""take and put with a size of super-vectors: every element as in NumPy, and no access out of bounds."""

from __future__ import annotations

import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from tests.numpy_api.drawn import content
from tests.tools.extent import in_pairs
from tests.tools.guard import Guarded

SIZES: list[Any] = [1, 7, 256, (4, 32), "2*hw"]
MODES: list[Any] = ["raise", "wrap", "clip"]
DTYPES = ["u1", "?", ">i2", "f4", "f8", "c16", "S3", "V12", "M8[s]", ml_dtypes.bfloat16]
RECORD = np.dtype([("a", "i4"), ("b", "f8")])
EACH = [
    pytest.param(*case, id=f"{case[2]}-{case[1]}-{np.dtype(case[0]).name}")
    for case in in_pairs([*DTYPES, RECORD], SIZES, MODES)
]
"""A dtype, a size and a mode."""
X = np.arange(60, dtype=np.float32).reshape(5, 12)


def indices_within(extent: int, shape: tuple[int, ...], mode: str, seed: int = 0) -> Any:
    """Indices of either sign, with repeats; those of "wrap" and "clip" are also outside."""
    far = extent if mode == "raise" else 3 * extent
    return np.random.default_rng(seed).integers(-far, far, shape)


@pytest.mark.parametrize(("dtype", "size", "mode"), EACH)
def test_take_along_every_axis(dtype: Any, size: Any, mode: Any) -> None:
    """Gathers along the last axis, and slices of elements along the others."""
    x = content(np.dtype(dtype), (3, 4, 19), 1)
    for axis in (None, 0, 1, -1):
        index = indices_within(x.size if axis is None else x.shape[axis], (2, 11), mode)
        ours = tj.take(x, index, axis, mode=mode, virtual_vector_size=size)
        theirs = np.take(x, index, axis, mode=mode)
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize(("dtype", "size", "mode"), EACH)
def test_put(dtype: Any, size: Any, mode: Any) -> None:
    """Values repeat, and of equal indices the last one counts."""
    for count in (1, 7, 100):
        x = content(np.dtype(dtype), (5, 12), 1)
        values = content(np.dtype(dtype), (count,), 2)
        index = indices_within(x.size, (10, 4), mode, count)
        ours, theirs = x.copy(), x.copy()
        tj.put(ours, index, values, mode, virtual_vector_size=size)
        np.put(theirs, index, values, mode)
        assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("view", [X.T, X[::-1, ::-2], X[:, 3:], np.broadcast_to(X[0], (5, 12))], ids=str)
def test_any_strides(view: Any) -> None:
    index = indices_within(len(view), (30,), "raise")
    assert (tj.take(view, index, 0, virtual_vector_size=8) == np.take(view, index, 0)).all()
    if 0 in view.strides:
        return
    ours, theirs = X.copy(), X.copy()
    mine, other = (
        np.ndarray(view.shape, X.dtype, x, view.ctypes.data - X.ctypes.data, view.strides)
        for x in (ours, theirs)
    )
    tj.put(mine, index, index, virtual_vector_size=8)
    np.put(other, index, index)
    assert (ours == theirs).all()


def test_results_go_where_out_says() -> None:
    """Also if `out` is strided, or shares memory with the array or the indices."""
    index = np.array([3, 0, 3])
    flat, wide = np.zeros((3, 12), np.float32), np.zeros((6, 24), np.float32)
    for out in (flat, np.zeros((12, 3), np.float32).T, wide[::2, ::2]):
        assert tj.take(X, index, 0, out, virtual_vector_size=16) is out
        assert (out == X[index]).all()
    x = X.copy()
    tj.take(x, [1, 0, 3, 2, 4], 0, x, virtual_vector_size=16)
    assert (x == X[[1, 0, 3, 2, 4]]).all()
    numbers = np.arange(5)[::-1].copy()
    tj.take(numbers, numbers, 0, numbers, virtual_vector_size=4)
    assert (numbers == np.arange(5)).all()
    tj.put(numbers, numbers, numbers[::-1], virtual_vector_size=4)
    assert (numbers == np.arange(5)[::-1]).all()


def test_scalars_and_nothing() -> None:
    one = tj.take(X, 7, virtual_vector_size=4)
    assert type(one) is np.float32
    assert one == 7
    assert tj.take(X, [], 1, virtual_vector_size=4).shape == (5, 0)
    assert tj.take(X[:0], [1], 1, virtual_vector_size=4).shape == (0, 1)
    x = X.copy()
    tj.put(x, [], 1, virtual_vector_size=4)
    tj.put(x, [1], [], virtual_vector_size=4)
    assert (x == X).all()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_do_not_change_results(threads: int) -> None:
    x = np.arange(40 * 50, dtype=np.int32).reshape(40, 50)
    index = indices_within(40, (300,), "raise")
    taken = tj.take(x, index, 0, threads=threads, virtual_vector_size=(2, 16))
    assert (taken == x[index]).all()
    ours, theirs = x.copy(), x.copy()
    tj.put(ours, index, index[::-1], threads=threads, virtual_vector_size=16)
    np.put(theirs, index, index[::-1])
    assert (ours == theirs).all()


@pytest.mark.parametrize("dtype", ["u1", "f4", "c16", "V3"])
def test_nothing_outside_is_touched(dtype: str) -> None:
    """Between guard pages, at either end of a page, for slices and for single elements."""
    count, width = 42, np.dtype(dtype).itemsize
    rooms = [Guarded(width * count) for _ in range(2)]
    ends = np.array([0, 6, -1, -7, 3, 3, 5])
    for at_end in (True, False):
        x, out = (room.place(width * count, at_end=at_end).view(dtype) for room in rooms)
        x[...] = content(np.dtype(dtype), (count,), 3)
        for shape in ((6, 7), (7, 6)):
            for size in (4, 64, (2, 16)):
                tj.take(x.reshape(shape), ends, shape.index(7), out.reshape(shape), virtual_vector_size=size)
                assert out.tobytes() == np.take(x.reshape(shape), ends, shape.index(7)).tobytes()
        tj.put(out, ends * 6, x[:7], virtual_vector_size=16)
        before = out.tobytes()
        for hostile in (count, -count - 1, 1 << 62, -(1 << 62)):
            with pytest.raises(IndexError, match=f"index {hostile} is out of bounds"):
                tj.take(x, [0, hostile], virtual_vector_size=16)
            with pytest.raises(IndexError, match=f"index {hostile} is out of bounds"):
                tj.put(out, [0, hostile], x[:1], virtual_vector_size=16)
        assert out.tobytes() == before
        assert all(room.untouched() for room in rooms)


def frozen() -> Any:
    x = X.copy()
    x.flags.writeable = False
    return x


TAKES: list[tuple[type[Exception], str, Any]] = [
    (tj.KernelError, "one to eight sizes", {"virtual_vector_size": (1,) * 9}),
    (tj.KernelError, "at least one element", {"virtual_vector_size": 0}),
    (TypeError, "expected a number", {"virtual_vector_size": 1.5}),
    (tj.KernelError, "threads", {"threads": 0}),
    (ValueError, "mode: expected one of raise, wrap, clip, got 'other'", {"mode": "other"}),
    (ValueError, "axis 2 is out of bounds", {"axis": 2}),
    (IndexError, "index 60 is out of bounds for axis 0 with size 60", {"indices": [0, 60]}),
    (IndexError, "index -13 is out of bounds for axis 1", {"indices": [-13], "axis": 1}),
    (IndexError, "no elements along the axis", {"a": X[:0], "axis": 0, "mode": "wrap"}),
    (TypeError, "indices: expected integers, got float64", {"indices": [0.5]}),
    (TypeError, "a: expected numbers .* got object", {"a": np.array([None])}),
    (TypeError, "a: expected a plain NumPy array, got MaskedArray", {"a": np.ma.array([1])}),
    (TypeError, "out: expected a plain NumPy array, got list", {"out": [0]}),
    (ValueError, r"out: expected float32\[1\], got float32\[2\]", {"out": np.zeros(2, "f4")}),
    (ValueError, r"out: expected float32\[1\], got float64\[1\]", {"out": np.zeros(1)}),
    (ValueError, "out is read-only", {"out": frozen()[0, :1]}),
]


@pytest.mark.parametrize(("error", "text", "given"), TAKES, ids=[text for _, text, _ in TAKES])
def test_what_take_refuses(error: type[Exception], text: str, given: Any) -> None:
    with pytest.raises(error, match=text):
        tj.take(**{"a": X, "indices": [0], "virtual_vector_size": 16} | given)


PUTS: list[tuple[type[Exception], str, Any]] = [
    (tj.KernelError, "at least one element", {"virtual_vector_size": (4, -1)}),
    (TypeError, "a: expected an array, got list", {"a": [1]}),
    (ValueError, "a is read-only", {"a": frozen()}),
    (ValueError, "elements of a share memory", {"a": np.broadcast_to(X.copy(), (2, 5, 12))}),
    (IndexError, "index 60 is out of bounds", {"ind": [0, 60]}),
    (ValueError, "mode: expected", {"mode": 1}),
    (OverflowError, "out of bounds", {"a": np.zeros(3, "u1"), "v": 300}),
]


@pytest.mark.parametrize(("error", "text", "given"), PUTS, ids=[text for _, text, _ in PUTS])
def test_what_put_refuses(error: type[Exception], text: str, given: Any) -> None:
    arguments = {"a": X.copy(), "ind": [0], "v": 1, "virtual_vector_size": 16} | given
    if not isinstance(arguments["a"], list) and 0 in arguments["a"].strides:
        arguments["a"].flags.writeable = True
    before = np.array(arguments["a"])
    with pytest.raises(error, match=text):
        tj.put(**arguments)
    assert (np.array(arguments["a"]) == before).all()


def test_no_warning_for_sizes_that_are_used() -> None:
    """A size that the loops cannot use is a KernelWarning; one lane requests no super-vector."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for size in (1, (1, 1), 16, (4, 64)):
            tj.take(X, [1, 2], 0, virtual_vector_size=size)
            tj.put(X.copy(), [1, 2], 0, virtual_vector_size=size)
