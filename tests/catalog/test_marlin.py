"""Marlin and Machete: the bytes of their own packers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import check_case, given, mix


@pytest.mark.parametrize(
    ("case", "layout", "dtype"),
    [
        ("marlin_int4_64x128", "marlin-int4", np.uint8),
        ("marlin_int4_64x128", "marlin-fp4", np.uint8),
        ("marlin_int8_64x128", "marlin-int8", np.uint8),
        ("marlin_scales_group_4x128", "marlin-scales", np.uint16),
        ("marlin_zero_points_int4_4x128", "marlin-zero-points", np.uint8),
        ("marlin24_scales_2x128", "marlin-24-scales", np.float16),
        ("marlin_nvfp4_scales_4x128", "marlin-nvfp4-scales", np.uint8),
        ("marlin_mxfp4_scales_4x128", "marlin-mxfp4-scales", np.uint8),
        ("machete_int4_f16_128x64", "machete-int4", np.uint8),
        ("machete_int8_f16_128x128", "machete-int8", np.uint8),
    ],
)
def test_case(case: str, layout: str, dtype: type[np.generic]) -> None:
    check_case(case, given(case).astype(dtype), layout)


def test_marlin_24_stores_the_kept_values_in_the_order_of_columns() -> None:
    kept = (9 + mix((16, 64, 2), 7, 3)).astype(np.uint8).transpose(0, 2, 1).reshape(32, 64)
    check_case("marlin24_int4_64x64", kept, "marlin-24")


@pytest.mark.full
@pytest.mark.parametrize("shape", [(1, 64), (96,)])
def test_scales_per_channel_and_bias_keep_32_columns_together(shape: tuple[int, ...]) -> None:
    """Position 2i + p of a group of 8 columns q has column 8q + 2i + p: a step of 32 columns as 4 x 4 x 2."""
    scales = np.arange(np.prod(shape), dtype=np.float16).reshape(shape)
    packed = tj.pack(scales, "marlin-scales-channel")
    order = [8 * q + 2 * i + p for i in range(4) for q in range(4) for p in range(2)]
    expected = scales.reshape(-1, 32)[:, order]
    np.testing.assert_array_equal(np.asarray(packed.buffer).view(np.float16), expected.reshape(-1))
    np.testing.assert_array_equal(np.asarray(packed.unpack()), scales)


def test_every_nvfp4_scale_that_is_not_negative_becomes_128_times_its_value() -> None:
    scales = np.resize(np.arange(127, dtype=np.uint8), (1, 128))
    packed = tj.pack(scales, "marlin-nvfp4-scales")
    half = (128 * scales.view(ml_dtypes.float8_e4m3fn).astype(np.float16)).view(np.uint16)
    assert sorted(packed.buffer.view(np.uint8).reshape(-1)) == sorted((half >> 7).reshape(-1))
    np.testing.assert_array_equal(packed.unpack(), scales)
    as_f8 = tj.pack(scales.view(ml_dtypes.float8_e4m3fn), "marlin-nvfp4-scales")
    assert as_f8.buffer.tobytes() == packed.buffer.tobytes()


def test_negative_nvfp4_scales_and_wrong_bytes_are_refused() -> None:
    with pytest.raises(tj.LayoutError, match=r"element \[0, 0\] is 128, but codes are 0 to 126"):
        tj.pack(np.full((1, 64), 128, np.uint8), "marlin-nvfp4-scales")
    with pytest.raises(tj.LayoutError, match="bytes that marlin-nvfp4-scales never stores"):
        tj.unpack(np.full((1, 64), 1, np.uint8), "marlin-nvfp4-scales", dims=(1, 64))


def test_codes_of_f4e2m1_are_weights_of_marlin_fp4() -> None:
    codes = mix((16, 64), 16).astype(np.uint8)
    floats = tj.pack(codes.view(ml_dtypes.float4_e2m1fn), "marlin-fp4")
    assert np.asarray(floats.buffer).tobytes() == np.asarray(tj.pack(codes, "marlin-int4").buffer).tobytes()


def test_experts_are_packed_one_after_another() -> None:
    codes = mix((2, 16, 64), 16).astype(np.uint8)
    both = tj.pack(codes, "marlin-int4").buffer
    assert bytes(both) == b"".join(bytes(tj.pack(expert, "marlin-int4").buffer) for expert in codes)
