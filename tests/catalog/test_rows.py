"""Rows of weights in another order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import check_case, given, mix

CASES: tuple[tuple[str, str, str, dict[str, int]], ...] = (
    ("flashinfer_shuffle_a_tile64_64x16", "trtllm-gen-shuffle-a", "u1", {"epilogue_tile_m": 64}),
    ("flashinfer_shuffle_a_tile128_128x16", "trtllm-gen-shuffle-a", "u1", {}),
    ("trtllm_block_layout_2x8_b4", "trtllm-block-major-k", "u1", {"block_k": 4}),
    ("trtllm_gated_rows_32x8", "trtllm-gate-up-interleave", "u1", {}),
    ("deepgemm_mega_gate_up8_2x64x4", "deepgemm-gate-up-8", "u1", {}),
    ("rope_hf_to_gguf_64x4_h4", "rope-rows", "f4", {"heads": 4}),
)


@pytest.mark.full
@pytest.mark.parametrize(("case", "name", "dtype", "parameters"), CASES, ids=[case for case, *_ in CASES])
def test_cases(case: str, name: str, dtype: str, parameters: dict[str, Any]) -> None:
    check_case(case, given(case).astype(dtype), name, **parameters)


@pytest.mark.parametrize(
    ("tile", "published"),
    [(64, [0, 8, 1, 9, 2, 10, 3, 11]), (128, [0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27])],
)
def test_the_published_maps_give_the_row_of_the_result(tile: int, published: list[int]) -> None:
    """They are read from source to destination; their second halves continue the first."""
    block = [*published, *(row + len(published) // (2 if tile == 64 else 4) for row in published)]
    x = mix((2 * len(block), 3), 65536).astype(np.uint16)
    want = np.empty_like(x)
    for start in (0, len(block)):
        want[start + np.array(block)] = x[start : start + len(block)]
    packed = tj.pack(x, "trtllm-gen-shuffle-a", epilogue_tile_m=tile)
    assert packed.buffer.tobytes() == want.tobytes()


def test_rope_rows_return_to_hugging_face() -> None:
    x = mix((24, 5), 65536).astype(np.uint16)
    gguf = tj.pack(x, "rope-rows", heads=3).buffer.reshape(x.shape)
    assert np.array_equal(tj.pack(gguf, "rope-rows-hf", heads=3).buffer.reshape(x.shape), x)
    assert gguf[:3, 0].tolist() == x[[0, 4, 1], 0].tolist()


@pytest.mark.parametrize(
    ("name", "dims", "parameters", "message"),
    [
        ("trtllm-gen-shuffle-a", (40, 4), {"epilogue_tile_m": 64}, "a multiple of 16 as M, got 40"),
        ("rope-rows", (12, 2), {"heads": 4}, "a multiple of 8 as M, got 12"),
        ("rope-rows", (12, 2), {"heads": 0}, "heads is 0"),
    ],
)
def test_refused(name: str, dims: tuple[int, ...], parameters: dict[str, int], message: str) -> None:
    with pytest.raises(tj.LayoutError, match=message):
        tj.pack(np.zeros(dims, np.uint8), name, **parameters)
