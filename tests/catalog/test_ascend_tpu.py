"""Ascend's fractals and the TPU's int4 under the names of the catalog."""

from __future__ import annotations

import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import check_case, given


@pytest.mark.full
@pytest.mark.parametrize("name", ["ascend-fractal-nz", "fractal_nz"])
def test_fractal_nz(name: str) -> None:
    check_case(
        "ascend_fractal_nz_16bit_64x48", given("ascend_fractal_nz_16bit_64x48").astype(np.uint16), name
    )


@pytest.mark.full
def test_tpu_int4() -> None:
    codes = given("tpu_int4_T64_128_8_1_128x256").astype(np.uint8)
    packed = check_case("tpu_int4_T64_128_8_1_128x256", codes, "tpu-int4")
    assert packed.buffer.tobytes() == tj.pack(codes, "u4[128,256]{1,0:T(64,128)(8,1)E(4)}").buffer.tobytes()
