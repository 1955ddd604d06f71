"""AITER's weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import check_case, given, mix

CASES: tuple[tuple[str, str, str, dict[str, int]], ...] = (
    ("aiter_shuffle_weight_16x16_8bit_64x128", "aiter-shuffle-weight", "u1", {}),
    ("aiter_shuffle_weight_16x16_16bit_64x128", "aiter-shuffle-weight", "u2", {}),
    ("aiter_shuffle_weight_32x16_16bit_64x64", "aiter-shuffle-weight", "u2", {"rows": 32}),
    ("aiter_shuffle_weight_16x16_8bit_64x128", "aiter-preshuffle", "u1", {}),
    ("aiter_shuffle_weight_16x16_16bit_64x128", "aiter-preshuffle", "u2", {}),
    ("aiter_weight_a16w4_gate_up_2x64x128", "aiter-weight-a16w4", "u1", {}),
    ("aiter_gfx1250_weight_16x32", "aiter-gfx1250-weight", "u1", {}),
    ("aiter_gfx1250_weight_16x32", "aiter-shuffle-weight", "u1", {}),
    ("aiter_mxfp8fp4_a_16x256", "aiter-gfx1250-a", "u1", {}),
    ("aiter_pack_int4_04_1x128", "aiter-int4-04", "i1", {}),
)


@pytest.mark.full
@pytest.mark.parametrize(("case", "name", "dtype", "parameters"), CASES)
def test_cases(case: str, name: str, dtype: str, parameters: dict[str, Any]) -> None:
    check_case(case, given(case).astype(dtype), name, **parameters)


def test_the_order_before_int4_is_packed() -> None:
    x = (mix((32, 64), 16) - 8).astype(np.int8)
    packed = tj.pack(x, "aiter-shuffle-weight-int4")
    want = x.reshape(2, 16, 2, 32).transpose(0, 2, 1, 3)
    assert packed.buffer.tobytes() == want.tobytes()


@pytest.mark.parametrize(
    ("name", "x", "parameters", "message"),
    [
        ("aiter-shuffle-weight", np.zeros((48, 32), "u1"), {"rows": 32}, "a multiple of 32 as N, got 48"),
        ("aiter-shuffle-weight", np.zeros((16, 32), "u2"), {"rows": 8}, "rows is 8"),
        ("aiter-shuffle-weight", np.zeros((16, 32), "f4"), {}, "no rule for f32"),
        ("aiter-weight-a16w4", np.zeros((1, 32, 64), "u2"), {}, "stores codes of 8 bits, got u16"),
        ("aiter-int4-04", np.full((1, 8), 16, "i1"), {}, "16"),
    ],
)
def test_refused(name: str, x: Any, parameters: dict[str, int], message: str) -> None:
    with pytest.raises(tj.LayoutError, match=message):
        tj.pack(x, name, **parameters)
