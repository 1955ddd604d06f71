"""compressed-tensors and ModelOpt: the bytes of their packers, and whole modules."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import Array, check_bytes, check_case, given, mix

INT = "compressed-tensors-pack-quantized"
WNA16 = "compressed-tensors-wna16"


def words(codes: Array, bits: int) -> Array:
    """Each row as one number of Python, cut into 32-bit words."""
    length = -(-codes.shape[1] * bits // 32) * 4
    rows = [
        sum(int(code) + (1 << bits - 1) << bits * k for k, code in enumerate(row)).to_bytes(length, "little")
        for row in codes
    ]
    return np.frombuffer(b"".join(rows), "<i4").reshape(len(codes), length // 4)


@pytest.mark.parametrize(("case", "parameters"), [
    ("ct_pack_quantized_int4_16x64", {}),
    ("ct_pack_quantized_int8_8x64", {"bits": 8}),
    ("ct_pack_quantized_int3_4x40", {"bits": 3}),
    ("ct_pack_quantized_int4_zp_dim0_16x24", {"packed_dim": 0}),
])  # fmt: skip
def test_cases(case: str, parameters: dict[str, int]) -> None:
    check_case(case, given(case).astype(np.int8), INT, **parameters)


@pytest.mark.full
@pytest.mark.parametrize("bits", range(1, 9))
def test_rows_are_padded_to_words(bits: int) -> None:
    codes = (mix((5, 37), 1 << bits, 3) - (1 << bits - 1)).astype(np.int8)
    packed = tj.pack(codes, INT, bits=bits)
    np.testing.assert_array_equal(packed.buffer, words(codes, bits))
    np.testing.assert_array_equal(packed.unpack(), codes)
    zeros = tj.pack(codes, INT, bits=bits, packed_dim=0)
    np.testing.assert_array_equal(zeros.buffer, words(codes.T, bits).T)
    np.testing.assert_array_equal(zeros.unpack(), codes)


def test_an_empty_array() -> None:
    for bits in (3, 4):
        assert tj.pack(np.zeros((0, 8), np.int8), INT, bits=bits).buffer.shape == (0, 1)


def test_dimensions_and_parameters_that_are_refused() -> None:
    with pytest.raises(tj.LayoutError, match="packed_dim is 2\n  pass one of 0, 1"):
        tj.pack(np.zeros((2, 8), np.int8), INT, packed_dim=2)
    with pytest.raises(tj.LayoutError, match="bits is 9"):
        tj.pack(np.zeros((2, 8), np.int8), INT, bits=9)
    with pytest.raises(tj.LayoutError, match=r"element \[0, 0\] is 8, but codes are -8 to 7"):
        tj.pack(np.full((2, 8), 8, np.int8), INT)


def module(bits: int, group: int) -> dict[str, Array]:
    shape, half = (16, 128), 1 << bits - 1
    groups = (16, 128 // group)
    return {
        "weight": (mix(shape, 2 * half) - half).astype(np.int8),
        "weight_scale": mix(groups, 99).astype(ml_dtypes.bfloat16),
        "weight_zero_point": (mix(groups, 2 * half, 5) - half).astype(np.int8),
    }


@pytest.mark.parametrize(("bits", "group"), [(4, 32), (8, 128), (3, 64)])
def test_a_module(bits: int, group: int) -> None:
    planes = module(bits, group)
    packed = tj.pack(planes, WNA16, bits=bits, group=group)
    np.testing.assert_array_equal(packed.buffers["weight_packed"], words(planes["weight"], bits))
    np.testing.assert_array_equal(packed.buffers["weight_scale"], planes["weight_scale"])
    zeros = packed.buffers["weight_zero_point"]
    np.testing.assert_array_equal(zeros, words(planes["weight_zero_point"].T, bits).T)
    np.testing.assert_array_equal(packed.buffers["weight_shape"], [16, 128])
    again = tj.unpack(dict(packed.buffers), WNA16, dims=(16, 128), dtype="bf16", bits=bits, group=group)
    for name, values in planes.items():
        np.testing.assert_array_equal(again[name], values)
        assert again[name].dtype == values.dtype


def test_a_module_without_zero_points() -> None:
    planes = module(4, 128)
    del planes["weight_zero_point"]
    packed = tj.pack(planes, WNA16)
    assert list(packed.buffers) == ["weight_packed", "weight_scale", "weight_shape"]
    assert list(packed.unpack()) == ["weight", "weight_scale"]
    with pytest.raises(tj.LayoutError, match=r"weight_shape is \[16, 128\], but dims are \[8, 256\]"):
        tj.unpack({"weight_shape": packed.buffers["weight_shape"]}, WNA16, dims=(8, 256), dtype="bf16")


@pytest.mark.full
def test_bitmask() -> None:
    mask = given("ct_bitmask_1x9") == 0
    packed = check_case("ct_bitmask_1x9", mask, "compressed-tensors-sparse-bitmask")
    assert packed.unpack().dtype == bool
    check_case("ct_bitmask_1x9", mask.astype(np.uint8), "compressed-tensors-sparse-bitmask")


@pytest.mark.parametrize(("layout", "buffer", "scale", "shape"), [
    ("compressed-tensors-nvfp4-pack-quantized", "weight_packed", "weight_global_scale", (1,)),
    ("modelopt-nvfp4", "weight", "weight_scale_2", ()),
])  # fmt: skip
def test_nvfp4(layout: str, buffer: str, scale: str, shape: tuple[int, ...]) -> None:
    case = "fp4_e2m1_lo_first_8x64"
    codes = given(case).astype(np.uint8)
    check_case(case, {"weight": codes}, layout)
    scales = mix((8, 4), 120).astype(np.uint8).view(ml_dtypes.float8_e4m3fn)
    planes = {"weight": codes, "weight_scale": scales, scale: np.full(shape, 0.5, np.float32)}
    packed = tj.pack(planes, layout)
    check_bytes(case, packed.buffers[buffer])
    assert packed.buffers[scale].shape == shape
    found = packed.unpack()
    assert isinstance(found, dict)
    for name, values in planes.items():
        np.testing.assert_array_equal(found[name], values)


@pytest.mark.full
def test_modelopt_int4() -> None:
    codes = given("modelopt_int4_awq_2x32").astype(np.int8)
    check_case("modelopt_int4_awq_2x32", codes, "modelopt-int4-awq")
