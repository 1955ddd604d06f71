"""Copies prove, before they write, that they stay in their buffers: one byte less is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen import CopyOptions, CopyRequest, Element, KernelError
from codegen.maps.windows import tight_map
from codegen.pipeline.copies import compile_copy
from tilejit.arrays.memory import bytes_map
from tilejit.layout.dtypes import lookup
from tilejit.layout.indexing import access_map
from tilejit.programs.compiled import buffer_element

STREAMED = CopyOptions(stream_bytes=0)


def dense(dims: tuple[int, ...], width: int) -> tuple[int, ...]:
    return tuple(width * prod(dims[k + 1 :]) for k in range(len(dims)))


def packed(text: str, **more: Any) -> CopyRequest:
    """An array in C order into a layout, with its padding."""
    spec = tj.as_layout(text)
    width = spec.dtype.itemsize
    array = bytes_map(spec.dimensions, dense(spec.dimensions, width), width)
    target = access_map(spec)
    return CopyRequest(
        array,
        target,
        Element(spec.primitive_type, 8 * width),
        buffer_element(spec),
        padding=bytes(max(target.element_bits // 8, 1)),
        **more,
    )


def unpacked(text: str) -> CopyRequest:
    """A layout into an array in C order. Bytes after the last element are not read and do not count."""
    there = packed(text)
    return CopyRequest(tight_map(there.dst), there.src, there.target, there.source)


def transposed(source: str, target: str, dims: tuple[int, int], **more: Any) -> CopyRequest:
    """A matrix in C order into its transpose, converted on the way."""
    wide, narrow = (lookup(name).storage_bits // 8 for name in (source, target))
    rows, columns = dims
    src = bytes_map((columns, rows), (wide, columns * wide), wide)
    dst = bytes_map((columns, rows), (rows * narrow, narrow), narrow)
    return CopyRequest(src, dst, Element(source, 8 * wide), Element(target, 8 * narrow), **more)


KINDS: dict[str, Callable[[], CopyRequest]] = {
    "runs": lambda: packed("f32[20,300]{1,0:T(8,128)}"),
    "runs past the cache": lambda: packed("f32[64,1024]{1,0:T(8,128)}", options=STREAMED),
    "elements": lambda: unpacked("f32[5,7]{1,0:T(2,3)}"),
    "transposed": lambda: transposed("u32", "u32", (300, 200)),
    "transposed past the cache": lambda: transposed("u16", "u16", (512, 512), options=STREAMED),
    "transposed bytes past the cache": lambda: transposed("u8", "u8", (1027, 515), options=STREAMED),
    "converted": lambda: transposed("f32", "bf16", (300, 200)),
    "swapped": lambda: transposed("u64", "u64", (30, 20), swap=True),
    "pairs of rows": lambda: packed("bf16[64,1050]{1,0:T(32,16)(2,1)}"),
    "nibbles": lambda: packed("s4[64,256]{1,0:T(64,128)(8,1)E(4)}"),
    "bits": lambda: unpacked("pred[32,128]{1,0:T(32,128)(32,1)E(1)}"),
    "merged dimensions": lambda: packed("f32[10,24,6]{2,0,1:T(*,7,2)}"),
    "merged dimensions, read": lambda: unpacked("f32[10,24,6]{2,0,1:T(*,7,2)}"),
    "short rows of tiles": lambda: packed("u8[2,13,11,58]{3,2,1,0:T(8,8,32)}", options=STREAMED),
    "swizzled": lambda: packed("f16[64,64] Sw<3,3,3> o 0 o (64,64):(64,1)"),
}


@pytest.mark.parametrize("by", [1, 64])
@pytest.mark.parametrize("end", ["front", "back"])
@pytest.mark.parametrize("side", ["source", "destination"])
@pytest.mark.parametrize("name", KINDS)
def test_a_buffer_that_is_too_small_is_refused(name: str, side: str, end: str, by: int) -> None:
    """By a byte or a line, at either end; for packed elements by one or sixty-four of them."""
    request = KINDS[name]()
    compile_copy(request)
    which = "src" if side == "source" else "dst"
    access = getattr(request, which)
    access = access.in_units(access.unit_bits if access.element_bits < 8 else 8)
    low, stop = access.bounds
    short = (low + by, stop) if end == "front" else (low, stop - by)
    smaller: Any = {which: replace(access, bounds=short)}
    memory = [np.full(x.byte_bounds[1], 7, np.uint8) for x in (request.src, request.dst)]
    with pytest.raises(KernelError, match=f"the {side} is touched at"):
        compile_copy(replace(request, **smaller)).run(*(x.ctypes.data for x in memory))
    assert (memory[1] == 7).all()


SMALL = np.zeros((16, 256), np.float32)
TILED = tj.Shape.parse("f32[16,256]{1,0:T(8,128)}")
CALLS: dict[str, Callable[[np.ndarray[Any, Any]], object]] = {
    "pack": lambda memory: tj.pack(SMALL, TILED, out=memory),
    "unpack": lambda memory: tj.unpack(memory, TILED),
    "relayout": lambda memory: tj.relayout(tj.pack(SMALL, TILED), "{0,1}", out=memory),
    "from_buffer": lambda memory: tj.TiledArray.from_buffer(memory, TILED),
}


@pytest.mark.parametrize("by", [1, 64, -1])
@pytest.mark.parametrize("name", CALLS)
def test_calls_refuse_memory_of_another_size(name: str, by: int) -> None:
    memory = np.full(SMALL.nbytes - by, 7, np.uint8)
    with pytest.raises(tj.TilejitError, match=r"\d+ bytes"):
        CALLS[name](memory)
    assert (memory == 7).all()
