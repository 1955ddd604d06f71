"""The super-vectorizer: patterns of loops are matched, judged, and rewritten; the rest stays as it was."""

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
"""Choices of loops that are tried below one root."""


@dataclass(frozen=True, slots=True)
class Vectorized:
    """What the super-vectorizer made of a function.

    function   the new form; roots that could not be vectorized stand in it as they did
    loops      what became of each loop, in the order of the text
    checks     pairs of arrays that were taken to be different memory: where two of them overlap the scalar
               function is to be called
    """

    function: Function
    loops: tuple[LoopReport, ...]
    checks: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class _Plan:
    """The cheapest way found for a loop and what is inside: choices of loops, one for each root."""

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
    fastest_varying   for each vector dimension the memory dimension, the innermost 0, that stores walk
                      with it (loads where nothing is stored); None lets the costs decide
    reductions        whether loops that reduce may run as lanes, which changes the order of what is combined
    tail              what is wanted for the last iterations; LoopReport.tail says what they may have

    Raises:
        KernelError: a size is not positive, there are more than three, fastest_varying has another length, or
            tail is no known one.
    """
    asked = _checked(sizes, fastest_varying, reductions, tail)
    roots = loops_of(function.body)
    accesses = accesses_of(function.body, roots)
    search = _Search(function, accesses, asked, {})
    plans = [search.best(root) for root in roots] if asked.sizes else []
    made = [choice for plan in plans for choice in plan.roots]
    lanes = search.lanes(made)
    body = widen(function.body, roots, lanes) if lanes else function.body
    reports = tuple(_report(loop, made, search) for root in roots for loop in root.all())
    return Vectorized(replace(function, body=body), reports, _checks(accesses, made))


def _checked(
    sizes: tuple[int, ...], fastest_varying: tuple[int, ...] | None, reductions: bool, tail: str
) -> Request:
    if not 1 <= len(sizes) <= 3:
        raise KernelError(f"a super-vector has one to three sizes, not {len(sizes)}: {sizes}")
    if any(size < 1 for size in sizes):
        raise KernelError(f"the sizes of a super-vector are positive, these are {sizes}")
    if fastest_varying is not None and len(fastest_varying) != len(sizes):
        raise KernelError(
            f"fastest_varying {fastest_varying} has another length than the sizes {sizes}; give a memory "
            "dimension, the innermost 0, for each size"
        )
    if fastest_varying is not None and any(dim < 0 for dim in fastest_varying):
        raise KernelError(f"fastest_varying counts memory dimensions from 0, this is {fastest_varying}")
    if tail not in TAILS:
        raise KernelError(f"tail is one of {', '.join(TAILS)}, not {tail!r}")
    kept = [k for k, size in enumerate(sizes) if size > 1]
    fastest = None if fastest_varying is None else tuple(fastest_varying[k] for k in kept)
    return Request(tuple(sizes[k] for k in kept), fastest, reductions, tail)


@dataclass(frozen=True, slots=True)
class _Search:
    """Choices of loops, judged; what was refused is kept for the report, by the loop that is to blame."""

    function: Function
    accesses: tuple[Access, ...]
    asked: Request
    refused: dict[int, Refusal]

    def best(self, loop: Loop) -> _Plan:
        """The cheapest of: this loop as the root of a super-vector, or what is inside by itself."""
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
        """The access that costs most in lanes; "" where nothing is accessed."""
        own = [a for a in self.accesses if loop in a.loops]
        found = max(own, key=lambda access: unit(self.function, access, lanes), default=None)
        return "" if found is None else f"; {describe(self.function, found, loop)}"

    def lanes(self, roots: Sequence[tuple[Loop, Choice]]) -> dict[int, int]:
        """How many iterations of each loop run together."""
        return {number: size for _, choice in roots for number, size in self.asked.lanes(choice).items()}


def choices(loop: Loop, dims: int, dim: int = 0) -> Iterator[dict[int, int]]:
    """Every way to give vector dimensions dim, dim + 1, … to a loop and loops below it, innermost last.

    i(j(k)) in 2 dimensions from i: {i: 0, j: 1} and {i: 0, k: 1}. Loops beside each other take the same
    dimension: i(j, k) -> {i: 0, j: 1, k: 1}; the first with as many as possible.
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
    """Choices that begin at a loop or anywhere inside."""
    yield from choices(loop, dims, dim)
    inside = [[*_below(each, dims, dim)] for each in loop.inside]
    with_any = [found for found in inside if found]
    for found in product(*with_any) if with_any else ():
        yield {n: d for each in found for n, d in each.items()}


def describe(function: Function, access: Access, loop: Loop) -> str:
    """How the lanes of one loop lie in an array."""
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
    node, asked = loop.node, search.asked
    for _, choice in made:
        if loop.number in choice:
            shape = asked.sizes[: choice[loop.number] + 1]
            own = [a for a in search.accesses if any(around.number == loop.number for around in a.loops)]
            walks = [describe(search.function, a, loop) for a in own]
            text = ", ".join(dict.fromkeys([*walks, *reduced_in(node)]))
            tail = _tail(loop, search.accesses, asked.tail)
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
    """Loops inside this one and around it."""
    inside = {each.number for each in loop.all()}
    for root in loops_of(function.body):
        inside |= set(around(root, loop.number))
    return inside


def _tail(loop: Loop, accesses: Sequence[Access], tail: str) -> str:
    """A shifted last vector does iterations twice: only where nothing that is stored is loaded or carried."""
    own = [a for a in accesses if any(around.number == loop.number for around in a.loops)]
    stored = {a.array for a in own if a.stores}
    loaded = {a.array for a in own if not a.stores}
    if tail == "shift" and (stored & loaded or loop.node.carried):
        return "mask"
    return tail


def _checks(accesses: Sequence[Access], made: Sequence[tuple[Loop, Choice]]) -> tuple[tuple[str, str], ...]:
    """Pairs of arrays in one vectorized nest of which one at least is stored."""
    pairs: set[tuple[str, str]] = set()
    for root, _ in made:
        own = [a for a in accesses if any(loop.number == root.number for loop in a.loops)]
        stored = {a.array for a in own if a.stores}
        used = {a.array for a in own}
        pairs |= {(min(a, b), max(a, b)) for a in stored for b in used if a != b}
    return tuple(sorted(pairs))
