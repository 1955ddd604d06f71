"""NumPy's masked arrays, recognized without an import of numpy.ma."""

from __future__ import annotations

import sys


def is_masked_array(x: object) -> bool:
    """Whether it is an array of numpy.ma's, whose import takes 10 ms."""
    return isinstance(x, getattr(sys.modules.get("numpy.ma"), "MaskedArray", ()))
