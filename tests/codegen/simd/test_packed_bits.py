"""Packing and unpacking in registers: every count, alignment and CPU level, and the schedules for it."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from subprocess import run
from sys import executable
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.pipeline import calibrate
from codegen.pipeline.program import CopyProgram
from codegen.schedule.thresholds import Thresholds
from codegen.schedule.transfers import PackBits, UnpackBits
from tests.codegen.simd.packed_bits import Routine, check, routines
from tests.tools.extent import lower_levels
from tests.tools.oracle import (
    environment,
    packed_by_definition,
    random_elements,
    unpacked_by_definition,
)
from tilejit.copies.convert import single_pass_program
from tilejit.programs.compiled import array_element
from tilejit.programs.pack_programs import pack_program, single_pass_pack, single_pass_unpack, unpack_program


@pytest.mark.parametrize("routine", [*routines()], ids=str)
def test_routine_against_the_interpreter(routine: Routine) -> None:
    check(routine)


@pytest.mark.parametrize("level", lower_levels())
def test_lower_cpu_levels(level: str) -> None:
    command = [executable, "-m", "tests.codegen.simd.packed_bits"]
    done = run(command, env=environment(TILEJIT_CPU=level), capture_output=True, text=True, check=False)
    assert done.stdout == "checked\n", done.stderr


@pytest.fixture(params=[0, 1 << 40], ids=["streamed", "plain"])
def streaming(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether full lines go past the cache, whatever the size of the array."""
    programs = single_pass_pack, pack_program, single_pass_unpack, unpack_program
    for cached in programs:
        cached.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibrate, "DEFAULT_THRESHOLDS", Thresholds(stream_bytes=request.param))
        yield request.param == 0
    for cached in programs:
        cached.cache_clear()


LAYOUTS = (
    "s4 {1,0:E(4)}",
    "s4 {0,1:E(4)}",
    "s4 {1,0:T(8,128)E(4)}",
    "s4 {1,0:T(64,128)(8,1)E(4)}",
    "s4 {1,0:T(16,128)(16,1)E(4)}",
    "s4 {1,0:T(16,128)(4,1)E(4)}",
    "u4 {1,0:T(8,128)(2,1)E(4)}",
    "u2 {1,0:T(64,128)(16,1)E(2)}",
    "u2 {1,0:E(2)}",
    "pred {1,0:E(1)}",
    "pred {1,0:T(32,128)(32,1)E(1)}",
    "pred {0,1:T(32,128)(32,1)E(1)}",
)


@pytest.mark.parametrize("dims", [(64, 256), (61, 300), (128, 1), (9, 77), (33, 2049)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("offset", [0, 16, 1])
def test_layouts_by_definition(
    layout: str, dims: tuple[int, int], offset: int, streaming: bool, seed: int
) -> None:
    """From and to arrays that start `offset` bytes after a line."""
    name, text = layout.split(" ", 1)
    shape = tj.Shape.parse(f"{name}[{dims[0]},{dims[1]}]{text}")
    array, out = behind_a_line(shape, offset), behind_a_line(shape, offset)
    array[...] = random_elements(np.random.default_rng(seed), shape.dtype, array.size).reshape(dims)
    tiled = tj.pack(array, shape)
    fill = np.zeros(1, shape.dtype)
    wanted = packed_by_definition(array, shape, fill, np.zeros(shape.size_in_bytes, np.uint8))
    assert np.array_equal(tiled.buffer, wanted)
    tj.unpack(tiled, out=out)
    assert out.tobytes() == unpacked_by_definition(wanted, shape).tobytes()


@pytest.mark.parametrize(
    "text", ["s4[2,14]{1,0:T(5)E(4)}", "u2[3,40]{1,0:T(9)E(2)}", "pred[3,80]{1,0:T(9)E(1)}"]
)
def test_last_tiles_of_full_bytes_in_rows_of_partial_bytes(text: str, seed: int) -> None:
    """The elements of the last tile fill complete bytes, but rows begin anywhere in a byte."""
    shape = tj.Shape.parse(text)
    array = behind_a_line(shape, 0)
    array[...] = random_elements(np.random.default_rng(seed), shape.dtype, array.size).reshape(array.shape)
    fill = np.zeros(1, shape.dtype)
    wanted = packed_by_definition(array, shape, fill, np.zeros(shape.size_in_bytes, np.uint8))
    tiled = tj.pack(array, shape)
    assert np.array_equal(tiled.buffer, wanted)
    assert tj.unpack(tiled).tobytes() == array.tobytes()


def behind_a_line(shape: tj.Shape, offset: int) -> Any:
    """An array of the shape's elements, one byte each, that starts `offset` bytes after a line."""
    size = prod(shape.dimensions)
    room = np.full(size + 128, 0xA5, np.uint8)
    start = -room.ctypes.data % 64 + offset
    return room[start : start + size].view(shape.dtype).reshape(shape.dimensions)


def transfers(program: CopyProgram) -> list[PackBits | UnpackBits]:
    inner = [step.nest.transfer for step in program.steps]
    return [x for x in inner if isinstance(x, PackBits | UnpackBits)]


@pytest.mark.parametrize(
    ("text", "columns", "column"),
    [
        ("s4[64,256]{1,0:T(64,128)(8,1)E(4)}", 128, 4),
        ("u2[64,256]{1,0:T(64,128)(16,1)E(2)}", 128, 4),
        ("pred[64,256]{1,0:T(32,128)(32,1)E(1)}", 256, 4),
        ("s4[64,256]{1,0:T(64,128)(2,1)E(4)}", 128, 1),
        ("s4[64,256]{1,0:E(4)}", 1, 64 * 256 // 2),
        ("pred[64,256]{1,0:T(8,128)E(1)}", 1, 16),
    ],
)
def test_columns_join_the_transfer(text: str, columns: int, column: int, streaming: bool) -> None:
    shape = tj.Shape.parse(text)
    array = np.zeros(shape.dimensions, shape.dtype)
    for program in (
        single_pass_program(array, shape),
        single_pass_unpack(shape, array.strides, array_element(shape), False, 1),
    ):
        (inner,) = transfers(program)
        assert (inner.columns, inner.count, inner.stream) == (columns, column, streaming)


def test_other_steps_do_not_stream(streaming: bool) -> None:
    """Every third byte of the source moves element by element, at any size."""
    shape = tj.Shape.parse("s4[64,256]{1,0:E(4)}")
    (inner,) = transfers(single_pass_program(np.zeros((64, 768), shape.dtype)[:, ::3], shape))
    assert (inner.columns, inner.stream) == (1, False)
