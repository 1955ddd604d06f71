"""The check of `virtual_vector_size`, for copies, kernels and MLIR text alike."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TypeAlias

import numpy as np

from codegen.schedule.machine_size import MachineSize, read_machine_size
from codegen.support.errors import ScheduleError, shown

NAME = "virtual_vector_size"

MOST_ELEMENTS = 1 << 20
"""Elements of the largest super-vector; a larger one is certainly a mistake."""

WIDEST_BITS = 128
"""Bits of the widest element of an array."""

MOST_DIMS = 8
"""Dimensions of the largest super-vector of a kernel."""

_NUMBERS = {1: "one", 2: "two", MOST_DIMS: "eight"}

Size: TypeAlias = int | MachineSize
"""Elements along one dimension of a super-vector, or a number of them that depends on the machine."""


def read_vector_sizes(value: object, most: int, write: str) -> tuple[Size, ...]:
    """The sizes of a super-vector, outermost first: one to `most` of them.

    256 -> (256,)    [32, 256] -> (32, 256)    ("4", "2*hw") -> (4, 2*hw)

    write: how to write a size, for error messages

    Raises:
        ScheduleError: there are too many sizes or none, a string is not a size, a size is less than 1, or
            they make more than MOST_ELEMENTS elements.
        TypeError: a size is neither an integer nor a string.
    """
    sizes = tuple(_size(each, write) for each in (value if isinstance(value, tuple | list) else (value,)))
    if not 1 <= len(sizes) <= most:
        expected = f"one {'or' if most == 2 else 'to'} {_NUMBERS[most]} sizes"
        raise ScheduleError(f"{NAME} has {len(sizes)} numbers; expected {expected}\n  {write}")
    if min(each for each in (1, *sizes) if isinstance(each, int)) < 1:
        text = ", ".join(map(_shown, sizes))
        raise ScheduleError(f"{NAME} is {text}; a super-vector has at least one element\n  {write}")
    sizes_in_elements(sizes, WIDEST_BITS, write)
    return sizes


def sizes_in_elements(
    sizes: Sequence[Size], bits: int, write: str = "write smaller sizes"
) -> tuple[int, ...]:
    """The sizes in elements of that many bits, on this machine.

    (4, 2*hw) -> (4, 32) for 32 bits in registers of 64 bytes

    Raises:
        ScheduleError: there are more than MOST_ELEMENTS elements.
    """
    found = tuple(each if isinstance(each, int) else each.elements(bits) for each in sizes)
    if prod(found) > MOST_ELEMENTS:
        raise ScheduleError(
            f"{NAME} is {', '.join(map(_shown, sizes))}, which is more than {MOST_ELEMENTS} elements\n"
            f"  some hundreds fill all registers; {write}"
        )
    return found


def _size(value: object, write: str) -> Size:
    if isinstance(value, str):
        return read_machine_size(NAME, value, write)
    if isinstance(value, bool | np.ndarray) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{NAME}: expected a number or a tuple of numbers, got {type(value).__name__}")
    return int(value.__index__())  # type: ignore[attr-defined]


def _shown(size: Size) -> str:
    return shown(size) if isinstance(size, int) else str(size)
