"""Sizes are arguments of kernels, not part of them, so many shapes share few kernels."""

from __future__ import annotations

import numpy as np
import pytest

import tilejit as tj
from codegen.runtime.kernel import Kernel
from tests.tools.extent import examples, is_full
from tilejit.copies.convert import single_pass_program
from tilejit.programs.compiled import array_element
from tilejit.programs.pack_programs import single_pass_unpack

SHAPES = 300
MOST_KERNELS, MOST_OF_A_SHARE = 112, 87
"""Of all shapes, and of a share of them: 75, 150 and 300 shapes need 76, 86 and 110 kernels. Sources of
transposes contain their pitches, so joined rows and columns have separate kernels. 18 are shuffles."""
LAYOUTS = (
    "f32 {1,0}",
    "f32 {0,1}",
    "f32 {1,0:T(8,128)}",
    "f32 {1,0:T(2,128)}",
    "f32 {1,0:T(4,128)}",
    "f32 {0,1:T(8,128)}",
    "f32 {1,0:T(*,1024)}",
    "bf16 {1,0:T(8,128)(2,1)}",
    "bf16 {0,1:T(8,128)(2,1)}",
    "bf16 {1,0:T(16,128)(2,1)}",
    "s8 {1,0:T(8,128)(4,1)}",
    "s8 {1,0:T(32,128)(4,1)}",
    "s8 {0,1:T(32,128)(4,1)}",
    "u8 {1,0}",
    "pred {1,0:T(32,128)(4,1)}",
    "f64 {1,0:T(8,8)}",
    "f16 {1,0:T(16,16)}",
    "u8 {1,0:T(4,16)}",
    "s32 {1,0:T(4,4)}",
    "c64 {0,1:T(8,128)}",
)


def kernels_of(dims: tuple[int, int], layout: str) -> set[Kernel]:
    name, text = layout.split(" ", 1)
    shape = tj.Shape.parse(f"{name}[{dims[0]},{dims[1]}]{text}")
    array = np.lib.stride_tricks.as_strided(
        np.empty(1, shape.dtype), dims, (dims[1] * shape.dtype.itemsize, shape.dtype.itemsize)
    )
    return {
        *single_pass_program(array, shape).kernels,
        *single_pass_unpack(shape, array.strides, array_element(shape), False, 1).kernels,
    }


@pytest.mark.full
def test_300_shapes_in_20_layouts_need_few_kernels(seed: int) -> None:
    """Each shape is packed and unpacked in every third layout. Counting the kernels compiles nothing."""
    rng = np.random.default_rng(seed)
    kernels: set[Kernel] = set()
    for k in range(examples(SHAPES // 4, full=SHAPES)):
        dims = tuple(int(n) for n in np.exp(rng.uniform(0, np.log(3000), 2)).astype(int))
        for layout in LAYOUTS[k % 3 :: 3]:
            kernels |= kernels_of(dims, layout)
    assert len(LAYOUTS) == 20
    most = MOST_KERNELS if is_full() else MOST_OF_A_SHARE
    assert len(kernels) <= most, sorted(kernel.name for kernel in kernels)


@pytest.mark.full
def test_a_sample_of_the_shapes_runs(seed: int) -> None:
    rng = np.random.default_rng(seed + 1)
    for layout in LAYOUTS:
        name, text = layout.split(" ", 1)
        for _ in range(3):
            dims = [int(n) for n in rng.integers(1, 200, 2)]
            shape = tj.Shape.parse(f"{name}[{dims[0]},{dims[1]}]{text}")
            x = rng.integers(0, 2, dims).astype(shape.dtype)
            assert (tj.unpack(tj.pack(x, shape)) == x).all()
