"""The options of kernels and expressions, read and checked."""

from __future__ import annotations

import re
from math import prod
from typing import Any

from codegen.errors import KernelError
from tilejit.loop_program import LoopOptions

TAILS = ("scalar", "mask", "shift", "assume_divisible")
FAILS = ("scalar", "warn", "raise")
PLACES = ("before_tile", "after_tile")
MOST_LANES = 1 << 20
"""Elements of the largest super-vector; more is surely a mistake."""

MOST_REGISTERS = MOST_LANES // 64
"""Of 64 bytes, that have so many elements at most."""


def read_options(
    virtual_vector_size: Any = "auto",
    fastest_varying: Any = None,
    vectorize_reductions: bool = False,
    tail: str = "mask",
    on_fail: str = "scalar",
    vectorize_at: str = "before_tile",
    parallel: bool | int | None = None,
    fastmath: bool = False,
    tune: bool = False,
) -> LoopOptions:
    """The options of `tilejit.kernel` and `tilejit.elementwise`, checked.

    virtual_vector_size=256 -> LoopOptions((256,))    tail="none" -> KernelError

    Raises:
        KernelError: an option has no such value.
        TypeError: there is no such option, or a value is of a wrong type.
    """
    for name, value, known in (
        ("tail", tail, TAILS),
        ("on_fail", on_fail, FAILS),
        ("vectorize_at", vectorize_at, PLACES),
    ):
        if value not in known:
            raise KernelError(f"{name}={value!r} is none of {', '.join(known)}")
    if parallel is not None and not isinstance(parallel, bool):
        parallel = _whole("parallel", parallel)
        if parallel < 1:
            raise KernelError(f"parallel={parallel}: a kernel needs at least one thread")
    if not isinstance(tune, bool):
        raise TypeError(f"tune is True or False, not {type(tune).__name__}")
    sizes = _sizes(virtual_vector_size)
    varying = None if fastest_varying is None else _tuple("fastest_varying", fastest_varying, 0)
    if varying is not None and len(varying) != (len(sizes) if isinstance(sizes, tuple) else 1):
        raise KernelError(f"fastest_varying={fastest_varying!r} has not one dimension for each size")
    return LoopOptions(
        sizes,
        varying,
        bool(vectorize_reductions),
        tail,
        on_fail,
        vectorize_at,
        parallel,
        bool(fastmath),
        tune,
    )


def _sizes(value: Any) -> tuple[int, ...] | str:
    if isinstance(value, str):
        registers = re.fullmatch(r"([1-9]\d*)\*hw", value)
        if registers and (len(registers[1]) > 9 or int(registers[1]) > MOST_REGISTERS):
            raise KernelError(
                f"virtual_vector_size={value!r} has more than {MOST_REGISTERS} registers\n"
                f'  a few are worked on side by side; write a size such as "4*hw", or "auto"'
            )
        if value == "auto" or registers:
            return value
        raise KernelError(
            f'virtual_vector_size={value!r} is no size\n  write 256, (32, 256), "2*hw" or "auto"'
        )
    sizes = _tuple("virtual_vector_size", value, 1)
    if not 1 <= len(sizes) <= 3:
        raise KernelError(f"virtual_vector_size={value!r}: a super-vector has one to three dimensions")
    refuse_giants(sizes)
    return sizes


def refuse_giants(sizes: tuple[int, ...]) -> None:
    """Refuse super-vectors of more elements than any use has.

    Raises:
        KernelError: there are more than MOST_LANES.
    """
    if prod(sizes) > MOST_LANES:
        shown = ", ".join(str(n) if n < 1 << 64 else "an integer beyond 64 bits" for n in sizes)
        raise KernelError(
            f"virtual_vector_size={shown} has more than {MOST_LANES} elements\n"
            "  some hundreds fill all registers; write a size such as 256 or (32, 256)"
        )


def _tuple(name: str, value: Any, least: int) -> tuple[int, ...]:
    values = tuple(value) if isinstance(value, tuple | list) else (value,)
    numbers = tuple(_whole(name, each) for each in values)
    for number in numbers:
        if number < least:
            raise KernelError(f"{name}={value!r}: {number} is less than {least}")
    return numbers


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{name} is a number, not a {type(value).__name__}")
    return int(value.__index__())
