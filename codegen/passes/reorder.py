"""Interchange the loops of a kernel, as directives say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codegen.ir.nodes import For, Function, Statement
from codegen.schedule.directives import Directive
from codegen.schedule.loop_groups import group_at


def reorder(function: Function, directives: Sequence[Directive]) -> Function:
    """Interchange perfectly nested loops. `tile` later adds the loops over tiles to them.

    before:  for i in 0..n: for j in 0..m: C[j, i] = A[i, j]     Reorder("j", "i")
    after:   for j in 0..m: for i in 0..n: C[j, i] = A[i, j]
    """

    def reordered(node: Statement) -> Statement:
        if not isinstance(node, For):
            return node
        group = group_at(node, directives)
        if group is None:
            return replace(node, body=tuple(map(reordered, node.body)))
        body = tuple(map(reordered, group.loops[-1].body))
        for loop in reversed(group.point_loops):
            body = (replace(loop, body=body),)
        return body[0]

    return replace(function, body=tuple(map(reordered, function.body)))
