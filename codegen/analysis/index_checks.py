"""Check before each call that subscripts which depend on elements are inside the arrays.

One or two passes over an array find the smallest and the largest element that a kernel uses. These bound
subscripts, as loop bounds do. If they are too wide, all subscripts are computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from math import gcd, prod
from typing import TypeAlias

from codegen.analysis.bodies import flat
from codegen.analysis.bounds import (
    Access,
    Domain,
    Nested,
    bounded_by_elements,
    domain_of,
    every_call,
)
from codegen.analysis.computed_subscripts import Computed, arrays_in, bound_names, counted
from codegen.analysis.element_ranges import NONE, Arrays, Limits, narrowed, range_of
from codegen.analysis.ranges import Range
from codegen.ir.elements import MOST
from codegen.ir.index import (
    Affine,
    ArrayElement,
    Bitwise,
    FloorDiv,
    FromEnd,
    Index,
    Inside,
    Mod,
    Sum,
    depends_on_elements,
    elements_in,
    evaluate_index,
    replace_loaded,
)
from codegen.ir.nodes import For, Function, Store
from codegen.ir.values import IndexValue, Load
from codegen.ir.visit import element_loads, loops_of, parts, values_of
from codegen.support.caching import lazy
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError, KernelIndexError
from codegen.support.settings import settings

_Key: TypeAlias = tuple[ArrayElement, tuple[int, ...]]
"""An element, and the identities of the loops around it."""

MOST_BOUND = 1 << 61
"""With larger bounds, the number of iterations might exceed 64 bits."""

MOST_UNUSED = 4
"""An array that other arrays index is checked as a whole if it has at most this many times their elements."""


def index_arrays(function: Function) -> frozenset[str]:
    """The arrays whose elements are parts of subscripts.

    Raises:
        KernelError: the function also stores to one of them, which would change later subscripts unchecked.
    """
    stores = [node for node in flat(function.body) if isinstance(node, Store)]
    used = [subscript for store in stores for subscript in store.subscripts]
    for loop in (root for each in loops_of(function.body) for root in each.all()):
        used += [*loop.node.lower, *loop.node.upper]
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
                f"{store.array} is stored to, and its elements are subscripts or loop bounds\n"
                "  read them from another array, such as a copy made before the call"
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
        """Raise for a call in which a subscript is outside its array.

        verify: whether to also compare elements that are promised to differ; TILEJIT_VERIFY does the same.

        Raises:
            KernelIndexError: a subscript is outside; the message names the array of indices, the position
                and the index.
            KernelValueError: elements that are promised to differ are equal.
        """
        limits = self.sufficient(verify=verify)
        if limits is not None and all(x.hold(arrays) for x in limits):
            return
        verify = verify or settings().verify
        ranges = _Ranges(self, arrays)
        for (loops, access), domain in zip(self.accesses, self._domains, strict=True):
            bounded = bounded_by_elements(loops)
            if bounded:
                domain = ranges.domain(loops)
            if domain is None:
                continue
            for dimension, subscript in enumerate(access.subscripts):
                extent = self.shapes[access.array][dimension]
                for element in _divided(subscript):
                    ranges.check_signed(element, loops, domain)
                checked = bounded or depends_on_elements(subscript)
                if checked and not ranges.inside(subscript, extent, loops, domain):
                    Computed(self.shapes, self.values, arrays, loops).check(access, dimension)
                if verify and isinstance(access, Store):
                    Computed(self.shapes, self.values, arrays, loops).check_distinct(access, dimension)

    def sufficient(self, *, verify: bool = False) -> tuple[Limits, ...] | None:
        """Limits of elements that suffice for a call; None if it must be checked by `check`.

        Calls may still be correct if elements are outside the limits.
        """
        return None if verify or settings().verify else self._limits

    @lazy
    def _limits(self) -> tuple[Limits, ...] | None:
        """Limits that suffice for all accesses; None if some need more."""
        found: dict[_Key, Limits] = {}
        ranges = _Ranges(self, {}, self._assumed)
        with suppress(KernelIndexError):  # of bounds that are too large even within the limits
            for loops, access in self.accesses:
                if not self._limit(access, loops, ranges, found):
                    return None
            return tuple(found.values())
        return None

    def _limit(
        self, access: Access, loops: tuple[For, ...], ranges: _Ranges, found: dict[_Key, Limits]
    ) -> bool:
        """Add the limits of elements that keep an access inside; return whether they exist."""
        for k, loop in enumerate(loops):
            around = ranges.domain(loops[:k])
            if around is None:
                return True
            # Loops without iterations need their limits too: other elements would give them some.
            for element in _bounding(loop):
                if not self._add(element, self._assumed[element.array], loops[:k], around, found):
                    return False
        domain = ranges.domain(loops)
        if domain is None:
            return True
        bounded = bounded_by_elements(loops)
        for subscript, extent in zip(access.subscripts, self.shapes[access.array], strict=True):
            if any(True for _ in _divided(subscript)):
                return False
            if isinstance(subscript, Inside) or not depends_on_elements(subscript):
                checked = bounded or isinstance(subscript, Inside)
                if checked and not ranges.inside(subscript, extent, loops, domain):
                    return False
                continue
            index, low = counted(subscript, extent)
            known = narrowed(index, (low, extent - 1), domain)
            if known is None or not self._add(*known, loops, domain, found):
                return False
        return True

    def _add(
        self,
        element: ArrayElement,
        wanted: Range,
        loops: tuple[For, ...],
        domain: Domain,
        found: dict[_Key, Limits],
    ) -> bool:
        """Add limits of an element; return whether the used part of the array is known."""
        box = self._part(element, loops, domain)
        if box is None:
            return False
        known = found.get(_key(element, loops), Limits(element.array, box, *wanted))
        narrower = max(known.low, wanted[0]), min(known.high, wanted[1])
        found[_key(element, loops)] = Limits(element.array, box, *narrower)
        return True

    @lazy
    def _assumed(self) -> dict[str, Range]:
        """Ranges of elements that bound loops whose accesses are probably inside: ptr from 0 to len(x).

        for k in ptr[i]..ptr[i + 1]: y[i] += x[k]
        """
        most: dict[str, int] = {}
        for loops, access in self.accesses:
            for loop in loops:
                reached = (
                    extent // subscript.coefficient(loop.index)
                    for subscript, extent in zip(access.subscripts, self.shapes[access.array], strict=True)
                    if isinstance(subscript, Affine) and subscript.coefficient(loop.index) > 0
                )
                least = min(reached, default=MOST_BOUND - 1)
                for element in _bounding(loop):
                    most[element.array] = min(least, most.get(element.array, least))
        return {name: (0, high) for name, high in most.items()}

    def _part(self, element: ArrayElement, loops: Sequence[For], domain: Domain) -> tuple[slice, ...] | None:
        """The part of an array that certainly contains all used elements; None if it is long.

        The complete array if its subscripts depend on elements of other arrays that are not much shorter.
        """
        if not depends_on_elements(*element.subscripts):
            return _Ranges(self, {}).box(element, loops, domain)
        shape = self.shapes[element.array]
        inner = {e.array for subscript in element.subscripts for e in elements_in(subscript)}
        known = sum(prod(self.shapes[name]) for name in inner)
        return tuple(slice(0, n) for n in shape) if prod(shape) <= MOST_UNUSED * known else None

    @lazy
    def _boxes(self) -> dict[_Key, tuple[slice, ...]]:
        """The used parts of arrays of indices, if they do not depend on elements themselves."""
        return {}

    @lazy
    def _domains(self) -> tuple[Domain | None, ...]:
        """The iterations of each access; None if there are none, or if they depend on elements."""
        return tuple(
            None if bounded_by_elements(loops) else domain_of(loops, self.values)
            for loops, _ in self.accesses
        )


def _bounding(loop: For) -> Iterable[ArrayElement]:
    """The elements among the bounds of a loop, without those in the subscripts of others."""
    for bound in (*loop.lower, *loop.upper):
        match bound:
            case ArrayElement():
                yield bound
            case Sum(parts, _):
                yield from (part for part, _ in parts if isinstance(part, ArrayElement))


def _divided(index: Index) -> Iterable[ArrayElement]:
    """The unsigned elements of 64 bits that a part of an expression divides, or whose bits it combines."""
    match index:
        case FloorDiv() | Mod() | Bitwise():
            yield from (element for element in elements_in(index) if element.dtype == "u64")
        case ArrayElement(_, subscripts):
            for each in subscripts:
                yield from _divided(each)
        case FromEnd(of) | Inside(of):
            yield from _divided(of)
        case Sum(parts, _):
            for part, _ in parts:
                yield from _divided(part)


def _key(element: ArrayElement, loops: Sequence[For]) -> _Key:
    return element, tuple(map(id, loops))


@dataclass(frozen=True, slots=True)
class _Ranges:
    """The ranges of elements in one call, or their assumed ranges."""

    checks: IndexChecks
    arrays: Arrays
    assumed: Mapping[str, Range] = field(default_factory=dict)
    known: dict[_Key, Range] = field(default_factory=dict)
    domains: dict[tuple[int, ...], Domain | None] = field(default_factory=dict)

    def domain(self, loops: tuple[For, ...]) -> Domain | None:
        """The iterations of loops whose bounds may depend on elements, or a superset."""
        key = tuple(map(id, loops))
        if key not in self.domains:
            self.domains[key] = self._domain(loops)
        return self.domains[key]

    def _domain(self, loops: tuple[For, ...]) -> Domain | None:
        if not loops:
            return every_call(self.checks.values)
        *outer, loop = loops
        around = self.domain(tuple(outer))
        if around is None:
            return None
        domain = around.copy()

        def ends(bounds: Sequence[Index]) -> tuple[Index, ...]:
            return tuple(self._bound(bound, loops, domain) for bound in bounds)

        return domain.inside(replace(loop, lower=ends(loop.lower), upper=ends(loop.upper)))

    def _bound(self, bound: Index, loops: tuple[For, ...], domain: Domain) -> Index:
        """A bound of the last loop; one that depends on elements becomes a number with a known range."""
        if not depends_on_elements(bound):
            return bound
        *outer, loop = loops
        found = self.range(bound, outer, domain)
        if found is None or (found[0] <= found[1] and max(map(abs, found)) >= MOST_BOUND):
            reached = "anything" if found is None else f"{found[0]} to {found[1]}"
            raise KernelIndexError(
                f"a bound of loop {loop.index} in line {loop.line} is {bound}, which may be {reached}; "
                f"expected numbers of 61 bits\n  correct the elements of {arrays_in([bound])}"
            )
        return domain.number(str(bound), found)

    def inside(self, subscript: Index, extent: int, loops: Sequence[For], domain: Domain) -> bool:
        """Whether a subscript is certainly inside."""
        if isinstance(subscript, Inside):
            return extent > 0
        index, low = counted(subscript, extent)
        found = self.range(index, loops, domain)
        return found is not None and (found[0] > found[1] or (found[0] >= low and found[1] < extent))

    def range(self, index: Index, loops: Sequence[For], domain: Domain) -> Range | None:
        """The range of an expression; None if it is unknown."""
        if isinstance(index, ArrayElement):
            return self.of_part(index, loops, domain)
        within = domain.copy()
        empty = False

        def bounded(part: Index) -> Index:
            nonlocal empty
            found = self.of_part(part, loops, domain)
            empty = empty or (found is not None and found[0] > found[1])
            return within.number(str(part), found or (None, None))

        plain = replace_loaded(index, bounded)
        if empty:
            return NONE
        low, high = within.extremes(plain)
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
        """The range of the used elements, or of a superset."""
        if element.array in self.assumed:
            return self.assumed[element.array]
        return range_of(self.arrays[element.array][self.box(element, loops, domain)])

    def check_signed(self, element: ArrayElement, loops: Sequence[For], domain: Domain) -> None:
        """Raise if an element that is divided, or whose bits are combined, exceeds signed 64-bit numbers."""
        _, high = self.of_element(element, loops, domain)
        if high > MOST:
            raise KernelIndexError(
                f"{element} may be {high}, but numbers in //, %, &, | and ^ of subscripts have 63 bits\n"
                f"  pass {element.array}.view(np.int64), whose remainders by powers of two are the same"
            )

    def box(self, element: ArrayElement, loops: Sequence[For], domain: Domain) -> tuple[slice, ...]:
        """The part of an array whose elements are used."""
        key = _key(element, loops)
        box = self.checks._boxes.get(key)
        if box is None:
            shape = self.checks.shapes[element.array]
            pairs = zip(element.subscripts, shape, strict=True)
            box = tuple(self.used(subscript, extent, loops, domain) for subscript, extent in pairs)
            if not depends_on_elements(*element.subscripts) and not bounded_by_elements(loops):
                self.checks._boxes[key] = box
        return box

    def used(self, subscript: Index, extent: int, loops: Sequence[For], domain: Domain) -> slice:
        """The elements along a dimension that a subscript reaches."""
        found = self.range(subscript, loops, domain)
        low, high = (0, extent - 1) if found is None else found
        low, high = max(low, 0), min(high, extent - 1)
        return slice(low, max(high + 1, low), _stride(subscript, loops))


def _stride(subscript: Index, loops: Sequence[For]) -> int:
    """The spacing of a subscript's values, which start at the smallest one: a multiple of this."""
    if not isinstance(subscript, Affine) or bounded_by_elements(loops):
        return 1
    own = [loop for loop in loops if subscript.coefficient(loop.index)]
    if any(len(loop.lower) > 1 or set(bound_names(loop)) & {x.index for x in loops} for loop in own):
        return 1
    return gcd(*(subscript.coefficient(loop.index) * loop.step for loop in own)) or 1
