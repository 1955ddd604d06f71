"""The size from which copies stream: measured once, with the loops of a real copy, and kept in the store.

The first copy of 4 MiB or more is measured for, unless the store cannot keep the result. Nothing was planned
by another size before, so a later process with the same copies finds all of their kernels in the store.
If several processes measure at the same time, the first note stays.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from math import log
from struct import Struct
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from codegen.backend.store import KernelStore, default_store
from codegen.backend.store_key import compiler_digest
from codegen.runtime.kernel import copy_operands, native
from codegen.schedule.machine import STREAM_BYTES, machine
from codegen.support.cpu import cpu_level, cpu_name
from codegen.support.errors import KernelError
from codegen.support.locks import compiler_lock

CALIBRATED_FROM_BYTES = 4 << 20
"""Footprint of the smallest copy that triggers the measurement and uses its result.

Measuring takes half a second and a kernel. Smaller copies would not soon gain that back, since a process may
make only one. They don't use the result of others either: the kernels of a copy must not change after it.
"""

FOOTPRINTS = tuple(n << 20 for n in (32, 28, 24, 22, 20, 18, 16, 12, 8, 4))
"""Bytes read and written by the measured copies, largest first."""

BEYOND_BYTES = 2 * FOOTPRINTS[0]
"""The threshold if streaming stores gain nothing at any measured footprint."""

REPEATS = 5
WORTH = 0.95
"""Streaming must take less than this fraction of the time, because its output is in no cache afterwards."""

NOTED_BYTES = range(1 << 20, 1 << 30)
"""Sizes that are valid in a note."""

Measure = Callable[[bool, int], float]
"""Seconds of one copy, given whether it streams and its footprint in bytes."""

_known: int | None = None


def streamed_from(footprint: int) -> int:
    """The size in bytes from which copies stream, for one that reads and writes `footprint` bytes.

    The first large one measures.
    """
    global _known
    if (given := machine().stream_bytes) is not None:
        return given
    if footprint < CALIBRATED_FROM_BYTES:
        return STREAM_BYTES
    if _known is None:
        with compiler_lock:  # the one lock that a fork waits for
            if _known is None:
                _known = calibrated(default_store(), _trial)
    return _known


def calibrated(store: KernelStore, trial: Callable[[], Measure]) -> int:
    """The stored size, or a newly measured one, which is then stored; `trial` allocates the memory."""
    known = remembered_stream_bytes(store)
    if known is not None:
        return known
    if not store.is_writable:
        return STREAM_BYTES
    try:
        found = stream_threshold(trial())
    except (ImportError, KernelError, MemoryError):
        return STREAM_BYTES
    earlier = remembered_stream_bytes(store)
    if earlier is None:
        remember(store, found, cpu_level().name)
    return earlier or found


def calibrate_machine(store: KernelStore) -> int:
    """Measure the size from which copies stream now, and store it for later processes.

    Raises:
        KernelError: the copy that is measured cannot be compiled.
    """
    found = stream_threshold(_trial())
    remember(store, found, cpu_level().name)
    return found


def remembered_stream_bytes(store: KernelStore) -> int | None:
    """The stored size of this machine, or None."""
    facts = store.get_note(_note_name(store, cpu_level().name)) or {}
    size = facts.get("stream_bytes")
    return size if type(size) is int and size in NOTED_BYTES else None


def remember(store: KernelStore, stream_bytes: int, level: str) -> None:
    """Store the size of this machine at a CPU level."""
    store.put_note(_note_name(store, level), {"stream_bytes": stream_bytes})


def _note_name(store: KernelStore, level: str) -> str:
    """The name of this machine's note; it depends on the CPU, the level and the compiler."""
    facts = cpu_name(), level, compiler_digest(store), FOOTPRINTS
    return f"thresholds-{sha256(repr(facts).encode()).hexdigest()[:32]}"


def stream_threshold(measure: Measure) -> int:
    """The smallest footprint for streaming stores, in bytes: where the measured copies lose least in total.

    streaming wins from 8 MiB up -> 8 MiB    wins nowhere -> 64 MiB    wins except at 16 MiB -> 2 MiB

    Plain and streaming copies alternate, and the best of several counts, so a busy machine does little harm.
    """
    gains: dict[int, float] = {}
    for footprint in FOOTPRINTS:
        pairs = [(measure(False, footprint), measure(True, footprint)) for _ in range(REPEATS)]
        plain, streaming = (max(min(times), 1e-9) for times in zip(*pairs, strict=True))
        gains[footprint] = log(WORTH * plain / streaming)
    return max((BEYOND_BYTES, *FOOTPRINTS), key=lambda least: sum(g for f, g in gains.items() if f >= least))


WARMING = 4
"""Untimed runs before each timed one, so that cache contents of the other kind of store do not count.

The last cache holds new data only after four passes (Zen 4, 2026-11: 440, 228, 210, 128 us for 5 MiB).
"""

RUN_BYTES, ROWS = 512, 8

_NAME = "measured_tiles"
_SOURCE = f"""def {_NAME}(operands, scratch, sizes, begin, end):
    src, dst = addresses_2(operands)
    pitch, streams = arguments_2(sizes)
    for tile in range(begin, end):
        for row in range({ROWS}):
            run = opaque(src + row * pitch + {RUN_BYTES} * tile)
            out = opaque(dst + {RUN_BYTES} * ({ROWS} * tile + row))
            if streams:
                for x in range(0, {RUN_BYTES}, 64):
                    stream_u8x64(out + x, load_u8x64(run + x))
                    prefetch_u8x64(run + x + 256)
            else:
                for x in range(0, {RUN_BYTES}, 64):
                    store_u8x64(out + x, load_u8x64(run + x))
    stream_fence()
"""
"""The loops of a pack to f32 T(8,128) with either kind of store.

The two kernels of such packs also copy parts of lines, and take several times as long to compile.
"""


_sizes = Struct("=2q").pack
"""The table of arguments: bytes from row to row, and whether the stores bypass the cache."""


def copy_tiles(src: int, dst: int, tiles: int, *, stream: bool) -> None:
    """Copy runs of 512 bytes from eight rows to tiles, from line to line; `row_bytes(tiles)` per row."""
    native(_NAME, _SOURCE)(copy_operands(src, dst), 0, _sizes(row_bytes(tiles), stream), 0, tiles)


def row_bytes(tiles: int) -> int:
    """Bytes from row to row of the source; the extra line avoids aliasing."""
    return RUN_BYTES * tiles + 64


def _trial() -> Measure:
    """A measure with its own memory."""
    most = FOOTPRINTS[0] // 2
    src, dst = (np.ones(most + 2 * RUN_BYTES, np.uint8) for _ in range(2))

    def measure(stream: bool, footprint: int) -> float:
        tiles = footprint // 2 // (ROWS * RUN_BYTES)
        for _ in range(WARMING):
            copy_tiles(_line(src), _line(dst), tiles, stream=stream)
        start = perf_counter()
        copy_tiles(_line(src), _line(dst), tiles, stream=stream)
        return perf_counter() - start

    return measure


def _line(array: NDArray[np.uint8]) -> int:
    """The address of the array's first full line."""
    return int(-(-array.ctypes.data // 64) * 64)
