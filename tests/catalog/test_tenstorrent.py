"""Tenstorrent's tiles and block floats."""

from __future__ import annotations

import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import Array, check_bytes, check_case, given, mix


def test_tile() -> None:
    check_case(
        "tenstorrent_tile_32x32", given("tenstorrent_tile_32x32").astype(np.uint16), "tenstorrent-tile"
    )


def quantized(values: Array, bits: int) -> Array:
    """Each value of a row of 16, rounded to steps of the shared exponent."""
    top = np.floor(np.log2(np.abs(values).max(-1, keepdims=True)))
    step = 2.0 ** (top - (bits - 2))
    return np.minimum(np.rint(np.abs(values) / step), 2 ** (bits - 1) - 1) * step * np.sign(values)


@pytest.mark.parametrize(("bits", "rows", "columns"), [(8, 32, 64), (4, 32, 64), (2, 32, 32)])
def test_block_floats(bits: int, rows: int, columns: int) -> None:
    case, name = f"tenstorrent_bfp{bits}_b_{rows}x{columns}", f"tenstorrent-bfp{bits}_b"
    x = mix((rows, columns), 255, 9) - 127 if bits == 2 else mix((rows, columns), 2001) - 1000
    x = (x / (16 if bits == 2 else 64)).astype(np.float32)
    packed = tj.pack(x, name)
    check_bytes(case, packed.buffer)
    again = packed.unpack()
    if bits < 8:  # with 8 bits, values that are shifted far drop bits before they are rounded
        assert np.array_equal(again, quantized(x.reshape(rows, -1, 16), bits).reshape(x.shape))
    assert np.array_equal(tj.unpack(packed.buffer, name, dims=x.shape), again)
    assert tj.pack(again, name).buffer.tobytes() == packed.buffer.tobytes()


def test_rounding_is_to_nearest_ties_to_even_and_saturates() -> None:
    row = np.zeros((1, 16), np.float32)
    row[0, :8] = 1.0, 0.375, 0.125, 0.625, -0.125, -0.0, 1.99, 1e-30
    found = tj.pack(row, "tenstorrent-bfp4_b", tile=(1, 16)).unpack()
    assert found[0, :8].tolist() == [1.0, 0.5, 0.0, 0.5, 0.0, 0.0, 1.75, 0.0]
    assert not np.signbit(found[0, 4:6]).any()


def test_bits_that_the_shift_drops_do_not_count() -> None:
    """0.125 and a little more than half of a step becomes a tie, and rounds to the even 0."""
    row = np.zeros((1, 16), np.float32)
    row[0, :2] = 2.0**30, np.float32(2.0**27) * np.float32(1 + 2**-23)
    found = tj.pack(row, "tenstorrent-bfp4_b", tile=(1, 16)).unpack()
    assert found[0, :2].tolist() == [2.0**30, 0.0]


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1.5 * 2.0**127, 2.0**-126, -(2.0**-128)])
def test_values_at_the_limits(value: float) -> None:
    x = np.full((1, 16), value, np.float32)
    assert np.array_equal(tj.pack(x, "tenstorrent-bfp8_b", tile=(1, 16)).unpack(), x)


@pytest.mark.parametrize(
    ("tile", "nbytes"), [((32, 32), 1088), ((16, 16), 272), ((4, 32), 144), ((1, 16), 32)]
)
def test_exponents_are_padded_to_16_bytes(tile: tuple[int, int], nbytes: int) -> None:
    x = (mix(tile, 255) - 127).astype(np.float32)
    packed = tj.pack(x, "tenstorrent-bfp8_b", tile=tile)
    assert packed.buffer.nbytes == nbytes
    assert not packed.buffer[tile[0] * tile[1] // 16 : nbytes - tile[0] * tile[1]].any()
    assert np.array_equal(packed.unpack(), np.rint(packed.unpack()))
    np.testing.assert_allclose(packed.unpack(), x, atol=1)


def test_batches_are_padded_with_0() -> None:
    x = (mix((2, 3, 40, 33), 2001) - 1000).astype(np.float32)
    padded = np.zeros((2, 3, 64, 64), np.float32)
    padded[..., :40, :33] = x
    packed = tj.pack(x, "tenstorrent-bfp4_b")
    assert packed.buffer.tobytes() == tj.pack(padded, "tenstorrent-bfp4_b").buffer.tobytes()
    assert packed.unpack().shape == x.shape
    assert np.array_equal(packed.unpack(), tj.pack(padded, "tenstorrent-bfp4_b").unpack()[..., :40, :33])


def test_refused() -> None:
    with pytest.raises(tj.LayoutError, match="values: expected f32, got f64"):
        tj.pack(np.zeros((32, 32)), "tenstorrent-bfp8_b")
    with pytest.raises(tj.LayoutError, match="tile is 32 x 8"):
        tj.pack(np.zeros((32, 32), np.float32), "tenstorrent-bfp8_b", tile=(32, 8))
    with pytest.raises(tj.LayoutError, match=r"expected 1088 bytes as buffer of .*, got 1087"):
        tj.unpack(np.zeros(1087, np.uint8), "tenstorrent-bfp8_b", dims=(32, 32))
