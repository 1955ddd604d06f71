"""The report on each loop after lanes are chosen, and the pairs of arrays that must not overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codegen.analysis.dependence import first_dependence
from codegen.analysis.legality import Choice, Request, gathered, stride, walked_dimension
from codegen.analysis.reductions import reduced_in
from codegen.analysis.report import ONE_LANE, OTHER, TOO_FEW, VECTORIZED, LoopReport, Refusal
from codegen.analysis.scans import scanned_in
from codegen.ir.nodes import Function
from codegen.ir.visit import Access, Loop, accesses_of, around, loops_of
from codegen.support.dataclasses import dataclass


def report_loops(
    function: Function, request: Request, choice: Choice, refusals: Sequence[Refusal], once: str
) -> tuple[LoopReport, ...]:
    """The outcome for each loop of a function, in source order.

    choice     the vector dimension of each loop that runs as lanes
    refusals   why other loops don't, in the order in which they were found; one for each loop responsible
    once       the tail of loops whose iterations may not repeat
    """
    roots = loops_of(function.body)
    outcomes = _Outcomes(
        function,
        roots,
        accesses_of(function.body, roots),
        request,
        choice,
        {each.loop: each for each in refusals},
        once,
    )
    return tuple(outcomes.report(loop) for root in roots for loop in root.all())


def pairs_to_check(function: Function, choice: Choice) -> tuple[tuple[str, str], ...]:
    """Pairs of arrays in one vectorized nest of which at least one is stored: lanes assume no overlap."""
    pairs: set[tuple[str, str]] = set()
    accesses = accesses_of(function.body, loops_of(function.body))
    for number, dim in choice.items():
        if dim == 0:
            own = [a for a in accesses if any(loop.number == number for loop in a.loops)]
            stored = {a.array for a in own if a.stores}
            used = {a.array for a in own}
            pairs |= {(min(a, b), max(a, b)) for a in stored for b in used if a != b}
    return tuple(sorted(pairs))


def describe(function: Function, access: Access, loop: Loop) -> str:
    """The access pattern of a loop's lanes in an array, as text."""
    if gathered(access, loop):
        return f"{access} {'scattered' if access.stores else 'gathered'}"
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


def promise(loop: Loop, accesses: Sequence[Access], lanes: Mapping[int, int]) -> tuple[str, ...]:
    """The promise of a loop without which a dependence would forbid the lanes of its nest, if any."""
    if not loop.node.promise:
        return ()
    found = first_dependence(accesses, lanes, distrusted=loop.number)
    if found is None:
        return ()
    return (f"{loop.node.promise} rules out that {found}",)


@dataclass(frozen=True, slots=True)
class _Outcomes:
    """A function with its chosen loops. refused: by the number of the loop responsible, first found first."""

    function: Function
    roots: tuple[Loop, ...]
    accesses: tuple[Access, ...]
    request: Request
    choice: Choice
    refused: Mapping[int, Refusal]
    once: str

    def report(self, loop: Loop) -> LoopReport:
        """The outcome for one loop."""
        node = loop.node
        if loop.number not in self.choice:
            code, text = self.reason(loop)
            return LoopReport(node.index, node.line, False, (), code, text)
        lanes = self.request.lanes(self.choice)
        path = (n for root in self.roots for n in around(root, loop.number))
        shape = tuple(lanes[n] for n in path if n in lanes)
        own = [a for a in self.accesses if any(each.number == loop.number for each in a.loops)]
        patterns = [
            describe(self.function, access, loop) + self.other_dimension(access, loop) for access in own
        ]
        promised = promise(loop, own, lanes)
        text = ", ".join(dict.fromkeys([*patterns, *reduced_in(node), *scanned_in(node), *promised]))
        tail = legal_tail(loop, own, self.request.tail, self.once)
        return LoopReport(node.index, node.line, True, shape, VECTORIZED, text, tail)

    def other_dimension(self, access: Access, loop: Loop) -> str:
        """The memory dimension that a loop's lanes traverse, if it is not the requested one, as text."""
        dim = walked_dimension(self.function, access, loop.node.index)
        if self.request.fastest_varying is None or dim is None:
            return ""
        wanted = self.request.fastest_varying[self.choice[loop.number]]
        return f" (memory dimension {dim}, not {wanted})" if dim != wanted else ""

    def reason(self, loop: Loop) -> tuple[str, str]:
        """Why a loop stays scalar: a code and its text."""
        sizes = self.request.sizes
        if not sizes:
            return ONE_LANE, "every size is 1"
        if loop.number in self.refused:
            return self.refused[loop.number].code, self.refused[loop.number].text
        inside = {each.number for each in loop.all()}
        for root in (each for top in self.roots for each in top.all() if self.choice.get(each.number) == 0):
            taken = [each.node.index for each in root.all() if each.number in self.choice]
            if root.number in inside or any(each.number == loop.number for each in root.all()):
                return OTHER, f"{' and '.join(dict.fromkeys(taken))} run as lanes"
        relatives = inside.union(*(around(root, loop.number) for root in self.roots))
        blamed = [refused for number, refused in self.refused.items() if number in relatives]
        if blamed:
            return blamed[0].code, blamed[0].text
        return TOO_FEW, f"the nest does not have {len(sizes)} nested loops"


def legal_tail(loop: Loop, accesses: Sequence[Access], tail: str, once: str) -> str:
    """The legal tail: overlapping ones repeat iterations, which must not load stored arrays or carry values.

    once  the tail instead if stored arrays are loaded; if values are carried, it is masked
    """
    stored = {a.array for a in accesses if a.stores}
    loaded = {a.array for a in accesses if not a.stores}
    if tail not in ("shift", "clamp"):
        return tail
    return "mask" if loop.node.carried else once if stored & loaded else tail
