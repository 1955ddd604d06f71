"""Issue NumPy's warnings for casts that overflow: from the processor's flags, or once for many casts."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from codegen import ALL_FLAGS, CLEAR_FLAGS, FLAG_BITS, TEST_FLAGS, caller_stacklevel
from tilejit.arrays.numpy_originals import numpy_copyto

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


def may_raise() -> bool:
    """Whether a cast may raise, because of `np.errstate` or of a filter that turns warnings into errors."""
    modes = {*np.geterr().values()}
    filtered = "warn" in modes and any(action == "error" for action, *_ in warnings.filters)
    return filtered or bool(modes & {"raise", "call", "log"})


def warn(*flags: int) -> None:
    """React as NumPy does after a cast with these flags: ignore them, warn or raise."""
    every = 0
    for some in flags:
        every |= some
    if every:
        _react({name for name, flag in FLAG_BITS.items() if every & flag})


class Casts:
    """NumPy's reports on casts in blocks, which do not warn; `react` warns or raises once for all of them.

    >>> casts = Casts()
    >>> for piece in pieces:
    ...     with casts:
    ...         piece.astype(np.float32)
    >>> casts.react()
    """

    def __init__(self) -> None:
        self._words: set[str] = set()

    def __enter__(self) -> None:
        modes: Any = {name: "call" for name, mode in np.geterr().items() if mode != "ignore"}
        self._state = np.errstate(**modes, call=lambda word, _: self._words.add(word))
        self._state.__enter__()

    def __exit__(self, *_: object) -> None:
        self._state.__exit__(None, None, None)

    def react(self) -> None:
        """React as NumPy does after the casts so far, and forget them."""
        words, self._words = self._words, set()
        _react({name for name, word in _WORDS.items() if word in words})


def warn_of_imaginary_parts() -> None:
    """Warn as NumPy does before it casts complex numbers to real ones."""
    text = "Casting complex values to real discards the imaginary part"
    warnings.warn(text, np.exceptions.ComplexWarning, stacklevel=caller_stacklevel())


def _react(names: set[str]) -> None:
    modes: Any = np.geterr()
    for name in (name for name in _WORDS if name in names):
        if modes[name] == "warn":  # NumPy's own warning would name this line
            text = f"{_WORDS[name]} encountered in cast"
            warnings.warn(text, RuntimeWarning, stacklevel=caller_stacklevel())
        else:
            numpy_copyto(np.empty(1, np.float32), _WITNESSES[name])
