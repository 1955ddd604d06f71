"""Kernels that transpose arrays larger than the caches, in tiles if the order is legal: the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.tools.guard import Guarded

SHAPE = 2111, 2087


def turned(a, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[j, i] = a[i, j]


def combined(a, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[j, i] = c[j, i] + 2 * a[i, j]


def carried(a, c):
    for i in range(40, a.shape[0]):
        for j in range(a.shape[1] - 40):
            c[j, i] = c[j + 40, i - 40] + a[i, j]


def by_rows(a: Any, c: Any) -> None:
    """`carried`, a row of `a` at a time."""
    for i in range(40, a.shape[0]):
        c[:-40, i] = c[40:, i - 40] + a[i, :-40]


BY_NUMPY: dict[Callable[..., None], Callable[[Any, Any], None]] = {
    turned: lambda a, c: np.copyto(c, a.T),
    combined: lambda a, c: np.add(c, 2 * a.T, out=c),
    carried: by_rows,
}


TAILS = ("mask", "scalar", "shift")


def sides(shape: tuple[int, int], dtype: Any = "f4") -> tuple[Any, Any]:
    return np.resize(np.arange(101, dtype=dtype), shape), np.resize(np.arange(7, dtype=dtype), shape[::-1])


@pytest.mark.full
@pytest.mark.parametrize(
    ("python", "dtype", "tail"),
    [
        (python, dtype, TAILS[(n + k) % 3])
        for n, python in enumerate(BY_NUMPY)
        for k, dtype in enumerate(("u1", "f4", "f8"))
    ],
    ids=lambda given: getattr(given, "__name__", given),
)
def test_bytes_are_those_of_the_function(python: Any, dtype: str, tail: str) -> None:
    shape = (5003, 4007) if dtype == "u1" else SHAPE
    a, c = sides(shape, dtype)
    b, d = a.copy(), c.copy()
    tj.kernel(tail=tail)(python)(a, c)
    BY_NUMPY[python](b, d)
    assert c.tobytes() == d.tobytes()


@pytest.mark.full
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_nothing_outside_is_touched(threads: int) -> None:
    size = 4 * SHAPE[0] * SHAPE[1]
    rooms = [Guarded(size) for _ in range(2)]
    kernel = tj.kernel(parallel=threads)(turned)
    for at_end in (False, True):
        placed = [room.place(size, at_end=at_end).view("f4") for room in rooms]
        a, c = placed[0].reshape(SHAPE), placed[1].reshape(SHAPE[::-1])
        a[...], c[...] = sides(SHAPE)
        kernel(a, c)
        assert np.array_equal(c, a.T)
        assert all(room.untouched() for room in rooms)


@pytest.mark.full
def test_overlapping_arrays_run_as_written() -> None:
    (a, _), (b, _) = sides((140, 140)), sides((140, 140))
    tj.kernel(turned)(a, a)
    turned(b, b)
    assert a.tobytes() == b.tobytes()


def test_transposed_blocks_are_not_streamed() -> None:
    """Blocks are stored through the cache, so no schedule says otherwise; large arrays run in tiles."""
    a, c = sides((64, 64))
    kernel = tj.kernel(turned)
    kernel(a, c)
    assert "streaming" not in kernel.schedule
    assert 'Tile("i", 128), Tile("j", 256) where arrays are large' in kernel.schedule
