"""Load the element that an accumulating store combines its value with."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.nodes import For, Function, Statement, Store
from codegen.ir.values import Op
from codegen.schedule.directives import Directed


def expand_accumulations(function: Function, _: Directed) -> Function:
    """Replace each accumulating store by a load, an operation and a store.

    before:  C[i] += A[i]
    after:   C[i] = C[i] + A[i]
    """
    return replace(function, body=tuple(_expanded(s, function) for s in function.body))


def _expanded(statement: Statement, function: Function) -> Statement:
    match statement:
        case For(body=body):
            return replace(statement, body=tuple(_expanded(s, function) for s in body))
        case Store(accumulate=combiner, value=value) if combiner:
            dtype = function.array(statement.array).dtype
            combined = Op(combiner, (statement.old(dtype), value), dtype, value.shape)
            return replace(statement, value=combined, accumulate="")
    return statement
