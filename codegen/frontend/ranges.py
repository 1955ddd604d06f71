"""The ranges of loops: range(…), its bounds, and the marks around it."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from codegen.frontend.expressions import expression, not_an_index
from codegen.frontend.operands import Operand, literal_operand
from codegen.frontend.scope import LOOP_MARK, Scope
from codegen.ir.index import (
    Affine,
    ArrayElement,
    Index,
    Sum,
    add_indices,
    depends_on_elements,
    index_symbol,
    scale_index,
)
from codegen.ir.nodes import MANY
from codegen.support.dataclasses import dataclass

BEYOND = 1 << 62
"""With bounds from this number on, 64 bits may not hold the number of iterations."""


@dataclass(frozen=True, slots=True)
class Range:
    """The expression after `in`: range(…), and the marks around it."""

    call: ast.Call
    parallel: bool = False
    reduction: bool = False
    scan: bool = False
    min_distance: int = 1


def read_range(node: ast.expr, scope: Scope) -> Range:
    """Unwrap the marks of tj.parallel(…), tj.min_distance(…, n) and others from a range(…)."""
    if isinstance(node, ast.Call):
        function = scope.object(node.func)
        if function is range and not node.keywords and 1 <= len(node.args) <= 3:
            return Range(node)
        name = getattr(function, LOOP_MARK, "")
        if name in ("parallel", "reduction", "scan") and len(node.args) == 1 and not node.keywords:
            marked: dict[str, Any] = {name: True}
            return replace(read_range(node.args[0], scope), **marked)
        if name == "vectorizable" and len(node.args) == 1 and not node.keywords:
            return replace(read_range(node.args[0], scope), min_distance=MANY)
        if name == "min_distance" and len(node.args) == 2 and not node.keywords:
            inner = read_range(node.args[0], scope)
            return replace(inner, min_distance=max(inner.min_distance, _distance(node.args[1], scope)))
    raise scope.error(
        node, "loops of kernels must be over range(…)\nwrite for i in range(A.shape[0]), and A[i] in it"
    )


def _distance(node: ast.expr, scope: Scope) -> int:
    """The distance that tj.min_distance promises."""
    distance = expression(node, scope).literal
    if not isinstance(distance, int) or isinstance(distance, bool) or not 0 < distance < 2**31:
        raise scope.error(
            node, "expected a distance of at least 1 iteration, as a constant\nwrite 8, or a global"
        )
    return distance


@dataclass(frozen=True, slots=True)
class Bounds:
    """A loop's bounds, and `number`: the index of the source, as an expression of the loop's own index.

    The loop counts up, from the largest of `lower`. It counts down where the source counts down from the
    least of several.
    """

    lower: tuple[Index, ...]
    upper: tuple[Index, ...]
    step: int
    number: Index


def read_bounds(call: ast.Call, name: str, scope: Scope) -> Bounds:
    """The bounds of range(…).

    range(n - 1, -1, -1) -> from 0 to below n; the index of the source is n - 1 minus that of the loop
    range(min(m, n), 0, -1) -> from the least of m and n down to above 0, by -1
    """
    operands = [expression(argument, scope) for argument in call.args]
    start, stop = (literal_operand(0), operands[0]) if len(operands) == 1 else operands[:2]
    first, last = (call.args[0], call.args[0]) if len(operands) == 1 else call.args[:2]
    step = operands[2].literal if len(operands) == 3 else 1
    if not isinstance(step, int) or isinstance(step, bool) or not 0 < abs(step) < 2**31:
        raise scope.error(call.args[-1], "expected a nonzero constant as the step")
    for operand, written in ((start, first), (stop, last)):
        if isinstance(operand.literal, int) and abs(operand.literal) >= BEYOND:
            raise scope.error(written, "a bound of more than 62 bits\nwrite the size of an array, A.shape[0]")
        if depends_on_elements(*operand.least, *operand.largest) and not (
            step > 0 and all(map(_is_sum, (*operand.least, *operand.largest)))
        ):
            raise scope.error(written, not_an_index(operand, written, "a bound", scope))
    if step > 0:
        lower = _ends(start, start.largest, first, "largest", scope)
        return Bounds(lower, _ends(stop, stop.least, last, "least", scope), step, index_symbol(name))
    if start.index is None and start.least:
        # The start is not an index expression, so the loop itself counts down.
        return Bounds(
            start.least, _ends(stop, stop.largest, last, "largest", scope), step, index_symbol(name)
        )
    if start.index is None and start.largest:
        raise scope.error(
            first, "a loop that counts down must start at an index expression or the min() of several"
        )
    if start.index is None:
        raise scope.error(first, not_an_index(start, first, "the start of a loop that counts down", scope))
    ends = _ends(stop, stop.largest, last, "largest", scope)
    upper = tuple(add_indices(start.index, scale_index(end, -1)) for end in ends)
    return Bounds((Affine(),), upper, -step, add_indices(start.index, scale_index(index_symbol(name), -1)))


def _is_sum(index: Index) -> bool:
    """Whether an expression has no parts but elements of arrays: ptr[i + 1], or ptr[i] - 1."""
    match index:
        case Affine() | ArrayElement():
            return True
        case Sum(parts, _):
            return all(isinstance(part, ArrayElement) for part, _ in parts)
    return False


def _ends(
    operand: Operand, ends: tuple[Index, ...], node: ast.expr, what: str, scope: Scope
) -> tuple[Index, ...]:
    if ends:
        return ends
    if operand.least or operand.largest:
        other = "max()" if what == "largest" else "min()"
        raise scope.error(node, f"here a bound is the {what} of index expressions: {other} of them")
    raise scope.error(node, not_an_index(operand, node, "a bound", scope))
