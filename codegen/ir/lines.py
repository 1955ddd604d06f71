"""Sizes in bytes that are the same on every CPU that kernels are compiled for."""

from __future__ import annotations

LINE_BYTES = 64
"""A cache line. The largest super-vector that is one row of registers."""

LANE_BYTES = 16
"""The part of a register within which shuffles cost one cycle everywhere."""

WIDTHS = (1, 2, 4, 8, 16, 32, LINE_BYTES)
"""Bytes of an element that is only moved."""
