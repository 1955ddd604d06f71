"""Faiss's 4-bit fast scan."""

from __future__ import annotations

import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import check_case, given, mix


@pytest.mark.parametrize(("case", "bbs"), [("faiss_pq4_64x8_bbs32", 32), ("faiss_pq4_128x4_bbs64", 64)])
def test_cases(case: str, bbs: int) -> None:
    check_case(case, given(case).astype(np.uint8), "faiss-pq4-fast-scan", bbs=bbs)


@pytest.mark.full
def test_padding_is_0() -> None:
    codes = mix((33, 3), 16).astype(np.uint8)
    padded = np.zeros((64, 4), np.uint8)
    padded[:33, :3] = codes
    packed = tj.pack(codes, "faiss-pq4-fast-scan")
    assert packed.buffer.tobytes() == tj.pack(padded, "faiss-pq4-fast-scan").buffer.tobytes()
    assert np.array_equal(np.asarray(packed.unpack()).astype(np.uint8), codes)


def test_blocks_are_multiples_of_32() -> None:
    with pytest.raises(tj.LayoutError, match="bbs is 48\n  pass a multiple of 32"):
        tj.pack(np.zeros((48, 2), np.uint8), "faiss-pq4-fast-scan", bbs=48)
