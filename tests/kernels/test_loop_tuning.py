"""tune=True of kernels and expressions: results stay the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilejit as tj


def double(a: Any, c: Any) -> None:
    for i in range(a.shape[0]):
        c[i] += a[i]


@pytest.mark.full
def test_arrays_are_measured_on_copies() -> None:
    """Accumulation happens once, whatever was tried."""
    a, c = np.arange(50.0), np.zeros(100)[::2]
    tj.kernel(tune=True)(double)(a, c)
    assert np.array_equal(c, a)
    assert np.array_equal(tj.elementwise(lambda x: x * 2, tune=True)(a), a * 2)


def test_tune_is_true_or_false() -> None:
    with pytest.raises(TypeError, match="tune: expected True or False"):
        tj.kernel(tune=1)(double)
