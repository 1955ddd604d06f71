"""Kernels for arrays of every size, so that small arrays test them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tilejit.copies.sizes import SIZES

LIMITS = ("small_elements", "small_run_bytes", "part_bytes", "interleaved_bytes", "few_indices")
"""The sizes below which NumPy copies."""


@contextmanager
def kernels_for_all_sizes() -> Iterator[None]:
    """Inside the block, kernels make all copies that they can, also those that NumPy makes as fast."""
    before = {name: getattr(SIZES, name) for name in LIMITS}
    for name in LIMITS:
        setattr(SIZES, name, 0)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(SIZES, name, value)
