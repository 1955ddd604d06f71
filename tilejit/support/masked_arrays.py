"""Recognize NumPy's masked arrays without importing numpy.ma."""

from __future__ import annotations

import sys


def is_masked_array(x: object) -> bool:
    """Whether it is a masked array; importing numpy.ma would take 10 ms."""
    return isinstance(x, getattr(sys.modules.get("numpy.ma"), "MaskedArray", ()))
