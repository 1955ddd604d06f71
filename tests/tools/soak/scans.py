"""The soak's scans: running sums, products, extremes and bits in guarded memory, against Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import tests.tools.strategies as random_of
import tilejit as tj
from tests.kernels.scans import BITS, EXACT, EXTREMES
from tests.tools.guard import span_bytes, strided_view

if TYPE_CHECKING:
    from tests.tools.soak.cases import Case

INTEGERS = ("i1", "u1", "i2", "i4", "u4", "i8", "u8")
FLOATS = ("f4", "f8")
SIZES = ("auto", 8, 100, 1024)
MOST = 600
KERNELS = {
    function: tj.kernel(virtual_vector_size=SIZES[k % len(SIZES)], vectorize_scans=True)(function)
    for k, function in enumerate((*EXACT, *BITS))
}
"""The kernels, made once: the first case with some dtypes and orders compiles for all."""


def scan(case: Case) -> None:
    """A scan of integers, or an extreme of floats with NaN: bit for bit what Python leaves."""
    dtype = np.dtype(case.one_of(*INTEGERS, *INTEGERS, *FLOATS))
    function = case.one_of(*((*EXACT, *BITS) if dtype.kind in "iu" else EXTREMES))
    count = case.pick(0, MOST)
    case.note(kernel=function.__name__, dtype=dtype, count=count)
    numbers = _numbers(case, dtype, count)
    given = [_against_a_page(case, k, x) for k, x in enumerate((numbers, np.zeros_like(numbers)))]
    start = _numbers(case, dtype, 1)[0]
    wanted = np.zeros_like(numbers)
    with np.errstate(all="ignore"):
        last = function(numbers, wanted, start)
    found = KERNELS[function](*given, start)
    case.check(np.array_equal(given[0], numbers, equal_nan=True), "what is read differs")
    case.check(np.array_equal(given[1], wanted, equal_nan=True), "what is written differs")
    case.check(np.array_equal(found, last, equal_nan=True), "the last value differs")
    case.check(all(case.bench.arena(k).untouched() for k in range(2)), "bytes beside an array changed")


def _numbers(case: Case, dtype: np.dtype[Any], count: int) -> Any:
    if dtype.kind == "f":
        special = [0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, 7.0]
        return case.rng.choice(special, count).astype(dtype)
    limits = np.iinfo(dtype)
    return case.rng.integers(limits.min, limits.max, count, dtype, endpoint=True)


def _against_a_page(case: Case, k: int, like: Any) -> Any:
    steps = random_of.strides(case.pick, like.shape, like.itemsize, broadcast=False)
    room = case.bench.arena(k).place(span_bytes(like.itemsize, like.shape, steps), at_end=case.chance(2))
    array = strided_view(room, like.dtype, like.shape, steps)
    array[...] = like
    return array
