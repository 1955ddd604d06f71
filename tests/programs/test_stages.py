"""Schedule, source, LLVM IR and machine code of everything that compiles: copies, plans and kernels."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilejit as tj

X = np.ones((24, 40), np.float32)
TILES = "{1,0:T(8,128)}"


def doubled(a: Any, c: Any) -> None:
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = 2 * a[i, j]


def kernel() -> Any:
    made = tj.kernel(doubled)
    made(X, np.empty_like(X))
    return made


def elementwise() -> Any:
    made = tj.elementwise(lambda a: 2 * a)
    made(X)
    return made


COMPILED: dict[str, Callable[[], Any]] = {
    "explanation": lambda: tj.explain(TILES, X),
    "copy plan": lambda: tj.plan_copy(np.empty((40, 24), np.float32), X.T),
    "pack plan": lambda: tj.plan_pack(TILES, X.shape, X.dtype),
    "unpack plan": lambda: tj.plan_unpack("f32[24,40]{1,0:T(8,128)}"),
    "relayout plan": lambda: tj.plan_relayout("f32[24,40]{1,0:T(8,128)}", "{0,1}"),
    "kernel": kernel,
    "elementwise": elementwise,
}


@pytest.mark.parametrize("name", COMPILED)
def test_every_stage_is_text(name: str) -> None:
    made = COMPILED[name]()
    assert made.schedule
    assert "def " in made.source
    names = re.findall(r"^def (\w+)\(", made.source, re.MULTILINE)
    assert names
    for each in names:
        assert f"@{each}" in made.llvm
        assert each in made.asm


def test_a_plan_explains_the_copy_that_it_runs() -> None:
    plan, explained = tj.plan_pack(TILES, X.shape, X.dtype, threads=1), tj.explain(TILES, X)
    assert (plan.nest, plan.schedule, plan.source) == (explained.nest, explained.schedule, explained.source)


def test_copies_of_numpys_have_no_stages() -> None:
    plan = tj.plan_copy(np.empty((3, 4), object), np.empty((3, 4), object))
    with pytest.raises(tj.LayoutError, match="NumPy makes this copy, so it has no kernel\n  these elements"):
        _ = plan.source


def test_kernels_without_calls_have_no_stages() -> None:
    for made in (tj.kernel(doubled), tj.elementwise(lambda a: 2 * a)):
        for stage in ("schedule", "source", "llvm", "asm"):
            with pytest.raises(tj.KernelError, match="call it"):
                getattr(made, stage)
