"""Run a kernel and its super-vectorized form through the interpreter on the same arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from codegen.analysis.bodies import flat
from codegen.analysis.strides import ELEMENT_BYTES
from codegen.ir.dtypes import numpy_dtype
from codegen.ir.interpreter import interpret
from codegen.ir.nodes import ArrayArg, For, Function
from codegen.schedule.directives import Tail

DTYPES = {name: numpy_dtype(name) for name in ELEMENT_BYTES}
EXTENTS = {1: (1300,), 2: (48, 50), 3: (40, 24, 20)}
"""Arrays are longer than loops, and the elements after the loop must stay unchanged."""


def arguments(
    function: Function, seed: int, numbers: dict[str, int], extents: Mapping[int, tuple[int, ...]] = EXTENTS
) -> list[np.ndarray | int]:
    """Small integers, so that sums and products are exact in any order."""
    random = np.random.default_rng(seed)
    found: list[np.ndarray | int] = []
    for argument in function.arguments:
        if isinstance(argument, ArrayArg):
            values = random.choice([1, 1, 1, 2, 4], extents[argument.rank])
            signs = random.choice([1, -1], values.shape) if argument.dtype[0] != "u" else 1
            found.append(np.asarray(values * signs, DTYPES[argument.dtype], order=argument.order or "C"))
        else:
            found.append(numbers.get(argument.name, 3))
    return found


def tails(function: Function, how: Literal["mask", "shift", "scalar"]) -> tuple[Tail, ...]:
    """The same tail for all loops."""
    return tuple(Tail(loop.index, how) for loop in flat(function.body) if isinstance(loop, For))


def same_meaning(
    before: Function,
    after: Function,
    numbers: dict[str, int],
    seed: int = 5,
    extents: Mapping[int, tuple[int, ...]] = EXTENTS,
) -> None:
    """Both forms leave the same bits in each array and give the same results."""
    one, two = (arguments(before, seed, numbers, extents) for _ in range(2))
    first, second = interpret(before, one), interpret(after, two)
    assert np.array_equal(np.array(first), np.array(second)), (first, second)
    for argument, a, b in zip(before.arguments, one, two, strict=True):
        assert np.array_equal(a, b), f"{argument.name} differs at {np.argwhere(np.asarray(a != b))[:5]}"
