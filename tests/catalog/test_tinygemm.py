"""tinygemm: the bytes of PyTorch's packers."""

from __future__ import annotations

import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import Array, check_case, given, mix

CPU = {"tinygemm-cpu": (64, True), "tinygemm-cpu-avx2": (32, True), "tinygemm-cpu-default": (32, False)}


@pytest.mark.parametrize(
    ("case", "layout", "parameters"),
    [
        ("tinygemm_cuda_inner8_16x256", "tinygemm-cuda", {"inner": 8}),
        ("tinygemm_cuda_inner2_16x256", "tinygemm-cuda", {"inner": 2}),
        ("tinygemm_cpu_128x64", "tinygemm-cpu", {}),
        ("tinygemm_cpu_avx2_128x64", "tinygemm-cpu-avx2", {}),
        ("tinygemm_cpu_default_128x64", "tinygemm-cpu-default", {}),
    ],
)
def test_case(case: str, layout: str, parameters: dict[str, int]) -> None:
    check_case(case, given(case).astype(np.uint8), layout, **parameters)


def test_inner_4_has_words_of_4_tiles() -> None:
    codes = mix((16, 128), 16).astype(np.uint8)
    packed = tj.pack(codes, "tinygemm-cuda", inner=4)
    words = np.zeros((2, 2, 32, 2), np.uint32)
    for place in np.ndindex(2, 2, 32, 2):
        n, k, lane, i = place
        for nibble, (p, q) in enumerate((p, q) for p in range(2) for q in range(4)):
            code = codes[8 * n + lane // 4, 64 * k + 32 * i + 8 * q + 2 * (lane % 4) + p]
            words[place] |= np.uint32(code) << np.uint32(4 * nibble)
    assert bytes(packed.buffer) == words.tobytes()


def _expected(codes: Array, rows: int, halves: bool) -> bytes:
    """Block by block, as the kernel writes them."""
    out = []
    for first in range(0, len(codes), rows):
        block = codes[first : first + rows]
        half = rows // 2
        whole = len(block) == rows and halves
        low, high = (block[:half], block[half:]) if whole else (block[::2], block[1::2])
        out.append((low | high << 4).T.tobytes())
    return b"".join(out)


@pytest.mark.parametrize("n", [16, 32, 48, 112, 176])
@pytest.mark.parametrize("layout", CPU)
def test_a_last_block_of_fewer_rows_pairs_neighbors(layout: str, n: int) -> None:
    codes = mix((n, 6), 16).astype(np.uint8)
    packed = tj.pack(codes, layout)
    assert packed.buffer.tobytes() == _expected(codes, *CPU[layout])
    np.testing.assert_array_equal(packed.unpack(), codes)


@pytest.mark.parametrize("layout", CPU)
def test_identify_tells_the_machines_apart(layout: str) -> None:
    codes = mix((176, 6), 16).astype(np.uint8)
    assert tj.identify(tj.pack(codes, layout).buffer, codes).format == layout


def test_scales_and_zeros_are_pairs() -> None:
    scales = np.arange(32, dtype=np.float32).reshape(8, 4)
    planes = {"scales": scales, "zeros": 100 + scales}
    packed = check_case("tinygemm_scales_and_zeros_f32_8x4", planes, "tinygemm-scales-and-zeros")
    assert packed.buffer.shape == (4, 8, 2)
    half = tj.pack({name: x.astype(np.float16) for name, x in planes.items()}, "tinygemm-scales-and-zeros")
    assert half.buffer.dtype == np.float16
    np.testing.assert_array_equal(half.unpack()["zeros"], planes["zeros"])


def test_scales_and_zeros_of_two_dtypes_are_refused() -> None:
    planes = {"scales": np.zeros((8, 4), np.float32), "zeros": np.zeros((8, 4), np.float16)}
    with pytest.raises(tj.LayoutError, match="expected one dtype, got scales f32, zeros f16"):
        tj.pack(planes, "tinygemm-scales-and-zeros")


def test_out() -> None:
    codes = mix((80, 4), 16).astype(np.uint8)
    out = np.zeros((80, 2), np.uint8)
    tj.pack(codes, "tinygemm-cpu", out=out)
    np.testing.assert_array_equal(out.reshape(-1), tj.pack(codes, "tinygemm-cpu").buffer.reshape(-1))


@pytest.mark.parametrize(
    ("layout", "parameters", "shape", "message"),
    [
        ("tinygemm-cuda", {"inner": 3}, (8, 128), "inner is 3\n  pass one of 2, 4, 8"),
        ("tinygemm-cuda", {"inner": 2}, (4, 64), "multiple of 8 as N"),
    ],
)
def test_other_sizes_are_refused(
    layout: str, parameters: dict[str, int], shape: tuple[int, int], message: str
) -> None:
    with pytest.raises(tj.LayoutError, match=message):
        tj.pack(np.zeros(shape, np.uint8), layout, **parameters)
