"""Stores under masks, and blocks of vectors transposed in registers."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.backend.build import build
from codegen.ir.families import EVERY
from codegen.support.cpu import cpu_level
from codegen.support.errors import KernelError
from tests.codegen.simd.levels import AtLevels
from tests.codegen.simd.vector_cases import HEAD, kernel, numpy_type, operands
from tests.tools.guard import Guarded

MASKS = (0, 1, 0x8000, 0xFFFF, 0x5555, 0x0FF6)
"""Bit k is lane k."""


@pytest.mark.full
@pytest.mark.parametrize("dtype", EVERY)
def test_stores_where(dtype: str) -> None:
    """Masked-out lanes are never touched, even if they are on a page that does not exist."""
    size, step = numpy_type(dtype).itemsize, 3 * numpy_type(dtype).itemsize
    run = kernel(
        "\n".join(
            [
                "    where = load_i1x16(sizes)",
                f"    store_{dtype}x16_where(dst, load_{dtype}x16(src), where)",
                f"    strided_store_{dtype}x16_where(begin, {step}, load_{dtype}x16(src), where)",
                "",
            ]
        )
    )
    values = operands(dtype)[0][-16:]
    near, far = Guarded(16 * size), Guarded(16 * step)
    for bits in MASKS:
        where = np.array([bits >> k & 1 for k in range(16)], np.bool_)
        last = int(np.flatnonzero(where)[-1]) + 1 if bits else 0
        dense = near.place(last * size, at_end=True)
        spread = far.place((last - 1) * step + size if last else 0, at_end=True)
        dense[:], spread[:] = 7, 7
        run(values.ctypes.data, dense.ctypes.data, where.ctypes.data, spread.ctypes.data, 0)
        for k in range(last):
            wanted = values[k].tobytes() if where[k] else b"\7" * size
            assert dense[k * size : (k + 1) * size].tobytes() == wanted
            assert spread[k * step : k * step + size].tobytes() == wanted
        assert near.untouched()
        assert far.untouched()


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("dtype", EVERY)
def test_transposed(dtype: str, lanes: int) -> None:
    kind, size = f"{dtype}x{lanes}", numpy_type(dtype).itemsize
    rows = ", ".join(f"load_{kind}(src + {k * lanes * size})" for k in range(lanes))
    stores = [f"    store_{kind}(dst + {k * lanes * size}, columns[{k}])" for k in range(lanes)]
    run = kernel("\n".join([f"    columns = transposed_{kind}(({rows}))", *stores, ""]))
    values = np.resize(operands(dtype)[0], (lanes, lanes))
    out = np.zeros_like(values)
    run(values.ctypes.data, out.ctypes.data, 0, 0, 0)
    assert out.tobytes() == values.T.tobytes()


@pytest.mark.parametrize(
    "expression",
    [
        "store_f32x8_where(dst, load_f32x8(src), load_f32x8(src))",
        "store_f32x8_where(dst, load_f32x8(src), first_16(3))",
        "load_f32x8_where(src, first_8(3))",
        "transposed_f32x2((load_f32x2(src), load_f64x2(src)))",
        "transposed_f32x2((load_f32x2(src),))",
        "transposed_f32x1((load_f32x1(src),))",
    ],
)
def test_refused(expression: str) -> None:
    with pytest.raises(KernelError, match="Numba rejects"):
        build("wrong", f"{HEAD.format('wrong')}    v = {expression}\n", cpu_level())


def at_lower_levels() -> AtLevels:
    return AtLevels(__file__, ["test_stores_where", "test_transposed"], 5 * len(EVERY))
