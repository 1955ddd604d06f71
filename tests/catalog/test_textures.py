"""Textures: blocks and Morton orders."""

from __future__ import annotations

import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import check_case, given, mix

CASES: tuple[tuple[str, str, str, dict[str, int]], ...] = (
    ("tegra_block_linear_64x64_32bpp_bh16", "tegra-block-linear", "u1", {}),
    ("tegra_block_linear_33x20_32bpp_bh2", "tegra-block-linear", "u1", {"block_height": 2}),
    ("tegra_block_linear_16x16_128bpp_bh1", "tegra-block-linear", "u1", {"block_height": 1}),
    ("psvita_swizzle_32x32", "psvita-swizzled", "u2", {}),
    ("psvita_swizzle_64x16", "psvita-swizzled", "u2", {}),
    ("psp_swizzle_64bytes_x16", "psp-swizzled", "u1", {}),
    ("morton2d_x_lsb_64x64", "morton-2d", "u2", {}),
    ("morton3d_x_lsb_4x4x4", "morton-3d", "u2", {}),
    ("blocks8x8_8x16", "jpeg-8x8-blocks", "u1", {}),
)


@pytest.mark.full
@pytest.mark.parametrize(("case", "name", "dtype", "parameters"), CASES, ids=[case for case, *_ in CASES])
def test_cases(case: str, name: str, dtype: str, parameters: dict[str, int]) -> None:
    check_case(case, given(case).astype(dtype), name, **parameters)


@pytest.mark.full
@pytest.mark.parametrize(("name", "dims"), [("tegra-block-linear", (20, 33)), ("psp-swizzled", (9, 32))])
@pytest.mark.parametrize("dtype", ["u2", "u4", "c16"])
def test_pixels_and_their_bytes_are_laid_out_alike(name: str, dims: tuple[int, int], dtype: str) -> None:
    data = mix((*dims, np.dtype(dtype).itemsize), 256).astype(np.uint8)
    pixels = data.reshape(dims[0], -1).view(dtype)
    assert tj.pack(pixels, name).buffer.tobytes() == tj.pack(data.reshape(dims[0], -1), name).buffer.tobytes()


def spread(numbers: list[int], order: list[int], sizes: list[int]) -> int:
    """The index whose bits are those of the numbers in turns, from bit 0 up."""
    index = at = 0
    for bit in range(16):
        for axis in order:
            if 1 << bit < sizes[axis]:
                index |= (numbers[axis] >> bit & 1) << at
                at += 1
    return index


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "order", "dims"),
    [
        ("morton-2d", [1, 0], (8, 32)),
        ("morton-2d", [1, 0], (16, 2)),
        ("morton-2d", [1, 0], (5, 7)),
        ("morton-2d", [1, 0], (1, 4)),
        ("morton-3d", [2, 1, 0], (2, 8, 4)),
        ("psvita-swizzled", [0, 1], (8, 2)),
        ("psvita-swizzled", [0, 1], (2, 8)),
        ("psvita-swizzled", [0, 1], (3, 5)),
    ],
)
def test_index_by_index(name: str, order: list[int], dims: tuple[int, ...]) -> None:
    x = (np.arange(np.prod(dims)) + 1).reshape(dims).astype(np.uint8)
    sizes = [1 << (size - 1).bit_length() for size in dims]
    want = np.zeros(np.prod(sizes), np.uint8)
    for place in np.ndindex(dims):
        want[spread(list(place), order, sizes)] = x[place]
    packed = tj.pack(np.stack([x, x]), name)
    assert packed.buffer.tolist() == want.tolist() * 2
    assert np.array_equal(packed.unpack()[1], x)


def test_tiles_of_the_vita() -> None:
    x = mix((64, 64), 65536).astype(np.uint16)
    want = x.reshape(2, 32, 2, 32).transpose(0, 2, 1, 3)
    assert tj.pack(x, "psvita-tiled").buffer.tobytes() == want.tobytes()


@pytest.mark.parametrize(
    ("name", "dims", "parameters", "message"),
    [
        ("tegra-block-linear", (8, 64), {"block_height": 3}, "block_height is 3"),
        ("tegra-block-linear", (8, 64), {"block_height": 64}, "block_height is 64"),
        ("morton-3d", (4, 4), {}, "3 or more dimensions"),
        ("morton-2d", (4,), {}, "2 or more dimensions"),
    ],
)
def test_refused(name: str, dims: tuple[int, ...], parameters: dict[str, int], message: str) -> None:
    with pytest.raises(tj.LayoutError, match=message):
        tj.pack(np.zeros(dims, np.uint8), name, **parameters)


@pytest.mark.full
def test_identify_finds_orders_of_a_whole_array() -> None:
    x = mix((16, 32), 65536).astype(np.uint16)
    for name in ("morton-2d", "psvita-swizzled", "tegra-block-linear"):
        assert tj.identify(tj.pack(x, name).buffer, x).format == name
