"""Stores under masks, and blocks of vectors transposed in registers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from codegen.backend.build import build
from codegen.ir.blocks import BLOCK_SIDES, INTERLEAVED_ROWS
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


@pytest.mark.parametrize("lanes", BLOCK_SIDES)
@pytest.mark.parametrize("dtype", EVERY)
def test_transposed(dtype: str, lanes: int) -> None:
    kind, pitch = f"{dtype}x{lanes}", lanes * numpy_type(dtype).itemsize
    block = f"load_{kind}x{lanes}(src, {pitch})"
    run = kernel(f"    store_{kind}x{lanes}(dst, {pitch}, transposed({block}))\n")
    values = np.resize(operands(dtype)[0], (lanes, lanes))
    out = np.zeros_like(values)
    run(values.ctypes.data, out.ctypes.data, 0, 0, 0)
    assert out.tobytes() == values.T.tobytes()


@pytest.mark.parametrize("count", INTERLEAVED_ROWS)
@pytest.mark.parametrize("dtype", EVERY)
def test_rows(dtype: str, count: int) -> None:
    """Vectors become the rows of a block, and its rows vectors again, here in the opposite order."""
    kind, pitch = f"{dtype}x16", 16 * numpy_type(dtype).itemsize
    rows = ", ".join(f"load_{kind}(src + {k * pitch})" for k in range(count))
    lines = [f"    store_{kind}(dst + {(count - 1 - k) * pitch}, row_{k}(block))" for k in range(count)]
    run = kernel("\n".join([f"    block = stacked_{count}({rows})", *lines, ""]))
    values = np.resize(operands(dtype)[0], (count, 16))
    out = np.zeros_like(values)
    run(values.ctypes.data, out.ctypes.data, 0, 0, 0)
    assert out.tobytes() == values[::-1].tobytes()


@pytest.mark.parametrize("dtype", EVERY)
def test_blocks(dtype: str) -> None:
    """Rows a pitch apart and lanes a step apart, under masks; a register in all rows."""
    size = numpy_type(dtype).itemsize
    pitch, step = 13 * size, 3 * size
    body = f"""
    mask = load_i1x4x4(sizes, 4)
    block = load_{dtype}x4x4(src, {pitch})
    spaced = strided_load_{dtype}x4x4(src, {pitch}, {step})
    first = repeated_{dtype}x4x4(load_{dtype}x4(src))
    store_{dtype}x4x4(dst, {pitch}, select(mask, block, first))
    store_{dtype}x4x4(begin, {pitch}, first)
    store_{dtype}x4x4_where(begin, {pitch}, spaced, mask)
    strided_store_{dtype}x4x4_where(end, {pitch}, {step}, block, mask)
"""
    run = kernel(body.lstrip("\n"))
    source = Guarded(3 * pitch + 10 * size).place(3 * pitch + 10 * size, at_end=True)
    source[:] = np.resize(operands(dtype)[0], 49).view(np.uint8)
    mask = np.random.default_rng(0).integers(0, 2, (4, 4)).astype(np.bool_)
    mask[-1, -1] = True
    memory = [Guarded(3 * pitch + n * size) for n in (4, 4, 10)]
    out = [each.place(3 * pitch + n * size, at_end=True) for each, n in zip(memory, (4, 4, 10), strict=True)]
    for each in out:
        each[:] = 7
    expected = [each.copy() for each in out]
    run(source.ctypes.data, out[0].ctypes.data, mask.ctypes.data, *(x.ctypes.data for x in out[1:]))
    kind = np.dtype((np.void, size))

    def spread(flat: NDArray[np.uint8], apart: int) -> NDArray[Any]:
        return np.lib.stride_tricks.as_strided(flat.view(kind), (4, 4), (pitch, apart))

    rows, spaced = spread(source, size), spread(source, step)
    spread(expected[0], size)[:] = np.where(mask, rows, rows[0])
    spread(expected[1], size)[:] = np.where(mask, spaced, rows[0])
    spread(expected[2], step)[mask] = rows[mask]
    for got, wanted, each in zip(out, expected, memory, strict=True):
        assert got.tobytes() == wanted.tobytes()
        assert each.untouched()


@pytest.mark.parametrize(
    "expression",
    [
        "store_f32x8_where(dst, load_f32x8(src), load_f32x8(src))",
        "store_f32x8_where(dst, load_f32x8(src), first_16(3))",
        "load_f32x8_where(src, first_8(3))",
        "store_f32x4x4(dst, 16, transposed(load_f64x4x4(src, 32)))",
        "store_f32x4x8(dst, 32, transposed(load_f32x4x8(src, 32)))",
        "transposed(1.0)",
        "load_f32x4x4(src, 16) + load_f32x4(src)",
        "minimum(load_f32x4x4(src, 16), load_f32x4(src))",
        "cast_f64x4x4(load_f32x4(src))",
        "cast_f64x4(load_f32x4x4(src, 16))",
        "store_f32x4(src, load_f32x4x4(src, 16))",
        "stacked_2(load_f32x4(src), load_f32x8(src))",
        "stacked_2(1.0, load_f32x4(src))",
        "row_0(load_f32x4(src))",
        "row_4(load_f32x4x4(src, 16))",
    ],
)
def test_refused(expression: str) -> None:
    with pytest.raises(KernelError, match="Numba rejects"):
        build("wrong", f"{HEAD.format('wrong')}    v = {expression}\n", cpu_level())


def at_lower_levels(level: str) -> AtLevels:
    names = ["test_stores_where", "test_transposed", "test_rows", "test_blocks"]
    return AtLevels(__file__, names, (5 + len(INTERLEAVED_ROWS)) * len(EVERY))
