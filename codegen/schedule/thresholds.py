"""The sizes from which copies bypass the cache."""

from __future__ import annotations

from codegen.support.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Sizes from which a different method of copying is faster; the defaults fit no particular machine.

    stream_bytes   copies that read and write at least this many bytes store full lines past the cache
    """

    stream_bytes: int = 16 << 20


DEFAULT_THRESHOLDS = Thresholds()
ALWAYS_STREAM, NEVER_STREAM = Thresholds(stream_bytes=0), Thresholds(stream_bytes=1 << 62)
