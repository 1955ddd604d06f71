"""Formats that whole-array steps pack: what `identify` packs and unpacks of them."""

from __future__ import annotations

import numpy as np
import pytest

import tilejit as tj
from tilejit.recognize.formats.candidates import Candidate, candidates
from tilejit.recognize.formats.orders import packed_at_random


def greatest(candidate: Candidate) -> int:
    """The greatest code of a format."""
    packing = candidate.example_packing
    return 0 if packing is None else max((p.code_range[1] for p in packing.planes if p.bits), default=0)


@pytest.mark.parametrize(
    "candidate", [own for own in candidates() if greatest(own) > 255], ids=lambda own: own.text
)
def test_random_planes_have_codes_in_range(candidate: Candidate) -> None:
    """Codes that are stored minus 1 are as great as 256."""
    assert candidate.found is not None
    assert candidate.found.example is not None
    assert candidate.example_packing is not None
    dims, _ = candidate.found.example
    assert packed_at_random(candidate, candidate.example_packing, (64, dims[-1]))


@pytest.mark.parametrize("columns", [512, 650])
def test_a_large_array_is_found_by_its_first_rows(columns: int) -> None:
    codes = np.random.default_rng(0).integers(-4, 4, (1024, columns), np.int8)
    data = tj.pack(codes, "compressed-tensors-pack-quantized", bits=3).buffer
    found = tj.identify(data, codes)
    assert found.format == "compressed-tensors-pack-quantized"
    names = {match.format for match in found.matches}
    assert "compressed-tensors-wna16" in names  # its buffer of weights has the same bytes
