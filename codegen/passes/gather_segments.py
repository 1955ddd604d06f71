"""Lower gathers: segments of the destination are assembled in a buffer, then streamed in full lines."""

from __future__ import annotations

from codegen.ir.building import Term, compare, least, let, loop, minus, plus, rest, times
from codegen.ir.index import Affine, Index, index_symbol
from codegen.ir.lines import LINE_BYTES
from codegen.ir.names import END
from codegen.ir.nodes import Alloc, Call, Carried, For, If, Let, Statement, Store, View
from codegen.ir.rewriting import Body
from codegen.ir.values import Entries, IndexValue, Load, Local
from codegen.passes.lines import line, to_line
from codegen.passes.row_buffers import after_lines, begun_before, in_lines
from codegen.passes.sides import Sides
from codegen.passes.tails import Vectors, followed
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.limits import GATHERED_MOVES, MOVE_PREFETCH_INTERVALS
from codegen.schedule.segments import (
    BYTES,
    DST,
    HALF,
    HEAD,
    MOVES,
    NEXT,
    PART,
    SEGMENT_FIELDS,
    SRC,
)

MEMORY = "buffer_memory"
"""The memory of the buffer, with a line in front."""


def lower_gather(nest: CopyNest, sides: Sides) -> tuple[Body, Body, str]:
    """The buffer, the loop over segments, and what moves; adjacent segments may share a line.

    before:  dst <- chunks of src, streamed, segment by segment
    after:   carried = 0
             for entry in begin..end:
               source, start, part, next_source, segment_bytes = segments[5 * entry] …
               buffer = buffer_memory + 64 + dst_entry % 64
               for each width in 64, 32, 16, 8, 4, 2, 1:
                 for move in … step 4:  buffer[«moves».high[move]] = src_entry[«moves».low[move]] [4, width]
                 prefetch next_entry[«moves».low[move]]; narrower: 1 move
               if segment_bytes > 0:
                 the bytes before the first full line, unless they are carried in the buffer
                 for line in head..stop step 64:  dst_entry[line] = buffer[line] [64] @streamed
                 carry the bytes after the last full line to an adjacent segment, else copy them

    An entry is the part of a segment that one box contributes. The last part has the segment's length. The
    buffer has a line in front for carried bytes, and holds a segment at its destination's offset in a line.
    """
    drained = If((compare("segment_bytes", "gt", 0),), _drained(), (let("carries", "carried"),))
    body = (*_views(sides), *_assembled(), drained)
    carried = Carried("carried", IndexValue(Affine()), Local("carries", "i64"))
    entries = For("entry", (Affine(),), (index_symbol(END),), 1, body, (carried,))
    widths = f"{', '.join(map(str, MOVES[:-1]))} or {MOVES[-1]}"
    moved = f"buffer[high + b] = src[entry, low + b] for the halves of each move of {widths} bytes"
    what = f"dst[entry, x] = buffer[x], x < segment_bytes, where {moved}"
    return (Alloc(MEMORY, nest.scratch_bytes, "scratch"),), (entries,), what


def _views(sides: Sides) -> tuple[Statement, ...]:
    """The fields of an entry, and the views that its moves use."""
    parts = ("src_entry", "source"), ("next_entry", "next_source")
    source = tuple(View(name, sides.src, index_symbol(offset)) for name, offset in parts)
    padding = tuple(View(name, "pattern", Affine()) for name, _ in parts)
    return (
        _field("source", SRC),
        _field("start", DST),
        _field("part", PART),
        _field("next_source", NEXT),
        _field("segment_bytes", BYTES),
        View("dst_entry", sides.dst, index_symbol("start")),
        View("buffer", MEMORY, plus(rest("dst_entry", LINE_BYTES), LINE_BYTES)),
        Let("is_padding", Load("moves", (plus("part", HEAD - 1),), "i64")),
        If((compare("is_padding", "eq", 0),), source, padding),
    )


def _field(name: str, field: int, entry: Term = "entry") -> Let:
    """A field of an entry of the table of segments."""
    return Let(name, Load("segments", (plus(times(entry, SEGMENT_FIELDS), field),), "i64"))


def _assembled() -> tuple[Statement, ...]:
    """All moves of a part, which follow the ends of each width's moves in the table."""
    out: list[Statement] = []
    first: Index = plus("part", HEAD)
    for k, width in enumerate(MOVES):
        stop = f"stop_{width}"
        out.append(Let(stop, Load("moves", (plus("part", k),), "i64")))
        several = (Vectors(count, _moves(width, count)) for count in (GATHERED_MOVES, 1))
        out += followed(loop("move", first, stop), tuple(several), 0)
        first = index_symbol(stop)
    return tuple(out)


def _moves(width: int, count: int) -> tuple[Statement, ...]:
    """`count` moves, whose sources are also requested in the part's next segment.

    There are fewer requests for narrow chunks, which mostly share lines. The table entries are read before
    any store, so that LLVM reads them only once.
    """
    start, shape, move = (Affine(),), (count, width), index_symbol("move")
    sources, targets = (Entries("moves", move, half) for half in ("low", "high"))
    chunks = Local("chunks", "bits8", shape)
    load = Let("chunks", Load("src_entry", start, "bits8", shape, (0, 0), (sources, 1)))
    lets, requests = [], []
    for k in range(0, count, MOVE_PREFETCH_INTERVALS.get(width, GATHERED_MOVES)):
        lets.append(Let(f"ahead_{k}", Load("moves", (plus(move, k),), "i64")))
        requests.append(Call("prefetch_line", (plus("next_entry", rest(f"ahead_{k}", HALF)),)))
    return *lets, load, Store("buffer", start, chunks, (0, 0), (targets, 1)), *requests


def _drained() -> tuple[Statement, ...]:
    """Move a finished segment out of the buffer, except for bytes of a line that the next segment completes.

    Bytes that the segment before left in the buffer have negative offsets.
    """
    run, is_first = ("dst_entry", "buffer", "segment_bytes"), compare("carried", "eq", 0)
    head = begun_before("dst_entry", is_first, least(to_line("dst_entry"), "segment_bytes"))
    next_start = _field("next_start", DST, least(plus("entry", 1), minus(END, 1)))
    adjacent = compare("next_start", "eq", plus("start", "segment_bytes"))
    kept = line("buffer", "buffer", "stop").value
    carry = Store(MEMORY, (Affine(LINE_BYTES),), kept, (0,), (1,)), let("carries", 1)
    others = *after_lines(*run), let("carries", 0)
    end = If((compare("stop", "lt", "segment_bytes"), adjacent), carry, others)
    return *in_lines(*run, head, is_first), next_start, end
