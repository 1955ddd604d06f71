"""Kernels that transpose run in tiles if arrays are large: the same bytes, if the order is legal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.schedule.choose_tiles import TILED_CACHES, runs_in_tiles, transposed_tile
from codegen.schedule.machine import machine
from tests.tools.guard import Guarded
from tilejit.kernels import loop_kernels

ROWS, COLUMNS = transposed_tile((16, 16)) or (0, 0)


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


def row_wise(a, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j]


def sides(shape: tuple[int, int], dtype: Any = "f4") -> tuple[np.ndarray, np.ndarray]:
    a = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    return a, (np.arange(np.prod(shape)) % 7).astype(dtype).reshape(shape[::-1])


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_kernels, "runs_in_tiles", lambda size_bytes: True)


def test_only_squares_of_large_arrays_run_in_tiles() -> None:
    assert transposed_tile((64,)) is None
    assert transposed_tile((4, 32)) is None
    least = TILED_CACHES * machine().second_cache_bytes
    assert runs_in_tiles(least)
    assert not runs_in_tiles(least - 1)


def test_the_source_has_loops_over_tiles_around_blocks() -> None:
    kernel = tj.kernel(turned).specialize(*sides((300, 500)))
    plain, tiled = kernel.program.kernel.emitted.source, kernel.program.tiled_kernel.emitted.source
    assert "_tile" not in plain
    assert f"for i_tile in range(begin, end, {ROWS}):" in tiled
    assert f", {COLUMNS}):" in tiled
    assert "transposed_" in tiled
    assert f"tiles {ROWS}x{COLUMNS} where arrays are large" in kernel.report()
    assert kernel.program.sized_kernel({}) is kernel.program.kernel


@pytest.mark.parametrize("python", [row_wise, carried])
def test_other_kernels_have_no_tiles(python: Any) -> None:
    """Rows need no tiles. A dependence from one tile back to another forbids them."""
    kernel = tj.kernel(python).specialize(*sides((300, 300)))
    assert kernel.program.tiled_kernel is kernel.program.kernel
    assert "where arrays are large" not in kernel.report().replace("stores where arrays are large", "")


def test_requested_sizes_have_no_tiles() -> None:
    kernel = tj.kernel(virtual_vector_size=(16, 16))(turned).specialize(*sides((300, 300)))
    assert kernel.program.tiled_kernel is kernel.program.kernel


@pytest.mark.full
@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("python", [turned, combined, carried])
@pytest.mark.parametrize("tail", ["mask", "scalar", "shift"])
@pytest.mark.parametrize("dtype", ["u1", "f4", "f8"])
def test_bytes_are_those_of_the_function(python: Any, tail: str, dtype: str) -> None:
    kernel = tj.kernel(tail=tail)(python)
    for shape in ((1, 1), (16, 300), (127, 257), (300, 129)):
        (a, c), (b, d) = sides(shape, dtype), sides(shape, dtype)
        kernel(a, c)
        with np.errstate(over="ignore"):
            python(b, d)
        assert c.tobytes() == d.tobytes(), shape


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_nothing_outside_is_touched(threads: int) -> None:
    shape = 139, 277
    rooms = [Guarded(4 * 139 * 277) for _ in range(2)]
    kernel = tj.kernel(parallel=threads)(turned)
    for at_end in (False, True):
        placed = [room.place(4 * 139 * 277, at_end=at_end).view("f4") for room in rooms]
        a, c = placed[0].reshape(shape), placed[1].reshape(shape[::-1])
        a[...], c[...] = sides(shape)
        kernel(a, c)
        assert np.array_equal(c, a.T)
        assert all(room.untouched() for room in rooms)


@pytest.mark.usefixtures("always")
def test_overlapping_arrays_run_as_written() -> None:
    (a, _), (b, _) = sides((140, 140)), sides((140, 140))
    tj.kernel(turned)(a, a)
    turned(b, b)
    assert a.tobytes() == b.tobytes()


def test_large_arrays_run_in_tiles() -> None:
    n = int((TILED_CACHES * machine().second_cache_bytes / 8) ** 0.5) + 1
    a, c = sides((n, n))
    kernel = tj.kernel(turned)
    kernel(a, c)
    assert np.array_equal(c, a.T)
    bound = kernel.specialize(a, c).program
    assert bound.sized_kernel({"a": a, "c": c}) is bound.tiled_kernel
