"""TensorRT-LLM's mixed GEMM: the steps of its preprocessing on unpacked codes."""

from __future__ import annotations

import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import Array, check_case, given, mix


def signed(codes: Array, bits: int) -> Array:
    """Unsigned codes as two's complement."""
    return ((codes + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)).astype(np.int8)


def preprocessed(codes: Array, sm: int, bits: int) -> bytes:
    """Permute rows, transpose, interleave columns, reorder each 32 bits, flip signs."""
    x = codes.astype(np.int64) % (1 << bits)
    rows, columns = x.shape
    per_mma = 128 // bits
    if sm < 100:
        of = np.arange(rows)
        within, pairs = of % per_mma, per_mma // 4
        x = x[of - within + within // pairs * 2 + within % pairs // 2 * 8 + within % 2]
    x = x.T
    if sm < 90:
        x = x.reshape(columns * bits // 16, 16 // bits, rows // 64, 64).swapaxes(1, 2).reshape(columns, rows)
    if sm < 100:
        order = [0, 2, 4, 6, 1, 3, 5, 7] if bits == 4 else [0, 2, 1, 3]
        x = x.reshape(-1, len(order))[:, order] ^ 1 << bits - 1
    flat = x.reshape(-1)
    return (flat[0::2] | flat[1::2] << 4 if bits == 4 else flat).astype(np.uint8).tobytes()


@pytest.mark.full
@pytest.mark.parametrize(("case", "sm", "bits"), [
    ("trtllm_mixed_gemm_int4_sm80_128x64", 80, 4),
    ("trtllm_mixed_gemm_int8_sm80_128x64", 80, 8),
    ("trtllm_mixed_gemm_int8_sm90_64x64", 90, 8),
    ("trtllm_mixed_gemm_int4_sm100_64x64", 100, 4),
])  # fmt: skip
def test_cases(case: str, sm: int, bits: int) -> None:
    codes = signed(given(case), bits)
    packed = check_case(case, codes, "trtllm-mixed-gemm", sm=sm, bits=bits)
    assert packed.buffer.tobytes() == preprocessed(codes, sm, bits)


@pytest.mark.parametrize(("sm", "bits"), [(90, 4), (100, 8), (103, 4)])
def test_further_machines(sm: int, bits: int) -> None:
    codes = signed(mix((96, 32), 1 << bits), bits)
    packed = tj.pack(codes, "trtllm-mixed-gemm", sm=sm, bits=bits)
    assert packed.buffer.tobytes() == preprocessed(codes, sm, bits)
    np.testing.assert_array_equal(np.asarray(packed.unpack()).astype(np.int8), codes)


def test_stacked_weights_are_matrices_one_after_another() -> None:
    codes = signed(mix((2, 64, 16), 16), 4)
    whole = tj.pack(codes, "trtllm-mixed-gemm", sm=120)
    assert whole.buffer.tobytes() == b"".join(preprocessed(one, 80, 4) for one in codes)
    with pytest.raises(tj.LayoutError, match="takes 2 dimensions"):
        tj.pack(codes, "trtllm-mixed-gemm", sm=90)


def test_constraints() -> None:
    with pytest.raises(tj.LayoutError, match="multiple of 8 as N, got 4"):
        tj.pack(np.zeros((64, 4), np.int8), "trtllm-mixed-gemm", bits=8)
    with pytest.raises(tj.LayoutError, match="sm is 70\n  pass one of 75"):
        tj.pack(np.zeros((64, 16), np.int8), "trtllm-mixed-gemm", sm=70)
