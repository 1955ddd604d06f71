"""Request lines of a later entry of the offset tables while a copy runs at the current one."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import least, let, loop, minus, plus
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Call, For, Function, Let, Statement, View
from codegen.ir.rewriting import Body, rewrite_body
from codegen.ir.values import Load
from codegen.passes.prefetch_bytes import prefetch_bytes
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import Prefetch
from codegen.schedule.offset_tables import OFFSET_TABLES
from codegen.support.lookups import expect

DISTANCE = "later_distance"
"""The local that holds the bytes from the source of an entry to that of the later one."""


def prefetch_entry(function: Function, nest: CopyNest, how: Prefetch) -> Function:
    """Request the source lines of a later entry: hardware cannot predict entries.

    before:  for entry in begin..end: src_offset = src_offsets[entry]; …
    after:   for entry in begin..end: src_offset = src_offsets[entry]; …
               later_offset = src_offsets[min(entry + prefetch_entries, end - 1)]
               for x in 0..prefetch_bytes step 64: prefetch src[later_offset + prefetch_low + x]

    A copy that reads its entry in order requests what its super-vectors load in the later entry: requests for
    all lines at once would stall.

    after:   for entry in begin..end: src_offset = src_offsets[entry]; …
               later_distance = src_offsets[min(entry + prefetch_entries, end - 1)] - src_offset
               for x in 0..count step 64: dst_entry[x] = src_entry[x] [64]
                 prefetch src_entry[x + later_distance] [64]
    """

    def in_entries(node: Statement) -> Body:
        if not isinstance(node, For) or node.index != how.loop:
            return (node,)
        later = least(plus(node.index, how.distance), plus(*node.upper, -1))
        offset = Let("later_offset", Load(OFFSET_TABLES[0], (later,), "i64"))
        if nest.reads_in_order:
            return (_after_views(node, offset, let(DISTANCE, minus("later_offset", "src_offset"))),)
        line = Call("prefetch_line", (plus("src", "later_offset", "prefetch_low", "x"),))
        return (_after_views(node, offset, loop("x", 0, "prefetch_bytes", line, step=LINE_BYTES)),)

    function = replace(function, body=rewrite_body(function.body, in_entries))
    return (
        prefetch_bytes(function, nest, replace(how, distance=DISTANCE)) if nest.reads_in_order else function
    )


def _after_views(node: For, *requests: Statement) -> For:
    """A loop with statements after its views."""
    numbered = (k for k, x in enumerate(node.body) if not isinstance(x, Let | View))
    first = expect(numbered, "a statement", f"the loop over {node.index}")
    return replace(node, body=(*node.body[:first], *requests, *node.body[first:]))
