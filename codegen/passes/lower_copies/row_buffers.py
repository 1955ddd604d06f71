"""Result rows that are not aligned to lines: they go through scratch, which is drained in full lines.

In scratch each row follows a spare line, which holds the bytes that do not fill a line yet.
"""

from __future__ import annotations

from codegen.ir.building import Term, index_of, loop, minus, multiple, plus, rest, times
from codegen.ir.copies.tiles import CHUNK_BYTES
from codegen.ir.index import Index, index_symbol
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Alloc, Call, Compare, If, IndexValue, Let, Load, Op, Statement, Store, View

ROW_PITCH = CHUNK_BYTES + 2 * LINE_BYTES
"""Bytes from one row in scratch to the next."""

LEAST_BYTES = 512
"""Rows shorter than this lose more at both ends than full lines gain."""

ROWS = "scratch_rows"
"""The view of the first row in scratch."""


def scratch_rows(count: int) -> tuple[Statement, ...]:
    """Scratch for `count` rows, the first one after its spare line."""
    return Alloc("scratch", count * ROW_PITCH), View(ROWS, "scratch", index_of(LINE_BYTES))


def chunk_rows(name: str, left: Index, size: Term, line: int) -> tuple[Statement, ...]:
    """name = left if left < size + line else size: a rest below a line belongs to the chunk before it."""
    rows = IndexValue(index_symbol("left"))
    is_last = Op("lt", (rows, IndexValue(plus(size, line))), "i1")
    chosen = Op("select", (is_last, rows, IndexValue(index_of(size))), "i64")
    return Let("left", IndexValue(left)), Let(name, chosen)


def drain_row(
    row: str, held: str, count: Term, is_first: Compare, is_last: Compare, source: str, ahead: Index
) -> tuple[Statement, ...]:
    """Store `count` bytes of a result row from scratch, and prefetch a line for each line stored.

    before:  row[x] = held[x], x < count bytes
    after:   if is_first: the bytes before the first full line
             for x in head..stop step 64: row[x] = held[x] [64] @streamed; prefetch source[ahead + x - head]
             if is_last: the bytes after the last full line
             else: the last 64 bytes, to the line in front of the next chunk

    Lines begin where the destination's do. The first one of a later chunk begins in the spare line.
    """
    up, down = rest(times(row, -1), LINE_BYTES), times(rest(row, LINE_BYTES), -1)
    first = Op("eq", (IndexValue(is_first.left), IndexValue(is_first.right)), "i1")
    line = Load(held, (index_symbol("x"),), "bits8", (LINE_BYTES,), (0,), (1,))
    last = Load(held, (plus(count, -LINE_BYTES),), "bits8", (LINE_BYTES,), (0,), (1,))
    ends = View("row_end", row, index_symbol("stop")), View("held_end", held, index_symbol("stop"))
    return (
        Let("head", Op("select", (first, IndexValue(up), IndexValue(down)), "i64")),
        Let("stop", IndexValue(minus(multiple(plus(row, count), LINE_BYTES), row))),
        View("following", source, minus(ahead, "head"), opaque=True),
        If((is_first,), (Call("drain_part", (row, held, index_symbol("head"))),)),
        loop(
            "x",
            "head",
            "stop",
            Store(row, (index_symbol("x"),), line, (0,), (1,), streamed=True),
            Call("prefetch_line", (plus("following", "x"),)),
            step=LINE_BYTES,
        ),
        If(
            (is_last,),
            (*ends, Call("drain_part", ("row_end", "held_end", minus(count, "stop")))),
            (Store(held, (index_of(-LINE_BYTES),), last, (0,), (1,)),),
        ),
    )
