"""Sizes of arrays are arguments of kernels, not part of them, so many shapes share few kernels."""

from __future__ import annotations

import numpy as np
import pytest

import tilejit as tj
from codegen.runtime.kernel import Kernel
from tests.tools.extent import examples
from tilejit.copies.convert import program_of_pack
from tilejit.programs.compiled import array_element
from tilejit.programs.pack_programs import single_pass_unpack

SHAPES, MOST_KERNELS = 300, 330
"""306 kernels in 2026-11; 171 if tiles were arguments, too, and 468 if parts of tiles were literals."""
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
        *program_of_pack(array, shape).kernels,
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
    assert len(kernels) <= MOST_KERNELS, sorted(kernel.name for kernel in kernels)
