"""Packing and unpacking of elements of less than a byte, in cache and past it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.schedule.machine import described, machine
from tests.tools.oracle import packed_by_definition, random_elements, unpacked_by_definition


@pytest.fixture(params=[0, 1 << 40], ids=["streamed", "plain"])
def streaming(request: pytest.FixtureRequest) -> Iterator[None]:
    """Full lines go past the cache, or none do, whatever the size of the array."""
    with described(replace(machine(), stream_bytes=request.param)):
        yield


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


@pytest.mark.full
@pytest.mark.usefixtures("streaming")
@pytest.mark.parametrize("dims", [(64, 256), (61, 300), (128, 1), (9, 77), (33, 2049)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("offset", [0, 16, 1])
def test_layouts_by_definition(layout: str, dims: tuple[int, int], offset: int, seed: int) -> None:
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


@pytest.mark.full
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
