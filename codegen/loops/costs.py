"""What a nest costs with some of its loops run as lanes: enough to tell the better choice from the worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codegen.loops.accesses import Access, Loop, around, constant_trips
from codegen.loops.ir import Function, Let, Store
from codegen.loops.legal import stride

SCALAR, WHOLE, REPEATED, TRANSPOSED, STRIDED = 8.0, 1.0, 0.5, 2.0, 5.0
"""What an access costs an element: scalar; in runs; once for many; in runs across lanes; one by one."""
DEEPER = 16.0
"""How much more often an inner loop's body runs than what surrounds it, where no number says so."""

REGISTER = 16
"""Lanes that are filled at the end at most: longer super-vectors are cut into registers."""


def cost(function: Function, accesses: Sequence[Access], root: Loop, lanes: Mapping[int, int]) -> float:
    """What a nest costs when some of its loops run as lanes: the lower the better.

    Each access counts by how its lanes lie in memory, 16 times as much for each loop that surrounds it, or as
    often as that runs where bounds are numbers. lanes: the size for the number of each loop to vectorise.
    """
    own = [a for a in accesses if any(loop.number == root.number for loop in a.loops)]
    runs = {loop.number: _elements(loop, lanes.get(loop.number, 1)) for loop in root.all()}
    total = 0.0
    for loop in root.all():
        path = around(root, loop.number)
        weight = _product([runs[n] for n in path])
        body = sum(1 for node in loop.node.body if isinstance(node, Let | Store)) + len(loop.node.carried)
        total += weight * body * (WHOLE if any(n in lanes for n in path) else SCALAR) / 4
    for access in own:
        weight = _product([runs[loop.number] for loop in access.loops if loop.number in runs])
        total += weight * _unit(function, access, lanes)
    return total


def _product(factors: Sequence[float]) -> float:
    out = 1.0
    for factor in factors:
        out *= factor
    return out


def _elements(loop: Loop, size: int) -> float:
    """Iterations of a loop, those that fill its last register as well."""
    trips = constant_trips(loop.node)
    lanes = min(size, REGISTER)
    return DEEPER if trips is None else float(max(1, -(-trips // lanes) * lanes))


def _unit(function: Function, access: Access, lanes: Mapping[int, int]) -> float:
    along = [loop for loop in access.loops if loop.number in lanes]
    if not along:
        return SCALAR
    walks = [stride(access, loop) for loop in along]
    if all(subscript is None for subscript, _ in walks):
        return REPEATED
    fast = 0 if function.array(access.array).order == "F" else len(access.subscripts) - 1
    if walks[-1] == (fast, 1):
        return WHOLE
    if any(walk == (fast, 1) for walk in walks):
        return TRANSPOSED
    return STRIDED if any(subscript == fast for subscript, _ in walks) else STRIDED - 0.5
