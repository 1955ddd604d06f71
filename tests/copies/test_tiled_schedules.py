"""Schedules as text with tiles and orders of copies that are not transposes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from codegen.schedule.machine import described, machine
from tests.tools.extent import few_by_default
from tests.tools.guard import Guarded
from tests.tools.schedules import tiled

RUN = 'Vectorize(x=64), Tail("x", "shift", sizes=("rest",))'
SHAPES = ((3000,), (70, 33), (9, 200), (2, 700), (700, 3), (4, 5, 60), (3, 9, 5, 7), (129, 65), (8, 16, 24))
CASTS: tuple[tuple[Any, Any], ...] = (
    *(("f4", "f8"), ("f8", "f4"), ("u1", "f4"), ("i4", "i8")),
    *(("f4", ml_dtypes.bfloat16), (ml_dtypes.bfloat16, "f4")),
)
PACKED: tuple[tuple[Any, str], ...] = (
    *(("f4", "f32[70,300]{1,0:T(8,128)}"), ("u1", "u8[70,300]{1,0:T(8,128)}")),
    *((ml_dtypes.bfloat16, "bf16[70,300]{1,0:T(8,128)(2,1)}"), ("u2", "u16[70,300]{0,1:T(4,8)}")),
    *((ml_dtypes.bfloat16, "bf16[70,300]{1,0:T(32,16)(2,1)}"), ("i1", "s8[70,300]{1,0:T(64,16)(4,1)}")),
    *((ml_dtypes.int4, "s4[70,300]{1,0:T(8,128)E(4)}"), ("?", "pred[70,300]{1,0:T(32,128)(32,1)E(1)}")),
)


def rows(columns: int) -> tuple[Any, Any]:
    """Result and source of a copy of 7 rows, which are apart from each other."""
    x = np.arange(7 * 5001).astype(np.uint8).reshape(7, 5001)[:, :columns]
    return np.zeros((7, 6000), np.uint8)[:, :columns], x


def test_the_source_shows_tiles_in_their_order() -> None:
    z, x = rows(777)
    schedule = f'Tile("x", 256), Tile("i", 2), Reorder("x_tile", "i_tile", "i", "x"), {RUN}'
    source = tj.explain(z, x, schedule=schedule).source
    lines = [
        "for x_tile in range(x_tile_lower, x_tile_whole, 256):",
        "for i_tile in range(0, i_extent, 2):",
        "for i in range(i_tile, min(i_tile + 2, i_extent)):",
        "dst_i = dst + i * i_dst",
        "for x in range(x_tile, x_tile + 256, 64):",
    ]
    places = [source.index(line) for line in lines]
    assert places == sorted(places)
    tj.copyto(z, x, schedule=schedule)
    np.testing.assert_array_equal(z, x)


@pytest.mark.parametrize("tiles", ['Tile("x", 256)', 'Tile("x", 256), Tile("i", 4)', 'Tile("x", 64)'])
@pytest.mark.parametrize("columns", [63, 64, 300, 4999])
@pytest.mark.parametrize("loop", ["x_tile", "i"])
def test_threads_share_tiles_of_a_run(tiles: str, columns: int, loop: str) -> None:
    shared = "i_tile" if loop == "i" and '"i"' in tiles else loop
    for stream in ("", ', Stream("full"), Stream("headed", least=128)'):
        for threads in (1, 3):
            z, x = rows(columns)
            schedule = f'{tiles}, {RUN}{stream}, Parallel("{shared}")'
            tj.copyto(z, x, schedule=schedule, threads=threads)
            np.testing.assert_array_equal(z, x)


@pytest.mark.parametrize("order", ["kji", "jki", "ikj"])
def test_elements_move_in_any_order(order: str) -> None:
    x = np.arange(30 * 40 * 50, dtype=np.uint64).reshape(30, 40, 50)[::2, ::4, ::2]
    z = np.zeros(x.shape, np.uint64)
    loops = [{"k": "x"}.get(axis, axis) for axis in order]
    own = tj.explain(z, x).directives
    assert own == 'Parallel("i")', own
    explained = tj.explain(z, x, schedule=f"Reorder({', '.join(map(repr, loops))})")
    indents = [explained.source.index(f"for {axis} in range(") for axis in loops]
    assert indents == sorted(indents)
    tj.copyto(z, x, schedule=explained.directives)
    np.testing.assert_array_equal(z, x)


@pytest.mark.parametrize(
    ("schedule", "under", "message"),
    [
        (f'Tile("x", 100), {RUN}', 'Tile("x", 100)', "expected a multiple of 64 lanes"),
        (f'Tile("y", 64), {RUN}', 'Tile("y"', "expected a loop over i, x, got y"),
        (f'Reorder("x", "i"), {RUN}', "Reorder", "expected x last"),
        (f'Reorder("i"), {RUN}', "Reorder", "expected an order of the perfectly nested loops i, x"),
        (f'Tile("x", 64), Reorder("i", "x", "x_tile"), {RUN}', "Reorder", "expected x_tile, x in this order"),
        (f'Tile("i", 2), {RUN}, Parallel("i")', "Parallel", "expected threads to share i_tile, got"),
        (f'{RUN}, Tile("x", 64), CopyBlock(2048)', "CopyBlock", "needs a run of bytes without tiles"),
        (f"{RUN}, Stage()", "Stage", "Stage() needs blocks of rows and columns"),
        ("CopyBlock(2048)", "", "this copy needs lanes such as Vectorize(x=64)"),
        (f"Vectorize(i=2), {RUN}", "Vectorize(i=2)", "this copy needs lanes such as Vectorize(x=64)"),
    ],
)
def test_tiles_and_orders_that_passes_cannot_obey_are_refused(
    schedule: str, under: str, message: str
) -> None:
    z, x = rows(777)
    with pytest.raises(tj.ScheduleError) as caught:
        tj.copyto(z, x, schedule=schedule)
    problem, line, caret, _ = str(caught.value).splitlines()
    assert message in problem
    assert line[caret.index("^") :].startswith(under)
    assert not z.any()


PAIRS = 'Vectorize(column=32, row=2), Tail("column", "shift", sizes=(16, 8, 1))'
BLOCKS = 'Tile("row", 64), Vectorize(row=16, column=16)'


@pytest.mark.parametrize(
    ("dims", "order", "schedule", "message"),
    [
        ((2, 1000), (1, 0), f'Tile("row", 2), {PAIRS}', "expected all iterations of row as lanes, got"),
        ((2, 1000), (1, 0), f'Reorder("row", "column"), {PAIRS}', "expected column and row last, got"),
        ((5, 90, 80), (0, 2, 1), f'Tile("i", 2), {BLOCKS}', "expected tiles of the loops of a block, got"),
        (
            (5, 90, 80),
            (0, 2, 1),
            f'Reorder("row_tile", "row", "i", "column"), {BLOCKS}',
            "expected row and column last, got",
        ),
        ((300, 5, 3), (0, 2, 1), 'own, Tile("step", 2)', "step"),
    ],
)
def test_other_loops_have_no_tiles_or_order(
    dims: tuple[int, ...], order: tuple[int, ...], schedule: str, message: str
) -> None:
    x = np.ones(dims, np.uint16).transpose(order)
    z = np.zeros(x.shape, np.uint16)
    with pytest.raises(tj.ScheduleError) as caught:
        tj.copyto(z, x, schedule=schedule.replace("own", tj.explain(z, x).directives))
    assert message in str(caught.value)
    assert "^" in str(caught.value)
    assert not z.any()


@pytest.mark.parametrize("seed", few_by_default(range(20), 2))
def test_random_tiles_and_orders_copy_the_same_bytes(seed: int) -> None:
    random, guards = Random(seed), (Guarded(1 << 20), Guarded(1 << 20))
    copied, refused = 0, list[str]()
    for _ in range(20):
        kind = out = np.dtype(random.choice(["u1", "u2", "u4", "u8", "c16"]))
        if random.random() < 0.3:
            kind, out = map(np.dtype, random.choice(CASTS))
        dims = random.choice(SHAPES)
        steps = [random.choice([1, 1, 1, 2, -1]) for _ in dims]
        room = [n * abs(step) for n, step in zip(dims, steps, strict=True)]
        count = int(np.prod(room))
        data = guards[0].place(count * kind.itemsize, at_end=random.random() < 0.5)
        data[:] = np.frombuffer((np.arange(count) % 251).astype(kind).tobytes(), np.uint8)
        cut = tuple(slice(None, None, step) for step in steps)
        src = data.view(kind).reshape(room)[cut].transpose(random.sample(range(len(dims)), len(dims)))
        wide = (*src.shape[:-1], src.shape[-1] + random.choice([0, 3]))
        raw = guards[1].place(int(np.prod(wide)) * out.itemsize, at_end=random.random() < 0.5)
        raw[:] = 0
        dst = raw.view(out).reshape(wide)[..., : src.shape[-1]]
        nest = max(tj.explain(dst, src, casting="unsafe").steps, key=lambda x: x.box.size_bytes).nest
        text = tiled(str(nest), random)
        if nest.transposes or not text:
            continue
        try:
            tj.copyto(dst, src, schedule=text, casting="unsafe", threads=random.choice([1, 2]))
        except tj.ScheduleError as error:
            refused.append(str(error))
            assert not any(raw.tobytes()), text
            continue
        copied += 1
        assert dst.tobytes() == src.astype(out).tobytes(), (kind, out, src.strides, dst.strides, text)
        assert guards[1].untouched(), (kind, out, src.strides, dst.strides, text)
    assert copied > len(refused)
    assert all("^" in problem for problem in refused)


@pytest.mark.parametrize(("kind", "text"), PACKED)
@pytest.mark.parametrize("seed", few_by_default(range(10), 1))
def test_random_tiles_and_orders_pack_the_same_bytes(kind: Any, text: str, seed: int) -> None:
    random, copied, x = Random(seed), 0, (np.arange(70 * 300) % 2).astype(kind).reshape(70, 300)
    nest = max(tj.explain(text, x).steps, key=lambda step: step.box.size_bytes).nest
    packed = tj.pack(x, text).buffer.tobytes()
    for schedule in (tiled(str(nest), random) for _ in range(6)):
        with suppress(tj.ScheduleError):
            assert tj.pack(x, text, schedule=schedule).buffer.tobytes() == packed, schedule
            copied += 1
    assert copied or nest.transposes


@pytest.mark.parametrize(("size", "staged"), [(64, False), (3000, True), ((2, 3000), True), (6000, True)])
def test_packed_rows_are_staged_unless_they_are_in_strips(size: Any, staged: bool) -> None:
    """In both cases, the schedule of the strips is accepted as text."""
    x = np.arange(6 * 3000, dtype=np.uint16).reshape(6, 1000, 3)
    for given in ({"virtual_vector_size": size}, {}):
        z = np.zeros((6, 3, 1001), np.uint16)[..., :1000].transpose(0, 2, 1)
        with described(replace(machine(), stream_bytes=0)):
            text = tj.explain(z, x, virtual_vector_size=size).directives
            tj.copyto(z, x, **given or {"schedule": text})
        assert ("Stage()" in text) == staged
        np.testing.assert_array_equal(z, x)
