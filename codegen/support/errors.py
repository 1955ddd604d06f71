"""The exceptions of TileJIT; `tilejit` exports them, the compiler raises its share."""

from __future__ import annotations


class TilejitError(Exception):
    """Anything that TileJIT refuses or cannot do."""


class LayoutError(TilejitError, ValueError):
    """A layout, or data for it, is wrong; the text says what, where and what to write instead."""


class LayoutIndexError(LayoutError, IndexError):
    """An index lies outside the array or the buffer that it was used on."""


class KernelError(TilejitError, RuntimeError):
    """A kernel could not be built, or its bounds could not be proven."""


class IntegerError(KernelError, OverflowError):
    """An integer of Python does not fit the dtype that it meets; NumPy raises OverflowError."""


class PowerError(KernelError, ValueError):
    """An integer to a negative power; NumPy raises ValueError."""


class OperandError(KernelError, TypeError):
    """An operation has no meaning on these dtypes; NumPy raises TypeError."""


class StoreError(TilejitError, OSError):
    """The store of compiled kernels was asked for something that it cannot do."""


def shown(number: int) -> str:
    """A number for a message: its digits, or its size where they would fill the screen.

    12 -> "12"    2**90 -> "a number of 91 bits"
    """
    return str(number) if number.bit_length() <= 64 else f"a number of {number.bit_length()} bits"
