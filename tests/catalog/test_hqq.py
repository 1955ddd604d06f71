"""HQQ: the bytes of its expressions."""

from __future__ import annotations

import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import check_case, given, mix


@pytest.mark.parametrize(
    ("case", "layout"), [("hqq_4bit_u8_16x32", "hqq-4bit-u8"), ("hqq_3bit_32_10x2", "hqq-3bit-32")]
)
def test_case(case: str, layout: str) -> None:
    check_case(case, given(case).astype(np.uint8), layout)


def test_rows_are_padded_to_10() -> None:
    codes = mix((23, 3), 8).astype(np.uint8)
    packed = tj.pack(codes, "hqq-3bit-32")
    padded = np.zeros((30, 3), np.int64)
    padded[:23] = codes
    words = sum(padded[3 * t : 3 * t + 3] << 27 - 3 * t for t in range(10))
    assert packed.buffer.dtype == np.int32
    np.testing.assert_array_equal(packed.buffer, words)
    np.testing.assert_array_equal(packed.unpack(), codes)
