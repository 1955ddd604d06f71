"""Scales of FP4 and FP8 blocks: the bytes of their libraries, padding, and other names."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import Array, check_case, given, mix

CASES_128X4 = ["scales_128x4_256x16", "scales_128x4_130x5", "scales_128x4_128x4"]


def scales(*dims: int) -> Array:
    return mix(dims, 256).astype(np.uint8)


def packed_bytes(x: Array, layout: str, **parameters: Any) -> Array:
    """The bytes, after they have been unpacked."""
    packed = tj.pack(x, layout, **parameters)
    np.testing.assert_array_equal(np.asarray(packed.unpack()).view(np.uint8), x.view(np.uint8))
    return packed.buffer.reshape(-1).view(np.uint8)


def padded(x: Array, rows: int, columns: int, value: int = 0) -> Array:
    return np.pad(x, ((0, -x.shape[0] % rows), (0, -x.shape[1] % columns)), constant_values=value)


@pytest.mark.parametrize(
    "layout", ["nvfp4-scales", "mx-scales", "blackwell-scales-128x4", "torchao-to_blocked"]
)
@pytest.mark.parametrize("case", CASES_128X4)
def test_128x4(case: str, layout: str) -> None:
    check_case(case, given(case).astype(np.uint8), layout)


@pytest.mark.full
@pytest.mark.parametrize(("case", "layout"), [
    ("triton_blackwell_scale_10x200", "blackwell-mx-scale"),
    ("triton_hopper_scale_w8_256x8", "hopper-mx-scale"),
    ("triton_cdna4_scale_8x64", "cdna4-mx-scale"),
    ("triton_gfx1250_scale_4x128", "gfx1250-mx-scale"),
    ("scales_8x4_8x8", "trtllm-scales-8x4"),
    ("trtllm_shuffle_sf_a_tile128_128x4", "trtllm-gen-shuffle-sf-a"),
    ("aiter_shuffle_scale_256x16", "aiter-shuffle-scale"),
    ("aiter_scale_a16w4_gate_up_64x8", "aiter-scale-a16w4"),
    ("aiter_shuffle_scale_n32k4_2x64x8", "aiter-scale-n32k4"),
    ("aiter_mxfp8fp4_scale_40x8", "aiter-gfx1250-scale"),
    ("deepgemm_pack_ue8m0_4x8", "deepgemm-ue8m0"),
    ("deepgemm_mn_major_ue8m0_10x6", "deepgemm-ue8m0-mn-major"),
])  # fmt: skip
def test_cases(case: str, layout: str) -> None:
    check_case(case, given(case).astype(np.uint8), layout)


def test_utccp() -> None:
    words = given("deepgemm_utccp_sf_2x256x3").astype(np.int32)
    check_case("deepgemm_utccp_sf_2x256x3", words, "deepgemm-utccp")
    with pytest.raises(tj.LayoutError, match="no rule for u8\n  view four scales as one s32"):
        tj.pack(words.astype(np.uint8), "deepgemm-utccp")


@pytest.mark.parametrize("tile", [64, 256])
def test_shuffled_rows(tile: int) -> None:
    """Each 16 rows go to 0 2 4 … 1 3 5 …, or 32 to 0 4 8 …, and then all into blocks of 128 x 4."""
    x, size = scales(256, 6), 32 if tile % 128 == 0 else 16
    order = np.arange(256).reshape(-1, 8, size // 8).swapaxes(1, 2).reshape(-1)
    want = tj.pack(x[order], "nvfp4-scales").buffer
    np.testing.assert_array_equal(packed_bytes(x, "trtllm-gen-shuffle-sf-a", epilogue_tile_m=tile), want)


@pytest.mark.full
@pytest.mark.parametrize("warps", [4, 8])
def test_hopper_warps(warps: int) -> None:
    x = scales(70, 3)
    full = padded(x, 32 * warps, 2)
    tiles = full.reshape(-1, 2, warps, 2, 8, full.shape[1] // 2, 2).transpose(0, 2, 5, 1, 4, 6, 3)
    np.testing.assert_array_equal(packed_bytes(x, "hopper-mx-scale", num_warps=warps), tiles.reshape(-1))


@pytest.mark.full
def test_gfx1250_does_not_pad_few_columns() -> None:
    x = scales(2, 130)
    full = np.pad(x, ((0, 0), (0, 126)))
    want = full.reshape(1, 2, 2, 4, 32).transpose(2, 0, 4, 3, 1)
    np.testing.assert_array_equal(packed_bytes(x, "gfx1250-mx-scale"), want.reshape(-1))
    assert packed_bytes(scales(5, 128), "gfx1250-mx-scale").size == 8 * 128


def aiter_order(full: Array) -> Array:
    rows, columns = full.shape
    return full.reshape(rows // 32, 2, 16, columns // 8, 2, 4).transpose(0, 3, 5, 2, 4, 1).reshape(-1)


@pytest.mark.full
def test_aiter_pads_with_0() -> None:
    x = scales(300, 9)
    np.testing.assert_array_equal(packed_bytes(x, "aiter-shuffle-scale"), aiter_order(padded(x, 256, 8)))


def test_cdna4_and_aiter_have_the_same_order() -> None:
    x = scales(256, 16)
    np.testing.assert_array_equal(packed_bytes(x.T, "cdna4-mx-scale"), packed_bytes(x, "aiter-shuffle-scale"))


@pytest.mark.parametrize("dtype", [np.uint8, ml_dtypes.float8_e8m0fnu])
def test_aiter_a16w4_pads_columns_with_1(dtype: type) -> None:
    x = scales(96, 5)
    full = padded(x, 1, 8, 0x7F)
    plain = packed_bytes(x.view(dtype), "aiter-scale-a16w4", gate_up=False, experts=3)
    np.testing.assert_array_equal(plain, aiter_order(full))
    halves = full.reshape(3, 2, 1, 16, 1, 2, 4).transpose(0, 2, 4, 6, 3, 5, 1)
    np.testing.assert_array_equal(
        packed_bytes(x.view(dtype), "aiter-scale-a16w4", experts=3), halves.reshape(-1)
    )
    with pytest.raises(tj.LayoutError, match="multiple of 64 as R, got 96"):
        tj.pack(x, "aiter-scale-a16w4", experts=2)


def test_exponents_of_f32_scales() -> None:
    """DeepGEMM's bytes are bits 23 to 30 of powers of two."""
    exponents = mix((6, 8), 200).astype(np.uint8)
    values = exponents.view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    np.testing.assert_array_equal(values.view(np.uint32) >> 23, exponents)
    np.testing.assert_array_equal(packed_bytes(exponents, "deepgemm-ue8m0"), exponents.reshape(-1))


def test_other_widths_are_refused() -> None:
    with pytest.raises(tj.LayoutError, match="stores codes of 8 bits, got f32"):
        tj.pack(np.zeros((128, 4), np.float32), "hopper-mx-scale")
