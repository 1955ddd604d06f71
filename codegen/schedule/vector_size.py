"""The check of `virtual_vector_size`, for copies, kernels and MLIR text alike."""

from __future__ import annotations

from math import prod

import numpy as np

from codegen.support.errors import ScheduleError, shown

NAME = "virtual_vector_size"

MOST_ELEMENTS = 1 << 20
"""Elements of the largest super-vector; more is surely a mistake."""

_NUMBERS = {1: "one", 2: "two", 3: "three"}


def read_vector_sizes(value: object, most: int, write: str) -> tuple[int, ...]:
    """The sizes of a super-vector, outermost first: one to `most` of them.

    256 -> (256,)    [32, 256] -> (32, 256)

    write: how to write a size, for error messages

    Raises:
        ScheduleError: there are too many sizes or none, one is less than 1, or there are more than
            MOST_ELEMENTS elements.
        TypeError: a size is not an integer.
    """
    sizes = tuple(_integer(each) for each in (value if isinstance(value, tuple | list) else (value,)))
    if not 1 <= len(sizes) <= most:
        expected = f"one {'or' if most == 2 else 'to'} {_NUMBERS[most]} sizes"
        raise ScheduleError(f"{NAME} has {len(sizes)} numbers; expected {expected}\n  {write}")
    text = ", ".join(map(shown, sizes))
    if min(sizes) < 1:
        raise ScheduleError(f"{NAME} is {text}; a super-vector has at least one element\n  {write}")
    if prod(sizes) > MOST_ELEMENTS:
        raise ScheduleError(
            f"{NAME} is {text}, which is more than {MOST_ELEMENTS} elements\n"
            f"  some hundreds fill all registers; {write}"
        )
    return sizes


def _integer(value: object) -> int:
    if isinstance(value, bool | np.ndarray) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{NAME} is a number or a tuple of numbers, not {type(value).__name__}")
    return int(value.__index__())  # type: ignore[attr-defined]
