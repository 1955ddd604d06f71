"""Schedules of kernels as text: which loops run as lanes, and how their last iterations run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilejit as tj

A = np.random.default_rng(0).random((70, 45)).astype(np.float32)


def transposed(a, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[j, i] = a[i, j] * 2


def total(a, c):
    for k in range(a.shape[0]):
        c[0] += a[k]


def called(schedule: str) -> Any:
    kernel, c = tj.kernel(transposed, schedule=schedule, verify=True), np.zeros((45, 70), np.float32)
    kernel(A, c)
    np.testing.assert_array_equal(c, A.T * 2)
    return kernel


@pytest.mark.parametrize("lanes", ["i=8", "j=64", "i=16, j=16", "i=64, j=32", "i=3, j=5", "i=1, j=16"])
def test_the_named_loops_run_as_lanes(lanes: str) -> None:
    printed = lanes.replace("i=1, ", "")
    assert f"Vectorize({printed}), " in called(f"Vectorize({lanes})").schedule


@pytest.mark.parametrize("tail", ["mask", "scalar", "shift"])
def test_tails(tail: str) -> None:
    text = f'Vectorize(i=16, j=16), Tail("j", "{tail}")'
    assert text in called(text).schedule


def two_nests(a, b, c):
    for i in range(a.shape[0]):
        b[i] = a[i] * 2
    for k in range(a.shape[0]):
        c[k] = c[k] + 1


def test_each_nest_has_a_tail_of_its_own() -> None:
    """Iterations that read what they store may not run twice, so they are masked."""
    kernel, (a, b, c) = tj.kernel(two_nests, tail="shift"), np.zeros((3, 100), np.float32)
    kernel(a, b, c)
    assert 'Tail("i", "shift")' in kernel.schedule
    assert 'Tail("k", "mask")' in kernel.schedule


def test_a_printed_schedule_is_read_again() -> None:
    """What is printed for the chosen loops stands for the same loops as text."""
    kernel, c = tj.kernel(transposed), np.zeros((45, 70), np.float32)
    kernel(A, c)
    text, *_ = kernel.schedule.removeprefix("schedule  ").split(" | ")
    assert called(text).schedule.startswith(f"schedule  {text} | ")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected directives, got none"),
        ("Vectorize(i=16", "expected directives, separated by commas"),
        ("i", "expected the call of a directive"),
        ("Vectorise(i=16)", "got Vectorise"),
        ("Vectorize(16)", "expected lanes for each loop"),
        ("Vectorize(i=0)", "a number of lanes for i, got 0"),
        ("Vectorize(i=8**2)", "expected a number, text or a tuple"),
        ("Vectorize(i=16), Tail(i)", "expected a number, text or a tuple"),
        ('Vectorize(i=16), Tail("i")', "Tail needs how"),
        ('Vectorize(i=16), Tail("i", "mask", 1, 2)', "Tail takes axis, how, sizes"),
        ('Vectorize(i=16), Tail("j", "mask")', "expected Tail.*with one of scalar"),
        ('Vectorize(i=16), Tail("i", "clamp")', "one of scalar, mask, shift"),
        ('Tile("i", 4)', "expected Vectorize and at most one Tail"),
        ("x" * 2000, "2000 characters"),
    ],
)
def test_texts_that_are_no_schedule(text: str, problem: str) -> None:
    with pytest.raises(tj.ScheduleError, match=problem):
        tj.kernel(transposed, schedule=text)


def test_a_mistake_has_a_caret() -> None:
    with pytest.raises(tj.ScheduleError) as error:
        tj.kernel(transposed, schedule="Vectorize(i=16), Tale(1)")
    _, line, caret, _ = str(error.value).splitlines()
    assert line[caret.index("^") :] == "Tale(1)"


@pytest.mark.parametrize(
    ("function", "schedule", "problem"),
    [
        (transposed, "Vectorize(k=8)", "got k\n  it has i, j"),
        (transposed, "Vectorize(j=8, i=8)", "in the order of transposed, got j, i"),
        (total, "Vectorize(k=8)", "reduction-not-asked"),
    ],
)
def test_schedules_that_a_kernel_cannot_have(function: Any, schedule: str, problem: str) -> None:
    """The first call raises instead of running another schedule."""
    a, c = (A, np.zeros((45, 70), np.float32)) if function is transposed else (A[0], np.zeros(1, np.float32))
    with pytest.raises(tj.KernelError, match=problem):
        tj.kernel(function, schedule=schedule)(a, c)
    assert not c.any()


def test_options_that_a_schedule_replaces() -> None:
    with pytest.raises(tj.KernelValueError, match="virtual_vector_size is part of the schedule"):
        tj.kernel(transposed, schedule="Vectorize(i=8)", virtual_vector_size=8)
    with pytest.raises(TypeError, match="schedule: expected a str"):
        tj.kernel(transposed, schedule=8)  # type: ignore[call-overload]
