"""Conversions transposed in blocks: the same bits as NumPy's, with no other byte touched."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from codegen.pipeline.staged import StagedProgram
from codegen.schedule import choose_conversion
from codegen.schedule.machine import described, machine
from tests.tools.guard import Guarded, span_bytes, strided_view
from tilejit.arrays.memory import address, empty

Array = np.ndarray[Any, Any]
BF16 = np.dtype(ml_dtypes.bfloat16)
PAIRS = [("f4", BF16), ("f8", "f4"), ("i8", "i4"), ("i4", "i1"), ("u8", "i2")]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use blocks for small arrays, past the cache."""
    monkeypatch.setattr(choose_conversion, "LEAST_CONVERTED_BYTES", 0)
    monkeypatch.setattr(choose_conversion, "LEAST", (32, 32))
    monkeypatch.setattr(choose_conversion, "SHORT_ROWS", 0)
    monkeypatch.setattr(choose_conversion, "MOST_TARGET_BYTES", 8)
    monkeypatch.setattr(choose_conversion, "LEAST_SOURCE_BYTES", 0)
    monkeypatch.setattr(choose_conversion, "BLOCK", (64, 70))
    monkeypatch.setattr(choose_conversion, "LONG_ROWS", (32, 96))
    with described(replace(machine(), first_cache_ways=8, stream_bytes=0)):
        yield


def values(dtype: Any, shape: tuple[int, ...]) -> Array:
    """Every kind of number, including NaNs with any payload, infinities and denormals."""
    rng, dtype = np.random.default_rng(3), np.dtype(dtype)
    out = np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).copy()
    if dtype.kind == "f":
        out[::3] = rng.standard_normal(len(out[::3]))
        some = [np.inf, -np.inf, np.nan, -np.nan, 0.0, -0.0, 1e-40, 3.4e38, 3.5e38, 1e300, 1.00390625]
        with np.errstate(over="ignore"):
            out[1::7] = np.resize(np.array(some, "f8"), len(out[1::7])).astype(dtype)
    return out.reshape(shape)


def wanted(src: Array, dtype: Any) -> Array:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return src.astype(dtype, order="C")


def planned(dst: Array, src: Array, threads: int = 1) -> tj.CopyPlan:
    found = tj.plan_copy(dst, src, threads=threads)
    assert isinstance(found._program, StagedProgram)
    return found


@pytest.mark.full
@pytest.mark.parametrize(("source", "target"), PAIRS)
@pytest.mark.parametrize("shape", [(192, 280), (131, 250), (64, 70), (127, 71)], ids=str)
def test_blocks_cover_the_array(source: Any, target: Any, shape: tuple[int, int]) -> None:
    """Between guard pages, at any alignment of the destination, on one thread and on three."""
    src, target = values(source, shape), np.dtype(target)
    want = wanted(src.T, target).tobytes()
    arenas = Guarded(src.nbytes), Guarded(len(want) + 64)
    for at_end, gap, threads in ((True, 0, 1), (False, 0, 3), (False, target.itemsize, 1)):
        x = arenas[0].place(src.nbytes, at_end=at_end).view(src.dtype).reshape(shape)
        x[...] = src
        out = arenas[1].place(len(want), at_end=at_end, gap=gap).view(target).reshape(shape[::-1])
        with np.errstate(all="ignore"):
            planned(out, x.T, threads)(out, x.T)
        assert out.tobytes() == want
        assert x.tobytes() == src.tobytes()
        assert arenas[1].untouched()


@pytest.mark.parametrize(("columns", "begin"), [(256, 0), (256, 16), (250, 0), (250, 16)])
def test_one_pass_if_all_rows_begin_inside_lines(
    columns: int, begin: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block has only a few lines of each row."""
    src, room = values("f4", (columns, 192)), empty((192 * columns + 32,), np.dtype(np.uint16))
    dst = room.view(BF16)[begin // 2 :][: src.size].reshape(192, columns)
    copy = planned(dst, src.T)
    ran: list[int] = []
    table = StagedProgram.table
    monkeypatch.setattr(StagedProgram, "table", lambda self, to: ran.append(to) or table(self, to))
    with np.errstate(all="ignore"):
        copy(dst, src.T)
    assert dst.tobytes() == wanted(src.T, BF16).tobytes()
    assert bool(ran) == (columns == 250 or begin == 0)
    assert ("in one pass" in copy.report()) == (columns == 256)
    again = pickle.loads(pickle.dumps(copy._program))
    assert (again.inside_lines is None) == (columns == 250)


@pytest.mark.parametrize(
    ("dims", "src_strides", "dst_strides"),
    [
        ((90, 3, 80), (4, -40000, 400), (160, 20000, 2)),
        ((3, 75, 66), (30000, 4, 304), (-10000, 132, 2)),
        ((5, 2, 70, 64), (0, 20000, 4, 288), (18000, 9000, 128, 2)),
    ],
)
def test_digits_around_backwards_and_with_holes(
    dims: tuple[int, ...], src_strides: tuple[int, ...], dst_strides: tuple[int, ...]
) -> None:
    sizes = span_bytes(4, dims, src_strides), span_bytes(2, dims, dst_strides)
    arenas = [Guarded(n) for n in sizes]
    memory = [a.place(n, at_end=True) for a, n in zip(arenas, sizes, strict=True)]
    memory[0][:] = values("f4", (sizes[0] // 4,)).view(np.uint8)[: sizes[0]]
    memory[1][:] = 0x5A
    src = strided_view(memory[0], np.dtype("f4"), dims, src_strides)
    dst = strided_view(memory[1], BF16, dims, dst_strides)
    want = memory[1].copy()
    strided_view(want, BF16, dims, dst_strides)[...] = wanted(src, BF16)
    with np.errstate(all="ignore"):
        planned(dst, src)(dst, src)
    assert memory[1].tobytes() == want.tobytes()
    assert arenas[1].untouched()


@pytest.mark.parametrize("threads", [1, 2])
def test_warnings_are_numpys(threads: int) -> None:
    """Overflow in one block warns once. Copies without overflow do not warn."""
    src = np.ones((192, 280))
    dst = np.zeros((280, 192), "f4")
    copy = planned(dst, src.T, threads)
    with np.errstate(all="raise"):
        copy(dst, src.T)
        src[150, 270] = 1e300
        with pytest.raises(FloatingPointError, match="overflow"):
            copy(dst, src.T)
    with pytest.warns(RuntimeWarning, match="overflow") as told:
        copy(dst, src.T)
    assert len(told) == 1
    assert np.isinf(dst[270, 150])
    assert np.isinf(dst).sum() == 1


def test_a_copy_that_overlaps_itself_agrees_with_numpy() -> None:
    memory = values("f4", (192 * 280,)).view(np.uint8)
    src = memory.view("f4").reshape(192, 280)
    dst = memory[: src.nbytes // 2].view(BF16).reshape(280, 192)
    want = wanted(src.T, BF16)
    copy = planned(dst, src.T)
    with np.errstate(all="ignore"):
        copy(dst, src.T)
    assert dst.tobytes() == want.tobytes()


def test_the_report_describes_blocks() -> None:
    src, dst = np.ones((192, 280), "f4"), empty((280, 192), BF16)
    copy, shown = planned(dst, src.T), tj.explain(dst, src.T)
    assert isinstance(shown.program, StagedProgram)
    assert shown.program.blocks == 3 * 4
    for text in (copy.report(), shown.report()):
        assert "12 of 32x96, each copied into 14336 bytes in cache and from there" in text
        assert "prefetches" in text
        assert "bf16(f32 src" in text
        assert "streamed transpose" in text
    assert shown.program.kernels == copy.kernels
    (converting,) = (k for k in shown.program.kernels if k.name.startswith("copy_elements"))
    assert "prefetch_line(" in converting.source
    shown.program.run_share(address(src), address(dst), 0, 1)
    (table,) = shown.program.tables.values()
    assert {launch.step.kernel for launch, _ in table.calls} == set(copy.kernels)


@pytest.mark.full
def test_which_copies_go_in_one_pass() -> None:
    """Wider elements, moves, swaps, flat conversions, short digits, and any tuning keyword."""
    for source, target, shape in (
        (BF16, "f4", (192, 280)),
        ("f4", "f4", (192, 280)),
        (">f4", "<f4", (192, 280)),
        ("f4", BF16, (31, 999)),
        ("f4", BF16, (999, 31)),
    ):
        src, dst = np.ones(shape, source), np.zeros(shape[::-1], target)
        assert not isinstance(tj.plan_copy(dst, src.T)._program, StagedProgram)
    src, dst = np.ones((192, 280), "f4"), np.zeros((192, 280), BF16)
    assert not isinstance(tj.plan_copy(dst, src)._program, StagedProgram)
    keyword = tj.plan_copy(dst.T, np.ones((280, 192), "f4"), virtual_vector_size=64)
    assert not isinstance(keyword._program, StagedProgram)


def test_plans_can_be_pickled() -> None:
    src, dst = values("f4", (192, 280)), np.zeros((280, 192), BF16)
    copy = planned(dst, src.T)
    again = pickle.loads(pickle.dumps(copy))
    blocks = pickle.loads(pickle.dumps(copy._program))
    assert isinstance(again._program, StagedProgram)
    assert not blocks.tables
    with np.errstate(all="ignore"):
        again(dst, src.T)
    assert dst.tobytes() == wanted(src.T, BF16).tobytes()
