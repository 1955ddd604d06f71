"""Compute with single integers in 64 bits, as Python's operators in kernels do, and truncate each result."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.nodes import Function
from codegen.ir.rewriting import map_value, map_values
from codegen.ir.values import Op, Value
from codegen.schedule.directives import Directed

OPERATORS = ("add", "sub", "mul", "and", "or", "xor", "neg", "not")
"""Operations that kernels express by an operator."""

OF_BOOLEANS = {"min": "and", "max": "or"}
"""Operations on booleans that use the operator of another operation."""


def resize_integers(function: Function, _: Directed) -> Function:
    """Replace integer operations with 64-bit ones, and cast their results back.

    before:  t = add(x, y) : i32
    after:   t = cast(add(cast(x) : i64, cast(y) : i64) : i64) : i32

    Operators on booleans may return integers, so their results are also cast. Registers keep their sizes.
    """
    body = tuple(map_values(s, lambda value: map_value(value, _resized)) for s in function.body)
    return replace(function, body=body)


def _resized(node: Value) -> Value:
    match node:
        case Op("not", _, "i1"):
            return node
        case Op(name, _, "i1", ()) if name in (*OPERATORS, *OF_BOOLEANS):
            return Op("cast", (replace(node, name=OF_BOOLEANS.get(name, name)),), "i1")
        case Op(name, operands, dtype, ()) if name in OPERATORS and dtype[0] in "iu" and dtype != "i64":
            wide = f"{dtype[0]}64"
            return Op("cast", (Op(name, tuple(_as(x, wide) for x in operands), wide),), dtype)
    return node


def _as(value: Value, dtype: str) -> Value:
    return value if value.dtype == dtype else Op("cast", (value,), dtype)
