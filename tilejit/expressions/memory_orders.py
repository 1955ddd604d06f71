"""The memory order of NumPy's results, derived from the calls that a function records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np

from codegen import dataclass
from tilejit.arrays.memory import Array

Order: TypeAlias = tuple[int, ...]
"""The dimensions of an array, the one with the largest stride first."""


@dataclass(frozen=True, slots=True)
class Call:
    """A NumPy call that creates an array.

    Attributes:
        parts: the numbers of the forms that it reads.
        converts: whether it is `astype`, which orders an array differently from elementwise functions.
    """

    parts: tuple[int, ...]
    converts: bool = False


Form: TypeAlias = str | Call
"""The memory order of an expression: that of the array with this name, or of a call's result."""


class Forms:
    """The forms of a recording, each identified by its number; numbers in an expression have none."""

    def __init__(self) -> None:
        self.made: list[Form] = []
        self._numbers: dict[Form, int] = {}

    def array(self, name: str) -> int:
        """The form of an argument, or of a reduction's result."""
        return self._number(name)

    def computed(self, *parts: int | None) -> int | None:
        """The form of an elementwise function's result for these operands."""
        known = tuple(dict.fromkeys(part for part in parts if part is not None))
        if not known:
            return None
        # A result is contiguous, so a function of it alone keeps its order.
        return known[0] if len(known) == 1 and self._is_result(known[0]) else self._number(Call(known))

    def converted(self, part: int | None) -> int | None:
        """The form of `astype`."""
        if part is None or self._is_result(part):
            return part
        return self._number(Call((part,), converts=True))

    def _is_result(self, number: int) -> bool:
        return isinstance(self.made[number], Call)

    def _number(self, form: Form) -> int:
        if form not in self._numbers:
            self._numbers[form] = len(self.made)
            self.made.append(form)
        return self._numbers[form]


class Placed(NamedTuple):
    """The shape of an array and its strides, which are 0 along dimensions of one element."""

    shape: tuple[int, ...]
    steps: tuple[int, ...]


def order_of_result(
    forms: Sequence[Form], number: int | None, arrays: Mapping[str, Array], mask: Array | None = None
) -> Order:
    """The memory order of NumPy's result for an expression of this form.

    x * 2.0, x of (3, 5) in Fortran order -> (1, 0)    x + y, y in C order -> (0, 1)
    """
    if number is None:
        return ()
    form, placed = forms[number], _all_placed(forms, [number], arrays)
    parts = [placed[k] for k in form.parts] if isinstance(form, Call) else [placed[number]]
    if mask is not None:
        return iteration_order([*parts, _placed(mask)])
    if isinstance(form, Call) and not form.converts:
        return iteration_order(parts)
    return _order_of_copy(parts[0])


def order_of_reduction(
    forms: Sequence[Form], numbers: Sequence[int], core: int, arrays: Mapping[str, Array], axes: Sequence[int]
) -> Order:
    """The order of the dimensions that remain after a reduction along `axes`.

    the sum of (3, 4, 5) in Fortran order along 1 -> (1, 0)

    Args:
        forms: the forms of the recording.
        numbers: the numbers of the forms that the reduced expression reads.
        core: the number of trailing dimensions that a product consumes; they stay in order after the others.
        arrays: the arguments by name.
        axes: the dimensions that are reduced.
    """
    if not numbers:
        return ()
    placed = _all_placed(forms, numbers, arrays)
    parts = [placed[k] for k in numbers]
    rank = max(len(part.shape) for part in parts)
    loops = [Placed(*(part[: max(len(part) - core, 0)] for part in each)) for each in parts]
    order = (*iteration_order(loops), *range(max(rank - core, 0), rank))
    kept = [d for d in range(rank) if d not in axes]
    return tuple(kept.index(d) for d in order if d in kept)


def iteration_order(parts: Sequence[Placed]) -> Order:
    """The order in which NumPy's iterator traverses arrays, and in which it allocates a result.

    An insertion sort. The dimension with larger strides goes outside if all arrays with strides along both
    dimensions agree. See npyiter_find_best_axis_ordering in numpy/_core/src/multiarray/nditer_constr.c.
    """
    rank = max(len(part.shape) for part in parts)
    steps = [(0,) * (rank - len(part.steps)) + part.steps for part in parts]
    inner_first = list(reversed(range(rank)))
    for at in range(1, rank):
        place, outer = at, inner_first[at]
        for k in range(at - 1, -1, -1):
            inner = inner_first[k]
            both = [(abs(s[inner]), abs(s[outer])) for s in steps if s[inner] and s[outer]]
            if both and all(a > b for a, b in both):
                place = k
            elif both:
                break
        inner_first.insert(place, inner_first.pop(at))
    return tuple(reversed(inner_first))


def _all_placed(
    forms: Sequence[Form], numbers: Sequence[int], arrays: Mapping[str, Array]
) -> dict[int, Placed]:
    """The forms with these numbers and all forms that they depend on."""
    needed = set(numbers)
    for k in range(max(numbers), -1, -1):
        form = forms[k]
        if k in needed and isinstance(form, Call):
            needed.update(form.parts)
    placed: dict[int, Placed] = {}
    for k in sorted(needed):
        form = forms[k]
        if isinstance(form, str):
            placed[k] = _placed(arrays[form])
            continue
        parts = [placed[part] for part in form.parts]
        order = _order_of_copy(parts[0]) if form.converts else iteration_order(parts)
        placed[k] = _contiguous(np.broadcast_shapes(*(part.shape for part in parts)), order)
    return placed


def _placed(array: Array) -> Placed:
    return Placed(
        array.shape, tuple(0 if n == 1 else step for n, step in zip(array.shape, array.strides, strict=True))
    )


def _contiguous(shape: tuple[int, ...], order: Order) -> Placed:
    """A new array with its dimensions in this memory order."""
    steps = [0] * len(shape)
    for k, d in enumerate(order):
        steps[d] = prod(max(shape[inner], 1) for inner in order[k + 1 :]) if shape[d] != 1 else 0
    return Placed(shape, tuple(steps))


def _order_of_copy(part: Placed) -> Order:
    """The order that a copy keeps: by decreasing strides, with strides of 0 last."""
    return tuple(sorted(range(len(part.steps)), key=lambda d: (-abs(part.steps[d]), d)))
