"""Tuning on calls: every call copies, the fastest program stays, and later processes start with it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codegen import CopyOptions, CopyRequest, Element, LiveProgram, live_copy, strided_map
from codegen.backend.store import KernelStore
from codegen.pipeline.copies import compile_copy
from codegen.pipeline.tune_live import GAIN, MOST_TRIED, TURNS
from codegen.support.errors import KernelError

U32 = Element("u32", 32)
ROWS, COLUMNS = 130, 140
X = np.arange(ROWS * COLUMNS, dtype=np.uint32).reshape(ROWS, COLUMNS)


def request(rows: int = ROWS, columns: int = COLUMNS) -> CopyRequest:
    """A transpose."""
    stop = 4 * rows * columns
    src = strided_map((columns, rows), (4, 4 * columns), (0, stop), element_bits=32)
    dst = strided_map((columns, rows), (4 * rows, 4), (0, stop), element_bits=32)
    return CopyRequest(src, dst, U32, U32, options=CopyOptions())


class Clock:
    """Gives each program, in the order of its first run, a time of its own."""

    def __init__(self, *seconds: float) -> None:
        self.seconds, self.now, self.live = seconds, 0.0, None
        self.runs: list[int] = []
        self.began = False

    def __call__(self) -> float:
        assert isinstance(self.live, LiveProgram)
        self.began = not self.began
        if not self.began:
            number = self.live._turn()
            self.runs.append(number)
            self.now += self.seconds[number] if number < len(self.seconds) else 2.0
        return self.now


def live(clock: Clock, store: KernelStore) -> LiveProgram:
    """A transpose that tries several programs."""
    made = live_copy(compile_copy(request()), request(), store=store, clock=clock)
    assert isinstance(made, LiveProgram)
    clock.live = made
    return made


def transposed(program: Any) -> None:
    """Run the program on new memory and check every byte."""
    out = np.zeros((COLUMNS, ROWS), np.uint32)
    program.run(X.ctypes.data, out.ctypes.data, alive=(X, out))
    assert np.array_equal(out, X.T)


def test_the_fastest_program_stays(tmp_path: Path) -> None:
    clock, store = Clock(1.0, 1.0, 0.5), KernelStore(tmp_path)
    program = live(clock, store)
    assert 2 < len(program.programs) <= MOST_TRIED
    while program.best is None:
        transposed(program)
    assert program.best is program.programs[2]
    assert program.steps == program.best.steps
    transposed(program)
    again = live_copy(compile_copy(request()), request(), store=store)
    assert [x.schedule for x in again.steps] == [x.schedule for x in program.best.steps]
    transposed(again)


def test_slow_programs_have_two_turns_and_others_all(tmp_path: Path) -> None:
    clock = Clock(1.0, 1.1, 5.0)
    program = live(clock, KernelStore(tmp_path))
    while program.best is None:
        transposed(program)
    turns = [clock.runs.count(k) for k in range(3)]
    assert turns == [TURNS, TURNS, 2]


def test_the_first_choice_stays_unless_another_gains(tmp_path: Path) -> None:
    program = live(Clock(1.0, GAIN + 0.01), KernelStore(tmp_path))
    while program.best is None:
        transposed(program)
    assert program.best is program.programs[0]


@pytest.mark.parametrize("note", [-1, 99, None, "1", 1.0, True], ids=repr)
def test_an_invalid_note_is_tried_again(tmp_path: Path, note: object) -> None:
    store = KernelStore(tmp_path)
    program = live(Clock(1.0, 0.5), store)
    while program.best is None:
        transposed(program)
    (path,) = [x for x in store.notes() if x.stem.startswith("live-")]
    store.put_note(path.stem, {"winner": note})
    assert isinstance(live_copy(compile_copy(request()), request(), store=store), LiveProgram)


def test_small_copies_are_not_tried() -> None:
    small = request(20, 30)
    program = compile_copy(small)
    assert live_copy(program, small) is program


def test_threads_may_try_at_the_same_time(tmp_path: Path) -> None:
    program = live_copy(compile_copy(request()), request(), store=KernelStore(tmp_path))
    assert isinstance(program, LiveProgram)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(transposed, [program] * (MOST_TRIED * TURNS + 8)))
    assert program.best is not None


def test_an_error_costs_no_turn_and_writes_nothing(tmp_path: Path) -> None:
    program = live(Clock(1.0, 0.5), KernelStore(tmp_path))
    both = X.copy()
    with pytest.raises(KernelError, match="overlap"):
        program.run(both.ctypes.data, both.ctypes.data, alive=both)
    assert np.array_equal(both, X)


def test_a_program_without_kernel_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = live(Clock(1.0, 0.5), KernelStore(tmp_path))
    broken = program.programs[1]
    prepared = type(broken).prepare

    def prepare(self: Any, dst: int) -> None:
        if self is broken:
            raise KernelError("no kernel")
        prepared(self, dst)

    monkeypatch.setattr(type(broken), "prepare", prepare)
    while program.best is None:
        transposed(program)
    assert program.best is not broken
