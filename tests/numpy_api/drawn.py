"""Random NumPy arrays with every dtype and stride pattern, and the outcome of a routine on them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import hypothesis.extra.numpy as hnp
import ml_dtypes
import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

Array = NDArray[Any]

NARROW = tuple(np.dtype(getattr(ml_dtypes, name)) for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"))


def dtypes() -> st.SearchStrategy[np.dtype[Any]]:
    """Every kind of dtype in NumPy, both byte orders, records, and those of ml_dtypes."""
    return st.one_of(
        hnp.scalar_dtypes(),
        hnp.byte_string_dtypes(max_len=13),
        hnp.unicode_string_dtypes(max_len=5),
        hnp.array_dtypes(max_size=3, allow_subarrays=True),
        st.sampled_from(NARROW),
        st.just(np.dtype(object)),
    )


@st.composite
def arrays(draw: Any, dtype: np.dtype[Any] | None = None, least_rank: int = 0, most_rank: int = 4) -> Array:
    """An array of random bytes with axes in any order, steps, reversals, repeats and gaps."""
    kind = draw(dtypes()) if dtype is None else dtype
    shape = draw(hnp.array_shapes(min_dims=least_rank, max_dims=most_rank, min_side=0, max_side=9))
    steps = [draw(st.sampled_from((1, 1, 1, 2, 3, -1, -2, 0))) for _ in shape]
    order = draw(st.permutations(range(len(shape))))
    room = [1 if step == 0 else n * abs(step) for n, step in zip(shape, steps, strict=True)]
    seed = draw(st.integers(0, 2**32 - 1))
    base = content(kind, tuple(room[axis] for axis in order), seed)
    view = base.transpose(np.argsort(order)) if order else base
    for axis, (n, step) in enumerate(zip(shape, steps, strict=True)):
        index = (slice(None),) * axis
        if step == 0:
            view = np.repeat(view, 0, axis) if n == 0 else view
            target = (*view.shape[:axis], n, *view.shape[axis + 1 :])
            view = np.broadcast_to(view, target) if n else view
        else:
            view = view[(*index, slice(None, None, step))]
    return view


def content(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int) -> Array:
    """Random elements without NaNs, because NaNs compare unequal and may be signaling."""
    rng = np.random.default_rng(seed)
    count = int(np.prod(shape, dtype=np.int64))
    if dtype.hasobject:
        return np.array([object() if k % 3 else k for k in range(count)] or [], object).reshape(shape)
    if dtype.itemsize == 0:
        return np.zeros(shape, dtype)
    if dtype.kind == "U":
        return rng.integers(65, 91, count).astype(dtype).reshape(shape)
    if dtype.kind in "SVmM" or dtype.names or dtype.subdtype:
        return rng.integers(0, 64, count * dtype.itemsize, np.uint8).view(dtype).reshape(shape)
    return rng.integers(0, 100, count).astype(dtype).reshape(shape)


def outcome(routine: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, list[str]]:
    """The outcome of a call: the result, or the exception's type and text; and its warnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            result: Any = routine(*args, **kwargs)
        except Exception as error:
            result = type(error), str(error)
    return result, [str(w.message) for w in seen]


def assert_same(ours: Any, theirs: Any, *, strides: bool = True) -> None:
    """The same bits, dtype and shape, and the same strides if memory order is part of the answer."""
    assert type(ours[0]) is type(theirs[0])
    assert ours[1] == theirs[1]
    if not isinstance(theirs[0], np.ndarray):
        assert ours[0] == theirs[0]
        return
    mine, other = ours[0], theirs[0]
    assert mine.dtype == other.dtype
    assert mine.shape == other.shape
    if strides and other.size > 1:
        walked = [k for k, n in enumerate(other.shape) if n > 1]
        assert [mine.strides[k] for k in walked] == [other.strides[k] for k in walked]
    assert mine.flags.writeable == other.flags.writeable
    if mine.dtype.hasobject:
        assert all(a is b or a == b for a, b in zip(mine.flat, other.flat, strict=True))
    else:
        assert mine.tobytes() == other.tobytes()
