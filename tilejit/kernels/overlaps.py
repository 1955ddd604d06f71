"""Find arrays of a call that share memory, if one of them is written."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations
from typing import TypeAlias

from codegen import KernelValueError
from tilejit.arrays.memory import Array
from tilejit.arrays.strided import span

Pair: TypeAlias = tuple[tuple[int, str], tuple[int, str], int, int, bool]
"""Two arguments, the range of address distances in which they overlap, and whether they may be identical."""


def pairs_to_compare(arrays: list[tuple[int, str]], stored: set[str], given: Sequence[Array]) -> list[Pair]:
    """Pairs of arrays of which one is written."""
    out = []
    for one, two in combinations(arrays, 2):
        if one[1] in stored or two[1] in stored:
            a, b = given[one[0]], given[two[0]]
            alike = a.dtype == b.dtype and a.shape == b.shape and a.strides == b.strides
            (low, stop), (other_low, other_stop) = (span(x.shape, x.strides, x.itemsize) for x in (a, b))
            if low < stop and other_low < other_stop:
                out.append((one, two, low - other_stop, stop - other_low, alike))
    return out


def check_subscripts(indexed: Collection[str], overlapping: Sequence[tuple[str, str, bool]]) -> None:
    """Raise if the kernel writes memory that holds subscripts, which would change after the check.

    Args:
        indexed: the arrays that hold subscripts.
        overlapping: pairs of arrays that share memory, and whether they may be identical.

    Raises:
        KernelValueError: it names both arrays.
    """
    for a, b, _ in overlapping:
        for index, other in ((a, b), (b, a)):
            if index in indexed:
                raise KernelValueError(
                    f"{index} holds subscripts and shares memory with {other}, which the kernel writes\n"
                    f"  pass a copy of {index}"
                )
