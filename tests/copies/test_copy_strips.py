"""Every kind of copy runs in super-vectors of the requested size: its source, its bytes, and its report."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.pipeline.program import CopyProgram
from codegen.pipeline.proofs import prove_launch
from codegen.schedule.thresholds import Thresholds
from tests.tools.guard import Guarded, span_bytes, strided_view
from tilejit.programs import compiled as programs
from tilejit.programs.copy_programs import copy_program

Array = np.ndarray[Any, Any]

SIZES: tuple[Any, ...] = (64, 256, 1024, (32, 256))


def counted(*dims: int, dtype: str = "u4") -> Array:
    return np.arange(np.prod(dims)).astype(dtype).reshape(dims)


COPIES: dict[str, Callable[[], tuple[Array, Array]]] = {
    "runs": lambda: (np.zeros((70, 1210), "u4")[:, :1200], counted(70, 1200)),
    "runs of one loop": lambda: (np.zeros(9000, "u4"), counted(9000)),
    "short runs": lambda: (np.zeros((30, 8, 9, 128), "u4").transpose(0, 2, 1, 3), counted(30, 9, 8, 128)),
    "reversed": lambda: (np.zeros((70, 1200), "u4"), counted(70, 1200)[:, ::-1]),
    "elements": lambda: (np.zeros((70, 1100), "u4"), counted(70, 2200)[:, ::2]),
    "conversions": lambda: (np.zeros((70, 1200), "f4"), counted(70, 1200, dtype="f8")),
    "chunks": lambda: (np.zeros((140, 40, 8), "u8"), counted(140, 80, 8, dtype="u8")[:, ::-2, ::-1]),
    "interleaves": lambda: (np.zeros((70, 1200, 2), "u4").transpose(0, 2, 1), counted(70, 2, 1200)),
    "deinterleaves": lambda: (np.zeros((70, 2, 1200), "u4").transpose(0, 2, 1), counted(70, 1200, 2)),
    "transposes": lambda: (np.zeros((1100, 1200), "u4"), counted(1200, 1100).T),
    "transposes of bytes": lambda: (np.zeros((1100, 1200), "u1"), counted(1200, 1100, dtype="u1").T),
    "converted transposes": lambda: (np.zeros((300, 400), "f4"), counted(400, 300, dtype="f8").T),
    "short result rows": lambda: (np.zeros((5000, 5), "u4"), counted(5, 5000).T),
}
"""A copy of each kind between arrays."""

TILED: dict[str, tuple[str, str]] = {
    "f32 8x128": ("{1,0}", "{1,0:T(8,128)}"),
    "f32 8x128 transposed": ("{1,0}", "{0,1:T(8,128)}"),
    "f32 rows of 64": ("{1,0:T(16,64)}", "{1,0:T(8,128)}"),
    "f32 transposed tiles": ("{0,1:T(8,128)}", "{1,0:T(8,128)}"),
}
"""Layouts of source and destination: from and to an array, and between two tiled layouts."""


@pytest.mark.full
@pytest.mark.parametrize("kind", COPIES)
def test_sources_differ_by_size_and_contain_its_loops(kind: str) -> None:
    """Sizes that the loops are too short for may share a source, and the report says so."""
    sources: dict[Any, str] = {}
    for size in (*SIZES, "auto"):
        dst, src = COPIES[kind]()
        explained = tj.explain(dst, src, virtual_vector_size=size)
        plan = tj.plan_copy(dst, src, virtual_vector_size=size, threads=1)
        plan(dst, src)
        assert np.array_equal(dst, src), size
        text = explained.report()
        if size == "auto":
            assert "virtual_vector_size" not in text
        else:
            assert f"virtual_vector_size {'x'.join(map(str, np.atleast_1d(size)))}" in text
        if not any(step.schedule.sized.limit for step in explained.steps if step.schedule.sized):
            sources[size] = explained.source.partition('"""')[2]
    assert len(set(sources.values())) == len(sources)
    for size, source in sources.items():
        in_strips = re.search(r"for (column|row|i|j)_strip in range\(", source)
        assert bool(in_strips) == (size != "auto"), size


@pytest.mark.parametrize("name", TILED)
def test_sources_of_packs_and_relayouts_differ_by_size(name: str) -> None:
    """Complete tiles are super-vectors as well: their rows are a literal, not another loop."""
    layouts = [f"f32[256,1152]{layout}" for layout in TILED[name]]
    sources, sizes = set(), {}
    for size in (*SIZES, "auto"):
        explained = tj.explain(layouts[1], layouts[0], virtual_vector_size=size)
        sources.add(explained.source.partition('"""')[2])
        sizes[size] = explained.schedule.partition("virtual_vector_size ")[2].partition("\n")[0]
    assert len(sources) == len(SIZES) + 1
    assert all(sizes[size] for size in SIZES)
    assert not sizes["auto"]


@pytest.mark.full
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", TILED)
def test_packs_and_relayouts_are_exact_between_guard_pages(name: str, size: Any) -> None:
    x = counted(75, 300).view("f4")
    source, target = TILED[name]
    tiled, wanted = tj.pack(x, source), tj.pack(x, target)
    guard = Guarded(wanted.buffer.nbytes)
    for at_end in (False, True):
        out = guard.place(wanted.buffer.nbytes, at_end=at_end).view("f4")
        relaid = tj.relayout(tiled, target, out=out, virtual_vector_size=size, threads=1 + at_end)
        assert relaid.buffer.tobytes() == wanted.buffer.tobytes()
        assert guard.untouched()
        packed = tj.pack(x, target, out=out, virtual_vector_size=size, threads=1 + at_end)
        assert packed.buffer.tobytes() == wanted.buffer.tobytes()
        assert tj.unpack(packed, virtual_vector_size=size).tobytes() == x.tobytes()
        assert guard.untouched()


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("kind", COPIES)
def test_copies_are_exact_between_guard_pages(kind: str, size: Any) -> None:
    """Both sides keep their layout in memory, flush with either page."""
    dst, src = COPIES[kind]()
    guards = [Guarded(x.base.nbytes if x.base is not None else x.nbytes) for x in (dst, src)]
    for at_end in (False, True):
        placed = []
        for guard, x in zip(guards, (dst, src), strict=True):
            room = guard.place(span_bytes(x.itemsize, x.shape, x.strides), at_end=at_end)
            placed.append(strided_view(room, x.dtype, x.shape, x.strides))
        placed[1][...] = src
        tj.copyto(*placed, virtual_vector_size=size, casting="unsafe", threads=1)
        assert np.array_equal(placed[0], src)
        assert all(guard.untouched() for guard in guards)


@pytest.mark.full
def test_padding_is_filled_in_super_vectors() -> None:
    """Fills have strips of the same size, a literal, in bits too."""
    for text, size, loop in (
        ("f32[20,300]{1,0:T(8,128)}", 64, "column_strip"),
        ("s4[70,260]{1,0:T(64,128)(8,1)E(4)}", 50, "column_strip"),
    ):
        explained = tj.explain(text, None, virtual_vector_size=size)
        fills = [step for step in explained.steps if step.box.source is None]
        assert any(f"for {loop} in range(" in step.kernel.source for step in fills)
        assert all("virtual_vector_size" in str(step.schedule) for step in fills)
        shape = tj.Shape.parse(text)
        x = np.ones(shape.dimensions, shape.dtype)
        packed = tj.pack(x, shape, padding=3, virtual_vector_size=size)
        assert packed.buffer.tobytes() == tj.pack(x, shape, padding=3).buffer.tobytes()


def test_columns_of_packed_bits_are_strips() -> None:
    explained = tj.explain("s4[64,1024]{1,0:T(64,128)(8,1)E(4)}", None, virtual_vector_size=256)
    (step,) = explained.steps
    assert "pack bits | outer d2 d0 column_strip" in str(step.schedule)
    assert "virtual_vector_size 256" in str(step.schedule)
    assert "columns" not in step.kernel.arguments


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_super_vector_longer_than_runs_contains_several(size: Any) -> None:
    """In the order of the loops: rows of a tile, then tiles."""
    became = {64: "64", 256: "256 became 2x128", 1024: "1024 became 8x128"}
    text = became.get(size, "32x256 became 32x128 (its loops have no more)")
    explained = tj.explain("f32[256,1024]{1,0:T(8,128)}", None, virtual_vector_size=size)
    assert f"virtual_vector_size {text}\n" in explained.report()


def test_super_vectors_with_more_rows_than_the_array_stay_in_their_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows of two digits have a table. The last super-vector requests no entries far past its end."""
    monkeypatch.setattr(programs, "machine_thresholds", lambda size: Thresholds(stream_bytes=0))
    copy_program.cache_clear()
    x = counted(8, 128, 32, dtype="u8")
    src = x.transpose(2, 1, 0)
    dst = Guarded(x.nbytes).place(x.nbytes, at_end=True).view("u8").reshape(src.shape)
    plan = tj.plan_copy(dst, src, virtual_vector_size=(1 << 15, 32), threads=3)
    copy_program.cache_clear()
    launches = plan._program.launches if plan._program else ()
    assert any("next_i = " in x.step.kernel.source for x in launches)
    assert all(prove_launch(launch) for launch in launches)
    plan(dst, src)
    assert np.array_equal(dst, src)


@pytest.mark.parametrize(
    ("rows", "columns", "size"),
    [(4096, 256, (1 << 17, 8)), (4096, 256, (1024, 8)), (256, 4096, (8, 1 << 17))],
)
def test_threads_share_the_loop_with_most_super_vectors(
    rows: int, columns: int, size: tuple[int, int]
) -> None:
    """A loop over super-vectors longer than the array has one iteration, which could not be shared."""
    x = counted(rows, columns)
    dst = np.empty((columns, rows), x.dtype)
    plan = tj.plan_copy(dst, x.T, virtual_vector_size=size, threads=3)
    assert isinstance(plan._program, CopyProgram)
    assert [launch.trips for launch in plan._program.launches] == [16]
    plan(dst, x.T)
    assert np.array_equal(dst, x.T)
