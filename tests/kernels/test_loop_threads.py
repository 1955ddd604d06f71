"""The number of threads of a loop kernel: `parallel`, the size of the arrays, and dask."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.runtime import threads
from codegen.runtime.loop_kernel import BoundKernel
from codegen.schedule.call_limits import PARALLEL_BYTES
from tilejit.kernels import program as loop_program
from tilejit.kernels.loop_options import LoopOptions

MOST = 3
SMALL, LARGE = 1 << 10, PARALLEL_BYTES >> 3
"""Elements of two f64 arrays that are together below, and above, the size from which threads share work."""


def doubled(x, y):  # type: ignore[no-untyped-def]
    for i in tj.parallel(range(x.shape[0])):
        y[i] = 2 * x[i]


def plainly_doubled(x, y):  # type: ignore[no-untyped-def]
    for i in range(x.shape[0]):
        y[i] = 2 * x[i]


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of threads that each call of a kernel got."""
    found: list[int] = []
    run = BoundKernel.run

    def noted(self: BoundKernel, given: Any, count: int = 1, **keywords: Any) -> Any:
        found.append(count)
        return run(self, given, count, **keywords)

    monkeypatch.setattr(BoundKernel, "run", noted)
    monkeypatch.setattr(threads, "default_threads", lambda: MOST)
    monkeypatch.setattr(threads, "parallel_bytes", lambda slowness: PARALLEL_BYTES)
    return found


def call(kernel: Any, count: int) -> None:
    x, y = np.arange(count, dtype=np.float64), np.zeros(count)
    kernel(x, y)
    assert (y == 2 * x).all()


@pytest.mark.parametrize(
    ("parallel", "function", "small", "large"),
    [
        (None, doubled, 1, MOST),
        (True, doubled, 1, MOST),
        (False, doubled, 1, 1),
        (2, doubled, 2, 2),
        (None, plainly_doubled, 1, 1),
        (True, plainly_doubled, 1, MOST),
    ],
)
def test_the_parallel_option(parallel: Any, function: Any, small: int, large: int, counts: list[int]) -> None:
    kernel = tj.kernel(parallel=parallel)(function)
    call(kernel, SMALL)
    call(kernel, LARGE)
    assert counts == [small, large]


@pytest.mark.parametrize("parallel", [None, True])
@pytest.mark.parametrize("first", [False, True], ids=["outside first", "in dask first"])
def test_dask_is_detected_at_each_call(
    parallel: Any, first: bool, counts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that ran in a dask task uses threads elsewhere, and one from elsewhere uses one in a task."""
    kernel = tj.kernel(parallel=parallel)(doubled)
    for in_dask in (first, not first):
        for module in (threads, loop_program):
            monkeypatch.setattr(module, "in_dask_worker", lambda answer=in_dask: answer)
        call(kernel, LARGE)
    assert counts == ([1, MOST] if first else [MOST, 1])


def test_a_given_number_of_threads_also_holds_in_dask(
    counts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (threads, loop_program):
        monkeypatch.setattr(module, "in_dask_worker", lambda: True)
    call(tj.kernel(parallel=2)(doubled), LARGE)
    assert counts == [2]


def test_how_loops_request_threads() -> None:
    assert [LoopOptions(parallel=wish).threads for wish in (None, True, False, 4)] == [None, None, 1, 4]
