"""Choose which loops run as lanes of super-vectors: legal choices, if lanes cost less than iterations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations, islice, product
from math import isqrt

from codegen.analysis.legality import Choice, Request, refusal, within_promises
from codegen.analysis.outcomes import describe
from codegen.analysis.report import NOT_1D, UNPROFITABLE, Refusal
from codegen.ir.nodes import For, Function
from codegen.ir.visit import Access, Loop, accesses_of, loops_of, most_trips
from codegen.schedule.lane_costs import cost, strided, unit
from codegen.schedule.vector_size import (
    MOST_DIMS,
    MOST_ELEMENTS,
    WIDEST_BITS,
    read_vector_sizes,
    sizes_in_elements,
)
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError

TAILS = ("shift", "clamp", "mask", "scalar", "assume_divisible")
LEAST_SQUARE = 4
"""The fewest lanes of a register for which transposing square blocks pays off."""

MOST_CHOICES = 64
"""Maximum number of loop choices tried per root."""


@dataclass(frozen=True, slots=True)
class LaneSchedule:
    """Which loops of a function run as lanes of super-vectors.

    for i: for j: C[i, j] = A[i, j], 32x256   dims ((0, 0), (1, 1))
    for i: C[i] = C[i - 1], 256               dims (), refusals: loop 0 carries a dependence

    request    the requested options; sizes of one lane are dropped
    dims       (number of a loop in source order, its vector dimension); dimension 0 begins a nest of them
    refusals   why other loops don't, one for each loop responsible, in the order in which they were found
    """

    request: Request
    dims: tuple[tuple[int, int], ...]
    refusals: tuple[Refusal, ...] = ()

    @property
    def choice(self) -> Choice:
        """The vector dimension of each loop that runs as lanes, by its number."""
        return dict(self.dims)

    @property
    def lanes(self) -> dict[int, int]:
        """The number of iterations of each such loop that run together."""
        return self.request.lanes(self.choice)


def choose_lanes(
    function: Function,
    sizes: tuple[int, ...],
    fastest_varying: tuple[int, ...] | None = None,
    reductions: bool = False,
    tail: str = "mask",
    scans: bool = False,
) -> LaneSchedule:
    """The cheapest legal choice of loops in each nest; no loop where the scalar nest costs less.

    sizes             lanes of each vector dimension, outermost first, one to MOST_DIMS
    fastest_varying   for each vector dimension, the memory dimension (innermost is 0) that varies along it in
                      stores, or in loads if nothing is stored; None lets the cost model decide
    reductions        whether reduction loops may run as lanes, which changes the order of combining
    tail              the requested handling of the last iterations
    scans             whether loops with scans may run as lanes, which combines terms in another grouping

    Loops for which `min_distance` promises independent iterations have no more lanes than that, where a
    dependence would forbid more.

    Raises:
        KernelError: the sizes are refused by `read_vector_sizes`, fastest_varying has a different length, or
            tail is unknown.
    """
    return _cheapest(function, _checked(sizes, fastest_varying, reductions, tail, scans))[0]


def given_lanes(function: Function, lanes: Mapping[str, int], reductions: bool, scans: bool) -> LaneSchedule:
    """The named loops as lanes, whatever they cost; refusals say which of them may not be lanes.

    lanes  iterations that run together, by the index of the loop
    """
    roots = loops_of(function.body)
    accesses = accesses_of(function.body, roots)
    nests = [(root, dims) for each in roots for root, dims in _named(each, lanes)]
    every = {n: (dim, lanes[node.index]) for _, dims in nests for n, (dim, node) in dims.items()}

    def requested(numbers: Iterable[int]) -> Request:
        """The request for some loops: the largest size of each dimension, and what others have at most."""
        own = {n: every[n] for n in numbers}
        count = 1 + max((dim for dim, _ in own.values()), default=-1)
        sizes = tuple(max(size for dim, size in own.values() if dim == d) for d in range(count))
        most = tuple((n, size) for n, (dim, size) in own.items() if size < sizes[dim])
        return Request(sizes, None, reductions, "mask", scans, most)

    found = [
        refusal(function, root, {n: every[n][0] for n in dims}, accesses, requested(dims))
        for root, dims in nests
    ]
    dims = tuple((n, dim) for n, (dim, _) in every.items())
    return LaneSchedule(requested(every), dims, tuple(x for x in found if x is not None))


def _named(loop: Loop, lanes: Mapping[str, int]) -> Iterator[tuple[Loop, dict[int, tuple[int, For]]]]:
    """The outermost loops that have lanes, each with the dimension and the node of those in it."""
    if lanes.get(loop.node.index, 1) == 1:
        for each in loop.inside:
            yield from _named(each, lanes)
        return
    dims = {loop.number: (0, loop.node)}
    for each in loop.inside:
        for _, inner in _named(each, lanes):
            dims |= {n: (dim + 1, node) for n, (dim, node) in inner.items()}
    yield loop, dims


def choose_shape(
    function: Function, row: tuple[int], side: int, reductions: bool, tail: str, scans: bool
) -> tuple[int, ...]:
    """The sizes that one size or "auto" stands for: a row, or a square where a row would take strides.

    c[i, j] = a[i, j], (64,), 16 -> (64,)    c[j, i] = a[i, j], (64,), 16 -> (16, 16)

    A square is transposed in registers, which doesn't pay off for few lanes, or for a literal extent of fewer
    iterations. With tail "assume_divisible", the caller promises multiples for one loop only, so the shape is
    a row.

    side  of the square; it has fewer elements than the largest super-vector
    """
    side = min(side, isqrt(MOST_ELEMENTS))
    if side < LEAST_SQUARE or tail == "assume_divisible":
        return row
    found, price = _cheapest(function, _checked(row, None, reductions, tail, scans))
    accesses = accesses_of(function.body, loops_of(function.body))
    if not any(strided(function, access, found.lanes) for access in accesses):
        return row
    square = (side, side)
    found, other = _cheapest(function, _checked(square, None, reductions, tail, scans))
    return square if other < price and _fills_blocks(function, found) else row


def _fills_blocks(function: Function, schedule: LaneSchedule) -> bool:
    """Whether loops whose bounds are numbers have as many iterations as lanes."""
    every = (loop for root in loops_of(function.body) for loop in root.all())
    trips = {loop.number: most_trips(loop.node) for loop in every}
    return all(most is None or most >= schedule.lanes.get(n, 1) for n, most in trips.items())


def only_reduces(
    function: Function, sizes: tuple[int, ...], reductions: bool, tail: str, scans: bool
) -> bool:
    """Whether no loops run in super-vectors of several dimensions, and those that reduce would in one."""
    if len(sizes) == 1:
        return False
    found = choose_lanes(function, sizes, None, reductions, tail, scans)
    return not found.dims and any(why.code == NOT_1D for why in found.refusals)


def _cheapest(function: Function, request: Request) -> tuple[LaneSchedule, float]:
    """The cheapest choice for such a request, and its cost."""
    if not request.sizes:
        return LaneSchedule(request, ()), 0.0
    roots = loops_of(function.body)
    accesses = accesses_of(function.body, roots)
    search = _Search(function, accesses, request, {})
    plans = [search.best(root) for root in roots]
    dims = tuple(pair for plan in plans for choice in plan.nests for pair in choice.items())
    limited = replace(request, most=tuple(pair for plan in plans for pair in plan.most))
    schedule = LaneSchedule(limited, dims, tuple(search.refused.values()))
    return schedule, sum(plan.cost for plan in plans)


def _checked(
    sizes: tuple[int, ...],
    fastest_varying: tuple[int, ...] | None,
    reductions: bool,
    tail: str,
    scans: bool,
) -> Request:
    sizes = sizes_in_elements(read_vector_sizes(sizes, MOST_DIMS, "write 256 or (32, 256)"), WIDEST_BITS)
    if fastest_varying is not None and len(fastest_varying) != len(sizes):
        raise KernelError(
            f"fastest_varying {fastest_varying} has another length than the sizes {sizes}; give a memory "
            "dimension, the innermost 0, for each size"
        )
    if fastest_varying is not None and any(dim < 0 for dim in fastest_varying):
        raise KernelError(f"fastest_varying counts memory dimensions from 0, got {fastest_varying}")
    if tail not in TAILS:
        raise KernelError(f"tail: expected one of {', '.join(TAILS)}, got {tail!r}")
    kept = [k for k, size in enumerate(sizes) if size > 1]
    fastest = None if fastest_varying is None else tuple(fastest_varying[k] for k in kept)
    return Request(tuple(sizes[k] for k in kept), fastest, reductions, tail, scans)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The cheapest plan found for a loop and the loops inside it: the choice for each nest of lanes.

    most  as in Request
    """

    cost: float
    nests: tuple[Choice, ...]
    most: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class _Search:
    """The search over choices of loops; refusals are kept for the report, by the loop that causes them."""

    function: Function
    accesses: tuple[Access, ...]
    request: Request
    refused: dict[int, Refusal]

    def best(self, loop: Loop) -> _Plan:
        """The cheaper plan: this loop as the root of a super-vector, or the loops inside it separately.

        All loops inside get the same dimensions, as in MLIR, unless that is not legal.
        """
        inner = [self.best(each) for each in loop.inside]
        nests = tuple(choice for plan in inner for choice in plan.nests)
        most = tuple(pair for plan in inner for pair in plan.most)
        limited = replace(self.request, most=most)
        lanes = {number: size for choice in nests for number, size in limited.lanes(choice).items()}
        best = _Plan(cost(self.function, self.accesses, loop, lanes), nests, most)
        dims, legal = len(self.request.sizes), 0
        choices = islice(_choices(loop, dims), MOST_CHOICES)
        graded = [(_nests_within(loop, choice, dims), choice) for choice in choices]
        for alike, choice in sorted(graded, key=lambda pair: -pair[0]):
            if alike < legal:
                break
            request = within_promises(loop, choice, self.accesses, self.request)
            lanes = request.lanes(choice)
            price = cost(self.function, self.accesses, loop, lanes)
            pricier = price >= best.cost and bool(best.nests)
            if pricier and dims == 1:
                continue
            why = refusal(self.function, loop, choice, self.accesses, request)
            if why is None:
                legal = alike
            if pricier:
                continue
            if why is None and price >= best.cost:
                text = f"lanes cost {price:.0f}, the scalar loop {best.cost:.0f}"
                text += self.dearest(loop, lanes)
                why = Refusal(loop.number, UNPROFITABLE, text)
            if why is not None:
                self.refused.setdefault(why.loop, why)
            else:
                best = _Plan(price, (choice,), request.most)
        return best

    def dearest(self, loop: Loop, lanes: Mapping[int, int]) -> str:
        """The most expensive access in lanes, as text; "" if there are no accesses."""
        own = [a for a in self.accesses if loop in a.loops]
        found = max(own, key=lambda access: unit(self.function, access, lanes), default=None)
        return "" if found is None else f"; {describe(self.function, found, loop)}"


def _choices(loop: Loop, dims: int, dim: int = 0) -> Iterator[dict[int, int]]:
    """All assignments of vector dimensions dim, dim + 1, … to a loop and loops inside it, innermost last.

    i(j(k)) in 2 dimensions from i: {i: 0, j: 1} and {i: 0, k: 1}. Sibling loops get the same dimension:
    i(j, k) -> {i: 0, j: 1, k: 1}. Assignments to more siblings come first. At most MOST_CHOICES of a sibling
    are combined with those of others.
    """
    if dims == 1:
        yield {loop.number: dim}
        return
    options: list[list[dict[int, int]]] = [
        [*islice(_below(each, dims - 1, dim + 1), MOST_CHOICES)] for each in loop.inside
    ]
    with_any = [k for k, found in enumerate(options) if found]
    for count in range(len(with_any), 0, -1):
        for used in combinations(with_any, count):
            for found in product(*(options[k] for k in used)):
                yield {loop.number: dim} | {n: d for each in found for n, d in each.items()}


def _nests_within(loop: Loop, choice: Choice, dims: int) -> int:
    """The number of innermost loops that run in super-vectors of that many dimensions."""
    dims -= loop.number in choice
    if not loop.inside:
        return int(dims == 0)
    return sum(_nests_within(each, choice, dims) for each in loop.inside)


def _below(loop: Loop, dims: int, dim: int) -> Iterator[dict[int, int]]:
    """Choices whose root is this loop or a loop inside it."""
    yield from _choices(loop, dims, dim)
    inside = [[*islice(_below(each, dims, dim), MOST_CHOICES)] for each in loop.inside]
    with_any = [found for found in inside if found]
    for found in product(*with_any) if with_any else ():
        yield {n: d for each in found for n, d in each.items()}
