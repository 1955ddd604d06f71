"""Compute with bf16 and f16 as f32, and round each result."""

from __future__ import annotations

from dataclasses import replace

from codegen.analysis.strides import HALVES
from codegen.ir.dtypes import COMPARISONS
from codegen.ir.families import FAMILIES, OWN_OF_F16
from codegen.ir.instructions import is_instruction
from codegen.ir.nodes import Function
from codegen.ir.prefix_steps import STEPS
from codegen.ir.rewriting import map_value, map_values
from codegen.ir.values import Op, Value
from codegen.schedule.directives import Directed

BELOW = tuple(f"below_{half}" for half in STEPS)
ROWS = tuple(name for name, family in FAMILIES.items() if family.rows == "must")
MOVED = ("select", "broadcast", "first", "last", "slide", *ROWS, *BELOW)
"""Operations that leave each element as it is, as instructions that permute elements do."""


def widen_halves(function: Function, _: Directed) -> Function:
    """Replace each operation on halves by one on f32 between casts.

    before:  t = add(x, y) : bf16
    after:   t = cast(add(cast(x) : f32, cast(y) : f32) : f32) : bf16

    Halves are held as f32, so a cast to f32 costs nothing, and a cast from f32 rounds. Registers of other
    dtypes are cast to halves through f32: f64 to f16 rounds to odd first, so the result is correctly rounded.
    """
    body = tuple(map_values(s, lambda value: map_value(value, _widened)) for s in function.body)
    return replace(function, body=body)


def _widened(node: Value) -> Value:
    if not isinstance(node, Op) or node.name in MOVED or is_instruction(node.name):
        return node
    if node.name == "cast":
        return _cast_by_f32(node) if node.shape else node
    if node.dtype == "f16" and node.name in OWN_OF_F16:
        return node
    if node.dtype in HALVES:
        return _as(replace(node, operands=tuple(map(_wide, node.operands)), dtype="f32"), node.dtype)
    if node.name in COMPARISONS:
        return replace(node, operands=tuple(map(_wide, node.operands)))
    return node


def _cast_by_f32(node: Op) -> Value:
    """A cast of a register from or to halves, in steps of which each begins or ends in f32."""
    (operand,) = node.operands
    if operand.dtype == node.dtype:
        return operand
    if (operand.dtype, node.dtype) == ("f64", "f16"):
        return _as(Op("round_to_odd", (operand,), "f32", node.shape), "f16")
    if operand.dtype in HALVES or node.dtype in HALVES:
        return _as(_as(operand, "f32"), node.dtype)
    return node


def _wide(value: Value) -> Value:
    return _as(value, "f32") if value.dtype in HALVES else value


def _as(value: Value, dtype: str) -> Value:
    return value if value.dtype == dtype else Op("cast", (value,), dtype, value.shape)
