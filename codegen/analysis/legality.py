"""Whether loops of a nest may become the dimensions of a super-vector, and if not, why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from codegen.analysis.dependence import first_dependence
from codegen.analysis.reductions import reduced_in, reduces, sums_in_memory
from codegen.analysis.report import (
    BOUND,
    CARRIED,
    DIAGONAL,
    NOT_1D,
    NOT_ASKED,
    NOT_CONTIGUOUS,
    SCAN_NOT_ASKED,
    SCATTER,
    UNSUPPORTED,
    VALUE,
    Refusal,
)
from codegen.analysis.scans import scan_of, scanned_in
from codegen.ir.families import FAMILIES
from codegen.ir.index import elements_in, index_symbols
from codegen.ir.nodes import COMBINERS, MANY, Function
from codegen.ir.values import Op, Reduce
from codegen.ir.visit import Access, Loop, carried_values, coefficient, parts, values_of
from codegen.support.dataclasses import dataclass
from codegen.support.lookups import expect

Choice = Mapping[int, int]
"""The vector dimension of each loop, by its number."""


@dataclass(frozen=True, slots=True)
class Request:
    """The options of the super-vectorizer, as in its arguments.

    most  (loop number, the most iterations that may run together), because min_distance promises no more
    """

    sizes: tuple[int, ...]
    fastest_varying: tuple[int, ...] | None
    reductions: bool
    tail: str
    scans: bool = False
    most: tuple[tuple[int, int], ...] = ()

    def lanes(self, choice: Choice) -> dict[int, int]:
        """How many iterations of each loop run together."""
        most = dict(self.most)
        return {number: min(self.sizes[dim], most.get(number, MANY)) for number, dim in choice.items()}


def within_promises(loop: Loop, choice: Choice, accesses: Sequence[Access], request: Request) -> Request:
    """The request with no more lanes than `min_distance` promises, where a dependence would forbid more.

    4x256, distances 2 and 64:
        for i: for j: A[i + 2, j + 64] = A[i, j]    2x256
        for i: for j: A[i, j + k] = A[i, j]         4x64

    As few loops are limited as possible, and outer loops rather than inner ones.
    """
    chosen = [each for each in loop.all() if each.number in choice]
    limits = [
        (each.number, each.node.min_distance)
        for each in chosen
        if 1 < each.node.min_distance < request.sizes[choice[each.number]]
    ]
    own = _apart([a for a in accesses if loop in a.loops], chosen) if limits else []
    for count in range(len(limits)):
        for most in combinations(limits, count):
            limited = replace(request, most=most)
            if first_dependence(own, limited.lanes(choice)) is None:
                return limited
    return replace(request, most=tuple(limits))


def refusal(
    function: Function, root: Loop, choice: Choice, accesses: Sequence[Access], request: Request
) -> Refusal | None:
    """The reason why these loops below `root` cannot run as lanes, or None if they can.

    accesses: those of the complete function; accesses outside `root` do not count.
    """
    chosen = [loop for loop in root.all() if loop.number in choice]
    own = [a for a in accesses if any(loop.number == root.number for loop in a.loops)]
    return (
        _bounds(root, chosen)
        or _carried(chosen, request)
        or _operations(root)
        or _subscripts(own, choice)
        or _memory(function, own, chosen, choice, request)
        or _dependences(_apart(own, chosen), choice, request)
        or _one_element(_apart(own, chosen), choice)
    )


def _bounds(root: Loop, chosen: Sequence[Loop]) -> Refusal | None:
    lanes = {loop.node.index: loop.number for loop in chosen}
    for loop in root.all():
        for bound in (*loop.node.lower, *loop.node.upper):
            used = sorted(index_symbols(bound) & (lanes.keys() - {loop.node.index}))
            if used:
                text = f"the bound {bound} of loop {loop.node.index} uses {used[0]}"
                return Refusal(lanes[used[0]], BOUND, text)
    return None


def _carried(chosen: Sequence[Loop], request: Request) -> Refusal | None:
    for loop in chosen:
        number, node = loop.number, loop.node
        for local in node.carried:
            if reduces(local, node) or scan_of(local, node) is not None:
                continue
            if local.combiner not in COMBINERS:
                return Refusal(number, VALUE, f"{local.name} is carried from one iteration to the next")
            return Refusal(number, VALUE, f"{local.name} is used before the reduction is complete")
        reduced, scanned = reduced_in(node), scanned_in(node)
        if reduced and not (request.reductions or node.reduction):
            return Refusal(number, NOT_ASKED, reduced[0])
        if scanned and not (request.scans or node.scan):
            return Refusal(number, SCAN_NOT_ASKED, scanned[0])
        if (reduced or scanned) and len(request.sizes) > 1:
            return Refusal(number, NOT_1D, f"{(*reduced, *scanned)[0]}, sizes are {request.sizes}")
    return None


def _operations(root: Loop) -> Refusal | None:
    for value in (*carried_values(root.node.carried), *values_of(root.node.body)):
        for part in parts(value):
            unknown = isinstance(part, Op) and part.name not in FAMILIES
            if unknown or isinstance(part, Reduce) or part.shape:
                name = part.name if isinstance(part, Op) else type(part).__name__
                return Refusal(root.number, UNSUPPORTED, f"{name} is not supported in super-vectors")
    return None


def _subscripts(accesses: Sequence[Access], choice: Choice) -> Refusal | None:
    for access in accesses:
        for loop in access.loops:
            if loop.number not in choice:
                continue
            index = loop.node.index
            moves = [coefficient(subscript, index) for subscript in access.subscripts]
            # Where one is None, each lane has subscripts of its own.
            if None not in moves and sum(1 for c in moves if c) > 1:
                return Refusal(loop.number, DIAGONAL, f"{access} moves two subscripts with {index}")
    return None


def walked_dimension(function: Function, access: Access, index: str) -> int | None:
    """The memory dimension that an index traverses, the innermost 0; None if it traverses none.

    A[i, j]: i -> 1, j -> 0; if A is in Fortran order, i -> 0, j -> 1
    """
    moved = [k for k, subscript in enumerate(access.subscripts) if coefficient(subscript, index)]
    if not moved:
        return None
    array = function.array(access.array)
    return moved[0] if array.order == "F" else array.rank - 1 - moved[0]


def _memory(
    function: Function, accesses: Sequence[Access], chosen: Sequence[Loop], choice: Choice, request: Request
) -> Refusal | None:
    """Stores must traverse the requested dimensions; loads must, along loops without a store.

    Other loads are transposed or gathered, which still costs less than the scalar loop; reports name them.
    """
    if request.fastest_varying is None:
        return None
    for loop in chosen:
        wanted = request.fastest_varying[choice[loop.number]]
        traversed = [
            (access, walked_dimension(function, access, loop.node.index))
            for access in accesses
            if any(around.number == loop.number for around in access.loops)
        ]
        moving = [(access, dim) for access, dim in traversed if dim is not None]
        checked = [pair for pair in moving if pair[0].stores] or moving
        for access, dim in checked:
            if dim != wanted:
                text = f"{access} traverses memory dimension {dim} with {loop.node.index}, not {wanted}"
                return Refusal(loop.number, NOT_CONTIGUOUS, text)
    return None


def _apart(accesses: Sequence[Access], chosen: Sequence[Loop]) -> list[Access]:
    """All accesses except those of sums in memory, which become locals of the loop."""
    sums = {(loop.number, store.array) for loop in chosen for store in sums_in_memory(loop.node)}
    return [a for a in accesses if not any((loop.number, a.array) in sums for loop in a.loops)]


def _dependences(accesses: Sequence[Access], choice: Choice, request: Request) -> Refusal | None:
    found = first_dependence(accesses, request.lanes(choice))
    if found is None:
        return None
    around = (x.node.index for x in found.later.loops if x.number == found.loop)
    index = expect(around, f"loop {found.loop}", found.later)
    if found.has_same_subscripts and is_indexed(found.later, index):
        return Refusal(found.loop, SCATTER, _SCATTER.format(found.later))
    return Refusal(found.loop, CARRIED, str(found))


_SCATTER = "{} may store to one element twice; tilejit.permutation promises that its indices differ"


def _one_element(accesses: Sequence[Access], choice: Choice) -> Refusal | None:
    """Reject a store that does not move: it has no lanes, even if its loop runs once or is parallel."""
    for access in accesses:
        for loop in access.loops if access.stores else ():
            if loop.number in choice and stride(access, loop)[0] is None and not gathered(access, loop):
                text = f"{access} is one element for all iterations of {loop.node.index}"
                return Refusal(loop.number, CARRIED, text)
    return None


def is_indexed(access: Access, index: str) -> bool:
    """Whether a subscript depends on elements of arrays that an index moves."""
    elements = (e for subscript in access.subscripts for e in elements_in(subscript))
    return any(index in index_symbols(element) for element in elements)


def gathered(access: Access, loop: Loop) -> bool:
    """Whether a loop's lanes need separate addresses: a subscript divides its index, or is an element."""
    return any(coefficient(subscript, loop.node.index) is None for subscript in access.subscripts)


def stride(access: Access, loop: Loop) -> tuple[int | None, int]:
    """The subscript that a loop moves in an access, and by how many elements per iteration."""
    for k, subscript in enumerate(access.subscripts):
        c = coefficient(subscript, loop.node.index)
        if c:
            return k, c * loop.node.step
    return None, 0
