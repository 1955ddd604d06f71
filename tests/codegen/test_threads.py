"""The pool: every part once, errors reach the caller, a forked child gets a pool of its own."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from subprocess import run
from sys import executable

import pytest

from codegen import threads
from codegen.errors import KernelError
from codegen.threads import PARALLEL_BYTES, default_threads, in_dask_worker, run_parts, thread_count
from tests.oracle import environment


@pytest.mark.parametrize("parts", [0, 1, 2, 3, 64])
def test_every_part_runs_once(parts: int) -> None:
    seen: list[tuple[int, int]] = []
    run_parts(lambda k, n: seen.append((k, n)), parts)
    count = max(1, parts)
    assert sorted(seen) == [(k, count) for k in range(count)]


def test_the_caller_takes_a_part() -> None:
    who: dict[int, str] = {}
    run_parts(lambda k, n: who.__setitem__(k, threading.current_thread().name), 3)
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
    assert thread_count(None, PARALLEL_BYTES - 1) == 1
    assert thread_count(None, PARALLEL_BYTES) == default_threads()
    assert thread_count(5, 0) == 5
    assert thread_count(1000, 0) == 64
    for wrong in (0, -1):
        with pytest.raises(KernelError, match="at least one thread"):
            thread_count(wrong, 0)
    for wrong_type in ("2", 2.0, True, [1]):
        with pytest.raises(TypeError, match="threads is a number"):
            thread_count(wrong_type, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "good"), [("3", True), ("0", False), ("-1", False), ("two", False), ("1000", True)]
)
def test_the_setting(value: str, good: bool) -> None:
    code = "from codegen.threads import default_threads; print(default_threads())"
    child = run(
        [executable, "-c", code],
        env=environment(TILEJIT_THREADS=value),
        capture_output=True,
        text=True,
        check=False,
    )
    if good:
        assert int(child.stdout) == min(int(value), 64)
    else:
        assert "KernelError" in child.stderr
        assert value in child.stderr


@pytest.mark.parametrize("value", ["0", "two"])
def test_a_wrong_setting_is_an_error_of_any_copy(value: str) -> None:
    """Of one that would have one thread anyway; not where the caller says how many."""
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
    child = run(
        [executable, "-c", code],
        env=environment(TILEJIT_THREADS=value),
        capture_output=True,
        text=True,
        check=False,
    )
    wrong = f"TILEJIT_THREADS={value} is no number of threads; set it to 1 or more"
    assert child.stdout.splitlines() == [wrong] * 2, child.stderr


def test_dask_workers_copy_alone() -> None:
    found: list[int] = []
    names = ["Dask-Default-Worker-0", "dask-worker-3", "MainThread"]
    for name in names:
        worker = threading.Thread(target=lambda: found.append(thread_count(None, 1 << 30)), name=name)
        worker.start()
        worker.join()
    assert found == [1, 1, default_threads()]
    assert not in_dask_worker()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_has_a_pool_of_its_own(tmp_path: Path) -> None:
    """fork in a process whose pool is warm, then parts in the child."""
    code = (
        "import os, sys\n"
        "from codegen.threads import run_parts\n"
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


def test_parts_that_no_thread_can_be_had_for_run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __init__(self, room: int) -> None:
            self.room = room
            self.pool = ThreadPoolExecutor(1)

        def submit(self, work: Callable[..., None], *arguments: int) -> Future[None]:
            if not self.room:
                raise RuntimeError("can't start new thread")
            self.room -= 1
            return self.pool.submit(work, *arguments)

    for room in range(4):
        monkeypatch.setattr(threads, "_pool", lambda room=room: Full(room))
        done: list[tuple[int, int]] = []
        threads.run_parts(lambda *part, done=done: done.append(part), 4)
        assert sorted(done) == [(0, 4), (1, 4), (2, 4), (3, 4)]


def test_a_signal_that_raises_waits_for_every_part() -> None:
    done: list[int] = []

    def work(part: int, parts: int) -> None:
        if part == 0:
            raise KeyboardInterrupt
        time.sleep(0.2)
        done.append(part)

    with pytest.raises(KeyboardInterrupt):
        threads.run_parts(work, 3)
    assert sorted(done) == [1, 2]
