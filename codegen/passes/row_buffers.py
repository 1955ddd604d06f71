"""Runs of the destination that begin anywhere in a line: they go through scratch, and leave it in lines."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import Term, compare, index_of, least, let, loop, minus, multiple, plus, rest, times
from codegen.ir.index import Index
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Call, Compare, If, Let, Store, View
from codegen.ir.rewriting import Body
from codegen.ir.values import IndexValue, Op, Value
from codegen.passes.lines import line, to_line

LINE = "line"
"""The loop over the lines of a run that leaves scratch."""


def drained(
    out: str, held: str, count: Term, ends: tuple[Compare, Compare] | None = None, *, streamed: bool = True
) -> Body:
    """Store a run of the destination from scratch.

    before:  out[x] = held[x], x < count bytes
    after:   the bytes before the first line
             for line in head..stop step 64: out[line] = held[line] [64] @streamed
             the bytes after the last line

    Lines begin where the destination's do. A part of a longer run begins with the bytes of a line that wait
    in front of it in scratch; its own bytes after the last line go there, for the next part.

    ends  whether it is the first part of a longer run, and whether it is the last
    """
    if ends is None:
        head: Value = IndexValue(least(to_line(out), count))
        after = If((compare("stop", "lt", count),), after_lines(out, held, count))
        return *in_lines(out, held, count, head, compare("head", "gt", 0), streamed=streamed), after
    begins, finishes = ends
    last = line(held, held, plus(count, -LINE_BYTES)).value
    waiting = Store(held, (index_of(-LINE_BYTES),), last, (0,), (1,))
    after = If((finishes,), after_lines(out, held, count), (waiting,))
    head = begun_before(out, begins, to_line(out))
    return *in_lines(out, held, count, head, begins, streamed=streamed), after


def begun_before(out: str, begins: Compare, head: Index) -> Value:
    """Where the lines of a part of a run begin: at `head`, or before the part if another one began a line."""
    is_first = Op("eq", (IndexValue(begins.left), IndexValue(begins.right)), "i1")
    return Op("select", (is_first, IndexValue(head), IndexValue(times(rest(out, LINE_BYTES), -1))), "i64")


def in_lines(
    out: str, held: str, count: Term, head: Value, begins: Compare, *, streamed: bool = True
) -> Body:
    """Store the bytes of a run before its first line, if it begins there, and its full lines."""
    lines = loop(LINE, "head", "stop", replace(line(out, held, LINE), streamed=streamed), step=LINE_BYTES)
    return (
        Let("head", head),
        let("stop", plus("head", multiple(minus(count, "head"), LINE_BYTES))),
        If((begins,), (Call("drain_part", (out, held, index_of("head"))),)),
        lines,
    )


def after_lines(out: str, held: str, count: Term) -> Body:
    """Store the bytes of a run after its last line."""
    ends = View(f"{out}_end", out, index_of("stop")), View(f"{held}_end", held, index_of("stop"))
    return *ends, Call("drain_part", (ends[0].name, ends[1].name, minus(count, "stop")))
