"""Nests cut into tiles: the same meaning, full super-vectors in full tiles, and nests that are not cut."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.ir.index import Affine, Index, index_symbol
from codegen.ir.nodes import Function, Statement
from codegen.ir.visit import loops_of
from codegen.passes.tile import tile
from codegen.pipeline.loops import in_tiles, schedule_function, vectorize_function
from codegen.schedule.check_loops import order_problem
from codegen.schedule.choose_tiles import choose_tiles
from codegen.schedule.directives import Reorder, Tile
from codegen.schedule.loop_groups import orders_without_tiles
from codegen.schedule.loop_schedule import LoopSchedule
from codegen.support.errors import ScheduleError
from tests.codegen.ir.nests import function, i, j, k, load, loop, m, n, op, over_m, over_n, plus, store
from tests.codegen.passes.meaning import same_meaning
from tests.codegen.passes.table import ROWS, Row
from tests.conftest import SEED
from tests.kernels.test_kernels import arguments, same, scaled
from tests.tools.extent import examples
from tests.tools.loop_schedules import nests_of, random_schedule

MEANT = [row for row in ROWS if "unknown operation" not in row.name and "annotated" not in row.name]


@pytest.mark.full
@pytest.mark.parametrize("row", MEANT, ids=lambda row: row.name)
def test_same_meaning(row: Row) -> None:
    """Super-vectors in tiles, and loops in tiles of 5."""
    numbers = {"n": 37, "m": 21}
    made = vectorize_function(row.kernel, row.sizes, **row.options)  # type: ignore[arg-type]
    tiles = choose_tiles(row.kernel, made.function, made.directives)
    same_meaning(row.kernel, tile(made.function, LoopSchedule(tiles)), numbers)
    indices = {loop.node.index for root in loops_of(row.kernel.body) for loop in root.all()}
    tiles = tuple(Tile(index, 5) for index in sorted(indices))
    if not order_problem(row.kernel, tiles):
        same_meaning(row.kernel, tile(row.kernel, LoopSchedule(tiles)), numbers)


def copied(di: int, dj: int) -> Statement:
    """for i, j: A[i, j] = A[i + di, j + dj]"""
    inner = loop("j", 2, m, store("A", (i, j), load("A", plus(i, di), plus(j, dj))))
    return loop("i", 2, n, inner)


TILES = (Tile("i", 8), Tile("j", 8))
BY_COLUMNS = (Reorder(("j", "i")),)


@pytest.mark.parametrize(
    ("body", "tiled", "by_columns"),
    [
        (copied(-1, 1), False, False),
        (copied(1, -1), False, False),
        (copied(-1, -1), True, True),
        (copied(0, -1), True, True),
        (copied(1, 1), True, True),
        (over_n("i", over_m("j", store("C", (j,), load("A", i, j)))), True, True),
        (over_n("i", over_n("j", store("A", (i, j), load("A", j, i)))), False, False),
        (over_n("i", over_m("j", store("C", (i, j), load("A", j, i)))), True, True),
    ],
    ids=["up right", "down left", "up left", "left", "down right", "columns", "in place", "apart"],
)
def test_orders_that_dependences_forbid(body: Statement, tiled: bool, by_columns: bool) -> None:
    kernel = function(body)
    assert (not order_problem(kernel, TILES)) == tiled == bool(choose_tiles(kernel, kernel, ()))
    assert (not order_problem(kernel, BY_COLUMNS)) == by_columns
    for legal, directives in ((tiled, TILES), (by_columns, BY_COLUMNS)):
        if legal:
            ordered = tile(kernel, LoopSchedule(orders_without_tiles(directives)))
            same_meaning(kernel, tile(ordered, LoopSchedule(directives)), {"n": 37, "m": 21})


@pytest.mark.parametrize("order", [("i", "j_tile", "j"), ("i_tile", "i", "j")])
def test_tiles_of_one_loop_keep_the_order_of_iterations(order: tuple[str, ...]) -> None:
    """They are legal whatever the dependences are, unless a loop over tiles moves outward."""
    kernel = function(copied(-1, 1))
    tiles = [Tile(name.removesuffix("_tile"), 8) for name in order if name.endswith("_tile")]
    assert not order_problem(kernel, [*tiles, Reorder(order)])
    same_meaning(kernel, tile(kernel, LoopSchedule((*tiles, Reorder(order)))), {"n": 37, "m": 21})
    assert order_problem(kernel, [Tile("j", 8), Reorder(("j_tile", "i", "j"))])


@pytest.mark.parametrize("order", ["", ', Reorder("i", "j_tile", "k_tile", "j", "k")'])
def test_lanes_of_an_outer_loop_run_inside_the_loops_in_tiles(order: str) -> None:
    """The dependence goes forward along i, j and back along k: i carries it unless it runs as lanes."""
    body = store("G", (i, j, k), load("G", plus(i, -1), plus(j, -1), plus(k, 1)))
    kernel = function(loop("i", 1, 9, loop("j", 1, 9, loop("k", 1, 9, body))))
    tiles = f'Tile("j", 4), Tile("k", 4){order}'
    for text in (tiles, "Vectorize(i=8)"):
        made = schedule_function(kernel, text)
        same_meaning(kernel, in_tiles(made.function, made.directives), {}, extents={3: (11, 11, 11)})
    with pytest.raises(ScheduleError, match="would change the result"):
        schedule_function(kernel, f"{tiles}, Vectorize(i=8)")


def stencil(pick: Callable[[int], int]) -> Function:
    """for i: for j: for k: A[i + …, j + …, k + …] = A[…] + A[…], with steps of both signs."""
    indices = ("i", "j", "k")[: 2 + pick(2)]

    def element() -> tuple[Index, ...]:
        places = (plus(index_symbol(name), pick(3) - 1) for name in indices)
        return (*places, *[index_symbol(indices[0])] * (3 - len(indices)))

    body: Statement = store("G", element(), op("sub", *(load("G", *element(), dtype="i32") for _ in "ab")))
    for name in reversed(indices):
        ends = (1, 7) if pick(4) else (6, 0)
        body = loop(name, *map(Affine, ends), body, step=1 if ends[0] < ends[1] else -1)
    return function(body)


@pytest.mark.parametrize("seed", range(SEED, SEED + 4))
def test_accepted_schedules_of_stencils_keep_the_meaning(seed: int) -> None:
    """An order that reverses a dependence would leave other numbers."""
    random, accepted = Random(seed), 0
    for _ in range(examples(60, full=600)):
        kernel = stencil(random.randrange)
        text = random_schedule(nests_of(kernel), random.randrange)
        try:
            made = schedule_function(kernel, text)
        except ScheduleError:
            continue
        accepted += 1
        same_meaning(kernel, in_tiles(made.function, made.directives), {}, extents={3: (9, 9, 9)})
    assert accepted > 5


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
    for x in range(1, a.shape[0]):
        b[x] = a[x] + a[x - 1]


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
