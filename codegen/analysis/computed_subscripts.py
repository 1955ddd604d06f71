"""The subscripts of all iterations, computed one by one if ranges of elements do not suffice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from codegen.analysis.bounds import Access, access_text, line_text
from codegen.analysis.element_ranges import Arrays
from codegen.ir.elements import as_indices, element_at
from codegen.ir.index import (
    FromEnd,
    Index,
    Inside,
    depends_on_elements,
    distinct_element,
    elements_in,
    evaluate_index,
    index_symbols,
)
from codegen.ir.nodes import For
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelIndexError, KernelValueError

MOST_COMPUTED = 1 << 26
"""The most iterations whose subscripts are computed one by one."""


def counted(subscript: Index, extent: int) -> tuple[Index, int]:
    """The index to check, and the smallest valid value: indices may count from the end."""
    match subscript:
        case FromEnd(of):
            return of, -extent
        case Inside(of):
            return of, 0
    return subscript, 0


def arrays_in(indices: Iterable[Index]) -> str:
    """The arrays with elements on which expressions depend."""
    return " and ".join(sorted({e.array for index in indices for e in elements_in(index)}))


def bound_names(loop: For) -> Iterable[str]:
    """The symbols in the bounds of a loop."""
    return (name for bound in (*loop.lower, *loop.upper) for name in index_symbols(bound))


@dataclass(frozen=True, slots=True)
class Computed:
    """Subscripts of all iterations, computed one by one.

    Attributes:
        shapes: the shapes of all arrays.
        values: the sizes and integer arguments.
        arrays: the arrays whose elements are parts of subscripts or bounds.
        loops: the loops around the access, outermost first.
    """

    shapes: Mapping[str, tuple[int, ...]]
    values: Mapping[str, int]
    arrays: Arrays
    loops: Sequence[For]

    def check(self, access: Access, dimension: int) -> None:
        """Raise for a subscript that is outside in some iteration."""
        subscript, extent = access.subscripts[dimension], self.shapes[access.array][dimension]
        rows = self.iterations(index_symbols(subscript))
        plain, low = counted(subscript, extent)
        what = access_text(access) + line_text(self.loops)
        fix = 'correct the index; tilejit.kernel(index_bounds="mask") leaves such elements out'
        if not depends_on_elements(plain):
            fix = f"correct the elements of {self.bounding()}, which are bounds of loops"
        if rows is None:
            arrays = arrays_in([plain]) or self.bounding()
            raise KernelIndexError(
                f"{what} may leave the array: subscript {dimension} depends on elements of {arrays} that may "
                f"be outside, the extent is {extent}\n  {fix}"
            )
        found = np.broadcast_to(evaluate_index(plain, rows), rows["#"].shape)
        wrong = np.flatnonzero((found < low) | (found >= extent))
        if wrong.size:
            row = wrong[0]
            at = {n: int(x[row]) if isinstance(x, np.ndarray) else x for n, x in rows.items()}
            expected = f"expected {low} to {extent - 1}" if extent else "the array has no elements there"
            if not depends_on_elements(plain):
                raise KernelIndexError(
                    f"{what} leaves the array: subscript {dimension} is {found[row]}; {expected}\n  {fix}"
                )
            *_, element = elements_in(plain)
            place = tuple(int(evaluate_index(s, at)) for s in element.subscripts)
            value = self.arrays[element.array][place]
            is_value = plain == element
            reached = "" if is_value else f", which makes subscript {dimension} {found[row]}"
            problem = f"{element.array}[{', '.join(map(str, place))}] is {value}{reached}; {expected}"
            raise KernelIndexError(f"{what} leaves the array: {problem}\n  {fix}")

    def bounding(self) -> str:
        """The arrays whose elements are bounds of loops."""
        return arrays_in(bound for loop in self.loops for bound in (*loop.lower, *loop.upper))

    def check_distinct(self, access: Access, dimension: int) -> None:
        """Raise for equal elements that are promised to differ."""
        subscript, extent = access.subscripts[dimension], self.shapes[access.array][dimension]
        element = distinct_element(subscript)
        if element is None or not element.subscripts:
            return
        rows = self.iterations(index_symbols(element))
        if rows is None:
            raise KernelValueError(f"{element.array} has too many indices to compare")
        shape = rows["#"].shape
        columns = [np.broadcast_to(evaluate_index(s, rows), shape) for s in element.subscripts]
        places = np.unique(np.stack(columns, axis=1), axis=0)
        values = as_indices(self.arrays[element.array][tuple(places.T)])
        if isinstance(subscript, Inside):
            inside = (values >= -extent) & (values < extent)
            places, values = places[inside], values[inside]
        values = np.where(values < 0, values + extent, values)
        order = np.argsort(values, kind="stable")
        twice = np.flatnonzero(values[order][1:] == values[order][:-1])
        if twice.size:
            one, two = (", ".join(map(str, places[order[twice[0] + k]])) for k in (0, 1))
            raise KernelValueError(
                f"{element.array}[{one}] and {element.array}[{two}] are both {values[order[twice[0]]]}, but "
                "tilejit.permutation promises that they differ\n  store without that promise"
            )

    def iterations(self, names: set[str]) -> dict[str, Any] | None:
        """The indices of all iterations of the loops that symbols belong to, one after another.

        The functions of elements and the sizes are among the values; "#" has the numbers of the iterations.
        None if there are too many iterations.
        """
        values: dict[str, Any] = {
            **self.values,
            **{name: partial(element_at, array) for name, array in self.arrays.items()},
            "#": np.zeros(1, np.int64),
        }
        for loop in self._needed(names):
            lower, upper = (
                [np.broadcast_to(evaluate_index(b, values), values["#"].shape) for b in ends]
                for ends in (loop.lower, loop.upper)
            )
            near, far = (np.maximum, np.minimum) if loop.step > 0 else (np.minimum, np.maximum)
            first, last = near.reduce(lower), far.reduce(upper)
            if ((last.astype(float) - first) / loop.step).clip(0).sum() > MOST_COMPUTED:
                return None
            counts = np.maximum(-((first - last) // loop.step), 0)
            total = int(counts.sum())
            rows = np.repeat(np.arange(len(counts)), counts)
            inner = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
            values = {n: x[rows] if isinstance(x, np.ndarray) else x for n, x in values.items()}
            values[loop.index] = first[rows] + inner * loop.step
        return values

    def _needed(self, names: set[str]) -> list[For]:
        """The loops that symbols belong to, with those that their bounds depend on."""
        found: list[For] = []
        for loop in reversed(self.loops):
            if loop.index in names:
                found.append(loop)
                names = names | set(bound_names(loop))
        return found[::-1]
