"""The super-vectorizer: it matches loop patterns, checks legality and cost, and rewrites those that pay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice, product

from codegen.analysis.costs import cost, unit
from codegen.analysis.legality import Choice, Request, gathered, refusal, stride
from codegen.analysis.reductions import reduced_in
from codegen.analysis.report import ONE_LANE, OTHER, TOO_FEW, UNPROFITABLE, VECTORIZED, LoopReport, Refusal
from codegen.ir.nodes import Function
from codegen.ir.visit import Access, Loop, accesses_of, around, loops_of
from codegen.passes.vector_values import widen
from codegen.support.errors import KernelError

TAILS = ("scalar", "mask", "shift", "assume_divisible")
MOST_CHOICES = 64
"""Maximum number of loop choices tried per root."""


@dataclass(frozen=True, slots=True)
class Vectorized:
    """The result of super-vectorizing a function.

    function   the new function; roots that could not be vectorized are unchanged
    loops      the report of each loop, in source order
    checks     pairs of arrays that were assumed not to overlap: if a pair overlaps, the caller must run the
               scalar function
    """

    function: Function
    loops: tuple[LoopReport, ...]
    checks: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class _Plan:
    """The cheapest plan found for a loop and the loops inside it: a choice of loops for each root."""

    cost: float
    roots: tuple[tuple[Loop, Choice], ...]


def super_vectorize(
    function: Function,
    sizes: tuple[int, ...],
    fastest_varying: tuple[int, ...] | None = None,
    reductions: bool = False,
    tail: str = "mask",
) -> Vectorized:
    """Run loops as lanes of super-vectors, where each lane does what its iteration did.

    before:  for i in 0..n: for j in 0..m step 1:    C[i, j] = A[i, j] + B[i]          sizes (256,)
    after:   for i in 0..n: for j in 0..m step 256:  C[i, j] = A[i, j] + B[i]          vector<256xf32>

    sizes             lanes of each vector dimension, outermost first, one to three
    fastest_varying   for each vector dimension, the memory dimension (innermost is 0) that varies along it in
                      stores, or in loads if nothing is stored; None lets the cost model decide
    reductions        whether reduction loops may run as lanes, which changes the order of combining
    tail              the requested handling of the last iterations; LoopReport.tail is the one that is legal

    Raises:
        KernelError: a size is not positive, there are not one to three sizes, fastest_varying has a different
            length, or tail is unknown.
    """
    request = _checked(sizes, fastest_varying, reductions, tail)
    roots = loops_of(function.body)
    accesses = accesses_of(function.body, roots)
    search = _Search(function, accesses, request, {})
    plans = [search.best(root) for root in roots] if request.sizes else []
    made = [choice for plan in plans for choice in plan.roots]
    lanes = search.lanes(made)
    body = widen(function.body, roots, lanes) if lanes else function.body
    reports = tuple(_report(loop, made, search) for root in roots for loop in root.all())
    return Vectorized(replace(function, body=body), reports, _checks(accesses, made))


def _checked(
    sizes: tuple[int, ...], fastest_varying: tuple[int, ...] | None, reductions: bool, tail: str
) -> Request:
    if not 1 <= len(sizes) <= 3:
        raise KernelError(f"expected one to three sizes of a super-vector, got {len(sizes)}: {sizes}")
    if any(size < 1 for size in sizes):
        raise KernelError(f"expected positive sizes of a super-vector, got {sizes}")
    if fastest_varying is not None and len(fastest_varying) != len(sizes):
        raise KernelError(
            f"fastest_varying {fastest_varying} has another length than the sizes {sizes}; give a memory "
            "dimension, the innermost 0, for each size"
        )
    if fastest_varying is not None and any(dim < 0 for dim in fastest_varying):
        raise KernelError(f"fastest_varying counts memory dimensions from 0, got {fastest_varying}")
    if tail not in TAILS:
        raise KernelError(f"tail is one of {', '.join(TAILS)}, not {tail!r}")
    kept = [k for k, size in enumerate(sizes) if size > 1]
    fastest = None if fastest_varying is None else tuple(fastest_varying[k] for k in kept)
    return Request(tuple(sizes[k] for k in kept), fastest, reductions, tail)


@dataclass(frozen=True, slots=True)
class _Search:
    """The search over choices of loops; refusals are kept for the report, by the loop that causes them."""

    function: Function
    accesses: tuple[Access, ...]
    asked: Request
    refused: dict[int, Refusal]

    def best(self, loop: Loop) -> _Plan:
        """The cheaper plan: this loop as the root of a super-vector, or the loops inside it separately."""
        inner = [self.best(each) for each in loop.inside]
        roots = tuple(root for plan in inner for root in plan.roots)
        best = _Plan(cost(self.function, self.accesses, loop, self.lanes(roots)), roots)
        for choice in islice(choices(loop, len(self.asked.sizes)), MOST_CHOICES):
            price = cost(self.function, self.accesses, loop, self.asked.lanes(choice))
            if price >= best.cost and best.roots:
                continue
            why = refusal(self.function, loop, choice, self.accesses, self.asked)
            if why is None and price >= best.cost:
                text = f"lanes cost {price:.0f}, the scalar loop {best.cost:.0f}"
                text += self.dearest(loop, self.asked.lanes(choice))
                why = Refusal(loop.number, UNPROFITABLE, text)
            if why is not None:
                self.refused.setdefault(why.loop, why)
            else:
                best = _Plan(price, ((loop, choice),))
        return best

    def dearest(self, loop: Loop, lanes: Mapping[int, int]) -> str:
        """The most expensive access in lanes, as text; "" if there are no accesses."""
        own = [a for a in self.accesses if loop in a.loops]
        found = max(own, key=lambda access: unit(self.function, access, lanes), default=None)
        return "" if found is None else f"; {describe(self.function, found, loop)}"

    def lanes(self, roots: Sequence[tuple[Loop, Choice]]) -> dict[int, int]:
        """The number of iterations that run together, by loop number."""
        return {number: size for _, choice in roots for number, size in self.asked.lanes(choice).items()}


def choices(loop: Loop, dims: int, dim: int = 0) -> Iterator[dict[int, int]]:
    """All assignments of vector dimensions dim, dim + 1, … to a loop and loops inside it, innermost last.

    i(j(k)) in 2 dimensions from i: {i: 0, j: 1} and {i: 0, k: 1}. Sibling loops get the same dimension:
    i(j, k) -> {i: 0, j: 1, k: 1}. Assignments to more siblings come first.
    """
    if dims == 1:
        yield {loop.number: dim}
        return
    options: list[list[dict[int, int]]] = [[*_below(each, dims - 1, dim + 1)] for each in loop.inside]
    with_any = [k for k, found in enumerate(options) if found]
    for count in range(len(with_any), 0, -1):
        for used in combinations(with_any, count):
            for found in product(*(options[k] for k in used)):
                yield {loop.number: dim} | {n: d for each in found for n, d in each.items()}


def _below(loop: Loop, dims: int, dim: int) -> Iterator[dict[int, int]]:
    """Choices whose root is this loop or a loop inside it."""
    yield from choices(loop, dims, dim)
    inside = [[*_below(each, dims, dim)] for each in loop.inside]
    with_any = [found for found in inside if found]
    for found in product(*with_any) if with_any else ():
        yield {n: d for each in found for n, d in each.items()}


def describe(function: Function, access: Access, loop: Loop) -> str:
    """The access pattern of a loop's lanes in an array, as text."""
    if gathered(access, loop):
        return f"{access} gathered"
    subscript, step = stride(access, loop)
    if subscript is None:
        return f"{access} repeated"
    fast = 0 if function.array(access.array).order == "F" else len(access.subscripts) - 1
    if (subscript, step) == (fast, 1):
        return f"{access} contiguous"
    if (subscript, step) == (fast, -1):
        return f"{access} reversed"
    by = "" if step == 1 else f" by {step}"
    return f"{access} strided{by}" if subscript == fast else f"{access} along dimension {subscript}{by}"


def _report(loop: Loop, made: Sequence[tuple[Loop, Choice]], search: _Search) -> LoopReport:
    node, request = loop.node, search.asked
    for _, choice in made:
        if loop.number in choice:
            shape = request.sizes[: choice[loop.number] + 1]
            own = [a for a in search.accesses if any(around.number == loop.number for around in a.loops)]
            patterns = [describe(search.function, a, loop) for a in own]
            text = ", ".join(dict.fromkeys([*patterns, *reduced_in(node)]))
            tail = _tail(loop, search.accesses, request.tail)
            return LoopReport(node.index, node.line, True, shape, VECTORIZED, text, tail)
    code, text = _reason(loop, made, search)
    return LoopReport(node.index, node.line, False, (), code, text)


def _reason(loop: Loop, made: Sequence[tuple[Loop, Choice]], search: _Search) -> tuple[str, str]:
    sizes = search.asked.sizes
    if not sizes:
        return ONE_LANE, "every size is 1"
    if loop.number in search.refused:
        refused = search.refused[loop.number]
        return refused.code, refused.text
    for root, choice in made:
        numbers = {each.number for each in root.all()}
        taken = [each.node.index for each in root.all() if each.number in choice]
        if loop.number in numbers or any(each.number == root.number for each in loop.all()):
            return OTHER, f"{' and '.join(dict.fromkeys(taken))} run as lanes"
    blamed = [n for n in search.refused if n in _relatives(loop, search.function)]
    if blamed:
        refused = search.refused[blamed[0]]
        return refused.code, refused.text
    return TOO_FEW, f"the nest has no {len(sizes)} loops, one inside the other"


def _relatives(loop: Loop, function: Function) -> set[int]:
    """The numbers of the loops inside this one and around it."""
    inside = {each.number for each in loop.all()}
    for root in loops_of(function.body):
        inside |= set(around(root, loop.number))
    return inside


def _tail(loop: Loop, accesses: Sequence[Access], tail: str) -> str:
    """The legal tail: a shifted one repeats iterations, so no stored array may be loaded, nothing carried."""
    own = [a for a in accesses if any(around.number == loop.number for around in a.loops)]
    stored = {a.array for a in own if a.stores}
    loaded = {a.array for a in own if not a.stores}
    if tail == "shift" and (stored & loaded or loop.node.carried):
        return "mask"
    return tail


def _checks(accesses: Sequence[Access], made: Sequence[tuple[Loop, Choice]]) -> tuple[tuple[str, str], ...]:
    """Pairs of arrays in one vectorized nest of which at least one is stored."""
    pairs: set[tuple[str, str]] = set()
    for root, _ in made:
        own = [a for a in accesses if any(loop.number == root.number for loop in a.loops)]
        stored = {a.array for a in own if a.stores}
        used = {a.array for a in own}
        pairs |= {(min(a, b), max(a, b)) for a in stored for b in used if a != b}
    return tuple(sorted(pairs))
