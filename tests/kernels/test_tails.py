"""Tails of kernels at extents around those of super-vectors: the bytes of the function, nothing run twice."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.ir.families import MASKS
from tests.tools.extent import own_level
from tests.tools.guard import Guarded


def line(c: Any, a: Any) -> None:
    for i in range(a.shape[0]):
        c[i] = a[i] * 2


def every_third(c: Any, a: Any) -> None:
    for i in range(1, a.shape[0], 3):
        c[i] = a[i] * 2


def backwards(c: Any, a: Any) -> None:
    for i in range(a.shape[0] - 1, 0, -2):
        c[i] = a[i] * 2


def rows(c: Any, a: Any) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] * 2


def raised(c: Any, a: Any) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] + 1


def last_row(c: Any, a: Any) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[0, j] = a[i, j] * 2


def boxes(c: Any, a: Any) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            for k in range(a.shape[2]):
                c[i, j, k] = a[i, j, k] * 2


def grown(c: Any, a: Any) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = c[i, j] * 3 + a[i, j]


def windows(c: Any, a: Any) -> None:
    for i in range(0, a.shape[0] - 8, 8):
        for j in range(i, i + 8):
            c[j] = a[j] * 2


def bounded_windows(c: Any, a: Any) -> None:
    for i in range(0, a.shape[0] // 2, 8):
        for j in range(i, min(i + 8, a.shape[0])):
            c[j] = a[j] * 2


def edges(size: int) -> tuple[int, ...]:
    return tuple(sorted({0, 1, size - 1, size, size + 1, 2 * size - 1, 2 * size + 3}))


ONE = [(f, size) for f in (line, every_third, backwards) for size in ("auto", 5, 8, 33, 100)]
ONE += [(f, size) for f in (windows, bounded_windows) for size in ("auto", 8)]
MORE = [(rows, "auto"), (rows, 40), (rows, (3, 5)), (rows, (8, 8)), (rows, (4, 100)), (last_row, (4, 40))]
MORE += [(boxes, (8, 8, 8)), (boxes, (2, 3, 32)), (boxes, (1, 4, 12)), (grown, (8, 8)), (grown, (4, 40))]


@pytest.mark.parametrize("tail", ["shift", "clamp", "mask", "scalar"])
@pytest.mark.parametrize(("function", "size"), ONE + MORE, ids=lambda x: getattr(x, "__name__", str(x)))
def test_between_guard_pages(function: Any, size: Any, tail: str) -> None:
    sizes = size if isinstance(size, tuple) else (32 if size == "auto" else size,)
    rank = 1 if (function, size) in ONE else 3 if function is boxes else 2
    dtype = np.dtype("f4" if sizes[-1] % 2 else "u1")
    kernel = tj.kernel(virtual_vector_size=size, tail=tail, parallel=2 if rank != 2 else None)(function)  # type: ignore[call-overload]
    sides = [(1, 5)] * (rank - 1) if size == "auto" else [(1, sizes[0] + 1)] * (rank - 1)
    rng, rooms = np.random.default_rng(3), [Guarded(4 * 210 * 10 * 10) for _ in range(2)]
    for n, shape in enumerate(product(*sides, edges(3 * sizes[-1] if rank == 1 else sizes[-1]))):
        a, before = (rng.integers(0, 20, shape).astype(dtype) for _ in range(2))
        given = []
        for room, x in zip(rooms, (before, a), strict=True):
            given.append(room.place(x.nbytes, at_end=n % 2 == 0).view(dtype).reshape(shape))
            given[-1][...] = x
        kernel(*given)
        function(before, a)
        assert np.array_equal(given[0], before), shape
        assert all(room.untouched() for room in rooms), shape


@pytest.mark.parametrize("tail", ["shift", "clamp"])
@pytest.mark.parametrize("size", ["auto", 8, 100, (8, 8), (4, 40)], ids=str)
def test_results_in_place_of_inputs(size: Any, tail: str) -> None:
    """Whether arrays are the same is known in each call: iterations then run once."""
    function = rows if isinstance(size, tuple) else line
    kernel = tj.kernel(virtual_vector_size=size, tail=tail)(function)  # type: ignore[call-overload]
    for extent in (7, 9, 31, 33, 101):
        shape = (9, extent) if function is rows else (extent,)
        x = np.arange(np.prod(shape), dtype="f4").reshape(shape)
        expected = x * 2
        kernel(np.zeros_like(x), x)
        kernel(x, x)
        assert np.array_equal(x, expected), extent


@pytest.mark.parametrize("tail", ["shift", "clamp"])
@pytest.mark.parametrize("by", [-9, -1, 1, 9])
def test_results_that_overlap_inputs(by: int, tail: str) -> None:
    kernel = tj.kernel(virtual_vector_size=(4, 40), tail=tail)(raised)  # type: ignore[call-overload]
    got, expected = (np.arange(5 * 101 + 18, dtype="f4") for _ in range(2))
    for memory, run in ((got, kernel), (expected, raised)):
        c, a = (memory[k : k + 505].reshape(5, 101) for k in (9 + by, 9))
        run(c, a)
    assert np.array_equal(got, expected)


def test_schedules_have_every_tail_that_is_legal() -> None:
    x = np.ones((20, 100), "f4")
    text = 'Tile("j", 40, level="strip"), Vectorize(j=40), Tail("j", "{}")'
    sources = {
        how: tj.kernel(rows, schedule=text.format(how)).specialize(x, x.copy()).source
        for how in ("shift", "clamp", "mask", "scalar")
    }
    assert len({source.partition('"""')[2] for source in sources.values()}) == 4
    assert re.search(r"(j_strip\w*) = min\(\w+_block, \w+ - 40\)", sources["clamp"])
    for how in ("shift", "clamp"):
        with pytest.raises(tj.ScheduleError, match="iterations of j may not run twice"):
            tj.kernel(grown, schedule=text.format(how)).specialize(x, x.copy())


@pytest.mark.parametrize("function", [boxes, grown])
@pytest.mark.parametrize("lanes", [8, 32, 100])
def test_a_row_of_a_full_strip_is_nothing_but_super_vectors(function: Any, lanes: int) -> None:
    x = np.ones((9, 9, 9) if function is boxes else (9, 9), "f4")
    size = (8,) * (x.ndim - 1) + (lanes,)
    kernel = tj.kernel(virtual_vector_size=size)(function).specialize(x, x.copy())
    strip, some_left, _ = kernel.source.partition("_whole < ")
    row = strip[strip.index("_row = ") :].rpartition("if ")[0]
    assert some_left
    assert "store_f32x" in row
    once = function is grown and lanes == 100  # what repeats would add twice
    assert ("_first" in row) == (once and own_level() in MASKS)
    assert ("_at(" in row) == (once and own_level() not in MASKS)
    assert not re.search(r"min\(|max\(|if ", row)
