"""Thresholds of this machine: measured once, with a real copy, and kept in the store.

Nothing is measured before a copy of 4 MiB is planned, or if the store cannot keep the result. The first
process with such a copy only leaves a note, because its first copies already wait for kernels to be compiled.
Two processes that measure at the same time both write a valid note; the later one stays.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from math import log
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from codegen.backend.store import KernelStore, default_store
from codegen.backend.store_key import compiler_digest
from codegen.ir.strided_box import Element
from codegen.maps.access import AccessMap, strided_map
from codegen.pipeline.copy_options import CopyOptions
from codegen.pipeline.copy_request import CopyRequest
from codegen.pipeline.program import CopyProgram
from codegen.schedule.machine import machine
from codegen.schedule.thresholds import DEFAULT_THRESHOLDS, Thresholds
from codegen.support.cpu import cpu_level, cpu_name
from codegen.support.errors import KernelError
from codegen.support.locks import compiler_lock

CALIBRATED_FROM_BYTES = 2 << 20
"""Footprint of the smallest copy that a threshold here can affect."""

MEASURED_FROM_BYTES = 4 << 20
"""Footprint of the smallest copy that triggers a measurement.

Measuring takes half a second and a kernel of its own. Smaller copies would not soon gain that back, since a
process may make only one.
"""

MEASURED_AT = 8
"""The first process that makes large copies measures at this one of them, later processes at the first."""

FOOTPRINTS = tuple(n << 20 for n in (32, 28, 24, 22, 20, 18, 16, 12, 8, 4, 2))
"""Bytes read and written by the measured copies, largest first."""

BEYOND_BYTES = 2 * FOOTPRINTS[0]
"""The threshold if streaming stores gain nothing at any measured footprint."""

REPEATS = 5
WORTH = 0.95
"""Streaming must take less than this fraction of the time, because its output is in no cache afterwards."""

NOTED_BYTES = range(1 << 20, 1 << 30)
"""Thresholds that are valid in a note."""

Measure = Callable[[bool, int], float]
"""Seconds of one copy, given whether it streams and its footprint in bytes."""

_known: Thresholds | None = None
_planned = 0
"""Large copies that this process has planned without knowing the thresholds."""


def machine_thresholds(footprint: int) -> Thresholds:
    """The thresholds for a copy that reads and writes `footprint` bytes; a large copy may measure."""
    global _known
    if (given := machine().stream_bytes) is not None:
        return Thresholds(stream_bytes=given)
    if footprint < CALIBRATED_FROM_BYTES:
        return DEFAULT_THRESHOLDS
    if _known is None:
        with compiler_lock:  # the one lock that a fork waits for
            if _known is None and footprint >= MEASURED_FROM_BYTES and _is_due(default_store()):
                _known = calibrated(default_store(), _trial)
            elif _known is None:
                _known = remembered_thresholds(default_store())
    return _known or DEFAULT_THRESHOLDS


def _is_due(store: KernelStore) -> bool:
    """Whether to measure now: an earlier process has planned a large copy, or this one several."""
    global _planned
    _planned += 1
    if _planned == 1 and store.get_note(_note_name(store, cpu_level().name)) is None:
        store.put_note(_note_name(store, cpu_level().name), {})
        return False
    return _planned == 1 or _planned >= MEASURED_AT


def calibrated(store: KernelStore, trial: Callable[[], Measure]) -> Thresholds:
    """The stored thresholds, or newly measured ones, which are then stored; `trial` allocates the memory."""
    known = remembered_thresholds(store)
    if known is not None:
        return known
    if not store.is_writable:
        return DEFAULT_THRESHOLDS
    try:
        found = Thresholds(stream_bytes=stream_threshold(trial()))
    except (ImportError, KernelError, MemoryError):
        return DEFAULT_THRESHOLDS
    remember(store, found, cpu_level().name)
    return found


def remembered_thresholds(store: KernelStore) -> Thresholds | None:
    """The stored thresholds of this machine, or None."""
    facts = store.get_note(_note_name(store, cpu_level().name)) or {}
    size = facts.get("stream_bytes")
    return Thresholds(stream_bytes=size) if type(size) is int and size in NOTED_BYTES else None


def remember(store: KernelStore, thresholds: Thresholds, level: str) -> None:
    """Store the thresholds of this machine at a CPU level."""
    store.put_note(_note_name(store, level), {"stream_bytes": thresholds.stream_bytes})


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


def _trial() -> Measure:
    """A measure with its own memory: runs of 512 bytes from eight rows to tiles, as in f32 T(8,128)."""
    most = FOOTPRINTS[0] // 2
    src, dst = (np.ones(most + 2 * RUN_BYTES, np.uint8) for _ in range(2))
    programs: dict[tuple[bool, int], CopyProgram] = {}

    def measure(stream: bool, footprint: int) -> float:
        key = stream, footprint
        if key not in programs:
            programs[key] = _tiling(footprint // 2, stream=stream)
        for _ in range(WARMING):
            programs[key].run(_line(src), _line(dst))
        start = perf_counter()
        programs[key].run(_line(src), _line(dst))
        return perf_counter() - start

    return measure


def _tiling(size: int, *, stream: bool) -> CopyProgram:
    """The copy of `size` bytes, with or without streaming stores."""
    blocks, element = size // (ROWS * RUN_BYTES), Element("u8", 8)
    dims, pitch = (blocks, ROWS, RUN_BYTES), blocks * RUN_BYTES + 64  # the extra line avoids aliasing

    def side(strides: tuple[int, int, int], stop: int) -> AccessMap:
        return strided_map(dims, strides, (0, stop), element_bits=8)

    src = side((RUN_BYTES, pitch, 1), (ROWS - 1) * pitch + blocks * RUN_BYTES)
    dst = side((ROWS * RUN_BYTES, RUN_BYTES, 1), size)
    always, never = Thresholds(stream_bytes=0), Thresholds(stream_bytes=1 << 62)
    options = CopyOptions(thresholds=always if stream else never)
    from codegen.pipeline.copies import compile_copy  # most processes that ask for thresholds need none

    return compile_copy(CopyRequest(src, dst, element, element, options=options))


def _line(array: NDArray[np.uint8]) -> int:
    """The address of the array's first full line."""
    return int(-(-array.ctypes.data // 64) * 64)
