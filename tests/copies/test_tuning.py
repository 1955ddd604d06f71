"""`virtual_vector_size`, `specialize`, `tune`: other kernels, the same bytes, and nothing else is touched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen import described, machine
from tests.tools.extent import lower_levels
from tests.tools.guard import Guarded, span_bytes, strided_view
from tests.tools.oracle import run_python

Array = np.ndarray[Any, Any]

MOST_CALLS = 40
"""Calls after which a copy with tune="live" has chosen a schedule."""

LAYOUTS = (
    "f32[20,300]{1,0:T(8,128)}",
    "bf16[33,300]{1,0:T(8,128)(2,1)}",
    "u8[70,130]{0,1:T(8,128)(4,1)}",
    "s4[70,260]{1,0:T(64,128)(8,1)E(4)}",
    "s4[8,260]{1,0:T(128)E(4)}",
    "pred[33,300]{1,0:T(32,128)(32,1)E(1)}",
    "f32[10,24,6]{2,0,1:T(*,7,2)}",
)
COPIES: tuple[tuple[str, str, tuple[int, ...], Callable[[Array], Array], Callable[[Array], Array]], ...] = (
    ("u4", "u4", (9, 90), lambda a: a[:, :77], lambda a: a[:, 3:80]),
    ("u1", "u1", (3, 1000), lambda a: a[:, 1:990], lambda a: a[:, :989]),
    ("u2", "u2", (5, 300), lambda a: a[:, ::3], lambda a: a[:, 100:200]),
    ("f4", "f8", (4, 131), lambda a: a, lambda a: a),
    (">u4", "<u4", (4, 131), lambda a: a[::-1], lambda a: a),
    ("c16", "c16", (4, 67), lambda a: a, lambda a: a[::-1, ::-1]),
    ("u1", "u1", (65, 67), lambda a: a, lambda a: a.reshape(67, 65).T),
    ("u4", "u4", (40, 35), lambda a: a, lambda a: a.reshape(35, 40).T),
)


def check_guarded_copies(size: Any, specialize: str) -> None:
    """Each copy in COPIES between guard pages, flush with either end."""
    rng = np.random.default_rng(3)
    guarded = [Guarded(1 << 14) for _ in range(2)]
    for from_type, to_type, dims, of_dst, of_src in COPIES:
        for at_end in (False, True):
            sides = []
            for guard, dtype in zip(guarded, (to_type, from_type), strict=True):
                kind = np.dtype(dtype)
                strides = np.empty(dims, kind).strides
                room = guard.place(span_bytes(kind.itemsize, dims, strides), at_end=at_end)
                room[:] = rng.integers(0, 0x3F, len(room), np.uint8)
                sides.append(strided_view(room, kind, dims, strides))
            dst, src = of_dst(sides[0]), of_src(sides[1])
            whole = sides[0].copy()
            wanted = of_dst(whole)
            np.copyto(wanted, src)
            tuning = {"virtual_vector_size": size, "specialize": specialize}
            tj.plan_copy(dst, src, threads=1 + at_end, **tuning)(dst, src)  # type: ignore[arg-type]
            assert sides[0].tobytes() == whole.tobytes(), (from_type, to_type, dims)
            assert all(guard.untouched() for guard in guarded)


GUARDED = [
    *((1, "structure"), ("auto", "sizes"), ((5, 7), "sizes"), (("2", "hw/2"), "structure")),
]


@pytest.mark.full
@pytest.mark.parametrize(("size", "specialize"), GUARDED)
def test_nothing_outside_is_touched(size: Any, specialize: str) -> None:
    check_guarded_copies(size, specialize)


@pytest.mark.full
@pytest.mark.parametrize("level", lower_levels())
def test_nothing_outside_is_touched_at_lower_levels(level: str) -> None:
    code = "from tests.copies.test_tuning import check_guarded_copies\ncheck_guarded_copies(10, 'sizes')\n"
    done = run_python(code, TILEJIT_CPU=level)
    assert done.returncode == 0, done.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    ("text", "size", "specialize"),
    [(text, *((6, "structure"), ((3, 30), "sizes"))[n % 2]) for n, text in enumerate(LAYOUTS)],
)
def test_packs_give_the_same_bytes(text: str, size: Any, specialize: str) -> None:
    shape = tj.Shape.parse(text)
    x = np.arange(np.prod(shape.dimensions)).reshape(shape.dimensions).astype(shape.dtype)
    wanted = tj.pack(x, shape)
    out = np.full_like(wanted.buffer, 0x55)
    keywords = {"virtual_vector_size": size, "specialize": specialize, "threads": 2}
    packed = tj.pack(x, shape, out=out, **keywords)
    assert packed.buffer.tobytes() == wanted.buffer.tobytes()
    assert tj.unpack(packed, **keywords).tobytes() == x.tobytes()


def counted(*dims: int, dtype: str = "u4") -> Array:
    return np.arange(np.prod(dims)).astype(dtype).reshape(dims)


KINDS: dict[str, Callable[[], tuple[Array, Array]]] = {
    "runs": lambda: (np.zeros((70, 210), "u4")[:, :200], counted(70, 200)),
    "runs of one loop": lambda: (np.zeros(9000, "u4"), counted(9000)),
    "short runs": lambda: (np.zeros((30, 8, 9, 128), "u4").transpose(0, 2, 1, 3), counted(30, 9, 8, 128)),
    "reversed": lambda: (np.zeros((70, 200), "u4"), counted(70, 200)[:, ::-1]),
    "elements": lambda: (np.zeros((70, 100), "u4"), counted(70, 200)[:, ::2]),
    "conversions": lambda: (np.zeros((70, 200), "f4"), counted(70, 200, dtype="f8")),
    "chunks": lambda: (np.zeros((70, 40, 8), "u8"), counted(70, 80, 8, dtype="u8")[:, ::-2, ::-1]),
    "interleaves": lambda: (np.zeros((70, 200, 2), "u4").transpose(0, 2, 1), counted(70, 2, 200)),
    "deinterleaves": lambda: (np.zeros((70, 2, 200), "u4").transpose(0, 2, 1), counted(70, 200, 2)),
    "deinterleaves of one block": lambda: (
        np.zeros((70, 2, 32), "u2").transpose(0, 2, 1),
        counted(70, 32, 2, dtype="u2"),
    ),
    "transposes": lambda: (np.zeros((200, 300), "u4"), counted(300, 200).T),
    "transposes of bytes": lambda: (np.zeros((110, 120), "u1"), counted(120, 110, dtype="u1").T),
    "converted transposes": lambda: (np.zeros((300, 400), "f4"), counted(400, 300, dtype="f8").T),
    "short rows": lambda: (np.zeros((5000, 5), "u4"), counted(5, 5000).T),
    "joined columns": lambda: (
        np.zeros((30, 41, 5), "u4")[:, :40].transpose(2, 0, 1),
        counted(5, 30, 40),
    ),
}
"""A copy of each kind: destination and source."""


def between_guards(kind: str, *, at_end: bool) -> tuple[list[Guarded], list[Array]]:
    """A copy of a kind whose arrays are flush with a guard page, and the guards."""
    dst, src = KINDS[kind]()
    guards = [Guarded(2 * x.nbytes + 64) for x in (dst, src)]
    placed = []
    for guard, x in zip(guards, (dst, src), strict=True):
        room = guard.place(span_bytes(x.itemsize, x.shape, x.strides), at_end=at_end)
        placed.append(strided_view(room, x.dtype, x.shape, x.strides))
    placed[1][...] = src
    return guards, placed


@pytest.mark.full
@pytest.mark.parametrize("kind", tuple(KINDS))
@pytest.mark.parametrize("at_end", [False, True])
def test_calls_that_try_schedules_give_the_same_bytes(kind: str, at_end: bool) -> None:
    guards, (dst, src) = between_guards(kind, at_end=at_end)
    plan = tj.plan_copy(dst, src, tune="live", threads=1 + at_end)
    for _ in range(MOST_CALLS):
        dst[...] = 0x55
        plan(dst, src)
        assert np.array_equal(dst, src)
    assert all(guard.untouched() for guard in guards)


def test_all_doors_try_schedules_and_then_have_settled() -> None:
    x = counted(150, 300, dtype="f4")
    for threads in (1, 2):
        for _ in range(MOST_CALLS):
            packed = tj.pack(x, "{1,0:T(8,128)}", tune="live", threads=threads)
            again = tj.relayout(packed, "{0,1:T(3,5)}", tune="live", threads=threads)
            assert np.array_equal(tj.unpack(again, tune="live", threads=threads), x)
            z = np.zeros((300, 150), np.float32)
            tj.copyto(z, x.T, tune="live", threads=threads)
            assert np.array_equal(z, x.T)
    plan, own = tj.plan_copy(z, x.T, tune="live", threads=1), tj.plan_copy(z, x.T, threads=1)
    assert len(plan.kernels) == len(own.kernels)
    assert plan.report().startswith("copy ")


def test_warnings_are_those_of_numpy_while_schedules_are_tried() -> None:
    x = np.full((200, 300), 1e9)
    plan = tj.plan_copy(np.zeros((300, 200), np.float16), x.T, tune="live", threads=1)
    out = np.zeros((300, 200), np.float16)
    for _ in range(3):
        with pytest.warns(RuntimeWarning, match="overflow"):
            plan(out, x.T)


@pytest.mark.full
@pytest.mark.parametrize("kind", tuple(KINDS))
def test_sizes_change_the_kernels_and_not_the_bytes(kind: str) -> None:
    """In one dimension and in two, with both arrays flush with a guard page."""
    sources = set()
    for size in (20, (5, 48)):
        src = KINDS[kind]()[1]
        guards, placed = between_guards(kind, at_end=size == 20)
        plan = tj.plan_copy(*placed, virtual_vector_size=size, threads=1)
        plan(*placed)
        assert np.array_equal(placed[0], src), size
        assert all(guard.untouched() for guard in guards)
        sources.add(tuple(kernel.source for kernel in plan.kernels))
    assert len(sources) == 2


@pytest.mark.parametrize(
    "kind", ["runs", "runs of one loop", "short runs", "reversed", "conversions", "chunks"]
)
@pytest.mark.parametrize("size", [20, (5, 48)])
def test_strips_are_directives_that_a_text_gives_as_well(kind: str, size: Any) -> None:
    dst, src = KINDS[kind]()
    sized = tj.explain(dst, src, virtual_vector_size=size)
    assert 'level="strip"), Reorder(' in sized.directives
    given = tj.explain(dst, src, schedule=sized.directives)
    (of_size,), (of_text,) = sized.steps, given.steps
    assert of_size.kernel.name == of_text.kernel.name


@pytest.mark.full
def test_threads_share_super_vectors_larger_than_the_array() -> None:
    x = counted(4096, 256)
    for size in ((1 << 17, 8), (8, 1 << 17)):
        dst = np.zeros((256, 4096), x.dtype)
        tj.copyto(dst, x.T, virtual_vector_size=size, threads=3)
        assert np.array_equal(dst, x.T)


def test_a_super_vector_longer_than_runs_contains_several() -> None:
    """In the order of the loops: rows of a tile, then tiles. The report says what a size became."""
    for size, text in ((64, "64"), (256, "256 became 2x128"), (1024, "1024 became 8x128")):
        explained = tj.explain("f32[256,1024]{1,0:T(8,128)}", None, virtual_vector_size=size)
        assert f"virtual_vector_size {text}\n" in explained.report()
    assert "virtual_vector_size" not in tj.explain("f32[256,1024]{1,0:T(8,128)}", None).report()


def kernels(shape: tuple[int, int], dtype: str = "u4", **keywords: Any) -> set[str]:
    """The kernels of a copy of rows that are followed by gaps on both sides."""
    rows, columns = shape
    wide, wider = np.empty((rows, columns + 1), dtype), np.empty((rows, columns + 2), dtype)
    return {
        k.name for k in tj.plan_copy(wide[:, :columns], wider[:, :columns], threads=1, **keywords).kernels
    }


def test_only_kernels_without_sizes_are_shared() -> None:
    """Between shapes, and in both cases between dtypes of one width."""
    shapes = ((123, 77), (124, 77), (123, 99))
    sized = [kernels(shape, specialize="sizes") for shape in shapes]
    assert not set.intersection(*sized)
    assert kernels(shapes[0]) == kernels(shapes[1]) == kernels(shapes[2], "f4")
    assert sized[0] == kernels(shapes[0], "f4", specialize="sizes")
    assert not kernels(shapes[0]) & sized[0]


@pytest.mark.parametrize(
    ("keywords", "error", "text"),
    [
        ({"virtual_vector_size": 0}, tj.LayoutError, "at least one"),
        ({"virtual_vector_size": np.array([8, 8])}, TypeError, "got ndarray"),
        ({"specialize": "shape"}, tj.LayoutError, '"sizes"'),
        ({"tune": 1}, TypeError, "int"),
        ({"tune": "later"}, tj.LayoutError, "\"live\", got 'later'"),
    ],
)
def test_keywords_refused_by_pack_and_unpack(keywords: Any, error: type[Exception], text: str) -> None:
    x, out = np.ones((3, 5), np.float32), np.zeros(24, np.float32)
    tiled = tj.pack(x, "{1,0:T(2,2)}")
    with pytest.raises(error, match=text):
        tj.pack(x, "{1,0:T(2,2)}", out=out, **keywords)
    back = np.zeros((3, 5), np.float32)
    with pytest.raises(error, match=text):
        tj.unpack(tiled, out=back, **keywords)
    assert not out.any()
    assert not back.any()


@pytest.mark.full
@pytest.mark.filterwarnings("error::codegen.FallbackWarning")
def test_joined_rows_of_many_elements_are_tuned() -> None:
    """Measured copies are as short as memory allows; rows still follow each other in them."""
    x = np.arange(100 * 700 * 700, dtype=np.uint32).astype(np.uint8).reshape(100, 700, 700)
    out = np.empty((700, 700, 100), np.uint8)
    with described(replace(machine(), stream_bytes=1 << 20)):
        assert "row = k j |" in tj.explain(out, x.T, threads=1).schedule
        tj.copyto(out, x.T, tune=True, threads=1)
    np.testing.assert_array_equal(out, x.T)
