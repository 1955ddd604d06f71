"""Kernels against the boxes that they move, and against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.simd.cases import CONVERTED, GROUPS, cases
from tests.tools.guard import span_bytes, strided_view
from tests.tools.oracle import random_elements, same_elements
from tests.tools.replay import Watched, interpreted, interpreted_when_lowered, watching
from tests.tools.strategies import picker, shape, strides
from tilejit.copies.convert import pack, unpack

INTERPRETED_BYTES = 5000


@pytest.mark.full
@pytest.mark.parametrize("number", range(60))
def test_kernels_boxes_and_loops_give_the_same_bytes(number: int, seed: int) -> None:
    """Pack and unpack: for every program that ran, boxes and loops give the same bytes as the kernel."""
    rng = np.random.default_rng((seed, number))
    pick = picker(rng)
    spec = shape(pick, most=150)
    while spec.size_in_bytes > 3000:
        spec = shape(pick, most=150)
    steps = strides(pick, spec.dimensions, spec.dtype.itemsize, broadcast=False, reach=4000)
    array = np.zeros(spec.dimensions, spec.dtype) if 0 in spec.dimensions else _array(rng, spec, steps)
    with watching() as seen:
        tiled = pack(array, spec, threads=pick(1, 3))
        back = unpack(tiled)
    assert same_elements(back, array, spec)
    assert len(seen) == 2
    for watched in seen:
        assert np.array_equal(interpreted(watched), watched.after)  # type: ignore[arg-type]
        assert np.array_equal(interpreted_when_lowered(watched), watched.after)


@pytest.mark.full
@pytest.mark.parametrize("group", GROUPS)
def test_transposes_that_convert(group: str) -> None:
    """In registers and through scratch. NumPy says what each conversion gives."""
    of = {f" {source} to {target}:" for source, target in CONVERTED}
    chosen = [case for case in cases(group) if any(name in case.name for name in of)]
    for case in (case for case in chosen if len(case.after) <= INTERPRETED_BYTES):
        low, dst_low = case.lows
        watched = Watched(case.program, case.src, case.before, case.after, (-low, -dst_low))
        assert np.array_equal(interpreted_when_lowered(watched), case.after), case
        of = {name for name in of if name not in case.name}
    assert not of or group == "stream", f"no case of {of}"


def _array(rng: np.random.Generator, spec: object, steps: tuple[int, ...]) -> np.ndarray:  # type: ignore[type-arg]
    dims, dtype = spec.dimensions, spec.dtype  # type: ignore[attr-defined]
    room = np.zeros(span_bytes(dtype.itemsize, dims, steps), np.uint8)
    array = strided_view(room, dtype, dims, steps)
    array[...] = random_elements(rng, dtype, array.size).reshape(dims)
    return array
