"""When calls use threads, hold the GIL, and request table entries ahead: everything here was measured."""

from __future__ import annotations

PARALLEL_BYTES = 8 << 20
"""Smaller copies stay on the calling thread.

Two threads of one core (Zen 5, 2026-11), u32 transposes, us on one thread and on two: 2 MiB read and written
54 and 120, 4 MiB 59 and 121, 5.5 MiB 86 and 158, 8 MiB 261 and 218, 16 MiB 512 and 357. While source and
destination are in a core's own cache, its threads share what one thread has alone. Waking another thread
takes 15 to 60 us.
"""

UNEVEN = 8
"""Shares of threads may differ from even ones by 1/8, so that they can begin on a line."""

LOOPS_HOLD_GIL_BYTES = 1 << 14
"""Kernels on arrays up to this size hold the GIL: releasing it costs more than the call."""

COPIES_HOLD_GIL_BYTES = 1 << 15
"""Copies up to this size hold the GIL: releasing it costs more than the copy."""

LEND_BUFFER_BYTES = 1 << 22
"""Copies up to this size that go through a buffer hold the GIL and keep the buffer: 10 us less per call.

They take at most about 0.2 ms, while Python lets a thread hold the GIL for 5 ms.
"""

MOST_PREFETCHED_BYTES = 1 << 14
"""Table entries that read more than this, or less than half of their span, are not prefetched."""
