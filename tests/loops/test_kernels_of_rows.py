"""The rows that the interpreter and the super-vectoriser are tested on, as machine code."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.loops.interpret import interpret
from tests.loops import kernels, table
from tests.loops.kernels import ROWS, Row
from tests.loops.meaning import arguments
from tilejit.loop_program import LoopOptions, LoopProgram

INEXACT = (kernels.transcendental, kernels.maths, kernels.numpys, kernels.scalar_only)
"""Functions whose math is libm's on one side and NumPy's on the other."""


def close(a: Any, b: Any, error: float) -> bool:
    """Equal bit for bit, any NaN equal to any other; or within a relative error."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind != "f":
        return bool((a == b).all())
    known = ~np.isnan(a)
    if not (np.isnan(b) == ~known).all():
        return False
    if not error:
        return a[known].tobytes() == b[known].astype(a.dtype).tobytes()
    return np.allclose(a[known].astype(np.float64), b[known].astype(np.float64), rtol=error, atol=0)


@pytest.mark.parametrize("size", [(4,), (64,), (2, 8)], ids=str)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_kernels_do_what_python_does(row: Row, size: tuple[int, ...]) -> None:
    ours, theirs = (
        tuple(a.copy("K") if isinstance(a, np.ndarray) else a for a in row.arguments) for _ in range(2)
    )
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = row.function(*theirs)
    found = tj.kernel(virtual_vector_size=size)(row.function)(*ours)
    floats = [a.dtype for a in row.arguments if isinstance(a, np.ndarray) and a.dtype.kind == "f"]
    error = 8 * max((float(np.finfo(dtype).eps) for dtype in floats), default=2.0**-23)
    error = error if row.function in INEXACT else 0.0
    for mine, right in zip(ours, theirs, strict=True):
        assert close(mine, right, error)
    assert (found is None) == (expected is None)
    if expected is not None:
        for mine, right in zip(np.atleast_1d(found), np.atleast_1d(expected), strict=True):
            assert close(mine, right, error)


@pytest.mark.parametrize("tail", ["mask", "scalar", "shift"])
@pytest.mark.parametrize("numbers", [{"n": 37, "m": 21}, {"n": 16, "m": 8}, {"n": 3, "m": 1}], ids=str)
@pytest.mark.parametrize("row", table.ROWS, ids=lambda row: row.name)
def test_kernels_do_what_the_interpreter_does(row: table.Row, numbers: dict[str, int], tail: str) -> None:
    """The super-vectoriser's table, all that MLIR gets wrong or refuses among it."""
    if "unknown operation" in row.name or "annotated" in row.name:
        pytest.skip("has no meaning that lanes keep")
    options = LoopOptions(
        row.sizes,
        row.options.get("fastest_varying"),  # type: ignore[arg-type]
        bool(row.options.get("reductions", False)),
        tail,
    )
    ours, theirs = (arguments(row.kernel, 5, numbers) for _ in range(2))
    expected = interpret(row.kernel, theirs)
    found = LoopProgram(row.kernel, options)(*ours)
    found = () if found is None else found if isinstance(found, tuple) else (found,)
    np.testing.assert_array_equal(found, expected)
    for mine, right in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(mine, right)
