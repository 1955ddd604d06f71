"""Launches: where parts begin, and that addresses do not leave the process."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilejit as tj
from codegen.pipeline.program import CopyProgram
from codegen.runtime.kernel import Kernel
from codegen.runtime.launch import LINE_BYTES, PAGE_BYTES, Launch, on_boundary
from codegen.schedule.call_limits import UNEVEN
from codegen.schedule.thresholds import Thresholds
from codegen.schedule.transfers import offset_tables
from tests.tools.strategies import Pick
from tilejit.programs import compiled as programs


@given(st.data())
def test_parts_begin_on_boundaries(data: st.DataObject) -> None:
    """Parts begin on a page or a line if a number near enough allows it, and no nearer number does."""
    pick: Pick = lambda low, high: data.draw(st.integers(low, high))  # noqa: E731
    near, start, most_off = pick(0, 5000), pick(0, 10000), pick(0, 700)
    step = pick(-300, 300) * data.draw(st.sampled_from([1, 4, 16, 64, 512])) or 4
    found = on_boundary(near, start, step, most_off=most_off)
    assert abs(found - near) <= most_off
    numbers = range(near - most_off, near + most_off + 1)
    for boundary in (PAGE_BYTES, LINE_BYTES):
        good = [k for k in numbers if (start + k * step) % boundary == 0]
        if good:
            assert found in good or boundary == PAGE_BYTES, "a page may be there by luck"
        if found in good:
            assert abs(found - near) == min(abs(k - near) for k in good)
            return
    assert found == near


def launches_of(dst: np.ndarray, src: np.ndarray) -> tuple[Launch, ...]:  # type: ignore[type-arg]
    program = tj.plan_copy(dst, src, threads=2)._program
    assert program
    return program.launches


def test_threads_do_not_share_cache_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    src, room = np.zeros((1001, 400), np.float32)[:, :301], np.zeros(1001 * 301 + 64, np.float32)
    (launch,) = launches_of(room[: 1001 * 301].reshape(1001, 301), src)
    calls: list[tuple[int, int]] = []
    monkeypatch.setattr(
        Kernel, "call", property(lambda kernel: lambda operands, scratch, sizes, *part: calls.append(part))
    )
    skipped = -room.ctypes.data % LINE_BYTES
    for parts in (1, 2, 3, 7):
        for within in (0, 4, 20):
            calls.clear()
            at = room.ctypes.data + skipped + within
            for k in range(parts):
                launch.run(src.ctypes.data, at, k, parts)
            assert [begin for begin, _ in calls] + [1001] == [0] + [end for _, end in calls]
            for begin, end in calls:
                assert begin == 0 or (at + begin * 301 * 4) % LINE_BYTES == 0
                assert abs(end - begin - Fraction(1001, parts)) <= Fraction(2 * 1001, UNEVEN * parts) + 1


def test_a_copied_launch_holds_no_addresses() -> None:
    """It has its own tables, and its arguments refer to those."""
    src = np.random.default_rng(0).integers(0, 9, (8, 5, 6, 30)).astype(np.float32).transpose(3, 1, 2, 0)
    program = tj.plan_copy(src.copy(), src, threads=2)._program
    assert isinstance(program, CopyProgram)
    (launch,) = program.launches
    assert tables_of(launch)
    assert tables_of(launch) <= set(launch.sizes.tolist())
    for again in (copy.deepcopy(program), pickle.loads(pickle.dumps(program))):
        (other,) = again.launches
        assert tables_of(other) <= set(other.sizes.tolist())
        assert not tables_of(launch) & set(other.sizes.tolist())
        out = np.zeros(src.shape, np.float32)
        again.run(src.ctypes.data, out.ctypes.data)
        assert (out == src).all()


def test_threads_share_arguments_and_have_their_own_scratch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of a staged copy differ in scratch and range. Nothing writes to the table of arguments."""
    src, dst = np.zeros((600, 700), np.uint32).T, np.zeros((700, 600), np.uint32)
    monkeypatch.setattr(programs, "machine_thresholds", lambda size: Thresholds(stream_bytes=0))
    (launch,) = launches_of(dst, src)
    assert launch.scratch_bytes
    launch.sizes.flags.writeable = False
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(Kernel, "call", property(lambda kernel: lambda *given: calls.append(given)))
    for part in range(2):
        thread = Thread(target=launch.run, args=(src.ctypes.data, dst.ctypes.data, part, 2))
        thread.start()
        thread.join()
    assert len(calls) == 2
    for operands, scratch, sizes, *_ in calls:
        assert np.frombuffer(operands, np.int64).tolist() == [src.ctypes.data, dst.ctypes.data]
        assert scratch
        assert scratch % LINE_BYTES == 0
        assert sizes == launch.sizes.ctypes.data


def tables_of(launch: Launch) -> set[int]:
    """The addresses of the tables of joined rows and columns."""
    tables = offset_tables(launch.step.nest.transfer)
    return {table.offsets.ctypes.data for table in tables.values()}


def test_calls_cannot_be_pickled() -> None:
    src = np.zeros((70, 90), np.float32).T
    (launch,) = launches_of(src.copy(), src)
    calls = launch.every_call(aligned=True)
    for take in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="a call holds addresses of this process\n  pickle or copy"):
            take(calls[0][1])
