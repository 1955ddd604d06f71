"""Formats that whole-array steps pack: what `identify` packs and unpacks of them."""

from __future__ import annotations

import numpy as np
import pytest

import tilejit as tj
from tilejit.recognize.formats.candidates import candidates
from tilejit.recognize.formats.orders import packed_at_random


def test_random_planes_have_codes_in_range() -> None:
    """Codes that are stored minus 1 are as great as 256."""
    tried = 0
    for candidate in candidates():
        packing = candidate.example_packing
        if packing is None or max(plane.code_range[1] for plane in packing.planes) < 256:
            continue
        assert candidate.found is not None
        assert candidate.found.example is not None
        dims, _ = candidate.found.example
        assert packed_at_random(candidate, packing, (64, dims[-1]))
        tried += 1
    assert tried


@pytest.mark.full
@pytest.mark.parametrize("columns", [512, 650])
def test_a_large_array_is_found_by_its_first_rows(columns: int) -> None:
    codes = np.random.default_rng(0).integers(-4, 4, (1024, columns), np.int8)
    data = tj.pack(codes, "compressed-tensors-pack-quantized", bits=3).buffer
    found = tj.identify(data, codes)
    assert found.format == "compressed-tensors-pack-quantized"
    names = {match.format for match in found.matches}
    assert "compressed-tensors-wna16" in names  # its buffer of weights has the same bytes


@pytest.mark.full
@pytest.mark.parametrize("times", [1, 2])
def test_a_change_that_cancels_a_reordering_is_no_other_explanation(times: int) -> None:
    """Swapped halves of an array and of its buffer cancel, and so do swapped halves of rows and of bytes."""
    original = codes = np.random.default_rng(0).integers(0, 16, (1024, 512), np.uint8)
    for _ in range(times):
        data = tj.pack(codes, "tinygemm-cpu-default").buffer
        codes = np.stack([data.reshape(-1) & 15, data.reshape(-1) >> 4], axis=-1).reshape(codes.shape)
    found = tj.identify(data, original)
    assert (found.verdict, found.format) == ("exact", "tinygemm-cpu-default")
    assert {match.times for match in found.matches} == {times}


@pytest.mark.full
@pytest.mark.parametrize("name", ["hopper-mx-value", "tinygemm-cpu", "compressed-tensors-pack-quantized"])
def test_a_difference_at_the_end_of_a_large_array_is_found(name: str) -> None:
    """Samples read a corner; whole buffers are compared some rows at a time."""
    bits, low = (6, -32) if name.startswith("compressed") else (4, 0)
    given = {"bits": bits} if bits == 6 else {}
    codes = np.random.default_rng(0).integers(low, low + (1 << bits), (4096, 1024), np.int8)
    data = tj.pack(codes if low else codes.view(np.uint8), name, **given).buffer.copy()
    assert tj.identify(data, codes).format == name
    data.reshape(-1).view(np.uint8)[-1] ^= 1
    found = tj.identify(data, codes)
    assert found.verdict == "near"
    assert found.matches[0].format == name
    assert found.matches[0].first_difference is not None
