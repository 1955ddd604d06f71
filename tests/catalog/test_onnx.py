"""ONNX's narrow tensors, MatMulNBits, NCHWc."""

from __future__ import annotations

import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import Array, check_bytes, check_case, given, mix


@pytest.mark.full
@pytest.mark.parametrize(
    ("case", "name", "x"),
    [
        ("onnx_int4_5x7", "onnx-int4", given("onnx_int4_5x7").astype(np.int8)),
        ("onnx_int4_report", "onnx-int4", np.array([-8, 7, -1, 3, 5], np.int8)),
        ("onnx_float4e2m1_3x5", "onnx-float4", given("onnx_float4e2m1_3x5").astype(np.uint8)),
        ("onnx_float4e2m1_3x5", "onnx-uint4", given("onnx_float4e2m1_3x5").astype(np.uint8)),
        ("onnx_int2_5", "onnx-int2", np.array([-2, -1, 0, 1, 1], np.int8)),
    ],
)
def test_narrow_tensors(case: str, name: str, x: Array) -> None:
    check_case(case, x, name)


def codes_of(rows: int, columns: int, bits: int) -> Array:
    """The rule of the cases: the first two codes of each block are the least and the greatest."""
    blocks = mix((rows, -(-columns // 32), 32), 1 << bits)
    blocks[..., :2] = 0, (1 << bits) - 1
    return blocks.reshape(rows, -1)[:, :columns].astype(np.uint8)


@pytest.mark.parametrize(("rows", "columns", "bits"), [(8, 64, 4), (6, 96, 4), (8, 64, 8)])
def test_matmul_n_bits(rows: int, columns: int, bits: int) -> None:
    case = f"ort_matmulnbits_int{bits}_K{columns}_N{rows}_bs32"
    blocks = (rows, columns // 32)
    planes = {
        "B": codes_of(rows, columns, bits),
        "scales": mix(blocks, 1000).astype(np.float32),
        "zero_points": np.zeros(blocks, np.uint8),
    }
    packed = tj.pack(planes, "ort-matmulnbits", bits=bits)
    check_bytes(case, packed.buffers["B"])
    assert packed.buffers["B"].shape == (rows, columns // 32, 32 * bits // 8)
    assert packed.buffers["scales"].tobytes() == planes["scales"].tobytes()
    assert packed.buffers["zero_points"].shape == (rows, -(-blocks[1] * bits // 8))
    if blocks[1] % 2:  # the case's zero points: 00 80 for each row
        assert packed.buffers["zero_points"][0].tolist() == [0, 0x80]
    again = packed.unpack()
    for name, plane in planes.items():
        assert np.array_equal(again[name], plane), name
        assert again[name].dtype == plane.dtype


def test_zero_points() -> None:
    zeros = mix((4, 3), 16, 7).astype(np.uint8)
    check_case("ort_matmulnbits_zero_points_4x3", zeros, "ort-matmulnbits-zp")
    planes = {"B": np.zeros((4, 90), np.uint8), "scales": np.ones((4, 3), np.float16), "zero_points": zeros}
    packed = tj.pack(planes, "ort-matmulnbits", scale_bits=16)
    check_bytes("ort_matmulnbits_zero_points_4x3", packed.buffers["zero_points"])
    assert packed.unpack()["scales"].dtype == np.float16


def test_a_tail_of_k_is_0_and_zero_points_may_be_missing() -> None:
    codes = mix((3, 40), 16).astype(np.uint8)
    packed = tj.pack({"B": codes, "scales": np.ones((3, 3), np.float32)}, "ort-matmulnbits", block_size=16)
    assert set(packed.buffers) == {"B", "scales"}
    assert not packed.buffers["B"][:, 2, 4:].any()
    assert np.array_equal(packed.unpack()["B"], codes)


def test_wrong_planes_and_parameters_are_refused() -> None:
    codes, scales = np.zeros((2, 32), np.uint8), np.ones((2, 1), np.float32)
    with pytest.raises(tj.LayoutError, match="lacks its plane 'scales'"):
        tj.pack(codes, "ort-matmulnbits")
    with pytest.raises(tj.LayoutError, match=r"scales: expected an array of \[2, 2\]"):
        tj.pack({"B": codes, "scales": scales}, "ort-matmulnbits", block_size=16)
    with pytest.raises(tj.LayoutError, match=r"B: element \[0, 0\] is 16, but codes are 0 to 15"):
        tj.pack({"B": codes + 16, "scales": scales}, "ort-matmulnbits")
    with pytest.raises(tj.LayoutError, match="block_size is 24\n  pass a power of two from 16"):
        tj.pack({"B": codes, "scales": scales}, "ort-matmulnbits", block_size=24)
    with pytest.raises(tj.LayoutError, match="bits is 3\n  pass one of 4, 8"):
        tj.pack({"B": codes, "scales": scales}, "ort-matmulnbits", bits=3)


@pytest.mark.full
def test_nchwc() -> None:
    x = given("ort_nchwc16_1x32x2x3").astype(np.float32) + 1
    check_case("ort_nchwc16_1x32x2x3", x, "ort-nchwc")
    assert tj.pack(x, "ort-nchwc", block=8).layout == tj.pack(x, "nChw8c").layout
