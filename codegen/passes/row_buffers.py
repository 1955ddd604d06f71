"""Runs of the destination that are not aligned to lines: they go through scratch, and leave it in full lines.

In scratch each row follows a spare line, which holds the bytes that do not fill a line yet.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import (
    Term,
    compare,
    index_of,
    least,
    let,
    loop,
    minus,
    multiple,
    plus,
    quotient,
    rest,
    times,
)
from codegen.ir.index import Index, index_symbol
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Alloc, Call, Compare, For, If, Let, Statement, Store, View
from codegen.ir.rewriting import Body
from codegen.ir.values import IndexValue, Op, Value
from codegen.passes.lines import line, to_line
from codegen.schedule.offset_tables import CHUNK_BYTES
from codegen.support.dataclasses import dataclass

ROW_PITCH = CHUNK_BYTES + 2 * LINE_BYTES
"""Bytes from one row in scratch to the next."""


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


@dataclass(frozen=True, slots=True)
class Ahead:
    """What to prefetch while a row is drained: the lines of `source` from `offset` on.

    Attributes:
        ratio: (bytes to prefetch, bytes stored meanwhile).
        size: bytes to prefetch, which may touch one line more than the stores; 0 if the lines match.
        opaque: as in `View`; False in the drain of a tile, which has no registers to spare.
    """

    source: str
    offset: Index
    ratio: tuple[int, int] = (1, 1)
    size: int = 0
    opaque: bool = True

    def view(self) -> View:
        """The bytes to prefetch: those at `_scaled(x)` are requested while the line at `x` is stored."""
        return View("following", self.source, minus(self.offset, self._scaled("head")), self.opaque)

    def requests(self) -> tuple[Statement, ...]:
        """The requests while the line at `x` is stored."""
        lines = range(max(self.ratio[0] // self.ratio[1], 1))
        at = self._scaled("x")
        return tuple(Call("prefetch_line", (plus("following", at, k * LINE_BYTES),)) for k in lines)

    def last(self) -> tuple[Statement, ...]:
        """The request for the last byte."""
        end = plus("following", self._scaled("head"), self.size - 1)
        return (Call("prefetch_line", (end,)),) if self.size else ()

    def _scaled(self, position: str) -> Index:
        """Bytes to prefetch for the bytes before a position."""
        source, stored = self.ratio
        return quotient(position, stored // source) if stored > source else times(position, source // stored)


def drained(
    out: str, held: str, count: Term, ends: tuple[Compare, Compare] | None = None, *, streamed: bool = True
) -> Body:
    """Store a run of the destination from scratch.

    before:  out[x] = held[x], x < count bytes
    after:   the bytes before the first line
             for x in head..stop step 64: out[x] = held[x] [64] @streamed
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
        loop("x", "head", "stop", replace(line(out, held, "x"), streamed=streamed), step=LINE_BYTES),
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


def prefetch_in_drain(body: Body, ahead: Ahead) -> Body:
    """The statements of `drained`, possibly after others, with a prefetch for each line stored.

    before:  for x in head..stop step 64: row[x] = held[x] [64] @streamed
    after:   for x in head..stop step 64: row[x] = held[x] [64] @streamed; prefetch source[offset + x - head]
    """
    *before, is_first, lines, is_last = body
    if not isinstance(lines, For):
        raise AssertionError("expected the statements of drained")
    lines = replace(lines, body=(*lines.body, *ahead.requests()))
    return (*before, ahead.view(), is_first, lines, *ahead.last(), is_last)
