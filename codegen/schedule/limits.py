"""Distances and sizes that passes obey when they lower copies: everything here was measured.

They belong to a kind of nest, not to one copy. Kernels compare lengths with sizes that are arguments. A
kernel serves many sizes, so such a comparison is part of its code, not a field of a schedule.
"""

from __future__ import annotations

RUN_LONG_BYTES = 2048
"""From this many bytes on, memcpy is faster than a loop."""

RUN_SHORT_BYTES = 256
"""Shorter runs lose more at unaligned ends than streaming gains."""

PACKED_SHORT_BYTES = 256
"""For shorter destinations, the two unaligned ends that streaming leaves cost more than it gains."""

REVERSAL_STREAMED_BYTES = 256
"""Shorter runs lose more at unaligned ends than streaming gains."""

MOVE_PREFETCH_INTERVALS = {64: 1, 32: 2, 16: 2}
"""One in this many moves prefetches its source; one of each block if moves are narrower.

Thus every line of the source is prefetched once or twice, a segment ahead.
"""

SMALL_LEAST_COLUMNS = 4
"""The fewest columns of a block whose elements are so wide that fewer would fill a line."""

PAGE_PREFETCH_BYTES = 4096
"""Bytes that entries of tables read between one and the later one that is requested: memory latency times the
bandwidth of one core. Measured on tiles in random order: 0.7 of memcpy without prefetching, 0.8 at 2048,
1.1 at 4096 (Zen 5, 2026-11)."""

SMALL_ROWS = 64
"""Source rows of a block of a small transpose."""

GATHERED_MOVES = 4
"""Moves of gathered chunks in a block: all of its loads precede its stores."""
