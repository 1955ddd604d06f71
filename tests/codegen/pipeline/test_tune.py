"""Tuning measures once, remembers the result, and never changes an answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen import (
    CopyOptions,
    CopyProgram,
    CopyRequest,
    Element,
    strided_map,
    tuned,
    tuned_copies,
)
from codegen.backend.store import KernelStore
from codegen.pipeline.copies import compile_copy
from tilejit.arrays.memory import bytes_map
from tilejit.layout.as_layout import as_layout
from tilejit.layout.indexing import access_map

U32 = Element("u32", 32)
ROWS, COLUMNS = 130, 140


class Clock:
    """A measurement that prefers the choice at one position, and counts its calls."""

    def __init__(self, best: int) -> None:
        self.best, self.asked = best, 0

    def __call__(self, *given: Any) -> tuple[float, ...]:
        self.asked += 1
        return tuple(float(k != self.best) for k in range(len(given[-1])))


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    """Act like a process that has measured nothing."""
    tj.clear_caches()


def transpose(columns: int = COLUMNS, **options: Any) -> str:
    """The schedules of a transpose, as text, with their directives."""
    stop = 4 * ROWS * columns
    src = strided_map((columns, ROWS), (4, 4 * columns), (0, stop), element_bits=32)
    dst = strided_map((columns, ROWS), (4 * ROWS, 4), (0, stop), element_bits=32)
    program = compile_copy(CopyRequest(src, dst, U32, U32, options=CopyOptions(**options)))
    return "\n".join(f"{step.schedule}\n{step.nest}" for step in program.steps)


def at(position: int) -> str:
    return transpose(pick=lambda box, schedules: schedules[position])


def test_the_winner_is_measured_once(tmp_path: Path) -> None:
    clock = Clock(1)
    for _ in range(2):
        assert transpose(pick=tuned(measure=clock, store=KernelStore(tmp_path))) == at(1) != at(0)
    tj.clear_caches()
    assert transpose(pick=tuned(measure=clock, store=KernelStore(tmp_path))) == at(1)
    assert clock.asked == 1


def test_nothing_is_measured_without_memory(tmp_path: Path) -> None:
    def measure(*given: object) -> tuple[float, ...]:
        raise MemoryError

    assert transpose(pick=tuned(measure=measure, store=KernelStore(tmp_path))) == transpose()
    assert KernelStore(tmp_path).notes() == []


def test_without_a_store_the_process_remembers() -> None:
    clock = Clock(1)
    for _ in range(2):
        assert transpose(pick=tuned(measure=clock, store=KernelStore(None, "no place"))) == at(1)
    assert clock.asked == 1


def test_other_copies_are_measured_separately(tmp_path: Path) -> None:
    """Another number of threads, another box, other kernels."""
    clock, store = Clock(1), KernelStore(tmp_path)
    transpose(pick=tuned(measure=clock, store=store))
    transpose(pick=tuned(2, measure=clock, store=store))
    transpose(pick=tuned(measure=clock, store=store, specialize="sizes"))
    transpose(COLUMNS + 5, pick=tuned(measure=clock, store=store))
    assert clock.asked == len(store.notes()) == 4


@pytest.mark.parametrize("note", ["elements | outer d0", 3, None, "", ["run"]], ids=repr)
def test_an_invalid_note_is_measured_again(tmp_path: Path, note: object) -> None:
    store, clock = KernelStore(tmp_path), Clock(1)
    transpose(pick=tuned(measure=clock, store=store))
    (path,) = store.notes()
    store.put_note(path.stem, {"winner": note})
    tj.clear_caches()
    assert transpose(pick=tuned(measure=clock, store=store)) == at(1)
    assert clock.asked == 2


def packs(pick: Any) -> CopyProgram:
    """A pack whose boxes can be joined."""
    spec = as_layout("u16[20480] Sw<2,4,3> o 0 o 20480:1")
    element, plain = Element("u16", 16), bytes_map(spec.dimensions, (2,), 2)
    return compile_copy(
        CopyRequest(plain, access_map(spec), element, element, options=CopyOptions(pick_copy=pick))
    )


def test_the_fastest_of_several_programs_is_remembered(tmp_path: Path) -> None:
    seen: list[Sequence[CopyProgram]] = []
    clock, store = Clock(1), KernelStore(tmp_path)

    def pick(programs: Sequence[CopyProgram]) -> CopyProgram:
        seen.append(programs)
        return tuned_copies(measure=clock, store=store)(programs)  # type: ignore[arg-type]

    for _ in range(2):
        assert packs(pick) is seen[-1][1]
        tj.clear_caches()
    assert clock.asked == len(store.notes()) == 1


@pytest.mark.full
def test_a_plan_is_tuned_without_writing_to_the_arrays() -> None:
    src = np.arange(300 * 200, dtype=np.float32).reshape(300, 200)
    out = np.full((200, 300), -1, np.float32)
    plan = tj.plan_copy(out, src.T, tune=True)
    assert (out == -1).all()
    plan(out, src.T)
    assert (out == src.T).all()


@pytest.mark.full
@pytest.mark.parametrize(
    "text",
    [
        "f32[300,200]{1,0:T(8,128)}",
        "bf16[33,300]{1,0:T(8,128)(2,1)}",
        "s4[70,3,260]{1,0,2:T(64,128)(8,1)E(4)}",
        "pred[5,33,300]{2,0,1:T(32,128)(32,1)E(1)}",
        "f32[10,24,6]{2,0,1:T(*,7,2)}",
        "u8[600,400]{1,0:T(8,8)}",
    ],
)
def test_tuned_packs_give_the_same_bytes(text: str) -> None:
    shape = tj.Shape.parse(text)
    x = np.arange(np.prod(shape.dimensions)).reshape(shape.dimensions).astype(shape.dtype)
    packed = tj.pack(x, shape, tune=True)
    assert packed.buffer.tobytes() == tj.pack(x, shape).buffer.tobytes()
    assert (tj.unpack(packed, tune=True) == x).all()
