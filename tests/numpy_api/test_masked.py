"""copyto with a mask: every element as NumPy leaves it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.tools.guard import Guarded

pytestmark = pytest.mark.usefixtures("kernels_for_all_sizes")

DTYPES = ("u1", "i2", "f4", "f8", "?", "M8[s]", "c8")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("way", ["plain", "rows", "transposed", "number", "sparse mask", "reversed mask"])
def test_masked_copies_agree_with_numpy(dtype: str, way: str) -> None:
    rng = np.random.default_rng(20261121)
    source: Any = rng.integers(0, 2 if dtype == "?" else 100, (37, 53)).astype(dtype)
    mask = rng.random((37, 53)) < 0.5
    if way == "rows":
        source = source[:1]
    elif way == "transposed":
        source = np.asfortranarray(source)
    elif way == "number":
        source = source[3, 4]
    elif way == "sparse mask":
        mask = mask[:, :1]
    elif way == "reversed mask":
        mask = mask[::-1, ::-1]
    ours, theirs = np.zeros((37, 53), dtype), np.zeros((37, 53), dtype)
    tj.copyto(ours, source, where=mask)
    np.copyto(theirs, source, where=mask)
    assert ours.tobytes() == theirs.tobytes()
    tj.copyto(ours, source, where=~mask)
    np.copyto(theirs, source, where=~mask)
    assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("count", [1, 15, 16, 17, 63, 64, 65, 200])
def test_nothing_outside_is_touched(count: int) -> None:
    """Between guard pages, at either end of the page."""
    room = Guarded(4 * count)
    for at_end in (True, False):
        dst = room.place(4 * count, at_end=at_end).view(np.float32)
        dst[...] = 0
        mask = np.arange(count) % 3 == 0
        tj.copyto(dst, np.arange(count, dtype=np.float32), "no", mask)
        assert (dst == np.where(mask, np.arange(count), 0)).all()
        assert room.untouched()


def test_copies_left_to_numpy() -> None:
    """Conversions, overlaps, odd masks and odd shapes."""
    x = np.arange(600.0).reshape(20, 30)
    mask = x % 2 == 0
    for target, where in (("f4", mask), (object, mask), ("f8", mask.astype(int))):
        ours, theirs = [_raised(f, np.zeros(x.shape, target), x, where) for f in (tj.copyto, np.copyto)]
        assert ours == theirs
    out, expected = x.copy(), x.copy()
    tj.copyto(out[1:], out[:-1], where=mask[1:])
    np.copyto(expected[1:], expected[:-1], where=mask[1:])
    assert (out == expected).all()
    for bad in (np.zeros((3, 3), bool), "x", [[True]]):
        ours, theirs = [_raised(f, x.copy(), x, bad) for f in (tj.copyto, np.copyto)]
        assert ours == theirs
    with pytest.raises(OverflowError):
        tj.copyto(np.zeros((20, 30), np.uint8), 300, where=mask)


def _raised(copy: Any, dst: Any, src: Any, where: Any) -> Any:
    try:
        copy(dst, src, where=where)
    except Exception as error:
        return type(error), str(error)
    return dst.tolist()
