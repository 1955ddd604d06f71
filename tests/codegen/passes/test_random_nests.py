"""Random functions of loops: Python, the interpreter on both forms, and machine code agree bit for bit."""

from __future__ import annotations

import warnings

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

import tilejit as tj
from codegen.frontend.python_ast import read_function
from codegen.ir.dtypes import argument
from codegen.ir.interpreter import interpret
from codegen.ir.nodes import Function
from codegen.passes.name_loops import name_loops
from codegen.passes.tile import tile
from codegen.pipeline.loops import in_tiles, schedule_function, vectorize_function
from codegen.schedule.choose_tiles import choose_tiles
from codegen.schedule.loop_schedule import LoopSchedule
from codegen.support.errors import ScheduleError
from tests.codegen.passes.random_nests import ARRAYS, Nest, nest
from tests.tools.extent import examples
from tests.tools.loop_schedules import nests_of, random_schedule

SIZES = ((4,), (8,), (3,), (2, 4), (4, 4), (2, 2, 4))


@st.composite
def nests(draw: st.DrawFn) -> Nest:
    return nest(lambda count: draw(st.integers(0, count - 1)))


def by_python(given: Nest) -> list[np.ndarray]:
    """What the function leaves in the arrays; nests whose stores NumPy refuses are skipped."""
    expected = given.copied()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            given.python(*expected)
        except OverflowError:
            assume(False)
    return expected[:-1]


def typed(given: Nest) -> Function:
    arguments = zip([*ARRAYS, "n"], given.copied(), strict=True)
    return read_function(given.python).typed([argument(name, value) for name, value in arguments])


def agree(found: list[np.ndarray], expected: list[np.ndarray], given: Nest) -> None:
    for name, mine, right in zip(ARRAYS, found, expected, strict=False):
        same = np.array_equal(mine, right, equal_nan=right.dtype.kind == "f")
        assert same, f"{name} of {right.dtype} differs, n={given.n}\n{given.text}"


@settings(max_examples=examples(16, full=100), suppress_health_check=list(HealthCheck))
@given(nests(), st.sampled_from(SIZES))
def test_the_interpreter_agrees_with_python(drawn: Nest, sizes: tuple[int, ...]) -> None:
    """Before and after loops run in lanes."""
    expected, function = by_python(drawn), typed(drawn)
    made = vectorize_function(function, sizes)
    tiles = choose_tiles(function, made.function, made.directives)
    for form in (function, made.function, tile(made.function, LoopSchedule(tiles))):
        found = drawn.copied()
        interpret(form, found)
        agree(found, expected, drawn)


@settings(max_examples=examples(30, full=300), deadline=None, suppress_health_check=list(HealthCheck))
@given(nests(), st.data())
def test_accepted_schedules_keep_the_meaning(drawn: Nest, data: st.DataObject) -> None:
    """Random directives are refused, or the loops in tiles leave what Python leaves."""
    function = name_loops(typed(drawn))
    paths = nests_of(function)
    assume(paths)
    text = random_schedule(paths, lambda count: data.draw(st.integers(0, count - 1)))
    try:
        made = schedule_function(function, text)
    except ScheduleError:
        return
    found = drawn.copied()
    interpret(in_tiles(made.function, made.directives), found)
    agree(found, by_python(drawn), drawn)


@pytest.mark.full
@pytest.mark.parametrize("tail", ["mask", "scalar", "shift"])
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=nests(), sizes=st.sampled_from(SIZES))
def test_kernels_agree_with_python(tail: str, drawn: Nest, sizes: tuple[int, ...]) -> None:
    expected, found = by_python(drawn), drawn.copied()
    tj.kernel(virtual_vector_size=sizes, tail=tail)(drawn.python)(*found)
    agree(found, expected, drawn)
