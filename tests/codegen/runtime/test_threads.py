"""The thread pool runs every part once, passes errors to the caller, and is new in a forked child."""

from __future__ import annotations

import gc
import os
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import run
from sys import executable

import pytest

from codegen.runtime.threads import (
    MOST_THREADS,
    default_threads,
    in_dask_worker,
    parallel_bytes,
    run_parts,
    thread_count,
)
from codegen.schedule.call_limits import BOUND_BY_MEMORY, COMPUTES, TRANSPOSES
from codegen.support.errors import KernelError, KernelValueError
from tests.tools.oracle import environment, run_python


@pytest.mark.parametrize("parts", [0, 1, 2, 3, 64])
def test_every_part_runs_once(parts: int) -> None:
    seen: list[tuple[int, int]] = []
    run_parts(lambda k, n: seen.append((k, n)), parts)
    count = max(1, parts)
    assert sorted(seen) == [(k, count) for k in range(count)]


def test_the_caller_takes_a_part_and_the_pool_the_others() -> None:
    who: dict[int, str] = {}
    meet = threading.Barrier(3)

    def work(part: int, parts: int) -> None:
        who[part] = threading.current_thread().name
        meet.wait(60)

    run_parts(work, 3)
    assert who[0] == threading.current_thread().name
    assert all(who[k].startswith("tilejit") for k in (1, 2))


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_an_error_in_any_part_is_raised_after_all_are_done(bad: int) -> None:
    done = []

    def work(part: int, parts: int) -> None:
        if part == bad:
            raise KernelError(f"part {part}")
        done.append(part)

    with pytest.raises(KernelError, match=f"part {bad}"):
        run_parts(work, 3)
    assert sorted(done) == [k for k in range(3) if k != bad]


def test_thread_count() -> None:
    for slowness in (BOUND_BY_MEMORY, TRANSPOSES, COMPUTES):
        least = parallel_bytes(slowness)
        assert thread_count(None, least - 1, slowness) == 1
        assert thread_count(None, least, slowness) == default_threads()
    assert thread_count(5, 0) == 5
    assert thread_count(1000, 0) == 64
    for wrong in (0, -1):
        with pytest.raises(KernelValueError, match="at least one thread"):
            thread_count(wrong, 0)
    for wrong_type in ("2", 2.0, True, [1]):
        with pytest.raises(TypeError, match="threads: expected a number"):
            thread_count(wrong_type, 0)  # type: ignore[arg-type]


@pytest.mark.full
@pytest.mark.parametrize(
    ("value", "good"), [("3", True), ("0", False), ("-1", False), ("two", False), ("1000", True)]
)
def test_the_threads_setting(value: str, good: bool) -> None:
    code = "from codegen.runtime.threads import default_threads; print(default_threads())"
    child = run_python(code, TILEJIT_THREADS=value)
    if good:
        assert int(child.stdout) == min(int(value), 64)
    else:
        assert "KernelError" in child.stderr
        assert value in child.stderr


@pytest.mark.full
@pytest.mark.parametrize("value", ["0", "two"])
def test_a_wrong_setting_is_an_error_for_any_copy(value: str) -> None:
    """Even a copy that would use one thread raises, unless the caller gives the number of threads."""
    code = """
import numpy as np, tilejit as tj
x = np.zeros((3, 5), np.float32)
tj.pack(x, "{1,0:T(2,2)}", threads=1)
for copy in (lambda: tj.pack(x, "{1,0:T(2,2)}"), lambda: tj.plan_copy(x, x)):
    try:
        copy()
    except tj.TilejitError as error:
        print(error)
"""
    child = run_python(code, TILEJIT_THREADS=value)
    wrong = f"TILEJIT_THREADS={value} is not a number of threads; set it to 1 or more"
    assert child.stdout.splitlines() == [wrong] * 2, child.stderr


def found_here() -> tuple[bool, int]:
    return in_dask_worker(), thread_count(None, 1 << 30)


def test_thread_names_do_not_look_like_dask_workers() -> None:
    found: list[tuple[bool, int]] = []
    worker = threading.Thread(target=lambda: found.append(found_here()), name="Dask-Default-Worker-0")
    worker.start()
    worker.join()
    assert found == [(False, default_threads())]


def test_dask_tasks_copy_on_one_thread() -> None:
    """On dask's own pools and on one of the caller's.

    The synchronous scheduler does not count, because it uses this thread.
    """
    dask = pytest.importorskip("dask")
    pytest.importorskip("dask.threaded")
    task = dask.delayed(found_here, pure=False)
    with ThreadPoolExecutor(2) as own:
        for keywords in ({}, {"num_workers": 3}, {"pool": own}):
            for _ in range(5):
                assert task().compute(scheduler="threads", **keywords) == (True, 1)
        assert own.submit(found_here).result() == (False, default_threads())
    inner = dask.delayed(lambda: task().compute(scheduler="synchronous"))
    assert inner().compute(scheduler="threads") == (True, 1)
    assert task().compute(scheduler="synchronous") == (False, default_threads())
    assert found_here() == (False, default_threads())


def test_distributed_tasks_copy_on_one_thread() -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None
    ) as client:
        assert client.submit(found_here, pure=False).result(60) == (True, 1)
        assert found_here() == (False, default_threads())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_its_own_pool(tmp_path: Path) -> None:
    """Fork a process whose pool is warm, then run parts in the child."""
    code = (
        "import os, sys\n"
        "from codegen.runtime.threads import run_parts\n"
        "run_parts(lambda k, n: None, 3)\n"
        "pid = os.fork()\n"
        "seen = []\n"
        "run_parts(lambda k, n: seen.append(k), 3)\n"
        "if pid == 0:\n"
        "    os._exit(0 if sorted(seen) == [0, 1, 2] else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    assert (
        run([executable, "-W", "ignore", "-c", code], env=environment(), timeout=60, check=False).returncode
        == 0
    )


@pytest.fixture
def busy() -> Iterator[threading.Event]:
    """Every thread of the pool waits for the event."""
    parts = MOST_THREADS + 1
    free, begun = threading.Event(), threading.Barrier(parts + 1)
    work = threading.Thread(target=run_parts, args=(lambda *_: (begun.wait(60), free.wait(60)), parts))
    work.start()
    begun.wait(60)
    yield free
    free.set()
    work.join()


def test_parts_that_no_thread_takes_run_once_on_the_caller(busy: threading.Event) -> None:
    done: list[tuple[int, int]] = []
    run_parts(lambda *part: done.append(part), 4)
    assert sorted(done) == [(0, 4), (1, 4), (2, 4), (3, 4)]
    busy.set()
    run_parts(lambda *part: None, 4)
    assert len(done) == 4


NO_THREADS = """
import threading
from codegen.runtime.threads import run_parts

start, done = threading.Thread.start, []

def refuse(thread):
    raise RuntimeError("can't start new thread")

threading.Thread.start = refuse
for _ in range(3):
    run_parts(lambda *part: done.append(part), 2)
assert done == [(0, 2), (1, 2)] * 3, done
threading.Thread.start = start
run_parts(lambda *part: done.append(part), 2)
assert len(done) == 8, "a pool without threads would gather what it is given"
"""


def test_parts_run_on_the_caller_if_no_thread_can_start() -> None:
    child = run_python(NO_THREADS)
    assert child.returncode == 0, child.stderr


@pytest.mark.usefixtures("busy")
def test_queued_parts_hold_no_references() -> None:
    class Memory:
        pass

    memory = Memory()
    gone = weakref.ref(memory)
    run_parts(lambda k, n, alive=memory: None, 3)  # type: ignore[misc]
    del memory
    gc.collect()
    assert gone() is None


def test_no_part_runs_twice() -> None:
    """Callers and the pool try to take the same parts again and again."""
    counts = [0] * 4000

    def one(at: int) -> None:
        def work(part: int, parts: int) -> None:
            counts[at * 8 + part] += 1

        run_parts(work, 8)

    with ThreadPoolExecutor(4) as callers:
        list(callers.map(one, range(500)))
    assert set(counts) == {1}


def test_a_signal_that_raises_waits_for_every_part() -> None:
    done: list[int] = []

    def work(part: int, parts: int) -> None:
        if part == 0:
            raise KeyboardInterrupt
        time.sleep(0.2)
        done.append(part)

    with pytest.raises(KeyboardInterrupt):
        run_parts(work, 3)
    assert sorted(done) == [1, 2]
