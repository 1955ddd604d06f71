"""TileJIT's exceptions, exported by `tilejit`; the compiler raises some of them."""

from __future__ import annotations

import re


class TilejitError(Exception):
    """Base class of TileJIT's errors."""


class LayoutError(TilejitError, ValueError):
    """A layout, or data for it, is invalid; the message says what, where, and how to fix it."""


class LayoutIndexError(LayoutError, IndexError):
    """An index is outside the array or buffer that it was used on."""


class KernelError(TilejitError, RuntimeError):
    """A kernel could not be built, or its bounds could not be proven."""


class KernelIndexError(KernelError, IndexError):
    """A kernel would access elements outside an array."""


class KernelValueError(KernelError, ValueError):
    """An array, a number or an option has a value that a kernel does not support."""


class ScheduleError(LayoutError, KernelError):
    """The schedule is impossible for any copy or kernel, for instance super-vectors without elements."""


class IntegerError(KernelError, OverflowError):
    """A Python integer does not fit the dtype it is combined with; NumPy raises OverflowError."""


class PowerError(KernelError, ValueError):
    """An integer is raised to a negative power; NumPy raises ValueError."""


class OperandError(KernelError, TypeError):
    """An operation is undefined for these dtypes; NumPy raises TypeError."""


class OutOfMemoryError(TilejitError, MemoryError):
    """There is no memory for an array."""


class StoreError(TilejitError, OSError):
    """The store of compiled kernels cannot do what was requested."""


class FallbackWarning(RuntimeWarning):
    """Warning that planning a copy failed because of a bug in TileJIT, and that a simpler plan replaces it.

    The result is right. Please report the message.
    """


for _error in (
    *(TilejitError, LayoutError, LayoutIndexError, StoreError, OutOfMemoryError),
    *(KernelError, KernelIndexError, KernelValueError, IntegerError, PowerError, OperandError, ScheduleError),
    FallbackWarning,
):
    _error.__module__ = "tilejit"  # the public location, which tracebacks print and pickles name


def shown(number: int) -> str:
    """A number for an error message: its digits, or above 64 bits only its size.

    12 -> "12"    2**90 -> "a number of 91 bits"
    """
    return str(number) if number.bit_length() <= 64 else f"a number of {number.bit_length()} bits"


def pointed(text: str, at: int) -> str:
    """The first line of a text near a column, with a caret under it, as lines of an error message."""
    line = (text.splitlines() or [""])[0]
    at = min(max(at, 0), len(line))
    first = max(0, at - 60)
    part = re.sub(r"[^ -~]", "?", line[first : first + 90])
    return f"  {part}\n  {' ' * (at - first)}^"
