"""What a nest costs with some of its loops run as lanes: enough to tell the better choice from the worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codegen.analysis.legality import CIRCULAR, EXPONENTIALS, HYPERBOLIC, gathered, stride
from codegen.ir.dtypes import numpy_dtype
from codegen.ir.index import Affine, FloorDiv, Index, Mod, Sum
from codegen.ir.nodes import For, Function, Let, Op, Store
from codegen.ir.visit import Access, Loop, around, carried_values, most_trips, parts, values_of

SCALAR, WHOLE, REPEATED, TRANSPOSED, STRIDED = 8.0, 1.0, 0.5, 2.0, 5.0
"""What an access costs an element: scalar; in runs; once for many; in runs across lanes; one by one."""
GATHERED, DIVIDED = 3.0, 60.0
"""One by one where each lane works out its place: by shifts and masks; by a division, which processors have
none of for vectors of 64-bit integers. Elements of less than four bytes, which they gather none of, cost as
much."""
FUNCTION = 80
"""Statements that a function of math costs as much as."""
DEEPER = 16.0
"""How much more often an inner loop's body runs than what surrounds it, where no number says so."""

FUNCTIONS = frozenset((*EXPONENTIALS, *CIRCULAR, *HYPERBOLIC, "pow")) - {"sqrt"}

MOST_TRIPS = 1 << 64
"""Iterations that any loop is taken to have at most: texts of MLIR may have numbers that no float holds."""

REGISTER = 16
"""Lanes that are filled at the end at most: longer super-vectors are cut into registers."""


def cost(function: Function, accesses: Sequence[Access], root: Loop, lanes: Mapping[int, int]) -> float:
    """What a nest costs when some of its loops run as lanes: the lower the better.

    Each access counts by how its lanes lie in memory, 16 times as much for each loop that surrounds it, or as
    often as that runs where bounds are numbers. lanes: the size for the number of each loop to vectorize.
    """
    own = [a for a in accesses if any(loop.number == root.number for loop in a.loops)]
    runs = {loop.number: _elements(loop, lanes.get(loop.number, 1)) for loop in root.all()}
    total = 0.0
    for loop in root.all():
        path = around(root, loop.number)
        weight = _product([runs[n] for n in path])
        body = sum(1 for node in loop.node.body if isinstance(node, Let | Store)) + len(loop.node.carried)
        body += FUNCTION * _functions(loop)
        total += weight * body * (WHOLE if any(n in lanes for n in path) else SCALAR) / 4
    for access in own:
        weight = _product([runs[loop.number] for loop in access.loops if loop.number in runs])
        total += weight * unit(function, access, lanes)
    return total


def _functions(loop: Loop) -> int:
    """Calls of functions of math right in a loop."""
    own = [node for node in loop.node.body if not isinstance(node, For)]
    values = (*carried_values(loop.node.carried), *values_of(tuple(own)))
    return sum(isinstance(p, Op) and p.name in FUNCTIONS for value in values for p in parts(value))


def _product(factors: Sequence[float]) -> float:
    out = 1.0
    for factor in factors:
        out *= factor
    return out


def _elements(loop: Loop, size: int) -> float:
    """Iterations of a loop, at most, those that fill its last register as well."""
    trips = most_trips(loop.node)
    lanes = min(size, REGISTER)
    return DEEPER if trips is None else float(min(max(1, -(-trips // lanes) * lanes), MOST_TRIPS))


def unit(function: Function, access: Access, lanes: Mapping[int, int]) -> float:
    """What one access costs an element."""
    along = [loop for loop in access.loops if loop.number in lanes]
    if not along:
        return SCALAR
    walks = [stride(access, loop) for loop in along]
    if any(gathered(access, loop) for loop in along):
        wide = numpy_dtype(function.array(access.array).dtype).itemsize >= 4
        return GATHERED if wide and all(_by_shifts(subscript) for subscript in access.subscripts) else DIVIDED
    if all(subscript is None for subscript, _ in walks):
        return REPEATED
    fast = 0 if function.array(access.array).order == "F" else len(access.subscripts) - 1
    if walks[-1] == (fast, 1):
        return WHOLE
    if any(walk == (fast, 1) for walk in walks):
        return TRANSPOSED
    return STRIDED if any(subscript == fast for subscript, _ in walks) else STRIDED - 0.5


def _by_shifts(index: Index) -> bool:
    """Whether all that divides is a power of two."""
    match index:
        case Affine():
            return True
        case FloorDiv(of, by) | Mod(of, by):
            return by.bit_count() == 1 and _by_shifts(of)
        case Sum(pieces, _):
            return all(_by_shifts(piece) for piece, _ in pieces)
