"""The rows that test the interpreter and the super-vectorizer, compiled to machine code."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.ir.c_functions import C_FUNCTIONS
from codegen.ir.interpreter import interpret
from tests.codegen.frontend import kernels
from tests.codegen.passes import table
from tests.codegen.passes.meaning import arguments
from tests.codegen.passes.rows import ROWS, Row
from tests.tools.extent import few_by_default
from tilejit.kernels.loop_options import LoopOptions
from tilejit.kernels.program import LoopProgram

INEXACT = {kernels.transcendental: 8}
"""Functions that use libm on one side and NumPy on the other, and how many ulp they may differ."""

REORDERED = 256
"""The ulp, of 1 and of the result, by which the order may change sums of these rows."""


def close(a: Any, b: Any, places: int, eps: float) -> bool:
    """Equal bit for bit, with any NaN equal to any other, or within `places` ulp."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind != "f":
        return bool((a == b).all())
    known = ~np.isnan(a)
    if not (np.isnan(b) == ~known).all():
        return False
    if not places:
        return a[known].tobytes() == b[known].astype(a.dtype).tobytes()
    absolute = places * eps if places == REORDERED else 0
    found, right = a[known].astype(np.float64), b[known].astype(np.float64)
    return np.allclose(found, right, rtol=places * eps, atol=absolute)


FIRST = {row.function: row for row in reversed(ROWS)}
"""The first row of each function."""


def sizes(number: int, row: Row) -> list[tuple[int, ...]]:
    """The sizes of a row. Rows take 4 and 64 in turn.

    The first row of a function takes both if reductions change its lanes, and 2x8 if it has nested loops.
    """
    in_turn: list[tuple[int, ...]] = [(4,), (64,)]
    if FIRST[row.function] is not row:
        return in_turn[number % 2 :: 2]
    return (in_turn if row.asked else in_turn[number % 2 :: 2]) + [(2, 8)] * (row.tiles != "")


RUNS = [(row, size, size == (4,)) for number, row in enumerate(ROWS) for size in sizes(number, row)]
"""Rows, sizes, and whether reductions run in lanes."""


@pytest.mark.parametrize(("row", "size", "reductions"), few_by_default(RUNS, 7), ids=str)
def test_kernels_agree_with_python(row: Row, size: tuple[int, ...], reductions: bool) -> None:
    ours, theirs = (
        tuple(a.copy("K") if isinstance(a, np.ndarray) else a for a in row.arguments) for _ in range(2)
    )
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = row.function(*theirs)
    found = tj.kernel(virtual_vector_size=size, vectorize_reductions=reductions)(row.function)(*ours)
    floats = [a.dtype for a in row.arguments if isinstance(a, np.ndarray) and a.dtype.kind == "f"]
    eps = max((float(np.finfo(dtype).eps) for dtype in floats), default=2.0**-23)
    places = REORDERED if reductions else INEXACT.get(row.function, 0)
    for mine, right in zip(ours, theirs, strict=True):
        assert close(mine, right, places, eps)
    assert (found is None) == (expected is None)
    if expected is not None:
        for mine, right in zip(np.atleast_1d(found), np.atleast_1d(expected), strict=True):
            assert close(mine, right, places, eps)


MEANT = [row for row in table.ROWS if not ("unknown operation" in row.name or "annotated" in row.name)]
"""Rows of the super-vectorizer's table whose meaning lanes keep."""

TAILS = [
    (row, ("mask", "scalar", "shift")[n % 3] if table.in_lanes(row) else "mask")
    for n, row in enumerate(MEANT)
]
"""Rows that run in lanes, with one of the tails in turn, and the others with masks."""


@pytest.mark.full
@pytest.mark.parametrize(("row", "tail"), TAILS, ids=lambda given: getattr(given, "name", given))
def test_kernels_agree_with_the_interpreter(row: table.Row, tail: str) -> None:
    """The super-vectorizer's table, including what MLIR gets wrong or refuses."""
    check_with_the_interpreter(row, tail, {"n": 23, "m": 13}, {"n": 3, "m": 1})


def test_a_shifted_tail_adds_no_iteration_twice() -> None:
    """A super-vector that begins earlier repeats iterations, which sums in memory do not allow."""
    (row,) = (row for row in MEANT if row.name == "sums of rows in memory, not asked")
    check_with_the_interpreter(row, "shift", {"n": 37, "m": 21}, {"n": 19, "m": 9})


def check_with_the_interpreter(row: table.Row, tail: str, *runs: dict[str, int]) -> None:
    """The row's kernel writes and returns what the interpreter does, apart from rounding of the C library."""
    options = LoopOptions(
        row.sizes,
        row.options.get("fastest_varying"),  # type: ignore[arg-type]
        bool(row.options.get("reductions", False)),
        tail,
    )
    program = LoopProgram(row.kernel, options)
    places = 8 if any(f"Op(name='{name}'" in repr(row.kernel) for name in C_FUNCTIONS) else 0
    for numbers in runs:
        ours, theirs = (arguments(row.kernel, 5, numbers) for _ in range(2))
        expected = interpret(row.kernel, theirs)
        found = program(*ours)
        found = () if found is None else found if isinstance(found, tuple) else (found,)
        np.testing.assert_array_equal(found, expected)
        for mine, right in zip(ours, theirs, strict=True):
            assert close(mine, right, places, float(np.finfo(np.float32).eps))
