"""MLX: the bytes of mx.quantize."""

from __future__ import annotations

import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import Array, check_bytes, check_case, given, mix


def affine_codes(bits: int) -> Array:
    codes = given(f"mlx_affine_int{bits}_g64_4x128").astype(np.uint8)
    codes[:, ::64], codes[:, 1::64] = 0, (1 << bits) - 1
    return codes


@pytest.mark.parametrize("bits", [3, 4, 6, 8])
def test_affine(bits: int) -> None:
    case = f"mlx_affine_int{bits}_g64_4x128"
    codes = affine_codes(bits)
    check_case(case, {"codes": codes}, "mlx-affine", bits=bits)
    scales = ((mix((4, 2), 99) - 50) / 8).astype(np.float16)
    packed = tj.pack({"codes": codes, "scales": scales, "biases": -scales}, "mlx-affine", bits=bits)
    check_bytes(case, packed.buffers["weight"])
    assert packed.buffers["weight"].shape == (4, 4 * bits)
    np.testing.assert_array_equal(packed.buffers["biases"], -scales)
    found = packed.unpack()
    assert isinstance(found, dict)
    np.testing.assert_array_equal(found["codes"], codes)
    np.testing.assert_array_equal(found["scales"], scales)


@pytest.mark.parametrize("bits", [2, 5])
def test_a_row_is_one_stream(bits: int) -> None:
    codes = mix((3, 2, 32), 1 << bits).astype(np.uint8)
    packed = tj.pack({"codes": codes}, "mlx-affine", bits=bits, group=32)
    want = [sum(int(code) << bits * k for k, code in enumerate(row)) for row in codes.reshape(6, 32)]
    assert packed.buffer.tobytes() == b"".join(row.to_bytes(4 * bits, "little") for row in want)
    assert packed.buffer.shape == (3, 2, bits)


def test_scales_and_biases_have_one_dtype() -> None:
    codes, scales = np.zeros((2, 64), np.uint8), np.ones((2, 1), np.float32)
    with pytest.raises(tj.LayoutError, match="expected one dtype, got scales f32, biases f16"):
        tj.pack({"codes": codes, "scales": scales, "biases": scales.astype(np.float16)}, "mlx-affine")


@pytest.mark.parametrize(("case", "layout", "group"), [
    ("mlx_mxfp4_4x64", "mlx-mxfp4", 32),
    ("mlx_nvfp4_1x32", "mlx-nvfp4", 16),
])  # fmt: skip
def test_fp4(case: str, layout: str, group: int) -> None:
    codes = given(case).astype(np.uint8)
    codes[:, ::group] = 7
    codes[codes == 8] = 0
    check_case(case, {"codes": codes}, layout)
    scales = np.full((codes.shape[0], codes.shape[1] // group), 0x7F, np.uint8)
    packed = tj.pack({"codes": codes, "scales": scales}, layout)
    check_bytes(case, packed.buffers["weight"])
    np.testing.assert_array_equal(packed.buffers["scales"], scales)


def test_mxfp8() -> None:
    codes = mix((2, 64), 256).astype(np.uint8)
    packed = tj.pack({"codes": codes, "scales": np.zeros((2, 2), np.uint8)}, "mlx-mxfp8")
    np.testing.assert_array_equal(packed.buffers["weight"], codes.view("<u4"))
