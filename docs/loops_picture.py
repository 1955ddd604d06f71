"""The loops of the kernel in docs/howto/kernels.md, as notebooks draw them."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np

import tilejit
from tilejit.view.loops import loops_svg

Array = np.ndarray[Any, Any]


def blend(a: Array, b: Array, c: Array) -> None:
    """The function of the page."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] * 0.25 + b[j] if a[i, j] > 0.5 else 0.0


@cache
def picture() -> str:
    """The SVG: a box for each loop and its report, without line numbers, which are those of this file."""
    matrix, row = np.zeros((100, 300), np.float32), np.zeros(300, np.float32)
    kernel = tilejit.kernel(virtual_vector_size=256)(blend)
    kernel.specialize(matrix, row, matrix.copy())
    program = kernel.program
    return re.sub(r"line \d+, ", "", loops_svg(program.function, program.vectorized.loops))
