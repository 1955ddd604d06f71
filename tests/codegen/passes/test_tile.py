"""Nests cut into tiles: the same meaning, full super-vectors in full tiles, and nests that are not cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.analysis.dependence import goes_back
from codegen.ir.nodes import Statement
from codegen.ir.visit import accesses_of, loops_of
from codegen.pipeline.loops import tile_function, vectorize_function
from tests.codegen.ir.nests import function, i, j, load, loop, m, n, over_m, over_n, plus, store
from tests.codegen.passes.meaning import same_meaning
from tests.codegen.passes.table import ROWS, Row
from tests.kernels.test_kernels import arguments, same, scaled

MEANT = [row for row in ROWS if "unknown operation" not in row.name and "annotated" not in row.name]


@pytest.mark.full
@pytest.mark.parametrize("row", MEANT, ids=lambda row: row.name)
def test_same_meaning(row: Row) -> None:
    """In tiles, and in super-vectors inside tiles."""
    loops = [each for root in loops_of(row.kernel.body) for each in root.all()]
    cut = tile_function(row.kernel, dict.fromkeys(range(len(loops)), 8)).function
    numbers = {"n": 37, "m": 21}
    same_meaning(row.kernel, cut, numbers)
    if cut != row.kernel:
        same_meaning(row.kernel, vectorize_function(cut, row.sizes, **row.options).function, numbers)  # type: ignore


def copied(di: int, dj: int) -> Statement:
    """for i, j: A[i, j] = A[i + di, j + dj]"""
    inner = loop("j", 2, m, store("A", (i, j), load("A", plus(i, di), plus(j, dj))))
    return loop("i", 2, n, inner)


@pytest.mark.parametrize(
    ("body", "back"),
    [
        (copied(-1, 1), True),
        (copied(1, -1), True),
        (copied(-1, -1), False),
        (copied(0, -1), False),
        (copied(1, 1), False),
        (over_n("i", over_m("j", store("C", (j,), load("A", i, j)))), False),
        (over_n("i", over_n("j", store("A", (i, j), load("A", j, i)))), True),
        (over_n("i", over_m("j", store("C", (i, j), load("A", j, i)))), False),
    ],
    ids=["up right", "down left", "up left", "left", "down right", "columns", "in place", "apart"],
)
def test_dependences_that_lead_back_to_an_earlier_tile(body: Statement, back: bool) -> None:
    kernel = function(body)
    (root,) = loops_of(kernel.body)
    assert goes_back(accesses_of(kernel.body, (root,)), list(root.all())) == back
    assert bool(tile_function(kernel, {}).tiles) != back


@pytest.mark.full
@pytest.mark.parametrize("tail", ["mask", "scalar", "shift"])
def test_kernels_run_in_tiles(tail: str) -> None:
    kernel = tj.kernel(virtual_vector_size=16, vectorize_at="after_tile", tail=tail)(scaled)
    for rows, columns in ((5, 1), (32, 64), (70, 83)):
        same(kernel, scaled, arguments(np.float32, rows, columns))
    assert "affine.for %j_tile" in kernel.vectorized
    assert "vector<16xf32>" in kernel.vectorized


def test_kernels_vectorized_before_tiling_have_no_tiles() -> None:
    kernel = tj.kernel(virtual_vector_size=16)(scaled).specialize(*arguments(np.float32))
    assert "tile" not in kernel.vectorized + kernel.schedule + kernel.source


def running(a: Any, b: Any) -> None:
    for k in range(1, a.shape[0]):
        b[k] = a[k] + a[k - 1]


def test_one_loop_has_no_tiles() -> None:
    a = np.arange(70.0)
    kernel = tj.kernel(virtual_vector_size=16, vectorize_at="after_tile")(running)
    same(kernel, running, [a, a * 2])


def test_tiles_of_divisible_extents() -> None:
    kernel = tj.kernel(virtual_vector_size=16, vectorize_at="after_tile", tail="assume_divisible")(scaled)
    for columns in (16, 32, 80):
        same(kernel, scaled, arguments(np.float32, 5, columns))
    with pytest.raises(tj.KernelError, match="runs 83 times, which is not a multiple of 16"):
        kernel(*arguments(np.float32, 5, 83))
