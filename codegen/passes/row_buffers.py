"""Runs of the destination that are not aligned to lines: they go through scratch, and leave it in full lines.

In scratch each row follows a spare line, which holds the bytes that do not fill a line yet.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import Term, compare, index_of, least, let, loop, minus, multiple, plus, rest, times
from codegen.ir.index import Index, index_symbol
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Alloc, Call, Compare, If, Let, Statement, Store, View
from codegen.ir.rewriting import Body
from codegen.ir.values import IndexValue, Op, Value
from codegen.passes.lines import line, to_line
from codegen.schedule.offset_tables import CHUNK_BYTES

ROW_PITCH = CHUNK_BYTES + 2 * LINE_BYTES
"""Bytes from one row in scratch to the next."""


LINE = "line"
"""The loop over the lines of a run that leaves scratch."""

ROWS = "scratch_rows"
"""The view of the first row in scratch."""


def scratch_rows(count: int) -> tuple[Statement, ...]:
    """Scratch for `count` rows, the first one after its spare line."""
    return Alloc("row_buffers", count * ROW_PITCH), View(ROWS, "row_buffers", index_of(LINE_BYTES))


def chunk_rows(name: str, left: Index, size: Term, least: int) -> tuple[Statement, ...]:
    """name = left if left < size + least else size: less than a line at the end joins the chunk before it."""
    rest = f"{name}_left"
    rows = IndexValue(index_symbol(rest))
    is_last = Op("lt", (rows, IndexValue(plus(size, least))), "i1")
    chosen = Op("select", (is_last, rows, IndexValue(index_of(size))), "i64")
    return let(rest, left), Let(name, chosen)


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
    up, down = IndexValue(to_line(out)), IndexValue(times(rest(out, LINE_BYTES), -1))
    waiting: Body = ()
    if ends is None:
        head: Value = IndexValue(least(to_line(out), count))
        begins, finishes = compare("head", "gt", 0), compare("stop", "lt", count)
    else:
        begins, finishes = ends
        is_first = Op("eq", (IndexValue(begins.left), IndexValue(begins.right)), "i1")
        head = Op("select", (is_first, up, down), "i64")
        last = line(held, held, plus(count, -LINE_BYTES)).value
        waiting = (Store(held, (index_of(-LINE_BYTES),), last, (0,), (1,)),)
    after = f"{out}_end", f"{held}_end"
    return (
        Let("head", head),
        let("stop", plus("head", multiple(minus(count, "head"), LINE_BYTES))),
        If((begins,), (Call("drain_part", (out, held, index_of("head"))),)),
        loop(LINE, "head", "stop", replace(line(out, held, LINE), streamed=streamed), step=LINE_BYTES),
        If(
            (finishes,),
            (
                View(after[0], out, index_of("stop")),
                View(after[1], held, index_of("stop")),
                Call("drain_part", (*after, minus(count, "stop"))),
            ),
            waiting,
        ),
    )
