"""The cost of a nest with some of its loops run as lanes: just accurate enough to rank choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codegen.analysis.legality import gathered, is_indexed, stride
from codegen.ir.c_functions import C_FUNCTIONS
from codegen.ir.dtypes import numpy_dtype
from codegen.ir.families import CALL
from codegen.ir.index import Affine, ArrayElement, Bitwise, FloorDiv, FromEnd, Index, Inside, Mod, Sum
from codegen.ir.nodes import For, Function, Let, Store
from codegen.ir.values import Op
from codegen.ir.visit import Access, Loop, around, carried_values, most_trips, parts, values_of

SCALAR, WHOLE, REPEATED, TRANSPOSED, STRIDED, ACROSS = 8.0, 1.0, 0.5, 2.0, 5.0, 4.5
"""Cost per element of an access: scalar, contiguous, repeated, transposed, strided, or from row to row."""
GATHERED, DIVIDED = 3.0, 60.0
"""Cost per element if each lane computes its own address: by shifts and masks, or by a division.

Processors have no vector division of 64-bit integers. They have no gathers of elements of less than four
bytes either, which cost as much as the division.
"""
ONE_BY_ONE = 7.0
"""Cost per element of indexed lanes that have no instruction: loads of less than four bytes, and stores.

Measured on Zen 4 with registers of 64 and of 32 bytes, 2026-11, in time per element of the scalar loop:
y[i] = x[idx[i]] of u8 to f64 takes 0.7 to 1.1, with gathers if there are any. Stores lane by lane take as
long as the loop, and as scatters of AVX-512. A loop that also has a root and a division takes 0.27.
"""
COMBINED = 25.0
"""Cost per element if each lane combines bits for its own address, or stores to a quotient or remainder.

Measured on Zen 4 with registers of 64 bytes, 2026-11: y[i, j ^ (i & 7)] = x[i, j] of 256x256 takes 20 us in
the scalar loop and 30 us in lanes of f32, 19 and 32 to 44 us of f64; x[i, j ^ (i & 7)] on the right side
takes 18 and 27 to 40 us, 19 and 48 us. A loop that also has a root is 3 to 4 times as fast in lanes.
"""
DEEPER = 16.0
"""How much more often an inner loop's body runs than its surroundings, if its bounds are not numbers."""

MOST_TRIPS = 1 << 64
"""The most iterations that any loop is assumed to have: numbers in MLIR text may exceed a float."""

REGISTER = 16
"""The most lanes that a last register fills up: longer super-vectors are split into registers."""


def cost(function: Function, accesses: Sequence[Access], root: Loop, lanes: Mapping[int, int]) -> float:
    """The cost of a nest when some of its loops run as lanes; lower is better.

    Each access counts by how its lanes lie in memory: 16 times for each surrounding loop, or as often as that
    loop runs if its bounds are numbers. lanes: the size by the number of each loop to vectorize.
    """
    own = [a for a in accesses if any(loop.number == root.number for loop in a.loops)]
    runs = {loop.number: _elements(loop, lanes.get(loop.number, 1)) for loop in root.all()}
    total = 0.0
    for loop in root.all():
        path = around(root, loop.number)
        weight = _product([runs[n] for n in path])
        body = sum(1 for node in loop.node.body if isinstance(node, Let | Store)) + len(loop.node.carried)
        body += CALL * _functions(loop)
        total += weight * body * (WHOLE if any(n in lanes for n in path) else SCALAR) / 4
    for access in own:
        weight = _product([runs[loop.number] for loop in access.loops if loop.number in runs])
        total += weight * unit(function, access, lanes)
    return total


def _functions(loop: Loop) -> int:
    """Calls of math functions directly in a loop."""
    own = [node for node in loop.node.body if not isinstance(node, For)]
    values = (*carried_values(loop.node.carried), *values_of(tuple(own)))
    return sum(isinstance(p, Op) and p.name in C_FUNCTIONS for value in values for p in parts(value))


def _product(factors: Sequence[float]) -> float:
    out = 1.0
    for factor in factors:
        out *= factor
    return out


def _elements(loop: Loop, size: int) -> float:
    """Upper bound on the iterations of a loop, including those that fill its last register."""
    trips = most_trips(loop.node)
    lanes = min(size, REGISTER)
    return DEEPER if trips is None else float(min(max(1, -(-trips // lanes) * lanes), MOST_TRIPS))


def unit(function: Function, access: Access, lanes: Mapping[int, int]) -> float:
    """The cost per element of one access."""
    along = [loop for loop in access.loops if loop.number in lanes]
    if not along:
        return SCALAR
    strides = [stride(access, loop) for loop in along]
    if any(gathered(access, loop) for loop in along):
        if not all(_by_shifts(subscript) for subscript in access.subscripts):
            return DIVIDED
        wide = numpy_dtype(function.array(access.array).dtype).itemsize >= 4
        indexed = any(is_indexed(access, loop.node.index) for loop in along)
        if any(map(_combines, access.subscripts)) or (access.stores and not indexed):
            return COMBINED
        return GATHERED if wide and not access.stores else ONE_BY_ONE if indexed else DIVIDED
    if all(subscript is None for subscript, _ in strides):
        return REPEATED
    fast = 0 if function.array(access.array).order == "F" else len(access.subscripts) - 1
    if strides[-1] == (fast, 1):
        return WHOLE
    if any(one == (fast, 1) for one in strides):
        return TRANSPOSED
    return STRIDED if any(subscript == fast for subscript, _ in strides) else ACROSS


def strided(function: Function, access: Access, lanes: Mapping[int, int]) -> bool:
    """Whether the lanes of an access are apart in memory, at one distance from each other."""
    return unit(function, access, lanes) in (STRIDED, ACROSS)


def _combines(index: Index) -> bool:
    """Whether an expression combines bits."""
    match index:
        case Bitwise():
            return True
        case FloorDiv(of) | Mod(of) | FromEnd(of) | Inside(of):
            return _combines(of)
        case Sum(terms, _):
            return any(_combines(term) for term, _ in terms)
    return False


def _by_shifts(index: Index) -> bool:
    """Whether every divisor is a power of two, so that shifts and masks suffice."""
    match index:
        case Affine():
            return True
        case FloorDiv(of, by) | Mod(of, by):
            return by.bit_count() == 1 and _by_shifts(of)
        case Bitwise(_, left, right):
            return _by_shifts(left) and _by_shifts(right)
        case Sum(terms, _):
            return all(_by_shifts(term) for term, _ in terms)
        case ArrayElement(_, subscripts):
            return all(map(_by_shifts, subscripts))
        case FromEnd(of) | Inside(of):
            return _by_shifts(of)
        case _:
            raise AssertionError(f"lane_costs: no rule for {type(index).__name__}")
