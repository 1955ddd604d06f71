"""Sizes in bytes that are the same on every CPU that kernels are compiled for."""

from __future__ import annotations

LINE_BYTES = 64
"""A cache line. The largest super-vector that is one row of registers."""

LANE_BYTES = 16
"""The part of a register within which shuffles cost one cycle everywhere."""

WIDTHS = (1, 2, 4, 8, 16, 32, LINE_BYTES)
"""Bytes of an element that is only moved."""

PAGE_PREFETCH_BYTES = 4096
"""Prefetch distance for a run's source lines if the offset of the next run is known: memory latency times the
bandwidth of one core. Measured on tiles in random order: 0.7 of memcpy without prefetching, 0.8 at 2048,
1.1 at 4096 (Zen 5, 2026-11)."""
