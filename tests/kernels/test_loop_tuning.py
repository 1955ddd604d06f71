"""tune=True of kernels and expressions: measured once, remembered, and results stay the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.backend.store import KernelStore
from codegen.schedule.vector_size import read_vector_sizes
from codegen.support.caching import Cache
from tilejit.kernels import tuning as loop_tuning
from tilejit.kernels.loop_options import LoopOptions


def double(a: Any, c: Any) -> None:
    for i in range(a.shape[0]):
        c[i] += a[i]


def test_the_fastest_is_kept_and_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_tuning, "_winners", Cache())
    a, store, asked = np.ones(100), KernelStore(tmp_path), []
    function = tj.kernel(double).specialize(a, a.copy()).program.function

    def measure(programs: Any, given: Any) -> list[float]:
        asked.append(len(programs))
        return [4.0, 3.0, 1.0, 2.0]

    options = LoopOptions(tune=True)
    for _ in range(2):
        made = loop_tuning.tuned(function, options, [a, a], measure=measure, store=store)
        assert made == LoopOptions(virtual_vector_size=read_vector_sizes("2*hw", 1, ""))
        loop_tuning._winners.clear()
    assert asked == [4]


def test_arrays_are_measured_on_copies() -> None:
    """Accumulation happens once, whatever was tried."""
    a, c = np.arange(50.0), np.zeros(100)[::2]
    tj.kernel(tune=True)(double)(a, c)
    assert np.array_equal(c, a)
    assert np.array_equal(tj.elementwise(lambda x: x * 2, tune=True)(a), a * 2)


def test_a_requested_size_stays() -> None:
    made = loop_tuning.tuned(None, LoopOptions((8,), tune=True), [])  # type: ignore[arg-type]
    assert made == LoopOptions((8,))


def test_tune_is_true_or_false() -> None:
    with pytest.raises(TypeError, match="tune: expected True or False"):
        tj.kernel(tune=1)(double)
