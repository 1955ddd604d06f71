"""Give each loop an identifier of its own, by which directives name it."""

from __future__ import annotations

import re
from dataclasses import replace

from codegen.analysis.bodies import defined, flat
from codegen.ir.index import rename_index
from codegen.ir.nodes import For, Function, Statement
from codegen.ir.rewriting import map_indices
from codegen.passes.new_names import fresh_name


def name_loops(function: Function) -> Function:
    """Rename the indices of loops that have the name of an earlier one, or no name of Python.

    before:  for i in 0..n: B[i] = A[i];  for i in 0..n: C[i] = A[i]
    after:   for i in 0..n: B[i] = A[i];  for i2 in 0..n: C[i2] = A[i2]
    """
    indices = {node.index for node in flat(function.body) if isinstance(node, For)}
    taken = {argument.name for argument in function.arguments} | (defined(function.body) - indices)

    def named(node: Statement) -> Statement:
        if not isinstance(node, For):
            return node
        old, new = node.index, fresh_name(re.sub(r"\W", "_", node.index), taken)
        if new != old:
            renamed = map_indices(replace(node, index=new), lambda index: rename_index(index, {old: new}))
            assert isinstance(renamed, For), "a renamed loop is a loop"
            node = renamed
        return replace(node, body=tuple(map(named, node.body)))

    return replace(function, body=tuple(map(named, function.body)))
