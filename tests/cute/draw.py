"""Random layouts and tilers from any source of small integers; many have no answer."""

from __future__ import annotations

from math import prod
from typing import Any

from tests.tools.strategies import Pick, chance, one_of
from tilejit.cute import Layout

SIZES = (1, 2, 2, 2, 3, 3, 4, 4, 5, 6, 8)
ODD_STRIDES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 24, 100)


def sizes(pick: Pick, most: int, longest: int = 4) -> list[int]:
    out: list[int] = []
    for _ in range(pick(1, longest)):
        fitting = [n for n in SIZES if n * prod(out) <= most]
        out.append(one_of(pick, fitting))
    return out


def nested(pick: Pick, numbers: list[int]) -> Any:
    """Numbers as an IntTuple with any nesting."""
    if len(numbers) == 1 and not chance(pick, 6):
        return numbers[0]
    cut = pick(0, len(numbers)) if chance(pick, 3) else 0
    if cut > 1:
        return (nested(pick, numbers[:cut]), *numbers[cut:])
    return tuple((number,) if chance(pick, 8) else number for number in numbers)


def shaped(numbers: list[int], profile: Any) -> Any:
    """Numbers in the nesting of another IntTuple."""
    rest = iter(numbers)

    def fill(part: Any) -> Any:
        return tuple(map(fill, part)) if isinstance(part, tuple) else next(rest)

    return fill(profile)


def layout(pick: Pick, most: int = 48, *, signed: bool = False) -> Layout:
    """Compact in some order, with gaps, with broadcasts, or with any strides.

    Small ones make coincidences.
    """
    numbers = sizes(pick, most)
    if chance(pick, 4):
        shape = nested(pick, numbers)
        return Layout(shape, shaped([pick(-3 if signed else 0, 4) for _ in numbers], shape))
    order = list(range(len(numbers)))
    for k in range(len(order) - 1):
        if chance(pick, 2):
            order[k], order[k + 1] = order[k + 1], order[k]
    strides, current = [0] * len(numbers), one_of(pick, (1, 1, 1, 2, 3))
    for k in order:
        strides[k] = current
        current = current * numbers[k] + one_of(pick, (0, 0, 0, 1, 2, current))
    for k in range(len(numbers)):
        if chance(pick, 4):
            strides[k] = one_of(pick, ODD_STRIDES)
        if signed and chance(pick, 10):
            strides[k] = -strides[k]
    shape = nested(pick, numbers)
    return Layout(shape, shaped(strides, shape))


def tiler(pick: Pick, of: Layout, most: int = 48) -> Layout:
    """A layout to compose with: often within the domain, sometimes past it, occasionally negative."""
    numbers = sizes(pick, most, 3)
    weights = [1]
    for size in _flat(of.shape):
        weights.append(weights[-1] * max(size, 1))
    strides = []
    for _ in numbers:
        step = one_of(pick, weights) * one_of(pick, (1, 1, 1, 1, 2, 3)) if chance(pick, 2) else pick(0, 12)
        strides.append(-step if chance(pick, 40) else step)
    shape = nested(pick, numbers)
    return Layout(shape, shaped(strides, shape))


def _flat(value: Any) -> list[int]:
    return [n for part in value for n in _flat(part)] if isinstance(value, tuple) else [value]
