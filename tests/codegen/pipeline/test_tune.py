"""Tuning measures once, on its own memory, remembers the result, and never changes an answer."""

from __future__ import annotations

from dataclasses import replace
from itertools import count, product
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.backend.store import KernelStore
from codegen.ir.blocks import block_shape
from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Element, Side, StridedBox
from codegen.maps.access import strided_map
from codegen.passes.select_transfer import select_transfer
from codegen.pipeline import tune
from codegen.pipeline.copies import compile_copy
from codegen.pipeline.copy_options import CopyOptions
from codegen.pipeline.copy_request import CopyRequest
from codegen.pipeline.steps import launch_of, reach_of
from codegen.pipeline.tune import shortened, timed, tuned
from codegen.runtime.launch import Launch
from codegen.schedule.candidates import MOST_CANDIDATES, candidates
from codegen.schedule.choose import choose
from codegen.schedule.offset_tables import OffsetTable
from codegen.schedule.schedule import Schedule
from codegen.schedule.thresholds import Thresholds
from codegen.schedule.transfer_loops import int_size
from codegen.schedule.transposes import Transpose, TransposeRuns
from codegen.support.caching import Cache
from codegen.support.errors import KernelError
from tests.codegen.passes.test_passes_of_copies import normal
from tests.tools.boxes import box_of
from tilejit.copies.plan import plan_copy

Array = np.ndarray[Any, Any]

TRANSPOSED = normal(box_of([(3000, 4, 12000), (3000, 12000, 4)], 4))
BLOCKS = normal(box_of([(40, 512, 30_000), (50, 30_720, 600), (128, 4, 4)], 4))


class Clock:
    """A measurement that prefers the schedule at one position, and counts its calls."""

    def __init__(self, best: int) -> None:
        self.best, self.asked = best, 0

    def __call__(self, box: StridedBox, schedules: tuple[Schedule, ...]) -> tuple[float, ...]:
        self.asked += 1
        return tuple(float(k != self.best) for k in range(len(schedules)))


@pytest.fixture(autouse=True)
def _time_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every candidate is measured, however slow the machine is."""
    monkeypatch.setattr(tune, "MOST_SECONDS", inf)


def ways(box: StridedBox = BLOCKS) -> tuple[Schedule, ...]:
    return candidates(box, threads=1, footprint=1 << 20)


def test_candidates_begin_with_the_default_choice_and_differ() -> None:
    for box in (BLOCKS, TRANSPOSED):
        for size in (None, 7, (16, 4)):
            found = candidates(box, footprint=1 << 25, threads=2, virtual_vector_size=size)
            assert found[0] == choose(box, footprint=1 << 25, threads=2, virtual_vector_size=size)
            assert len({str(schedule) for schedule in found}) == len(found) > 1
            assert {(x.transpose or x).stream for x in found} == {False, True}
            assert len({(x.mode, x.inner, x.strip, x.rank) for x in found}) == 1
    assert len({schedule.outer for schedule in ways(BLOCKS)}) == 2


def test_a_transpose_has_candidates_by_stage_stores_and_tile() -> None:
    cuts = [cut for x in ways(TRANSPOSED) if (cut := x.transpose)]
    assert len(cuts) == len(ways(TRANSPOSED)) == len(set(cuts))
    assert {(cut.stage, cut.stream) for cut in cuts} == {("", False), ("rows", True)}
    plain = cuts[0].tile
    halves_and_doubles = {(plain[0] * a // 2, plain[1] * b // 2) for a, b in ((2, 1), (2, 4), (1, 2), (4, 2))}
    assert {cut.tile for cut in cuts if not cut.stage} == halves_and_doubles | {plain}
    assert {schedule.transpose for schedule in ways(BLOCKS)} == {None}


@pytest.mark.parametrize("size", [(48, 96), (8, 8), 17], ids=str)
def test_candidates_keep_the_requested_size(size: Any) -> None:
    """In complete blocks, in tiles of a multiple, and for rows that are staged one by one in lines of 16."""
    asked = size if isinstance(size, tuple) else (size, size)
    for stream_bytes in (0, 1 << 40):
        found = candidates(
            TRANSPOSED, virtual_vector_size=size, thresholds=Thresholds(stream_bytes=stream_bytes)
        )
        for cut in [cut for x in found if (cut := x.transpose)]:
            rows, columns = block_shape(4, cut.block)
            units = (16 if cut.stage else rows), columns
            assert cut.strips == tuple(-(-n // unit) * unit for n, unit in zip(asked, units, strict=True))
            assert not any(whole % part for whole, part in zip(cut.tile, cut.strips, strict=True))


SHORT_ROWS = [(12, 1000, 2), (500, 2, 24), (7, 12000, 12000)]
"""Result rows of a dozen elements, for which panels of many columns are staged."""


@pytest.mark.parametrize(
    "digits", [[(210, 180, 2), (90, 2, 420)], SHORT_ROWS, [(3000, 4, 12000), (3000, 12000, 4)]]
)
@pytest.mark.parametrize("size", [None, 1, 5, 40, (3, 1000)], ids=str)
def test_tiles_fit_the_buffer_they_are_staged_in(digits: list[tuple[int, int, int]], size: Any) -> None:
    box = normal(box_of(digits, 2 if digits[0][1] != 4 else 4))
    staged = 0
    for threads, footprint in product((1, 4, 64), (1 << 20, 1 << 30)):
        ways = candidates(box, threads=threads, footprint=footprint, virtual_vector_size=size)
        for way in (x for x in ways if x.transpose):
            inner = select_transfer(box, way).transfer
            assert isinstance(inner, Transpose)
            staged += bool(inner.panel_bytes)
            if isinstance(inner, TransposeRuns):
                assert last_block(inner) + LINE_BYTES <= inner.panel_bytes, way
    assert staged


def last_block(runs: TransposeRuns) -> int:
    """The position in the panel at which the last column of the last layer begins."""
    columns = min(int_size(runs.tile), int_size(runs.columns))
    row_bytes = int_size(runs.rows) * runs.width
    if isinstance(runs.panel_step, OffsetTable):
        column = int(runs.panel_step.offsets.max())
    else:
        column = (columns - 1) * int_size(runs.panel_step)
    return column + int_size(runs.run_columns) * row_bytes * (int_size(runs.together) - 1)


def test_fills_have_one_candidate() -> None:
    assert len(candidates(normal(box_of([(9, 0, 4)], 4, fills=True)))) == 1


@pytest.mark.usefixtures("_another_process")
@pytest.mark.parametrize("best", range(len(ways())))
def test_the_winner_is_measured_once(tmp_path: Path, best: int, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(best)
    first = tuned(measure=clock, store=KernelStore(tmp_path))
    assert first(BLOCKS, ways()) == ways()[best]
    assert first(BLOCKS, ways()) == ways()[best]
    monkeypatch.setattr(tune, "_winners", Cache())
    assert tuned(measure=clock, store=KernelStore(tmp_path))(BLOCKS, ways()) == ways()[best]
    assert clock.asked == 1


@pytest.mark.usefixtures("_another_process")
def test_nothing_is_measured_without_memory(tmp_path: Path) -> None:
    def measure(box: StridedBox, schedules: tuple[Schedule, ...]) -> tuple[float, ...]:
        raise MemoryError

    assert tuned(measure=measure, store=KernelStore(tmp_path))(BLOCKS, ways()) == ways()[0]
    assert KernelStore(tmp_path).notes() == []


@pytest.mark.usefixtures("_another_process")
def test_without_a_store_the_process_remembers() -> None:
    clock = Clock(1)
    for _ in range(2):
        assert tuned(measure=clock, store=KernelStore(None, "no place"))(BLOCKS, ways()) == ways()[1]
    assert clock.asked == 1


@pytest.mark.usefixtures("_another_process")
def test_other_copies_are_measured_separately(tmp_path: Path) -> None:
    """Another number of threads, another box, other candidates."""
    clock, store = Clock(1), KernelStore(tmp_path)
    tuned(measure=clock, store=store)(BLOCKS, ways())
    tuned(2, measure=clock, store=store)(BLOCKS, ways())
    tuned(measure=clock, store=store, specialize="sizes")(BLOCKS, ways())
    tuned(measure=clock, store=store)(TRANSPOSED, ways(TRANSPOSED))
    tuned(measure=clock, store=store)(BLOCKS, ways()[:2])
    assert clock.asked == len(store.notes()) == 5


@pytest.mark.usefixtures("_another_process")
@pytest.mark.parametrize("note", ["elements | outer d0", 3, None, "", ["run"]], ids=repr)
def test_an_invalid_note_is_measured_again(
    tmp_path: Path, note: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, clock = KernelStore(tmp_path), Clock(2)
    tuned(measure=clock, store=store)(BLOCKS, ways())
    (path,) = store.notes()
    store.put_note(path.stem, {"winner": note})
    monkeypatch.setattr(tune, "_winners", Cache())
    assert tuned(measure=clock, store=store)(BLOCKS, ways()) == ways()[2]
    assert clock.asked == 2


def touched(box: StridedBox, side: Side) -> int:
    """Bytes of the huge pages that a side touches, one by one. Small memory counts the bytes it spans."""
    offsets = np.zeros(1, np.int64)
    for axis in box.axes:
        steps = np.unique(np.arange(axis.extent) * axis.stride(side))
        offsets = np.unique((offsets[:, None] + steps[None, :]) >> 12 << 12)
    pages = len(np.unique(offsets >> 21)) * (2 << 20)
    return min(pages, int(offsets.max() - offsets.min()) + 4096)


@pytest.mark.full
@pytest.mark.parametrize(
    "digits",
    [
        [(8192, 4, 32768), (8192, 32768, 4)],
        [(30, 1 << 24, 1 << 22), (1 << 20, 4, 4)],
        [(100, 4, 1 << 22), (1000, 400, 4), (10, 400_000, 4000)],
        [(65, 65 << 20, 65 << 20), (65 << 20, 1, 1)],
        [(70, -(4 << 20), 4), (1 << 20, 4, 280)],
        [(3, 4, 36 << 20), (9 << 20, 12, 4)],
    ],
    ids=str,
)
def test_a_nest_is_shortened_to_fit(digits: list[tuple[int, int, int]]) -> None:
    box = box_of(digits, 1)
    schedules = ways(box)
    small = shortened(box, schedules)
    assert small is not None
    low, stop, dst_low, dst_stop = reach_of(small)
    assert stop - low + dst_stop - dst_low <= tune.MOST_SPAN_BYTES
    assert touched(small, "src") + touched(small, "dst") <= tune.MOST_BYTES
    cut = schedules[0].transpose
    taken = (*cut.rows, *cut.columns) if cut else schedules[0].inner
    for axis, whole in zip(small.axes, box.axes, strict=True):
        assert 1 <= axis.extent <= whole.extent
        if axis.name in taken and axis.extent < whole.extent:
            assert axis.extent % tune.KEPT_EXTENT == 0
        assert axis == replace(whole, extent=axis.extent)
    assert small == replace(box, axes=small.axes)


def test_a_nest_that_fits_stays_and_one_that_cannot_fit_is_refused() -> None:
    assert shortened(BLOCKS, ways()) is not None
    assert shortened(BLOCKS, ways()) == BLOCKS
    far = box_of([(3, 4, 1 << 30), (50, 12, 4)], 4)
    assert shortened(box_of([(30, 4, 1 << 23), (50, 120, 4)], 4), ways(far)) is None
    assert shortened(far, ways(far)) is None
    refused = tuned(measure=Clock(1), store=KernelStore(None, "no place"))(far, ways(far))
    assert refused == ways(far)[0]


@pytest.mark.full
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("box", [BLOCKS, TRANSPOSED], ids=["blocks", "transposed"])
def test_times_come_from_the_clock(box: StridedBox, threads: int) -> None:
    """Every schedule runs. A clock that only counts shows one tick per copy."""
    ticks = count()
    times = timed(box, ways(box), threads=threads, clock=lambda: float(next(ticks)))
    assert len(set(times)) == 1
    assert 0 < times[0] <= 1


def test_compiling_candidates_has_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """One schedule always has a time; the others have none."""
    monkeypatch.setattr(tune, "MOST_SECONDS", 0.0)
    first, *others = timed(TRANSPOSED, ways(TRANSPOSED))
    assert 0 < first < 1
    assert set(others) == {float("inf")}


@pytest.mark.parametrize("box", [BLOCKS, TRANSPOSED], ids=["blocks", "transposed"])
def test_measured_launches_are_proven(box: StridedBox, monkeypatch: pytest.MonkeyPatch) -> None:
    """They stay in the box, whose memory is all that a measurement has."""
    made: list[Launch] = []

    def watched(*given: Any, **more: Any) -> Launch:
        made.append(launch_of(*given, **more))
        return made[-1]

    monkeypatch.setattr(tune, "launch_of", watched)
    ticks = count()
    timed(box, ways(box), clock=lambda: float(next(ticks)))
    src_low, src_stop, dst_low, dst_stop = reach_of(box)
    assert {launch.bounds for launch in made} == {((src_low, src_stop), (dst_low, dst_stop))}


@pytest.mark.full
@pytest.mark.usefixtures("_another_process")
@pytest.mark.parametrize("size", [None, 5, (8, 8)], ids=str)
def test_every_candidate_gives_the_same_bytes(size: Any) -> None:
    src = np.random.default_rng(3).integers(0, 1 << 16, (3, 70, 90)).astype(np.uint16)
    maps = []
    out = np.zeros((90, 3, 70), np.uint16)
    for array in (src.transpose(2, 0, 1), out):
        strides = array.strides
        reach = sum((n - 1) * s for n, s in zip(array.shape, strides, strict=True)) + 2
        maps.append(strided_map(array.shape, strides, (0, reach), element_bits=16))
    seen: set[Schedule] = set()
    for place in range(MOST_CANDIDATES):

        def pick(box: StridedBox, schedules: tuple[Schedule, ...], place: int = place) -> Schedule:
            chosen = schedules[place % len(schedules)]
            seen.add(chosen)
            return chosen

        element = Element("u16", 16)
        program = compile_copy(
            CopyRequest(*maps, element, element, options=CopyOptions(virtual_vector_size=size, pick=pick))
        )
        out[:] = 0
        program.run(src.ctypes.data, out.ctypes.data)
        assert (out == src.transpose(2, 0, 1)).all()
    assert len(seen) > 1


@pytest.mark.usefixtures("_another_process")
def test_tune_measures_with_the_clock_and_never_on_the_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tuned plan writes nothing when it is made, and copies like any other plan."""
    asked: list[int] = []

    def watched(box: StridedBox, schedules: tuple[Schedule, ...], **how: Any) -> tuple[float, ...]:
        asked.append(len(schedules))
        return timed(box, schedules, **how)

    monkeypatch.setattr(tune, "timed", watched)
    src = np.arange(300 * 200, dtype=np.float32).reshape(300, 200)
    out = np.full((200, 300), -1, np.float32)
    plan = plan_copy(out, src.T, tune=True)
    assert asked
    assert (out == -1).all()
    plan(out, src.T)
    assert (out == src.T).all()


@pytest.mark.usefixtures("_another_process")
@pytest.mark.parametrize(
    "text",
    [
        "f32[300,200]{1,0:T(8,128)}",
        "bf16[33,300]{1,0:T(8,128)(2,1)}",
        "s4[70,3,260]{1,0,2:T(64,128)(8,1)E(4)}",
        "pred[5,33,300]{2,0,1:T(32,128)(32,1)E(1)}",
        "f32[10,24,6]{2,0,1:T(*,7,2)}",
    ],
)
def test_tuned_packs_give_the_same_bytes(text: str) -> None:
    shape = tj.Shape.parse(text)
    x = np.arange(np.prod(shape.dimensions)).reshape(shape.dimensions).astype(shape.dtype)
    packed = tj.pack(x, shape, tune=True)
    assert packed.buffer.tobytes() == tj.pack(x, shape).buffer.tobytes()
    assert (tj.unpack(packed, tune=True) == x).all()


def test_candidates_for_too_many_loops_are_refused() -> None:
    digits = [(2, 4 * 3**k, 4 * 5**k) for k in range(9)]
    with pytest.raises(KernelError, match="outer loops"):
        candidates(box_of(digits, 4))
