"""The parts of layouts: modes, and the digits of a dimension's index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple, TypeAlias


class Mode(NamedTuple):
    """`size` coordinates, `stride` elements apart.

    (4,8):(1,5) -> Mode(4, 1), Mode(8, 5)
    """

    size: int
    stride: int


Chain: TypeAlias = tuple[Mode, ...]
"""The modes that one index counts, the fastest first; empty if the only offset is 0."""


class Digit(NamedTuple):
    """A digit of an index.

    (2,(2,3)):(12,(1,4)) -> Digit(2, 12, 0, 1), Digit(2, 1, 1, 1), Digit(3, 4, 1, 2)

    Attributes:
        size: the number of values.
        stride: the distance in memory between two values, in elements.
        dim: the dimension whose index it belongs to.
        weight: the index at which it is 1 and all other digits are 0.
    """

    size: int
    stride: int
    dim: int
    weight: int


by_stride = attrgetter("stride", "size")
"""Key that sorts modes or digits by their strides."""


def joined(modes: Iterable[Mode]) -> list[Mode]:
    """Drop modes of size 1, and join neighbors that continue each other.

    (2, 1), (1, 9), (3, 2) -> (6, 1)
    """
    out: list[Mode] = []
    size = stride = 0
    for mode in modes:
        own, step = mode
        if own == 1:
            continue
        if out and step == size * stride:
            size *= own
            out[-1] = Mode(size, stride)
        else:
            size, stride = mode
            out.append(mode)
    return out


def digits_of(chains: Sequence[Chain], dims: Sequence[int] | None = None) -> list[Digit]:
    """The digits that indices below `dims` use, each with its number of values; all digits if it is None.

    (((2, 1), (4, 10)),), (5,) -> [Digit(2, 1, 0, 1), Digit(3, 10, 0, 2)]
    """
    out: list[Digit] = []
    for dim, chain in enumerate(chains):
        weight = 1
        for size, stride in chain:
            used = size if dims is None else min(size, -(-dims[dim] // weight))
            if used > 1:
                out.append(Digit(used, stride, dim, weight))
            weight *= size
    return out


def is_nested(digits: Iterable[Mode | Digit]) -> bool:
    """Whether each stride exceeds all offsets of the smaller ones, so that no offset occurs twice.

    (2, 1), (3, 4) -> True    (4, 1), (2, 3) -> False
    """
    reach = 0
    for digit in sorted(digits, key=lambda digit: abs(digit.stride)):
        if abs(digit.stride) <= reach:
            return False
        reach += abs(digit.stride) * (digit.size - 1)
    return True
