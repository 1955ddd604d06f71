"""Mistakes that are made before packing: transposed, halves swapped, rows interleaved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from codegen import dataclass
from tilejit.arrays.memory import Array

Index = tuple[Array, ...]
TRANSPOSED = "transposed"


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the order of an array's elements.

    Attributes:
        text: what was done, empty for nothing.
        index: index(index of an element) -> its index afterwards.
        origin: the inverse.
        apply: apply(array) -> the array afterwards.
    """

    text: str
    index: Callable[[Index], Index]
    origin: Callable[[Index], Index]
    apply: Callable[[Array], Array]

    def dims(self, dims: tuple[int, ...]) -> tuple[int, ...]:
        """The dimensions afterwards."""
        return (*dims[:-2], dims[-1], dims[-2]) if self.text == TRANSPOSED else dims


NOTHING = Change("", lambda index: index, lambda index: index, lambda array: array)


def changes(dims: tuple[int, ...]) -> Iterator[Change]:
    """The changes to try for an array, nothing first."""
    yield NOTHING
    if len(dims) >= 2 and (dims[-1] > 1 and dims[-2] > 1):
        yield Change(TRANSPOSED, _swapped, _swapped, lambda array: array.swapaxes(-1, -2))
    for axis, size in enumerate(dims):
        if size % 2 == 0 and size > 2:
            yield _halves_swapped(axis, size)
            yield _interleaved(axis, size)
            if size > 4:  # for 4 indices, the same as interleaved
                yield _separated(axis, size)


def _swapped(index: Index) -> Index:
    return (*index[:-2], index[-1], index[-2])


def _halves_swapped(axis: int, size: int) -> Change:
    def moved(index: Index) -> Index:
        return _with(index, axis, (index[axis] + size // 2) % size)

    text = f"halves of axis {axis} swapped"
    return Change(text, moved, moved, lambda array: np.roll(array, size // 2, axis))


def _interleaved(axis: int, size: int) -> Change:
    """Index r of the first half goes to 2 r, index r of the second to 2 r + 1."""
    text = f"halves of axis {axis} interleaved"
    return Change(text, _to_turns(axis, size), _to_halves(axis, size), lambda array: _turns(array, axis))


def _separated(axis: int, size: int) -> Change:
    """Even indices go to the first half, odd ones to the second."""
    text = f"even and odd indices of axis {axis} separated"
    return Change(text, _to_halves(axis, size), _to_turns(axis, size), lambda array: _halves(array, axis))


def _to_turns(axis: int, size: int) -> Callable[[Index], Index]:
    def moved(index: Index) -> Index:
        at = index[axis]
        return _with(index, axis, 2 * (at % (size // 2)) + at // (size // 2))

    return moved


def _to_halves(axis: int, size: int) -> Callable[[Index], Index]:
    def moved(index: Index) -> Index:
        at = index[axis]
        return _with(index, axis, at // 2 + at % 2 * (size // 2))

    return moved


def _turns(array: Array, axis: int) -> Array:
    split = array.reshape(*array.shape[:axis], 2, array.shape[axis] // 2, *array.shape[axis + 1 :])
    return np.moveaxis(split, axis, axis + 1).reshape(array.shape)


def _halves(array: Array, axis: int) -> Array:
    split = array.reshape(*array.shape[:axis], array.shape[axis] // 2, 2, *array.shape[axis + 1 :])
    return np.moveaxis(split, axis + 1, axis).reshape(array.shape)


def _with(index: Index, axis: int, at: Any) -> Index:
    return (*index[:axis], at, *index[axis + 1 :])
