"""How slow a kernel is compared with memcpy, which decides the size from which it gets several threads."""

from __future__ import annotations

from collections.abc import Iterable

from codegen.ir.dtypes import FLOAT_FUNCTIONS
from codegen.ir.index import index_symbols
from codegen.ir.nodes import ArrayArg, Function
from codegen.ir.values import Op, Value
from codegen.ir.visit import Access, Loop, accesses_of, loops_of, parts, values_of
from codegen.schedule.call_limits import BOUND_BY_MEMORY, COMPUTES, TRANSPOSES

COSTLY = frozenset(FLOAT_FUNCTIONS) - {"sqrt", "rint", "copysign", "fma"} | {"pow", "floordiv", "mod"}
"""Operations that take many instructions."""


def slowness_of(function: Function) -> int:
    """How slow a function of loops is, judged by its operations on each element.

    y[i] = 2 * x[i] -> BOUND_BY_MEMORY    y[i, j] = x[j, i] -> TRANSPOSES
    y[i] = exp(x[i]), or a product of matrices -> COMPUTES
    """
    rank = max((x.rank for x in function.arguments if isinstance(x, ArrayArg)), default=0)
    if has_costly(values_of(function.body)) or _depth(loops_of(function.body)) > rank:
        return COMPUTES
    return TRANSPOSES if _transposes(function) else BOUND_BY_MEMORY


def has_costly(values: Iterable[Value]) -> bool:
    """Whether an operation takes many instructions."""
    return any(isinstance(x, Op) and x.name in COSTLY for value in values for x in parts(value))


def _depth(loops: Iterable[Loop], blocks: frozenset[str] = frozenset()) -> int:
    """Loops inside each other; those over blocks, and over one of these blocks, count as one."""
    deepest = 0
    for loop in loops:
        lower, upper = (
            {name for bound in bounds for name in index_symbols(bound)}
            for bounds in (loop.node.lower, loop.node.upper)
        )
        in_block = not blocks.isdisjoint(lower) and not blocks.isdisjoint(upper)
        inner = blocks | {loop.node.index} if abs(loop.node.step) > 1 else blocks
        deepest = max(deepest, (not in_block) + _depth(loop.inside, inner))
    return deepest


def _transposes(function: Function) -> bool:
    """Whether elements that are neighbors in an array that is read lie far apart in one that is stored."""
    orders = {x.name: x.order for x in function.arguments if isinstance(x, ArrayArg) and x.order}
    stored: set[tuple[frozenset[str], frozenset[str]]] = set()
    read: set[tuple[frozenset[str], frozenset[str]]] = set()
    for access in accesses_of(function.body, loops_of(function.body)):
        if access.array in orders and len(access.subscripts) > 1:
            (stored if access.stores else read).add(_near_and_far(access, orders[access.array]))
    return any(
        near & other_far and other_near & far and not near & other_near
        for near, far in stored
        for other_near, other_far in read
    )


def _near_and_far(access: Access, order: str) -> tuple[frozenset[str], frozenset[str]]:
    """The indices of loops over elements side by side, and over elements far apart."""
    near, *far = access.subscripts if order == "F" else reversed(access.subscripts)
    indices = {loop.node.index for loop in access.loops}
    return (
        frozenset(indices & index_symbols(near)),
        frozenset(indices & {name for subscript in far for name in index_symbols(subscript)}),
    )
