"""Let the caller choose the range of the loop that calls share, such as those of several threads."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import greatest, least, plus, times
from codegen.ir.names import BEGIN, END
from codegen.ir.nodes import For, Function, Statement
from codegen.ir.rewriting import Body, rewrite_body
from codegen.passes.loop_bounds import ends
from codegen.schedule.directives import Directed


def share_loop(function: Function, schedule: Directed) -> Function:
    """Run the shared loop from `begin` to `end`, which count its iterations.

    before:  for row_tile in 0..rows step 96: …
    after:   for row_tile in 96*begin..min(96*end, rows) step 96: …
    """

    def shared(node: Statement) -> Body:
        if not isinstance(node, For) or node.index != schedule.shared:
            return (node,)
        first, last = ends(node)
        begin, end = (plus(first, times(x, node.step)) for x in (BEGIN, END))
        if node.step > 1:
            end = least(end, last)
        elif node.step < -1:
            end = greatest(end, last)
        return (replace(node, lower=(begin,), upper=(end,)),)

    return replace(function, body=rewrite_body(function.body, shared))
