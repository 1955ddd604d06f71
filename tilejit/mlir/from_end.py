"""Subscripts that count from the end of an array if they are negative, as in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation, SSAValue

from codegen import Affine, FloorDiv, FromEnd, Index, Mod, Sum
from tilejit.mlir.arithmetic import INTEGER_PREDICATES
from tilejit.mlir.places import Unsupported


def from_end(op: Operation, index: Callable[[SSAValue], Index | None]) -> Index | None:
    """The subscript that arith.select gives; None if it selects something else.

    %below = arith.cmpi slt, %k, %c0            FromEnd(k, n)
    %more = arith.addi %k, %n
    %at = arith.select %below, %more, %k

    index  what a value is as an index expression, if it is one
    """
    test, moved, at = op.operands
    compare, add = test.owner, moved.owner
    if not (isinstance(compare, Operation) and isinstance(add, Operation)):
        return None
    if compare.name != "arith.cmpi" or add.name != "arith.addi" or at not in add.operands:
        return None
    predicate = INTEGER_PREDICATES[compare.properties["predicate"].value.data]
    if predicate != "slt" or compare.operands[0] != at or index(compare.operands[1]) != Affine():
        return None
    here, size = index(at), index(add.operands[0] if add.operands[1] == at else add.operands[1])
    return None if here is None or size is None else FromEnd(here, size)


def check_from_end(subscripts: Sequence[Index], sizes: Sequence[Index]) -> None:
    """Refuse subscripts that count from anywhere but the end of the array: calls check only those.

    Raises:
        Unsupported: that, or more than the subscript is computed from such a number.
    """
    for subscript, size in zip(subscripts, sizes, strict=True):
        # What counts from the array's own end is no mistake, but what it is made of must not count either.
        inner = subscript
        if isinstance(subscript, FromEnd) and subscript.size == size:
            inner = subscript.of
        if _counts(inner):
            raise Unsupported(
                "an index that counts from the end of an array where it is negative has another use",
                "add the size of the dimension that it is a subscript of, and compute nothing more from it",
            )


def _counts(index: Index) -> bool:
    """Whether a part counts from an end, leaving out the subscripts of elements, which are checked alone."""
    match index:
        case FromEnd():
            return True
        case FloorDiv(of) | Mod(of):
            return _counts(of)
        case Sum(parts, _):
            return any(_counts(part) for part, _ in parts)
    return False
