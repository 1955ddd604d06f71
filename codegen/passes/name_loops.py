"""Give each loop an identifier of its own, by which directives name it."""

from __future__ import annotations

import re
from dataclasses import replace

from codegen.analysis.bodies import defined, flat
from codegen.ir.index import rename_index
from codegen.ir.nodes import For, Function, Statement
from codegen.ir.rewriting import map_indices
from codegen.passes.new_names import fresh_name
from codegen.schedule.loop_groups import LEVELS


def name_loops(function: Function) -> Function:
    """Rename the indices of loops whose name is that of an earlier one, or not a Python identifier.

    before:  for i in 0..n: B[i] = A[i];  for i.1 in 0..n: C[i.1] = A[i.1]
    after:   for i in 0..n: B[i] = A[i];  for i_1 in 0..n: C[i_1] = A[i_1]

    A loop that has the name of the tiles of another one is renamed as well: i_tile, beside a loop over i.
    """
    indices = {node.index for node in flat(function.body) if isinstance(node, For)}
    identifiers = {re.sub(r"\W", "_", index) for index in indices}
    taken = {argument.name for argument in function.arguments} | (defined(function.body) - indices)
    taken |= {f"{name}_{level}" for name in identifiers for level in LEVELS}

    def free(name: str) -> str:
        """The name, or one with a number, that is neither taken nor has tiles named like another loop."""
        new = fresh_name(name, taken)
        while new != name and identifiers & {f"{new}_{level}" for level in LEVELS}:
            new = fresh_name(name, taken)
        return new

    def named(node: Statement) -> Statement:
        if not isinstance(node, For):
            return node
        old, new = node.index, free(re.sub(r"\W", "_", node.index))
        if new != old:
            renamed = map_indices(replace(node, index=new), lambda index: rename_index(index, {old: new}))
            assert isinstance(renamed, For), "a renamed loop is a loop"
            node = renamed
        return replace(node, body=tuple(map(named, node.body)))

    return replace(function, body=tuple(map(named, function.body)))
