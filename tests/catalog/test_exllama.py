"""ExLlama: the bytes of its own packers."""

from __future__ import annotations

import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import check_case, given, mix


@pytest.mark.parametrize(
    ("case", "layout", "parameters"),
    [
        ("exllama_shuffled_int4_8x8", "exllama-shuffled", {}),
        *((f"exl2_columns_int{bits}_64x32", "exl2-q_weight", {"bits": bits}) for bits in (4, 5, 6, 8)),
        ("exl2_q_scale_4x64", "exl2-q_scale", {}),
        ("exl3_trellis_k4_2tiles", "exl3-trellis", {"bits": 4}),
        ("exl3_trellis_k6_2tiles", "exl3-trellis", {"bits": 6}),
    ],
)
def test_case(case: str, layout: str, parameters: dict[str, int]) -> None:
    check_case(case, given(case).astype(np.uint8), layout, **parameters)


@pytest.mark.full
def test_exl3_tile() -> None:
    check_case("exl3_tile_perm_16x16", given("exl3_tile_perm_16x16").astype(np.uint16), "exl3-tile")


@pytest.mark.full
@pytest.mark.parametrize("bits", [2, 3, 4, 6])
def test_exl2_pads_columns_with_the_middle_code(bits: int) -> None:
    codes = mix((64, 40), 1 << bits).astype(np.uint8)
    packed = tj.pack(codes, "exl2-q_weight", bits=bits)
    padded = np.full((64, 64), 1 << bits - 1, np.uint8)
    padded[:, :40] = codes
    assert bytes(packed.buffer) == bytes(tj.pack(padded, "gptq", bits=bits).buffer)
    np.testing.assert_array_equal(np.asarray(packed.unpack()), codes)


@pytest.mark.full
@pytest.mark.parametrize("bits", range(1, 9))
def test_exl3_trellis_fills_words_from_the_top(bits: int) -> None:
    codes = mix((2, 1, 256), 1 << bits).astype(np.uint8)
    packed = tj.pack(codes, "exl3-trellis", bits=bits)
    for tile, words in zip(codes.reshape(2, 256), np.asarray(packed.buffer).reshape(2, -1), strict=True):
        number = 0
        for code in tile:
            number = number << bits | int(code)
        stream = np.frombuffer(number.to_bytes(32 * bits, "big"), ">u4")
        assert words.tobytes() == stream.astype("<u4").tobytes()
    np.testing.assert_array_equal(np.asarray(packed.unpack()), codes)


@pytest.mark.full
def test_exl3_signs() -> None:
    signs = mix((64,), 2).astype(np.uint8)
    assert bytes(tj.pack(signs, "exl3-signs").buffer) == np.packbits(signs, bitorder="little").tobytes()


@pytest.mark.parametrize(
    ("layout", "parameters", "shape", "message"),
    [
        ("exl2-q_weight", {"bits": 7}, (32, 32), "bits is 7\n  pass one of 2, 3, 4, 5, 6, 8"),
        ("exl2-q_scale", {}, (1, 8), r"element \[0, 0\] is 0, but codes are 1 to 16"),
    ],
)
def test_wrong_arrays_are_refused(
    layout: str, parameters: dict[str, int], shape: tuple[int, ...], message: str
) -> None:
    with pytest.raises(tj.LayoutError, match=message):
        tj.pack(np.zeros(shape, np.uint8), layout, **parameters)
