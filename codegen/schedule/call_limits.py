"""When calls use threads, hold the GIL, prefetch table entries, and may be staged: measured limits."""

from __future__ import annotations

PARALLEL_BYTES = 8 << 20
"""Smaller calls always stay on the calling thread.

Two threads of one core (Zen 5, 2026-11), u32 transposes, us on one thread and on two: 2 MiB read and written
54 and 120, 4 MiB 59 and 121, 5.5 MiB 86 and 158, 8 MiB 261 and 218, 16 MiB 512 and 357. While source and
destination are in a core's own cache, its threads share what one thread has alone. Waking another thread
takes 15 to 60 us.
"""

LAST_CACHE_BYTES = 32 << 20
"""Upper limit for the size of the last cache, and its assumed size if it is unknown."""

BOUND_BY_MEMORY, TRANSPOSES, COMPUTES = 1, 3, 5
"""How slow a call is, in multiples of memcpy's time: slower calls benefit sooner from more threads.

Data in the last cache moves so fast that waking another thread, and reading lines from the cache of the first
one, cost more than the second thread saves. Two cores of Zen 4 with 32 MiB of last cache (2026-11), us on one
thread and on two, by the bytes read and written: packs of f32 18 MiB 342 and 438, 32 MiB 644 and 794, 43 MiB
1023 and 1083, 72 MiB 2252 and 1791; transposes 8 MiB 465 and 576, 18 MiB 834 and 711, 32 MiB 2224 and 1373;
a*2+a 18 MiB 356 and 468, 44 MiB 1229 and 1001; exp 8 MiB 355 and 395, 18 MiB 916 and 594.
"""

UNEVEN = 8
"""Shares of threads may differ from even ones by 1/8, so that they can begin on a line."""

LOOPS_HOLD_GIL_BYTES = 1 << 14
"""Kernels on arrays up to this size hold the GIL: releasing it costs more than the call."""

LOOPS_HOLD_GIL_ITERATIONS = 1 << 16
"""Kernels with more iterations release the GIL even on small arrays.

That many take at most about 1 ms, while Python lets a thread hold the GIL for 5 ms.
"""

COPIES_HOLD_GIL_BYTES = 1 << 15
"""Copies up to this size hold the GIL: releasing it costs more than the copy."""

LEND_BUFFER_BYTES = 1 << 22
"""Copies up to this size that go through a buffer hold the GIL and keep the buffer: 10 us less per call.

They take at most about 0.2 ms, while Python lets a thread hold the GIL for 5 ms.
"""

MOST_PREFETCHED_BYTES = 1 << 14
"""Table entries that read more than this, or less than half of their span, are not prefetched."""

LEAST_STAGED_BYTES = 1 << 20
"""Least bytes read and written of a staged copy: smaller copies would have few blocks."""

STRIDED_BYTES, STRIDED_DIGITS = 8 << 20, 4
"""Strided copies that read and write less, or have fewer digits, run in one pass: the second cache holds most
of them, or no order of their digits lies between those of both sides."""


def may_stage(footprint: int) -> bool:
    """Whether a copy that reads and writes `footprint` bytes may go through blocks in cache.

    If not, the modules that choose blocks are never loaded.
    """
    return footprint >= LEAST_STAGED_BYTES


def may_stage_digits(digits: int, footprint: int) -> bool:
    """Whether a strided copy may go through blocks in cache that have another order of its digits.

    digits: their number, or that of dimensions, which is never less
    footprint: bytes that the copy reads and writes
    """
    return digits >= STRIDED_DIGITS and footprint >= STRIDED_BYTES
