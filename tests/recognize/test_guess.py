"""Guesses about a buffer without its original."""

from __future__ import annotations

import numpy as np

import tilejit as tj


def test_sizes_that_fit_many_formats_are_guessed_from_the_scales() -> None:
    """Among the candidates are formats of one plane of floats, such as Tenstorrent's block floats."""
    draw = np.random.default_rng(0)
    planes = {
        "codes": draw.integers(0, 16, (64, 576), np.uint8),
        "d": draw.uniform(0.01, 1, (64, 18)).astype(np.float16),
    }
    found = tj.identify(tj.pack(planes, "ggml-q4_0").buffer)
    assert found.verdict == "guess"
    assert found.format is None
    assert "ggml-q4_0" in [match.format for match in found.matches]
