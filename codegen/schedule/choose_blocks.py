"""Choose pairs of loops over super-vectors that run as blocks transposed in registers.

A block has as many rows (iterations of the outer loop) as a register has lanes of the inner loop. An array
that is contiguous along the outer loop is loaded or stored by columns and transposed in registers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codegen.analysis.bodies import flat, vector_dtypes
from codegen.analysis.strides import ELEMENT_BYTES, held_dtype, near_dimension, slope
from codegen.ir.blocks import BLOCK_SIDES
from codegen.ir.nodes import For, Function, Statement, Store
from codegen.ir.values import IndexValue, Load, Value
from codegen.ir.visit import coefficient, loads, parts, trips_with, values_of
from codegen.schedule.directives import Registers

LEAST_ROWS, *_, MOST_ROWS = BLOCK_SIDES
"""Minimum and maximum rows per block: fewer are not worth the shuffles, more do not fit in the registers."""


def block_of(function: Function, outer: For, register_bytes: int) -> Registers | None:
    """Blocks of a loop over super-vectors and the innermost one inside it; None if no array is transposed.

    for i: for j: C[j, i] = A[i, j]     C is contiguous along i, A along j: a block

    The lanes of a block are steps apart, and no index is a number in it.
    """
    if outer.size < LEAST_ROWS or outer.carried:
        return None
    inside = _inside(outer)
    if not inside or inside[-1].size < LEAST_ROWS:
        return None
    inner = inside[-1]
    widest = max((ELEMENT_BYTES[held_dtype(d)] for d in vector_dtypes(inner)), default=8)
    most = (1 << (size.bit_length() - 1) for size in (outer.size, inner.size))
    side = min(MOST_ROWS, register_bytes // widest, *most)
    if side < LEAST_ROWS:
        return None
    accesses = _accesses(inner.body)
    if not all(_has_steps(a, outer, inner) for a in accesses) or any(map(_has_index, values_of(inner.body))):
        return None
    if not any(_by_columns(function, a, outer, inner) for a in accesses):
        return None
    return Registers(inner.index, side, rows=outer.index)


def fills_blocks(
    function: Function, blocks: Sequence[tuple[str, str, int]], sizes: Mapping[str, int]
) -> bool:
    """Whether the loops of a block have enough iterations for it in a call with these sizes.

    blocks  two loops and the rows of each block

    The function has scalar loops. Those whose bounds need the index of another loop count as long.
    """
    loops = {x.index: x for x in flat(function.body) if isinstance(x, For)}

    def is_long(loop: For, side: int) -> bool:
        try:
            return trips_with(loop, sizes) >= side
        except KeyError:
            return True

    return any(is_long(loops[rows], side) and is_long(loops[axis], side) for rows, axis, side in blocks)


def _inside(outer: For) -> list[For]:
    """The loops perfectly nested in a loop, down to the innermost one over super-vectors."""
    loops: list[For] = []
    body = outer.body
    while len(body) == 1 and isinstance(body[0], For) and not body[0].carried:
        loops.append(body[0])
        body = body[0].body
        if not any(isinstance(s, For) and s.size > 1 for s in flat(body)):
            break
    return loops


def _accesses(body: tuple[Statement, ...]) -> list[Load | Store]:
    stores = [statement for statement in flat(body) if isinstance(statement, Store)]
    return [*stores, *(load for value in values_of(body) for load in loads(value))]


def _has_steps(access: Load | Store, outer: For, inner: For) -> bool:
    """Whether the elements of rows and of lanes are steps apart."""
    return all(coefficient(s, loop.index) is not None for s in access.subscripts for loop in (outer, inner))


def _has_index(value: Value) -> bool:
    """Whether a value depends on the index of its lanes."""
    return any(isinstance(part, IndexValue) and part.shape for part in parts(value))


def _by_columns(function: Function, access: Load | Store, outer: For, inner: For) -> bool:
    """Whether elements are contiguous from row to row, and not from lane to lane."""
    array, apart = function.array(access.array), False
    row_step, lane_step = outer.step // outer.size, inner.step // inner.size
    for dimension, subscript in enumerate(access.subscripts):
        down, across = slope(subscript, outer.index) * row_step, slope(subscript, inner.index) * lane_step
        if dimension != near_dimension(array):
            apart = apart or across != 0
            if down:
                return False
        elif across or down != 1:
            return False
    return apart
