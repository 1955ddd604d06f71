"""Strided lanes: every method reads the same elements, and nothing outside them."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.runtime.kernel import NativeFunction, copy_operands, native
from tests.codegen.simd.levels import AtLevels
from tests.tools.guard import Guarded, span_bytes, strided_view

STEPS = (0, 1, 2, 3, 4, 5, 7, -1, -2, -3)
DTYPES = {"u8": np.uint8, "i16": np.int16, "f32": np.float32, "f64": np.float64}


def strided(dtype: str, lanes: int) -> NativeFunction:
    """A kernel that loads `lanes` elements a step apart and stores them."""
    name = f"strided_{dtype}x{lanes}"
    source = f"""
def {name}(operands, scratch, sizes, begin, end):
    src, dst = addresses_2(operands)
    store_{dtype}x{lanes}(dst, strided_load_{dtype}x{lanes}(src, begin))
"""
    return native(name, source)


@pytest.mark.parametrize("lanes", [1, 2, 4, 16, 64])
@pytest.mark.parametrize("dtype", DTYPES)
def test_steps_read_their_elements_alone(dtype: str, lanes: int) -> None:
    """Guard pages are at both ends of the elements."""
    kind, kernel, memory = np.dtype(DTYPES[dtype]), strided(dtype, lanes), Guarded(1 << 14)
    for step in STEPS:
        dims, strides = (lanes,), (step * kind.itemsize,)
        size = span_bytes(kind.itemsize, dims, strides)
        for at_end in (False, True):
            x = strided_view(memory.place(size, at_end=at_end), kind, dims, strides)
            for k in range(lanes) if step else (0,):
                x[k] = k + 1
            out = np.zeros(lanes, kind)
            kernel(copy_operands(x.ctypes.data, out.ctypes.data), 0, 0, strides[0], 0)
            np.testing.assert_array_equal(out, x, err_msg=f"step {step}")


def at_lower_levels(level: str) -> AtLevels:
    return AtLevels(__file__, ["test_steps_read_their_elements_alone"], len(DTYPES) * 5)
