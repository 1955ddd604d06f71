"""The processor's floating-point status flags, as this platform's C library defines them."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable
from typing import Any

FLAG_BITS: dict[str, int] = {
    "x86_64": {"over": 8, "under": 16, "invalid": 1},
    "amd64": {"over": 8, "under": 16, "invalid": 1},
    "aarch64": {"over": 4, "under": 8, "invalid": 1},
    "arm64": {"over": 4, "under": 8, "invalid": 1},
}.get(platform.machine().lower(), {})
"""The bits of fenv.h, in NumPy's order."""

ALL_FLAGS = sum(FLAG_BITS.values())
"""The bits of all three flags."""


def _functions() -> tuple[Any, Any] | None:
    try:
        library = ctypes.PyDLL(None)
        return library.feclearexcept, library.fetestexcept
    except (OSError, AttributeError, TypeError):
        return None


CLEAR_FLAGS, TEST_FLAGS = _functions() or (None, None)
"""feclearexcept and fetestexcept, which take some of the bits; None if they are unavailable."""

FLAGS_SUPPORTED = bool(FLAG_BITS) and CLEAR_FLAGS is not None
"""Whether the flags can be read here; if not, NumPy handles casts that set them."""


def watched(work: Callable[[int, int], None], flags: list[int]) -> Callable[[int, int], None]:
    """Work for `run_parts` that also appends the flags that each part raises on its thread."""

    def part(k: int, parts: int) -> None:
        if CLEAR_FLAGS:
            CLEAR_FLAGS(ALL_FLAGS)
        work(k, parts)
        if TEST_FLAGS:
            flags.append(int(TEST_FLAGS(ALL_FLAGS)))

    return part
