"""The combiners of affine.for's carried values."""

from __future__ import annotations

from xdsl.dialects.affine import ForOp
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation, SSAValue

from codegen import COMBINERS
from tilejit.mlir.arithmetic import DIRECT, ON_BITS, UNSIGNED, UNSIGNED_ON_BITS
from tilejit.mlir.types import dtype_of

OF_UNSIGNED = "unsigned "
"""Prefix of combiners of unsigned numbers, to tell them apart from others in a chain."""


def combiner(yielded: SSAValue, carried: SSAValue) -> tuple[str, bool]:
    """The combiner of a value that a loop carries and yields ("" if none), and whether it is unsigned.

    %a + %x -> "add"    (%a + %x) - %y -> "add"    %a * %a -> ""    the sum of an inner loop from %a -> "add"
    arith.maxui %a, %x -> "max", True
    """
    name = _chain(yielded, carried) or ""
    return name.removeprefix(OF_UNSIGNED), name.startswith(OF_UNSIGNED)


def scans_unsigned(yielded: SSAValue, carried: SSAValue) -> bool:
    """Whether a carried value with other uses is the minimum or maximum of unsigned numbers."""
    op = yielded.owner
    if not isinstance(op, Operation) or dtype_of(yielded.type) == "i1":
        return False
    return op.name in ("arith.minui", "arith.maxui") and carried in op.operands


def _chain(value: SSAValue, carried: SSAValue) -> str | None:
    """The operation by which `value` combines the carried value.

    Returns:
        The combiner. "" if `value` is the carried value itself, None if it cannot be a reduction of it.
    """
    if len(list(value.uses)) != 1:
        return None
    if value is carried:
        return ""
    op = value.owner
    if isinstance(op, ForOp):
        return _through_loop(value, op, carried)
    if not isinstance(op, Operation) or len(op.operands) != 2:
        return None
    if any(isinstance(operand.type, VectorType) for operand in op.operands):
        return None
    name = _combines(op, dtype_of(value.type))
    # Subtractions from a sum, in any order, reduce like a sum.
    name, among = ("add", op.operands[:1]) if name == "sub" else (name, op.operands)
    if name.removeprefix(OF_UNSIGNED) not in COMBINERS:
        return None
    before = (_chain(operand, carried) for operand in among)
    return name if any(b in ("", name) for b in before if b is not None) else None


def _combines(op: Operation, dtype: str) -> str:
    """The combiner of an operation with two operands; "" if the kernel IR lacks it."""
    if dtype == "i1":
        name = DIRECT.get(op.name, UNSIGNED_ON_BITS.get(op.name, ""))
        return ON_BITS.get(name, name)
    return OF_UNSIGNED + UNSIGNED[op.name] if op.name in UNSIGNED else DIRECT.get(op.name, "")


def _through_loop(value: SSAValue, op: ForOp, carried: SSAValue) -> str | None:
    """The combiner of an inner loop that continues the carried value."""
    k = [*op.results].index(value)
    (block,) = op.body.blocks
    end = block.last_op
    before = _chain(op.inits[k], carried)
    if before is None or end is None or len(end.operands) != len(op.results):
        return None
    inside = _chain(end.operands[k], block.args[1 + k])
    return inside if inside is not None and before in ("", inside) else None
