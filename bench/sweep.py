"""How the size of a super-vector counts: one loop nest at many sizes."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

import tilejit as tj
from bench.arrays import Array
from bench.timing import interleaved

SIZES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, (4, 64), (8, 128), (32, 256))
SEED = 7
Points: TypeAlias = list[tuple[str, float]]
"""(virtual_vector_size, GB/s)."""


def add(a: Array, b: Array, c: Array) -> None:
    """The loops that are measured."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] + b[i, j] + 1 + 2


def sweep(dtype: Any, rounds: int) -> Points:
    """a+b+1+2 over a matrix of a million elements, all sizes in turns; answers are checked first.

    Raises:
        AssertionError: one is wrong.
    """
    rng = np.random.default_rng(SEED)
    a, b, c = (rng.random((1000, 1000)).astype(dtype) for _ in range(3))
    kernels = {str(size): tj.kernel(virtual_vector_size=size)(add) for size in SIZES}
    for name, kernel in kernels.items():
        c[...] = 0
        kernel(a, b, c)
        assert np.array_equal(c, a + b + 1 + 2), f"virtual_vector_size={name} is off"
    ways = {name: lambda kernel=kernel: kernel(a, b, c) for name, kernel in kernels.items()}
    times = interleaved(ways, rounds)
    return [(name, 3 * a.nbytes / timing.median / 1e9) for name, timing in times.items()]
