"""Copies whose strides are negative on either side, between guard pages."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.schedule.machine import described, machine
from tests.tools.extent import few_by_default
from tests.tools.guard import Guarded

SIGNS = [*product((1, -1), repeat=2)]


@pytest.mark.usefixtures("kernels_for_all_sizes")
@pytest.mark.parametrize(("src", "dst"), few_by_default([*product(SIGNS, repeat=2)], 4), ids=str)
@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_transposes_of_reversed_arrays(width: int, src: tuple[int, int], dst: tuple[int, int]) -> None:
    """`rot90` and its kind: the vectors of a transpose run along the sides with the smaller strides."""
    dims, dtype = (70, 133), np.dtype(f"u{width}")
    size = dims[0] * dims[1] * width
    source, target = Guarded(size), Guarded(size)
    for at_end in (False, True):
        x: Any = source.place(size, at_end=at_end).view(dtype).reshape(dims)
        x[...] = np.random.default_rng(width).integers(0, 256, x.nbytes, np.uint8).view(dtype).reshape(dims)
        out: Any = target.place(size, at_end=at_end).view(dtype).reshape(dims[::-1])
        given = x[:: src[0], :: src[1]].T
        tj.copyto(out[:: dst[0], :: dst[1]], given)
        np.testing.assert_array_equal(out[:: dst[0], :: dst[1]], given)
        assert target.untouched()


@pytest.mark.usefixtures("kernels_for_all_sizes")
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("gap", [2, 48, 62])
def test_a_strip_may_begin_near_the_end_of_a_line(gap: int, threads: int) -> None:
    """Fewer elements than a register are before its first full line: they are moved one by one."""
    x, target = np.arange(10_000, dtype=np.uint16), Guarded(20_480)
    for dims in ((10_000,), (4, 2500)):
        given: Any = x.reshape(dims)[..., ::-1]
        out: Any = target.place(x.nbytes, at_end=False, gap=gap).view(np.uint16).reshape(dims)
        with described(replace(machine(), stream_bytes=0)):
            tj.copyto(out, given, virtual_vector_size=1024, threads=threads)
        np.testing.assert_array_equal(out, given)
        assert target.untouched()
