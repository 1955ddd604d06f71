"""Long expressions that are split into steps keep their meaning."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from codegen.frontend.python_ast import read_function
from codegen.ir.dtypes import argument
from codegen.ir.interpreter import interpret
from codegen.ir.values import Op
from codegen.ir.visit import parts, values_of
from codegen.passes.shallow import DEEP, flatten_values

TERMS = " + x[i] * 2" * 100
TEXT = f"""def f(x, y):
    s = 1.0
    for i in range(x.shape[0]):
        s = s{TERMS}
        if x[i]{TERMS} > 999:
            y[i] = x[i]{TERMS}
    return s{" + 1" * 100}, {"-(" * 90}x[0] + s{")" * 90}
"""


def test_long_expressions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "long_kernel.py").write_text(TEXT)
    monkeypatch.syspath_prepend(str(tmp_path))
    f = importlib.import_module("long_kernel").f
    x, ours, theirs = np.arange(10.0), np.zeros(10), np.zeros(10)
    made = read_function(f).typed([argument("x", x), argument("y", ours)])
    cut = flatten_values(made)
    depths = [
        [p.depth for v in (*values_of(each.body), *each.results) for p in parts(v) if isinstance(p, Op)]
        for each in (made, cut)
    ]
    assert max(depths[0]) > 100
    assert max(depths[1]) <= DEEP
    assert flatten_values(cut) == cut
    np.testing.assert_array_equal(interpret(cut, (x, ours)), f(x, theirs))
    np.testing.assert_array_equal(ours, theirs)
    assert 0 < np.count_nonzero(theirs) < 10
