"""The rows of kernels, super-vectorized and interpreted: the same arrays and numbers, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.ir.interpreter import interpret
from codegen.pipeline.loops import vectorize_function
from tests.codegen.frontend.test_python_ast import copied, same, typed
from tests.codegen.passes.rows import ROWS, Row


@pytest.mark.full
@pytest.mark.parametrize("sizes", [(4,), (16,), (2, 4)], ids=str)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_lanes_agree_with_scalar_iterations(row: Row, sizes: tuple[int, ...]) -> None:
    function = typed(row.function, row.arguments)
    one, other = copied(row.arguments), copied(row.arguments)
    wide = vectorize_function(function, sizes, None, False, "mask").function
    results = zip(interpret(function, one), interpret(wide, other), strict=True)
    assert all(same(a, b) for a, b in (*results, *zip(one, other, strict=True)))


@pytest.mark.full
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_reductions_of_lanes(row: Row) -> None:
    """They combine in another order, so results are the same up to rounding."""
    function = typed(row.function, row.arguments)
    one, other = copied(row.arguments), copied(row.arguments)
    wide = vectorize_function(function, (4,), None, True, "mask").function
    pairs = [*zip(interpret(function, one), interpret(wide, other), strict=True)]
    for a, b in (*pairs, *zip(one, other, strict=True)):
        half = getattr(a, "dtype", None) == np.float16
        np.testing.assert_allclose(a, b, rtol=2e-2 if half else 2e-5, atol=1e-2 if half else 1e-5)
