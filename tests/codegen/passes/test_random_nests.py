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
from codegen.pipeline.loops import tile_function, vectorize_function
from tests.codegen.passes.random_nests import ARRAYS, Nest, nest
from tests.tools.extent import examples

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


@settings(max_examples=examples(16, full=150), suppress_health_check=list(HealthCheck))
@given(nests(), st.sampled_from(SIZES))
def test_the_interpreter_agrees_with_python(drawn: Nest, sizes: tuple[int, ...]) -> None:
    """Before and after loops run in lanes."""
    expected, function = by_python(drawn), typed(drawn)
    cut = tile_function(function, {}).function
    for form in (function, *(vectorize_function(each, sizes).function for each in (function, cut))):
        found = drawn.copied()
        interpret(form, found)
        agree(found, expected, drawn)


@pytest.mark.full
@pytest.mark.parametrize("tail", ["mask", "scalar", "shift"])
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=nests(), sizes=st.sampled_from(SIZES))
def test_kernels_agree_with_python(tail: str, drawn: Nest, sizes: tuple[int, ...]) -> None:
    expected, found = by_python(drawn), drawn.copied()
    tj.kernel(virtual_vector_size=sizes, tail=tail)(drawn.python)(*found)
    agree(found, expected, drawn)
