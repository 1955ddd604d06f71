"""Codes of FP4 and FP6: checkpoints, and the orders that matrix units read."""

from __future__ import annotations

from math import prod

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import Array, check_bytes, check_case, given, mix


@pytest.mark.parametrize(("case", "layout"), [
    ("fp6_e2m3_dense_le_1x8", "mxfp6-dense"),
    ("torchao_pack_uint4_4x32", "torchao-fp4"),
    ("fp6_llm_tc_64x64", "fp6-llm-2-4-split"),
    ("triton_hopper_value_mma3_256x128", "hopper-mx-value"),
    ("triton_blackwell_mx4_shuffled_128x300", "blackwell-mx4-shuffled"),
])  # fmt: skip
def test_cases(case: str, layout: str) -> None:
    check_case(case, given(case).astype(np.uint8), layout)


def test_gpt_oss() -> None:
    case = "gpt_oss_mxfp4_blocks_2x8x64"
    codes = given(case).astype(np.uint8)
    check_case(case, {"blocks": codes}, "gpt-oss-mxfp4")
    scales = mix((2, 8, 2), 256).astype(np.uint8)
    packed = tj.pack({"blocks": codes, "scales": scales.view(ml_dtypes.float8_e8m0fnu)}, "gpt-oss-mxfp4")
    check_bytes(case, packed.buffers["blocks"])
    assert packed.buffers["blocks"].shape == (2, 8, 2, 16)
    found = packed.unpack()
    assert isinstance(found, dict)
    np.testing.assert_array_equal(found["scales"], scales)


@pytest.mark.parametrize("dims", [(3, 4), (2, 1, 10), (3, 3)])
@pytest.mark.parametrize(("bits", "dtype"), [(4, ml_dtypes.float4_e2m1fn), (6, ml_dtypes.float6_e3m2fn)])
def test_safetensors(dims: tuple[int, ...], bits: int, dtype: type) -> None:
    """The array is one stream; its last byte must be full."""
    values = mix(dims, 1 << bits).astype(np.uint8)
    if prod(dims) % (2 if bits == 4 else 4):
        with pytest.raises(tj.LayoutError, match="as numel, got"):
            tj.pack(values, "safetensors-sub-byte", bits=bits)
        return
    stream = sum(int(code) << bits * k for k, code in enumerate(values.flat))
    for given_values in (values, values.view(dtype)):
        packed = tj.pack(given_values, "safetensors-sub-byte", bits=bits)
        data = packed.buffer.tobytes()
        assert int.from_bytes(data, "little") == stream
        assert len(data) == values.size * bits // 8
    np.testing.assert_array_equal(np.asarray(packed.unpack()).view(np.uint8), values)


def hopper_words(codes: Array, version: int) -> Array:
    """The order of bytes as a transposition, then the bits of each word, as its definition says them."""
    rows, columns = -(-codes.shape[0] // 256) * 256, -(-codes.shape[1] // 128) * 128
    x = np.zeros((rows, columns), np.uint32)
    x[: codes.shape[0], : codes.shape[1]] = codes
    pairs = x[:, 0::2] | x[:, 1::2] << 4
    if version == 3:
        tiles = pairs.reshape(rows // 16, 2, 4, 2, columns // 64, 4, 2, 4).transpose(0, 2, 4, 3, 7, 5, 6, 1)
    else:
        tiles = pairs.reshape(rows // 16, 2, 4, 2, columns // 64, 2, 4, 4).transpose(0, 2, 4, 3, 6, 5, 1, 7)

    def first(n: Array) -> Array:
        return (n & 8) << 12 | (n & 7) << 6

    def fourth(n: Array) -> Array:
        return (n & 8) << 11 | (n & 6) << 9 | (n & 1) << 13

    b = [tiles.reshape(-1, 4)[:, k] for k in range(4)]
    e = [first(b[k] & 15) | first(b[k] >> 4) << 16 for k in range(3)]
    return e[0] | e[1] >> 3 | e[2] >> 6 | fourth(b[3] & 15) | fourth(b[3] >> 4) << 16


@pytest.mark.parametrize("version", [2, 3])
def test_hopper_values_are_padded(version: int) -> None:
    codes = mix((2, 260, 136), 16).astype(np.uint8)
    packed = tj.pack(codes, "hopper-mx-value", mma_version=version)
    assert packed.buffer.shape == (2, 128, 512)
    want = [hopper_words(one, version) for one in codes]
    np.testing.assert_array_equal(packed.buffer.reshape(2, -1).view("<u4"), want)
    np.testing.assert_array_equal(packed.unpack(), codes)


def test_hopper_values_into_out() -> None:
    codes = mix((256, 128), 16).astype(np.uint8)
    out = np.full((64, 256), 255, np.uint8)
    packed = tj.pack(codes, "hopper-mx-value", out=out)
    assert packed.buffer is out
    np.testing.assert_array_equal(out.reshape(-1).view("<u4"), hopper_words(codes, 3))


@pytest.mark.parametrize(("block_k", "block_n"), [(64, 32), (256, 128), (192, 16)])
def test_blackwell_blocks(block_k: int, block_n: int) -> None:
    codes = mix((2, 100, 50), 16).astype(np.uint8)
    packed = tj.pack(codes, "blackwell-mx4-shuffled", block_k=block_k, block_n=block_n)
    rows, columns = int(np.lcm(256, block_k)), -(-50 // block_n) * block_n
    rows = -(-100 // rows) * rows
    x = np.zeros((2, rows, columns), np.uint8)
    x[:, :100, :50] = codes
    blocks = x.reshape(2, rows // block_k, block_k, columns // block_n, block_n).transpose(0, 1, 3, 4, 2)
    flat = blocks.reshape(-1)
    np.testing.assert_array_equal(packed.buffer.reshape(-1).view(np.uint8), flat[0::2] | flat[1::2] << 4)
    np.testing.assert_array_equal(np.asarray(packed.unpack()).astype(np.uint8), codes)


def test_an_odd_block_is_refused() -> None:
    with pytest.raises(tj.LayoutError, match="block_k is 63\n  pass an even number"):
        tj.pack(np.zeros((64, 16), np.uint8), "blackwell-mx4-shuffled", block_k=63)
