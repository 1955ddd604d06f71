"""Lower requests: prefetches of source lines that a later copy reads."""

from __future__ import annotations

from codegen.ir.building import loop, plus
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Call
from codegen.passes.lower_copies.lowered import Lowered, Sides
from codegen.schedule.transfers import RequestRun


def lower_requests(run: RequestRun, sides: Sides) -> Lowered:
    """Request the lines of `count` bytes.

    before:  request src, count bytes
    after:   for x in 0..count step 64: prefetch src[x]
    """
    line = Call("prefetch_line", (plus(sides.src, "x"),))
    body = loop("x", 0, run.count, line, step=LINE_BYTES)
    return Lowered((body,), f"prefetch src[{{at}}x], x < {run.count} bytes", "One request per line")
