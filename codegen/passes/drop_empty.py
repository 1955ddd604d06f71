"""Remove accesses to empty arrays, if masks exclude all out-of-bounds accesses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from codegen.ir.index import Index, evaluate_index, inside_parts
from codegen.ir.nodes import Function, Statement, Store
from codegen.ir.rewriting import map_value, map_values, rewrite_body
from codegen.ir.values import Const, IndexValue, Load, Value


def drop_empty(function: Function, values: Mapping[str, int]) -> Function:
    """Replace masked loads from empty arrays by 0, and drop masked stores to them.

    before:  y[i] = select(0 <= idx[i] < x.shape[0], x[idx[i] inside], 0)
    after:   y[i] = select(0 <= idx[i] < x.shape[0], 0, 0)                    x.shape[0] = 0

    values: the sizes of arrays and the integer arguments.
    """

    def outside(*indices: Index) -> bool:
        parts = (part for index in indices for part in inside_parts(index))
        return any(evaluate_index(part.size, values) == 0 for part in parts)

    def part(node: Value) -> Value:
        match node:
            case Load(_, subscripts, dtype) if outside(*subscripts):
                return Const(False if dtype == "i1" else 0 if dtype[0] in "iu" else 0.0, dtype)
            case IndexValue(index) if outside(index):
                return Const(-1, "i64")
        return node

    def statement(node: Statement) -> tuple[Statement, ...]:
        if isinstance(node, Store) and outside(*node.subscripts):
            return ()
        return (map_values(node, lambda value: map_value(value, part)),)

    body = rewrite_body(function.body, statement)
    return replace(function, body=body, results=tuple(map_value(each, part) for each in function.results))
