"""How often the loops of a kernel run, once sizes are numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from codegen.analysis.bounds import Domain, bounded_by_elements, every_call
from codegen.ir.index import add_indices, scale_index
from codegen.ir.nodes import For, Function
from codegen.ir.visit import Loop, loops_of


def most_iterations(function: Function, values: Mapping[str, int]) -> int | None:
    """The most iterations that all loops of a function run together; None if that is unknown.

    for i in 0..n: for j in 0..i                     n * (n - 1), as if all inner loops were the longest
    for b in 0..n step 4: for j in b..min(b + 4, n)  n, rounded up to blocks of 4

    values: the sizes and integer arguments
    """
    return _sum(loops_of(function.body), every_call(values))


def _sum(loops: Iterable[Loop], domain: Domain) -> int | None:
    total = 0
    for loop in loops:
        count = _iterations(loop, domain)
        if count is None:
            return None
        total += count
    return total


def _iterations(loop: Loop, domain: Domain) -> int | None:
    """The most iterations of a loop in such a domain, times those of the loops inside it."""
    if bounded_by_elements([loop.node]):
        return None
    trips = _trips(loop.node, domain)
    if not trips:
        return trips
    within = domain.inside(loop.node)
    inner = 0 if within is None else _sum(loop.inside, within)
    return None if inner is None else trips * max(inner, 1)


def _trips(loop: For, domain: Domain) -> int | None:
    """The most iterations of a loop, whatever the indices around it are; None if that is unknown."""
    toward = 1 if loop.step > 0 else -1
    lengths = [
        domain.extremes(scale_index(add_indices(end, scale_index(start, -1)), toward))[1]
        for start in loop.lower
        for end in loop.upper
    ]
    known = [length for length in lengths if length is not None]
    return max(0, -(-min(known) // abs(loop.step))) if known else None
