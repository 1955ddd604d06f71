"""Issue NumPy's warnings for casts that overflow, from the processor's flags around a kernel."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from codegen import ALL_FLAGS, CLEAR_FLAGS, FLAG_BITS, TEST_FLAGS
from tilejit.arrays.numpy_originals import numpy_copyto
from tilejit.support.callers import caller_stacklevel

_WITNESSES = {
    "over": np.array([1e300]),
    "under": np.array([1e-300]),
    "invalid": np.array([0x7FF0_0000_0000_0001], np.uint64).view(np.float64),
}
"""Numbers whose cast to float32 sets one flag each: too large, too small, a signaling NaN."""

_WORDS = {"over": "overflow", "under": "underflow", "invalid": "invalid value"}
"""NumPy's names for the flags."""


def clear() -> None:
    """Clear the flags of this thread."""
    if CLEAR_FLAGS:
        CLEAR_FLAGS(ALL_FLAGS)


def raised() -> int:
    """The flags that this thread's arithmetic has set since `clear`."""
    return int(TEST_FLAGS(ALL_FLAGS)) if TEST_FLAGS else 0


def reports_underflow() -> bool:
    """Whether NumPy reacts to an underflow; by default it does not."""
    return np.geterr()["under"] != "ignore"


def warn(flags: int) -> None:
    """React as NumPy does after a cast with these flags: ignore them, warn or raise."""
    if not flags:
        return
    modes: Any = np.geterr()
    for name, flag in FLAG_BITS.items():
        if not flags & flag:
            continue
        if modes[name] == "warn":  # NumPy's own warning would name this line
            text = f"{_WORDS[name]} encountered in cast"
            warnings.warn(text, RuntimeWarning, stacklevel=caller_stacklevel())
        else:
            numpy_copyto(np.empty(1, np.float32), _WITNESSES[name])
