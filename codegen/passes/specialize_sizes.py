"""Specialize loop functions for arrays of known shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from codegen.ir.index import Affine, substitute_index
from codegen.ir.nodes import Function
from codegen.ir.rewriting import map_value, substituted
from codegen.ir.values import IndexValue, Value


def specialize_sizes(function: Function, shapes: Mapping[str, tuple[int | None, ...]]) -> Function:
    """Replace the sizes of arrays by numbers; None stays a size that calls know.

    before:  for i in 0..A.shape[0]: C[i] = A[i]
    after:   for i in 0..1000: C[i] = A[i]
    """
    every = ((f"{name}.shape[{k}]", n) for name, shape in shapes.items() for k, n in enumerate(shape))
    sizes = {name: Affine(n) for name, n in every if n is not None}

    def value(node: Value) -> Value:
        if not isinstance(node, IndexValue):
            return node
        index = node.index
        for name, size in sizes.items():
            index = substitute_index(index, name, size)
        return replace(node, index=index)

    body = function.body
    for name, size in sizes.items():
        body = tuple(substituted(statement, name, size) for statement in body)
    results = tuple(map_value(result, value) for result in function.results)
    return replace(function, body=body, results=results)
