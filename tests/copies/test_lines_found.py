"""Copies past the cache into memory that begins anywhere in a line."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import tilejit as tj
from codegen.ir.lines import LINE_BYTES
from codegen.schedule import choose_transpose, transpose_box, transpose_loops
from codegen.schedule.thresholds import Thresholds
from tests.tools.guard import Guarded
from tests.tools.oracle import random_elements
from tilejit.programs import compiled
from tilejit.programs.tuning import AUTO, VectorSize

WIDTHS = (1, 2, 4, 8)


@pytest.fixture(autouse=True)
def _small_copies_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "machine_thresholds", lambda _: Thresholds(stream_bytes=0))
    monkeypatch.setattr(choose_transpose, "HEADED_LINES", 1)
    monkeypatch.setattr(choose_transpose, "_is_better_staged", lambda *_: False)
    monkeypatch.setattr(transpose_box, "SPECIAL_BYTES", 0)
    tj.clear_caches()


def source(width: int, lines: int, columns: int) -> NDArray[np.unsignedinteger]:
    """An array whose transpose has result rows of so many lines."""
    rows, rng = lines * LINE_BYTES // width, np.random.default_rng(width + lines)
    return random_elements(rng, np.dtype(f"u{width}"), rows * columns).reshape(rows, columns)


def check(x: NDArray[np.unsignedinteger], gaps: range, threads: int = 1, size: VectorSize = AUTO) -> None:
    """Copy the transpose between guard pages, with so many bytes from either of them to the destination."""
    want = np.ascontiguousarray(x.T)
    arena = Guarded(want.nbytes + LINE_BYTES)
    for gap in gaps:
        for at_end in (False, True):
            out = arena.place(want.nbytes, at_end=at_end, gap=gap).view(want.dtype).reshape(want.shape)
            tj.plan_copy(out, x.T, threads=threads, virtual_vector_size=size)(out, x.T)
            assert np.array_equal(out, want), gap
            assert arena.untouched()


@pytest.mark.full
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("lines", "columns"), [(2, 64), (3, 70), (7, 131)])
def test_memory_may_begin_anywhere(width: int, lines: int, columns: int, threads: int) -> None:
    """At every element, and where no element begins a line."""
    x = source(width, lines, columns)
    assert "head = " in tj.explain(np.empty(x.T.shape, x.dtype), x.T).source
    check(x, range(0, LINE_BYTES, width), threads=threads)
    check(x, range(1, width), threads=threads)


@pytest.mark.full
@pytest.mark.parametrize("order", ["columns", "rows", "diagonals"])
@pytest.mark.parametrize("width", WIDTHS)
def test_blocks_run_in_any_order(width: int, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transpose_loops, "_block_order", lambda *_: order)
    check(source(width, 3, 150), range(0, LINE_BYTES, 16))


@pytest.mark.full
@pytest.mark.parametrize("size", [8, 48, (32, 64), (256, 300)])
@pytest.mark.parametrize("width", [2, 8])
def test_super_vectors_begin_after_the_head(width: int, size: int | tuple[int, int]) -> None:
    check(source(width, 9, 333), range(0, LINE_BYTES, 24), size=size)


def test_rows_of_several_digits_keep_a_table_without_heads() -> None:
    """Prefetches would leave the table."""
    x = np.arange(4 * 64 * 96, dtype=np.uint32).reshape(4, 64, 96)
    out = np.empty((96, 64, 4), np.uint32)
    assert "head = " not in tj.explain(out, x.transpose(2, 1, 0)).source


TILED = (
    "bf16[32,512]{1,0:T(8,128)(2,1)}",
    "bf16[40,1000]{1,0:T(8,128)(2,1)}",
    "s8[64,512]{1,0:T(8,128)(4,1)}",
    "f32[128,384]{0,1:T(8,128)}",
    "f32[128,384]{1,0:T(8,128)}",
)


@pytest.mark.full
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("text", TILED)
def test_packs_and_unpacks_into_memory_that_begins_anywhere(text: str, threads: int) -> None:
    """Between guard pages."""
    shape = tj.Shape.parse(text)
    count = int(np.prod(shape.dimensions))
    x = random_elements(np.random.default_rng(5), shape.dtype, count).reshape(shape.dimensions)
    tiled = tj.pack(x, shape, padding=0)
    packed, plain = tiled.buffer.tobytes(), x.tobytes()
    arenas = Guarded(len(packed) + LINE_BYTES), Guarded(len(plain) + LINE_BYTES)
    for gap in range(0, LINE_BYTES, 4):
        for at_end in (False, True):
            buffer = arenas[0].place(len(packed), at_end=at_end, gap=gap).view(shape.dtype)
            out = arenas[1].place(len(plain), at_end=at_end, gap=gap).view(shape.dtype).reshape(x.shape)
            tj.pack(x, shape, out=buffer, padding=0, threads=threads)
            tj.unpack(tiled, out=out, threads=threads)
            assert buffer.tobytes() == packed, gap
            assert out.tobytes() == plain, gap
            assert all(arena.untouched() for arena in arenas)


@pytest.mark.parametrize("text", TILED[:3])
def test_rows_of_pairs_that_begin_inside_lines_leave_in_full_lines(text: str) -> None:
    """Tiles of a row go through scratch together if the destination does not begin a line."""
    shape = tj.Shape.parse(text)
    launches = tj.explain(np.empty(shape.dimensions, shape.dtype), shape).program.launches
    full = [x for x in launches if x.step.schedule.stream]
    assert full
    assert any(x.step.schedule.groups or (x.misaligned and x.misaligned.step.schedule.groups) for x in full)
