"""Golden files of nests and kernels of copies, which show the compiler's changes as diffs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import tilejit as tj
from codegen import CopyProgram
from codegen.schedule.machine import described
from tests.tools.goldens import GOLDEN, MACHINE, check_golden
from tilejit.copies.convert import single_pass_program
from tilejit.copies.explanations import c_strides
from tilejit.programs.compiled import array_element
from tilejit.programs.pack_programs import single_pass_unpack

CASES = {
    "pack_f32_8x128": "f32[20,300]{1,0:T(8,128)}",
    "pack_f32_transposed_8x128": "f32[300,20]{0,1:T(8,128)}",
    "pack_bf16_8x128_2x1": "bf16[33,300]{1,0:T(8,128)(2,1)}",
    "pack_s4_in_nibbles": "s4[64,256]{1,0:T(64,128)(8,1)E(4)}",
    "pack_bf16_32x16_2x1": "bf16[64,1050]{1,0:T(32,16)(2,1)}",
    "pack_with_a_table": "f32[10,24,6]{2,0,1:T(*,7,2)}",
    "unpack_bf16_8x128_2x1": "bf16[33,300]{1,0:T(8,128)(2,1)}",
    "unpack_s8_64x16_4x1": "s8[64,160]{1,0:T(64,16)(4,1)}",
    "unpack_pred_in_bits": "pred[32,128]{1,0:T(32,128)(32,1)E(1)}",
    "pack_f32_8x128_streamed": "f32[16384,16384]{1,0:T(8,128)}",
    "unpack_f32_16x1_staged": "f32[16383,16387]{1,0:T(16,1)}",
    "pack_u8_8x8x32_gathered": "u8[64,253,253,250]{3,2,1,0:T(8,8,32)}",
}
"""The largest ones exceed every cache on any machine. Nothing is copied."""

COPIES = {
    "copy_u32_transposed": ("u4", "u4", (300, 200)),
    "copy_u16_transposed_streamed": ("u2", "u2", (16384, 16384)),
    "copy_u8_transposed_staged": ("u1", "u1", (32771, 32769)),
    "copy_f32_to_bf16_transposed": ("f4", ml_dtypes.bfloat16, (300, 200)),
    "copy_u64_swapped_transposed": ("<u8", ">u8", (300, 200)),
    "copy_u32_transposed_in_strips": ("u4", "u4", (300, 200)),
}
"""Dtypes and shape of the source, which is transposed."""

VIEWS = {
    "copy_u32_reversed_streamed": ("u4", (16384, 16384), (1, -1)),
    "copy_u8_pixels_reversed": ("u1", (300, 400, 3), (1, 1, -1)),
    "copy_u64_chunks": ("u8", (300, 80, 8), (1, -2, -1)),
}
"""Dtype and shape of an array, and the steps of the source in it."""

NAMES = (*CASES, *COPIES, *VIEWS)


@pytest.fixture(autouse=True)
def one_machine() -> Iterator[None]:
    """Schedules depend on the machine."""
    with described(MACHINE):
        yield


def program_of(name: str) -> CopyProgram:
    if name in COPIES:
        source, target, dims = COPIES[name]
        dst, src = virtual(dims[::-1], np.dtype(target)), virtual(dims, np.dtype(source)).T
        size: tuple[int, int] | str = (32, 48) if name.endswith("in_strips") else "auto"
        return tj.explain(dst, src, virtual_vector_size=size).program
    if name in VIEWS:
        dtype, dims, steps = VIEWS[name]
        view = virtual(dims, np.dtype(dtype))[tuple(slice(None, None, step) for step in steps)]
        return tj.explain(virtual(view.shape, view.dtype), view).program
    shape = tj.Shape.parse(CASES[name])
    array = virtual(shape.dimensions, shape.dtype)
    if name.startswith("unpack"):
        return single_pass_unpack(shape, array.strides, array_element(shape), False, 1)
    return single_pass_program(array, shape)


def virtual(dims: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array in C order of any size, without its memory."""
    return np.lib.stride_tricks.as_strided(np.empty(1, dtype), dims, c_strides(dims, dtype.itemsize))


def text_of(name: str) -> str:
    """Every box of the copy: its schedule, its nests before and after, and each kernel's source once."""
    program = program_of(name)
    parts = [f"{name}: {(CASES | COPIES | VIEWS)[name]}\n"]
    for k, step in enumerate(program.steps):
        parts.append(f"--- box {k}: {step.schedule}, kernel {step.kernel.name}\n{step.box}")
        parts.append(str(step.nest))
    parts += [f"--- kernel\n{kernel.source}" for kernel in program.kernels]
    return "\n".join(parts)


@pytest.mark.parametrize("name", NAMES)
def test_golden(name: str, request: pytest.FixtureRequest) -> None:
    check_golden(GOLDEN / f"{name}.txt", text_of(name), request)


def test_every_golden_file_has_a_case() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_sources_are_python(name: str) -> None:
    """Each source compiles and defines the function with its name."""
    for kernel in program_of(name).kernels:
        namespace: dict[str, object] = {}
        exec(compile(kernel.source, kernel.name, "exec"), namespace)
        assert callable(namespace[kernel.name])
        assert all(len(line) <= 110 for line in kernel.source.splitlines())
