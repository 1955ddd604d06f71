"""Subscripts that arith.select creates from loaded integers: from the end if negative, 0 if outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation, SSAValue

from codegen import Affine, Bitwise, FloorDiv, FromEnd, Index, Inside, Mod, Sum, depends_on_elements
from tilejit.mlir.arithmetic import INTEGER_PREDICATES
from tilejit.mlir.places import Unsupported


def selected_index(op: Operation, index: Callable[[SSAValue], Index | None]) -> Index | None:
    """The subscript that arith.select creates; None if it selects something else.

    %below = arith.cmpi slt, %k, %c0            FromEnd(k, n)
    %more = arith.addi %k, %n
    %at = arith.select %below, %more, %k

    %inside = arith.cmpi ult, %k, %n            Inside(k, n)
    %at = arith.select %inside, %k, %c0

    Args:
        op: the arith.select.
        index: returns the index expression of a value, or None.
    """
    compare = op.operands[0].owner
    if not isinstance(compare, Operation) or compare.name != "arith.cmpi":
        return None
    match INTEGER_PREDICATES[compare.properties["predicate"].value.data]:
        case "slt":
            return _from_end(op, compare, index)
        case "ult":
            return _inside(op, compare, index)
    return None


def _from_end(op: Operation, compare: Operation, index: Callable[[SSAValue], Index | None]) -> FromEnd | None:
    _, moved, at = op.operands
    add = moved.owner
    if not isinstance(add, Operation) or add.name != "arith.addi" or at not in add.operands:
        return None
    if compare.operands[0] != at or index(compare.operands[1]) != Affine():
        return None
    here, size = index(at), index(add.operands[0] if add.operands[1] == at else add.operands[1])
    return None if here is None or size is None else FromEnd(here, size)


def _inside(op: Operation, compare: Operation, index: Callable[[SSAValue], Index | None]) -> Inside | None:
    _, at, otherwise = op.operands
    if compare.operands[0] != at or index(otherwise) != Affine():
        return None
    here, size = index(at), index(compare.operands[1])
    if here is None or size is None or not depends_on_elements(here):
        return None
    return Inside(here, size)


def check_selected(subscripts: Sequence[Index], sizes: Sequence[Index]) -> None:
    """Reject subscripts that are selected by a size other than the array's, which calls do not check.

    Raises:
        Unsupported: a subscript is selected by another size, or something is computed from the selected
            number.
    """
    for subscript, size in zip(subscripts, sizes, strict=True):
        # Selecting by the array's own size is correct, but the operands of the selection must not be
        # selected.
        inner = subscript
        if isinstance(inner, Inside) and inner.size == size:
            inner = inner.of
        if isinstance(inner, FromEnd) and inner.size == size:
            inner = inner.of
        if _is_selected(inner):
            raise Unsupported(
                "an index that arith.select moves into an array has another use",
                "select it by the size of the dimension that it indexes, and do not compute with it",
            )


def _is_selected(index: Index) -> bool:
    """Whether a part of an index is selected, except subscripts of elements, which are checked separately."""
    match index:
        case FromEnd() | Inside():
            return True
        case FloorDiv(of) | Mod(of):
            return _is_selected(of)
        case Bitwise(_, left, right):
            return _is_selected(left) or _is_selected(right)
        case Sum(parts, _):
            return any(_is_selected(part) for part, _ in parts)
    return False
