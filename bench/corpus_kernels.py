"""The kernels of the corpus: triads, stencils, reductions, transposes and gathers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from bench import indexed, kernels, sweep
from bench.arrays import Array, aligned, short_name
from bench.kernel_space import KernelSpace

SIDES = 128, 512, 1500, 4096
ELEMENTS = 1 << 14, 1 << 18, 1 << 22
ROW = 64

Named = tuple[str, str, Callable[[], KernelSpace]]
"""Kind, name, and what makes the schedules."""

MATRICES: tuple[tuple[Callable[..., None], int, tuple[str, ...]], ...] = (
    (kernels.triad, 2, ("f4", "f8", "i4")),
    (kernels.stencil, 1, ("f4",)),
    (kernels.row_sums, 1, ("f4", "i4")),
    (kernels.running_sums, 1, ("f4",)),
    (sweep.transposed, 1, ("f4", "f8", "i2")),
)
"""A kernel of matrices, how many it reads, and the dtypes."""


def cases() -> Iterator[Named]:
    """Every kernel at each size."""
    for python, reads, dtypes in MATRICES:
        for dtype in dtypes:
            for side in SIDES:
                name = f"kernel {python.__name__} {short_name(dtype)} [{side},{side}]"
                make = partial(_matrices, side, reads, np.dtype(dtype), python is kernels.row_sums)
                yield "kernels", name, partial(KernelSpace, python, make)
    for dtype in ("u1", "f4", "f8"):
        for count in ELEMENTS:
            for python, row in ((indexed.gather, 0), (indexed.gather_rows, ROW)):
                name = f"kernel {python.__name__} {short_name(dtype)} [{count}]"
                make = partial(_gathered, count, row, np.dtype(dtype))
                yield "gathers", name, partial(KernelSpace, python, make, 0)


def _matrices(side: int, reads: int, dtype: Any, reduces: bool, fill: bool) -> list[Array]:
    """Square matrices of small integers, whose sums are exact in any order; the last array is the result."""
    shapes = [(side, side)] * reads + [(side,) if reduces else (side, side)]
    if not fill:
        return [np.empty(shape, dtype) for shape in shapes]
    found = [aligned(shape, dtype) for shape in shapes]
    for seed, array in enumerate(found[:-1]):
        array[...] = np.random.default_rng(seed).integers(0, 8, array.shape, np.uint8)
    return found


def _gathered(count: int, row: int, dtype: Any, fill: bool) -> list[Array]:
    """The result, the source and the indices, of elements or of rows."""
    shape = (count // row, row) if row else (count,)
    if not fill:
        return [np.empty(shape, dtype), np.empty(shape, dtype), np.empty(shape[:1], np.int64)]
    draw = np.random.default_rng(0)
    found = [aligned(shape, dtype), aligned(shape, dtype), aligned(shape[:1], np.int64)]
    found[1][...] = draw.integers(0, 8, shape, np.uint8)
    found[2][...] = draw.integers(0, shape[0], shape[0])
    return found
