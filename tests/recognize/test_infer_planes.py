"""`tilejit.infer` on codes of any width, and on elements whose bits are in several planes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.recognize import functions
from tests.recognize.functions import Array, little_endian

HALVES = "in bits: Sw<0,0,0> o 27 o ((3,9),6):((192,-3),32)"
PLANES: dict[str, tuple[Callable[[Array], Any], int, tuple[int, ...], dict[int, str]]] = {
    "ggml Q5_0": (
        functions.ggml_q5_0,
        5,
        (4, 64),
        {
            0: "Sw<0,0,0> o 12 o (4,(16,2,2)):(88,(2,1,44))",
            4: "Sw<0,0,0> o 16 o (4,(32,2,129)):(352,(1,176,1))",
        },
    ),
    "ggml Q6_K": (
        functions.ggml_q6_k,
        6,
        (2, 512),
        {
            0: "(2,(64,2,2,2,165)):(840,(2,1,128,420,1))",
            4: "Sw<0,0,0> o 512 o (2,(32,4,2,2,73)):(1680,(4,1,128,840,1))",
        },
    ),
    "FP6-LLM": (
        functions.fp6_llm,
        6,
        (64, 64),
        {
            0: "Sw<0,0,0> o 2051 o ((8,2,4),(8,2,4)):((32,-2,256),(4,-1,1024))",
            4: "Sw<0,0,0> o 7 o ((8,2,2,2),(8,2,4,8193)):((64,-4,-2,512),(8,-1,1024,1))",
        },
    ),
    "HQQ, 3 bits": (functions.hqq_3_bits, 3, (25, 6), {0: HALVES}),
    "rows of 40 codes of 3 bits": (
        partial(functions.bit_stream, bits=3),
        3,
        (4, 40),
        {0: "in bits: (4,(40,11)):(128,(3,1))"},
    ),
    "GPTQ, 3 bits": (
        functions.gptq_3_bits,
        3,
        (128, 64),
        {0: "in bits: ((32,12),64):((1,2048),32), a stream along dimension 0"},
    ),
}


@pytest.mark.parametrize("name", PLANES)
def test_planes(name: str) -> None:
    pack, bits, dims, texts = PLANES[name]
    found = tj.infer(pack, "uint8", dims, element_size_in_bits=bits)
    assert found.is_layout
    assert {plane.low: plane.text for plane in found.planes} == texts
    assert sum(plane.bits for plane in found.planes) == bits == found.element_bits
    assert all(str(plane) in repr(found) for plane in found.planes)
    codes = np.random.default_rng(1).integers(0, 1 << bits, dims).astype(np.uint8)
    packed = pack(codes)
    data = packed if isinstance(packed, bytes) else np.ascontiguousarray(packed).tobytes()
    assert np.array_equal(found.unpack(data), codes)
    assert found.pack(codes).tobytes() == data
    with pytest.raises(tj.LayoutError, match="not side by side"):
        found.slots()


@pytest.mark.full
def test_no_swizzle_fits_many_planes() -> None:
    """Thousands of swizzles are tried on a sample of the codes, and none fits."""
    found = tj.infer(lambda x: tj.pack(x, "gptq", bits=3).buffer, "uint8", (512, 512), element_size_in_bits=3)
    assert found.planes[0].text == "in bits: ((32,48),512):((1,16384),32), a stream along dimension 0"


def test_a_range_of_all_codes() -> None:
    """It says what the width of codes says."""
    found = tj.infer(functions.fp6_llm, "uint8", (64, 64), value_range=(0, 63))
    assert [(plane.low, plane.bits) for plane in found.planes] == [(0, 4), (4, 2)]


@pytest.mark.full
def test_layouts_of_planes() -> None:
    """Each plane has a layout, which reads its part of the buffer."""
    codes = np.random.default_rng(1).integers(0, 64, (64, 64)).astype(np.uint8)
    packed = functions.fp6_llm(codes)
    low, high = tj.infer(functions.fp6_llm, "uint8", (64, 64), element_size_in_bits=6).planes
    for plane, values in ((low, codes & 15), (high, codes >> 4)):
        assert np.array_equal(tj.unpack(packed, plane.layout).astype(np.uint8), values)


@pytest.mark.parametrize("bits", range(1, 8))
def test_codes_side_by_side(bits: int) -> None:
    def function(codes: Array) -> Array:
        return functions.bit_stream(codes, bits)

    found = tj.infer(function, "uint8", (3, 64), element_size_in_bits=bits)
    assert (found.element_bits, found.planes) == (bits, ())
    assert np.array_equal(found.slots(), np.arange(192).reshape(3, 64))
    codes = np.random.default_rng(1).integers(0, 1 << bits, (3, 64)).astype(np.uint8)
    assert np.array_equal(found.unpack(function(codes)), codes)
    found = tj.infer(
        lambda x: function(x.view(np.uint8) & (1 << bits) - 1), "int8", (3, 64), element_size_in_bits=bits
    )
    assert (found.element_bits, found.array_dtype) == (bits, np.int8)


def test_codes_in_bytes() -> None:
    found = tj.infer(lambda x: x.T, "uint8", (4, 5), element_size_in_bits=3)
    assert (found.element_bits, str(found.layout)) == (8, "u8[4,5]{0,1}")


def test_planes_with_flipped_bits() -> None:
    def function(x: Array) -> Array:
        planes = np.concatenate([little_endian(x & 3, 2, "u1"), little_endian(x >> 2, 2, "u1")])
        return planes ^ np.repeat(np.array([0x55, 0xFF], np.uint8), 8)[:, None]

    found = tj.infer(function, "uint4", (8, 8))
    assert [(plane.low, plane.bits) for plane in found.planes] == [(0, 2), (2, 2)]
    assert found.value_map == "x ^ 13"
    codes = np.random.default_rng(1).integers(0, 16, (8, 8)).astype(np.uint8)
    assert np.array_equal(found.unpack(function(codes)), codes)
    assert found.pack(codes).tobytes() == function(codes).tobytes()


def test_planes_of_bytes() -> None:
    """The low bytes of all elements, then the high ones."""
    found = tj.infer(lambda x: np.stack([x & 255, x >> 8]).astype(np.uint8), "uint16", (4, 5))
    assert [(plane.low, plane.bits) for plane in found.planes] == [(0, 8), (8, 8)]
    assert str(found.planes[0].layout) == "u8[4,5]{1,0:T(8,5)}"
    x = np.arange(0, 2000, 100, dtype=np.uint16).reshape(4, 5)
    assert np.array_equal(found.unpack(np.stack([x & 255, x >> 8]).astype(np.uint8)), x)


def test_wrong_widths() -> None:
    with pytest.raises(tj.LayoutError, match="of codes, not f32"):
        tj.infer(np.copy, "f32", (3,), element_size_in_bits=4)
    for bits in (0, 8, -1):
        with pytest.raises(tj.LayoutError, match="pass a width of codes from 1 to 7"):
            tj.infer(np.copy, "uint8", (3,), element_size_in_bits=bits)
    with pytest.raises(TypeError, match="element_size_in_bits"):
        tj.infer(np.copy, "uint8", (3,), element_size_in_bits=2.5)  # type: ignore[arg-type]
