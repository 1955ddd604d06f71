"""bitsandbytes: the bytes of its quantizers."""

from __future__ import annotations

import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import Array, check_bytes, check_case, given, mix


def nf4() -> Array:
    codes = given("bnb_nf4_hi_first_64x64").astype(np.uint8)
    codes[:, 0] = 15
    return codes


def test_nf4() -> None:
    packed = check_case("bnb_nf4_hi_first_64x64", {"codes": nf4()}, "bitsandbytes-nf4")
    assert packed.buffer.shape == (2048, 1)


def test_fp4() -> None:
    codes = given("bnb_fp4_hi_first_1x64").astype(np.uint8)
    codes[:, 0] = 3
    codes[codes == 8] = 0
    check_case("bnb_fp4_hi_first_1x64", {"codes": codes}, "bitsandbytes-fp4")


def test_a_scale_for_each_block_of_the_flattened_array() -> None:
    planes = {"codes": nf4(), "absmax": mix((32,), 99).astype(np.float32)}
    packed = tj.pack(planes, "bitsandbytes-nf4", blocksize=128)
    check_bytes("bnb_nf4_hi_first_64x64", packed.buffers["weight"])
    np.testing.assert_array_equal(packed.buffers["absmax"], planes["absmax"])
    found = tj.unpack(dict(packed.buffers), "bitsandbytes-nf4", dims=(64, 64), blocksize=128)
    np.testing.assert_array_equal(found["absmax"], planes["absmax"])
    np.testing.assert_array_equal(found["codes"], planes["codes"])
    with pytest.raises(tj.LayoutError, match=r"absmax: expected an array of \[64\] \(numel/64\), got \[32\]"):
        tj.pack(planes, "bitsandbytes-nf4")


def test_nested_scales() -> None:
    planes = {
        "codes": mix((3, 64, 150), 16).astype(np.uint8),
        "absmax": mix((450,), 256).astype(np.uint8),
        "nested_absmax": np.array([2, 3], np.float32),
    }
    packed = tj.pack(planes, "bitsandbytes-nf4", nested=True)
    assert {name: buffer.nbytes for name, buffer in packed.buffers.items()} == {
        "weight": 14400, "absmax": 450, "nested_absmax": 8
    }  # fmt: skip
    found = packed.unpack()
    assert isinstance(found, dict)
    for name, values in planes.items():
        np.testing.assert_array_equal(found[name], values)


def test_int8_rows() -> None:
    codes = given("bnb_int8_rowwise_8x64")
    codes[:, 0] = 127
    planes = {"CB": codes.astype(np.int8), "SCB": np.full(8, 127, np.float32)}
    check_case("bnb_int8_rowwise_8x64", {"CB": planes["CB"]}, "bitsandbytes-int8")
    packed = tj.pack(planes, "bitsandbytes-int8")
    check_bytes("bnb_int8_rowwise_8x64", packed.buffers["CB"])
    found = packed.unpack()
    assert isinstance(found, dict)
    np.testing.assert_array_equal(found["CB"], planes["CB"])
    np.testing.assert_array_equal(found["SCB"], planes["SCB"])
