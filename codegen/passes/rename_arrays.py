"""Specialize loop functions for calls that pass one array for several arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from codegen.ir.nodes import For, Function, Let, Statement, Store
from codegen.ir.values import Load, Op, Reduce, Value


def rename_arrays(function: Function, names: Mapping[str, str]) -> Function:
    """Redirect accesses from some arrays to others, for a call that passes one array for both.

    Arrays whose elements are subscripts keep their names: they share no memory with written arrays.

    C[i] = A[i] + B[i], {"C": "A"} -> A[i] = A[i] + B[i]
    """

    def value(node: Value) -> Value:
        match node:
            case Load():
                return replace(node, array=names.get(node.array, node.array))
            case Op():
                return replace(node, operands=tuple(map(value, node.operands)))
            case Reduce():
                return replace(node, vector=value(node.vector), start=value(node.start))
        return node

    def statement(node: Statement) -> Statement:
        match node:
            case Let():
                return replace(node, value=value(node.value))
            case Store():
                where = None if node.where is None else value(node.where)
                array = names.get(node.array, node.array)
                return replace(node, array=array, value=value(node.value), where=where)
            case For():
                carried = tuple(
                    replace(c, start=value(c.start), update=value(c.update)) for c in node.carried
                )
                return replace(node, body=tuple(map(statement, node.body)), carried=carried)
            case _:
                raise AssertionError(f"rename_arrays: no rule for {type(node).__name__}")

    body = tuple(map(statement, function.body))
    return replace(function, body=body, results=tuple(map(value, function.results)))
