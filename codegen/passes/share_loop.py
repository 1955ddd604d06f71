"""Let the caller choose the range of the loop that threads share."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import least, times
from codegen.ir.nodes import For, Function, Statement
from codegen.ir.rewriting import Body, rewrite_body
from codegen.schedule.copy_nest import CopyNest


def share_loop(function: Function, nest: CopyNest) -> Function:
    """Run the shared loop from `begin` to `end`, which count its iterations.

    before:  for row_tile in 0..rows step 96: …
    after:   for row_tile in 96*begin..min(96*end, rows) step 96: …
    """

    def shared(node: Statement) -> Body:
        if not isinstance(node, For) or node.index != nest.shared:
            return (node,)
        first, last = times("begin", node.step), times("end", node.step)
        last = least(last, *node.upper) if node.step > 1 else last
        return (replace(node, lower=(first,), upper=(last,)),)

    return replace(function, body=rewrite_body(function.body, shared))
