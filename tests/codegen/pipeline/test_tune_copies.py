"""Tuning of complete copies: every program gives the same bytes, and the fastest is remembered."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.backend.store import KernelStore
from codegen.pipeline import tune, tune_copies
from codegen.pipeline.copies import compile_copy
from codegen.pipeline.copy_options import AnyProgram, CopyOptions
from codegen.pipeline.copy_request import CopyRequest
from codegen.pipeline.program import CopyProgram
from codegen.pipeline.staged import StagedProgram
from codegen.pipeline.steps import step_of
from codegen.pipeline.tune_copies import Program, described, timed_copies, tuned_copies
from codegen.schedule.schedule import Schedule
from codegen.schedule.thresholds import Thresholds
from codegen.support.caching import Cache
from tilejit.copies.convert import single_pass_program
from tilejit.layout.as_layout import as_layout
from tilejit.programs.compiled import buffer_element
from tilejit.programs.copy_programs import copy_program
from tilejit.programs.moves import move_for
from tilejit.programs.pack_programs import pack_program
from tilejit.programs.relayout_programs import relayout_program
from tilejit.programs.tuning import Tuning

NEVER, ALWAYS = Thresholds(stream_bytes=1 << 62), Thresholds(stream_bytes=0)
GATHERED, CHUNKS = "u8[600,400]{1,0:T(8,8)}", "u16[40960] Sw<2,4,3> o 0 o 40960:1"
"""Runs that share lines of the destination, and boxes that repeatedly write the same chunks."""


class Picker:
    """Picks the program at one position, and keeps all programs."""

    def __init__(self, place: int = 0) -> None:
        self.place = place
        self.programs: list[Any] = []

    def __call__(self, programs: Sequence[AnyProgram], /) -> AnyProgram:
        self.programs = list(programs)
        return programs[self.place % len(programs)]


class Clock:
    """A measurement that prefers one program, and counts its calls."""

    def __init__(self, best: int) -> None:
        self.best, self.asked = best, 0

    def __call__(self, programs: Sequence[Program]) -> list[float]:
        self.asked += 1
        return [float(k != self.best) for k in range(len(programs))]


def pack_by(text: str, pick: Picker, thresholds: Thresholds, threads: int = 1) -> CopyProgram:
    """Pack into a layout, with the program that is picked."""
    spec = as_layout(text)
    plain = single_pass_program(np.zeros(spec.dimensions, spec.dtype), spec)
    boxed = plain.boxed if isinstance(plain, CopyProgram) else None
    assert boxed is not None
    element = buffer_element(spec)
    options = CopyOptions(threads, thresholds=thresholds, pick_copy=pick)
    return compile_copy(CopyRequest(boxed.src, boxed.dst, element, element, options=options))


def programs_of(text: str) -> list[CopyProgram]:
    picker = Picker()
    pack_by(text, picker, NEVER)
    return picker.programs


@pytest.mark.full
@pytest.mark.parametrize("text", [GATHERED, CHUNKS], ids=["runs", "swizzled"])
@pytest.mark.parametrize("thresholds", [NEVER, ALWAYS], ids=["in cache", "past it"])
@pytest.mark.parametrize("threads", [1, 2])
def test_every_program_gives_the_same_bytes(text: str, thresholds: Thresholds, threads: int) -> None:
    spec = as_layout(text)
    x = np.random.default_rng(3).integers(0, 200, spec.dimensions).astype(spec.dtype)
    want = tj.pack(x, text).buffer
    picker = Picker()
    chosen = pack_by(text, picker, thresholds, threads)
    assert chosen is picker.programs[0]
    assert len(picker.programs) > 1
    assert len({program.steps[0].schedule.mode for program in picker.programs}) > 1
    for program in picker.programs:
        got = np.zeros_like(want)
        program.run(x.ctypes.data, got.ctypes.data, threads)
        assert (got == want).all(), program.steps[0].schedule


def test_the_first_program_is_the_one_used_without_tuning() -> None:
    for text in (GATHERED, CHUNKS):
        for thresholds in (NEVER, ALWAYS):
            picker = Picker()
            first = pack_by(text, picker, thresholds)
            spec = as_layout(text)
            boxed, element = first.boxed, buffer_element(spec)
            plain = compile_copy(
                CopyRequest(
                    boxed.src, boxed.dst, element, element, options=CopyOptions(thresholds=thresholds)
                )
            )
            assert described(plain) == described(first)


@pytest.mark.full
def test_all_programs_are_timed() -> None:
    ticks = count()
    programs = programs_of(CHUNKS)
    times = timed_copies(programs, clock=lambda: float(next(ticks)))
    assert len(times) == len(programs)
    assert all(0 < time <= 1 for time in times)


@pytest.mark.usefixtures("_another_process")
def test_the_winner_is_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs, clock, store = programs_of(CHUNKS), Clock(1), KernelStore(tmp_path)
    pick = tuned_copies(measure=clock, store=store)
    assert pick(programs) is pick(programs) is programs[1]
    monkeypatch.setattr(tune, "_winners", Cache())
    again = programs_of(CHUNKS)
    assert tuned_copies(measure=clock, store=store)(again) is again[1]
    assert clock.asked == len(store.notes()) == 1
    assert tuned_copies(2, measure=clock, store=store)(programs) is programs[1]
    assert clock.asked == 2


@pytest.mark.usefixtures("_another_process")
def test_large_copies_are_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs, clock = programs_of(CHUNKS), Clock(1)
    monkeypatch.setattr(tune_copies, "MOST_BYTES", 1000)
    assert tuned_copies(measure=clock, store=KernelStore(tmp_path))(programs) is programs[0]
    assert not clock.asked


@pytest.mark.full
@pytest.mark.usefixtures("_another_process")
def test_a_tuned_pack_times_its_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def watched(programs: Sequence[Program], **how: Any) -> list[float]:
        asked.append(len(programs))
        return timed_copies(programs, **how)

    monkeypatch.setattr(tune_copies, "timed_copies", watched)
    x = np.arange(600 * 400, dtype=np.uint32).astype(np.uint8).reshape(600, 400)
    want = tj.pack(x, GATHERED).buffer
    assert (tj.pack(x, GATHERED, tune=True).buffer == want).all()
    assert asked == [2]


def relayouted(tuning: Tuning, threads: int) -> tuple[Any, ...]:
    """A relayout of short rows: what it reads, and what it writes."""
    source, target = (tj.Shape.parse(f"u16[500,900]{x}") for x in ("{1,0:T(8,128)(2,1)}", "{0,1:T(4,16)}"))
    x = np.arange(450_000, dtype=np.uint32).astype(np.uint16).reshape(500, 900)
    program = relayout_program.__wrapped__(source, target, bytes(2), threads, tuning)
    return program, tj.pack(x, source).buffer, tj.pack(x, target).buffer


def converted(tuning: Tuning, threads: int) -> tuple[Any, ...]:
    """A transposed conversion to a narrower dtype."""
    x = np.random.default_rng(5).random((420, 700))
    move = move_for(x.dtype, np.dtype("f4"))
    program = copy_program.__wrapped__((700, 420), (1680, 4), (8, 5600), move, threads, tuning)
    return program, x, x.T.astype("f4", order="C")


def swizzled(tuning: Tuning, threads: int) -> tuple[Any, ...]:
    """A pack into a swizzled layout."""
    spec = tj.as_layout("Sw<3,3,3> o 0 o (1024,512):(512,1)", dims=(1024, 512), dtype="u16")
    x = np.arange(1 << 19, dtype=np.uint32).astype(np.uint16).reshape(1024, 512)
    how = spec, x.strides, buffer_element(spec), bytes(2), False, threads, tuning
    return pack_program.__wrapped__(*how), x, tj.pack(x, spec).buffer


@pytest.mark.full
@pytest.mark.usefixtures("_another_process")
@pytest.mark.parametrize("make", [relayouted, converted, swizzled])
@pytest.mark.parametrize("threads", [1, 2])
def test_one_stage_and_two_give_the_same_bytes(
    make: Any, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever is fastest. The blocks have more than one size."""
    monkeypatch.setattr(tune, "timed", lambda box, schedules, **_: tuple(map(float, range(len(schedules)))))
    found: set[str] = set()
    for best in range(3):
        monkeypatch.setattr(tune, "_winners", Cache())
        store = KernelStore(tmp_path / str(best))
        for module in (tune, tune_copies):
            monkeypatch.setattr(module, "default_store", lambda store=store: store)
        monkeypatch.setattr(
            tune_copies, "timed_copies", lambda programs, best=best, **_: Clock(best)(programs)
        )
        program, src, want = make(Tuning(tune=True), threads)
        found.add(str(program) if isinstance(program, StagedProgram) else "")
        got = np.full_like(want, 0)
        program.run(src.ctypes.data, got.ctypes.data, threads)
        assert (got == want).all(), program
    assert "" in found
    assert len(found) == 3


@pytest.mark.full
@pytest.mark.usefixtures("_another_process")
@pytest.mark.parametrize("make", [relayouted, converted, swizzled])
def test_other_schedules_of_stages_give_the_same_bytes(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One stage differs from that of the first program in two stages."""
    seen: list[StagedProgram] = []

    def timed(programs: Sequence[Program], **_: Any) -> list[float]:
        seen.extend(x for x in programs if isinstance(x, StagedProgram))
        return [0.0] * len(programs)

    monkeypatch.setattr(tune, "timed", lambda box, schedules, **_: tuple(map(float, range(len(schedules)))))
    monkeypatch.setattr(tune_copies, "timed_copies", timed)
    for module in (tune, tune_copies):
        monkeypatch.setattr(module, "default_store", lambda: KernelStore(tmp_path))
    _, src, want = make(Tuning(tune=True), 1)
    first, _, *others = seen
    assert others
    for program in others:
        stages = zip(first.programs.values(), program.programs.values(), strict=True)
        differ = {k for pairs in stages for k, (a, b) in enumerate(zip(*pairs, strict=True)) if a != b}
        assert len(differ) == 1
        got = np.full_like(want, 0)
        program.run(src.ctypes.data, got.ctypes.data, 1)
        assert (got == want).all(), program


@pytest.mark.full
@pytest.mark.usefixtures("_another_process")
@pytest.mark.parametrize(
    ("source", "target"), [("f8", "f4"), ("f4", "f2"), ("f4", "f8"), ("i4", "f4"), ("u2", ">u2")]
)
def test_every_candidate_of_a_converting_transpose_has_a_kernel(
    source: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Conversions support few block shapes."""
    seen: list[Schedule] = []

    def measured(box: Any, schedules: tuple[Schedule, ...], **_: Any) -> tuple[float, ...]:
        for schedule in schedules:
            assert step_of(box, schedule).kernel.source
        seen.extend(schedules)
        return tuple(map(float, range(len(schedules))))

    monkeypatch.setattr(tune, "timed", measured)
    monkeypatch.setattr(tune, "default_store", lambda: KernelStore(tmp_path))
    x = (np.arange(200_000) % 1000).reshape(400, 500).astype(source)
    out = np.zeros((500, 400), target)
    how = 1, Tuning(tune=True)
    move = move_for(x.dtype, out.dtype)
    copy_program.__wrapped__(out.shape, out.strides, x.T.strides, move, *how).run(
        x.ctypes.data, out.ctypes.data
    )
    assert (out == x.T.astype(target)).all()
    assert len({s.transpose.block for s in seen if s.transpose}) > 1
