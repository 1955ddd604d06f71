"""Check before each call that subscripts which depend on elements are inside the arrays.

One or two passes over an array find the least and the largest element that a kernel uses. These bound
subscripts, as loop bounds do. Where they are too wide, all subscripts are computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial
from math import gcd, prod
from typing import Any, TypeAlias

import numpy as np

from codegen.analysis.bodies import flat
from codegen.analysis.bounds import Access, Domain, Nested, domain_of, extremes_in
from codegen.analysis.element_ranges import NONE, Arrays, Limits, Range, narrowed, range_of
from codegen.ir.elements import as_indices, element_at
from codegen.ir.index import (
    Affine,
    ArrayElement,
    FromEnd,
    Index,
    Inside,
    depends_on_elements,
    distinct_element,
    elements_in,
    evaluate_index,
    index_symbol,
    index_symbols,
    replace_loaded,
)
from codegen.ir.nodes import For, Function, Store
from codegen.ir.values import IndexValue, Load
from codegen.ir.visit import element_loads, parts, values_of
from codegen.support.caching import lazy
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError, KernelIndexError, KernelValueError
from codegen.support.settings import settings

_Key: TypeAlias = tuple[ArrayElement, tuple[int, ...]]
"""An element, and the identities of the loops around it."""

MOST_COMPUTED = 1 << 26
"""The most iterations whose subscripts are computed one by one."""

MOST_UNUSED = 4
"""An array whose elements are selected by those of others is checked as a whole if it has at most this many
times as many elements as they have."""


def index_arrays(function: Function) -> frozenset[str]:
    """The arrays whose elements are parts of subscripts.

    Raises:
        KernelError: the function also stores to one of them, which would change later subscripts unchecked.
    """
    stores = [node for node in flat(function.body) if isinstance(node, Store)]
    used = [subscript for store in stores for subscript in store.subscripts]
    for value in (*values_of(function.body), *function.results):
        for part in parts(value):
            match part:
                case Load(_, subscripts):
                    used += subscripts
                case IndexValue(index):
                    used.append(index)
    found = {load.array for load in element_loads(used)}
    for store in stores:
        if store.array in found:
            raise KernelError(
                f"{store.array} is stored to, and its elements are subscripts\n"
                "  take the subscripts from another array, such as a copy made before the call"
            )
    return frozenset(found)


@dataclass(frozen=True)
class IndexChecks:
    """The checks of calls with arrays of some shapes.

    Attributes:
        accesses: those that depend on elements, in the order in which elements come before their users.
        shapes: the shapes of all arrays.
        values: the sizes and integer arguments.
    """

    accesses: tuple[Nested, ...]
    shapes: Mapping[str, tuple[int, ...]]
    values: Mapping[str, int]

    def check(self, arrays: Arrays, *, verify: bool = False) -> None:
        """Refuse a call in which a subscript is outside its array.

        verify: whether to also compare elements that are promised to differ; TILEJIT_VERIFY does the same.

        Raises:
            KernelIndexError: it names the array of indices, the position in it and the index.
            KernelValueError: elements that are promised to differ are equal.
        """
        limits = self.sufficient(verify=verify)
        if limits is not None and all(x.hold(arrays) for x in limits):
            return
        verify = verify or settings().verify
        ranges = _Ranges(self, arrays)
        for (loops, access), domain in zip(self.accesses, self._domains, strict=True):
            if domain is None:
                continue
            for dimension, subscript in enumerate(access.subscripts):
                extent = self.shapes[access.array][dimension]
                if depends_on_elements(subscript) and not ranges.inside(subscript, extent, loops, domain):
                    _Computed(self, arrays, loops).check(access, dimension)
                if verify and isinstance(access, Store):
                    _Computed(self, arrays, loops).check_distinct(access, dimension)

    def sufficient(self, *, verify: bool = False) -> tuple[Limits, ...] | None:
        """Limits of elements that suffice for a call; None if it must be checked by `check`.

        Calls may still be right if elements are outside the limits.
        """
        return None if verify or settings().verify else self._limits

    @lazy
    def _limits(self) -> tuple[Limits, ...] | None:
        """Limits that suffice for all accesses; None if some need more."""
        found: dict[_Key, Limits] = {}
        for (loops, access), domain in zip(self.accesses, self._domains, strict=True):
            for subscript, extent in zip(access.subscripts, self.shapes[access.array], strict=True):
                if domain is None or not depends_on_elements(subscript):
                    continue
                if isinstance(subscript, Inside):
                    if not extent:
                        return None
                    continue
                index, low = _counted(subscript, extent)
                known_part = narrowed(index, (low, extent - 1), domain, self.values)
                if known_part is None:
                    return None
                element, (low, high) = known_part
                box, key = self._part(element, loops, domain), _key(element, loops)
                if box is None:
                    return None
                limits = Limits(element.array, box, low, high)
                known = found.get(key, limits)
                narrower = max(known.low, limits.low), min(known.high, limits.high)
                found[key] = Limits(element.array, box, *narrower)
        return tuple(found.values())

    def _part(self, element: ArrayElement, loops: Sequence[For], domain: Domain) -> tuple[slice, ...] | None:
        """The part of an array whose elements are certainly all that are used; None if it is long.

        All of it, where its subscripts depend on elements of other arrays, which are not much shorter.
        """
        if not depends_on_elements(*element.subscripts):
            return _Ranges(self, {}).box(element, loops, domain)
        shape = self.shapes[element.array]
        inner = {e.array for subscript in element.subscripts for e in elements_in(subscript)}
        known = sum(prod(self.shapes[name]) for name in inner)
        return tuple(slice(0, n) for n in shape) if prod(shape) <= MOST_UNUSED * known else None

    @lazy
    def _boxes(self) -> dict[_Key, tuple[slice, ...]]:
        """The parts of arrays of indices that are used, where they do not depend on elements themselves."""
        return {}

    @lazy
    def _domains(self) -> tuple[Domain | None, ...]:
        return tuple(domain_of(loops, self.values) for loops, _ in self.accesses)


def _key(element: ArrayElement, loops: Sequence[For]) -> _Key:
    return element, tuple(map(id, loops))


def _counted(subscript: Index, extent: int) -> tuple[Index, int]:
    """The index to check, and the least value that is inside: indices may count from the end."""
    match subscript:
        case FromEnd(of):
            return of, -extent
        case Inside(of):
            return of, 0
    return subscript, 0


@dataclass(frozen=True, slots=True)
class _Ranges:
    """The ranges of elements in one call."""

    checks: IndexChecks
    arrays: Arrays
    known: dict[_Key, Range] = field(default_factory=dict)

    def inside(self, subscript: Index, extent: int, loops: Sequence[For], domain: Domain) -> bool:
        """Whether a subscript is inside for certain."""
        if isinstance(subscript, Inside):
            return extent > 0
        index, low = _counted(subscript, extent)
        found = self.range(index, loops, domain)
        return found is not None and (found[0] > found[1] or (found[0] >= low and found[1] < extent))

    def range(self, index: Index, loops: Sequence[For], domain: Domain) -> Range | None:
        """The range of an expression; None if it is not known."""
        if isinstance(index, ArrayElement):
            return self.of_part(index, loops, domain)
        bounds: list[Affine] = []
        empty = False

        def bounded(part: Index) -> Index:
            nonlocal empty
            found = self.of_part(part, loops, domain)
            if found is None:
                return index_symbol(str(part))
            empty = empty or found[0] > found[1]
            symbol = index_symbol(f"{part}#{len(bounds)}")
            bounds.extend((symbol - Affine(found[0]), Affine(found[1]) - symbol))
            return symbol

        plain = replace_loaded(index, bounded)
        if empty:
            return NONE
        within = Domain((*domain.constraints, *bounds))
        low, high = extremes_in(within, plain, self.checks.values)
        return None if low is None or high is None else (low, high)

    def of_part(self, part: Index, loops: Sequence[For], domain: Domain) -> Range | None:
        """The range of an element, or of a subscript that counts from the end or is masked."""
        match part:
            case ArrayElement():
                key = _key(part, loops)
                if key not in self.known:
                    self.known[key] = self.of_element(part, loops, domain)
                return self.known[key]
            case FromEnd(of, size) | Inside(of, size):
                found, most = self.range(of, loops, domain), evaluate_index(size, self.checks.values) - 1
                if isinstance(part, FromEnd) and found is not None and found[0] >= 0:
                    return found
                return (0, max(most, 0))
        raise AssertionError(f"index_checks: no rule for {type(part).__name__}")

    def of_element(self, element: ArrayElement, loops: Sequence[For], domain: Domain) -> Range:
        """The range of the elements that are used, or of more elements around them."""
        return range_of(self.arrays[element.array][self.box(element, loops, domain)])

    def box(self, element: ArrayElement, loops: Sequence[For], domain: Domain) -> tuple[slice, ...]:
        """The part of an array whose elements are used."""
        key = _key(element, loops)
        box = self.checks._boxes.get(key)
        if box is None:
            shape = self.checks.shapes[element.array]
            pairs = zip(element.subscripts, shape, strict=True)
            box = tuple(self.used(subscript, extent, loops, domain) for subscript, extent in pairs)
            if not depends_on_elements(*element.subscripts):
                self.checks._boxes[key] = box
        return box

    def used(self, subscript: Index, extent: int, loops: Sequence[For], domain: Domain) -> slice:
        """The elements along a dimension that a subscript reaches."""
        found = self.range(subscript, loops, domain)
        low, high = (0, extent - 1) if found is None else found
        low, high = max(low, 0), min(high, extent - 1)
        return slice(low, max(high + 1, low), _stride(subscript, loops))


def _stride(subscript: Index, loops: Sequence[For]) -> int:
    """The distance between the values that a subscript takes from its least one on: a multiple of this."""
    if not isinstance(subscript, Affine):
        return 1
    own = [loop for loop in loops if subscript.coefficient(loop.index)]
    if any(len(loop.lower) > 1 or set(_bound_names(loop)) & {x.index for x in loops} for loop in own):
        return 1
    return gcd(*(subscript.coefficient(loop.index) * loop.step for loop in own)) or 1


def _bound_names(loop: For) -> Iterable[str]:
    return (name for bound in (*loop.lower, *loop.upper) for name in index_symbols(bound))


@dataclass(frozen=True, slots=True)
class _Computed:
    """Subscripts of all iterations, computed one by one."""

    checks: IndexChecks
    arrays: Arrays
    loops: Sequence[For]

    def check(self, access: Access, dimension: int) -> None:
        """Refuse a subscript that is outside in some iteration."""
        subscript, extent = access.subscripts[dimension], self.checks.shapes[access.array][dimension]
        rows = self.iterations(index_symbols(subscript))
        plain, low = _counted(subscript, extent)
        line = f" in the loop of line {self.loops[-1].line}" if self.loops and self.loops[-1].line else ""
        what = f"{access.array}[{', '.join(map(str, access.subscripts))}]{line}"
        fix = 'correct the index; tilejit.kernel(index_bounds="mask") leaves such elements out'
        if rows is None:
            raise KernelIndexError(
                f"{what} may leave the array: subscript {dimension} depends on elements of "
                f"{' and '.join(sorted({e.array for e in elements_in(plain)}))} that may be outside, "
                f"the extent is {extent}\n  {fix}"
            )
        found = np.broadcast_to(evaluate_index(plain, rows), rows["#"].shape)
        wrong = np.flatnonzero((found < low) | (found >= extent))
        if wrong.size:
            row = wrong[0]
            at = {n: int(x[row]) if isinstance(x, np.ndarray) else x for n, x in rows.items()}
            *_, element = elements_in(plain)
            place = tuple(int(evaluate_index(s, at)) for s in element.subscripts)
            value = self.arrays[element.array][place]
            is_value = plain == element
            reached = "" if is_value else f", which makes subscript {dimension} {found[row]}"
            expected = f"expected {low} to {extent - 1}" if extent else "the array has no elements there"
            problem = f"{element.array}[{', '.join(map(str, place))}] is {value}{reached}; {expected}"
            raise KernelIndexError(f"{what} leaves the array: {problem}\n  {fix}")

    def check_distinct(self, access: Access, dimension: int) -> None:
        """Refuse elements that are promised to differ, but name the same place."""
        subscript, extent = access.subscripts[dimension], self.checks.shapes[access.array][dimension]
        element = distinct_element(subscript)
        if element is None or not element.subscripts:
            return
        rows = self.iterations(index_symbols(element))
        if rows is None:
            raise KernelValueError(f"{element.array} is too long for its indices to be compared")
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
            **self.checks.values,
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
            counts = np.maximum(-((first - last) // loop.step), 0)
            total = int(counts.sum())
            if total > MOST_COMPUTED:
                return None
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
                names = names | set(_bound_names(loop))
        return found[::-1]
