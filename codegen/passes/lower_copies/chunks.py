"""Lower chunks: parts of lines, contiguous in the destination, at offsets from a table in the source."""

from __future__ import annotations

from codegen.ir.building import Term, compare, index_of, least, loop, minus, multiple, plus, rest, times
from codegen.ir.index import index_symbol
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Call, Entries, If, Let, Load, Local, Op, Statement, Store
from codegen.passes.lower_copies.lowered import Lowered, Sides
from codegen.schedule.limits import CHUNK_PREFETCH_BYTES, PREFETCH_CHUNKS
from codegen.schedule.offset_tables import LINE_TABLE
from codegen.schedule.transfers import CopyChunks


def lower_chunks(chunks: CopyChunks, sides: Sides) -> Lowered:
    """Join chunks to full lines of the destination, which go past the cache if streaming.

    before:  copy_chunks dst <- src, count chunks of 16 bytes
    after:   for x in 0..count // 4 * 4 step 4:
               prefetch src[16*x + 256]
               dst[16*x] = joined(src[«line_offsets»[x..x + 4]] [4, 1])
             and the chunks after the last full line

    Streaming needs a destination that is aligned and consists of full lines.
    """
    dst, src, width, count = sides.dst, sides.src, chunks.width, chunks.count
    lanes = LINE_BYTES // width
    what = f"dst[{{at}}, x] = src[{{at}}, {LINE_TABLE}[x]], x < {count} chunks of {width} bytes"
    how = f"Super-vectors of {lanes} x {width} bytes"
    plain = _copied(dst, src, count, width)
    if not chunks.stream:
        return Lowered(plain, what, how)
    aligned = compare(rest(dst, LINE_BYTES), "eq", 0), compare(rest(count, lanes), "eq", 0)
    body = If(aligned, (_streamed(dst, src, count, width),), plain)
    return Lowered((body,), what, f"{how}, streamed", opaque=True)


def _line(dst: str, src: str, width: int, *, stream: bool = False) -> tuple[Statement, Statement]:
    """A line of the destination from as many chunks as fill it."""
    lanes, dtype = LINE_BYTES // width, f"bits{8 * width}"
    steps = Entries(LINE_TABLE, index_symbol("x")), width
    chunks = Load(src, (index_of(0),), dtype, (lanes, 1), (0, 0), steps)
    line = Op("joined", (Local("chunks", dtype, (lanes, 1)),), dtype, (lanes,))
    store = Store(dst, (times("x", width),), line, (0,), (width,), streamed=stream)
    return Let("chunks", chunks), store


def _prefetch_near(src: str, width: int) -> Statement:
    return Call("prefetch_line", (plus(src, times("x", width), CHUNK_PREFETCH_BYTES),))


def _copied(dst: str, src: str, count: Term, width: int) -> tuple[Statement, ...]:
    """Full lines, then the chunks after the last one."""
    lanes = LINE_BYTES // width
    whole = multiple(count, lanes)
    lines = loop("x", 0, whole, _prefetch_near(src, width), *_line(dst, src, width), step=lanes)
    offset = Let("x_offset", Load(LINE_TABLE, (index_symbol("x"),), "i64"))
    value = Load(src, (index_symbol(offset.name),), f"bits{8 * width}")
    one = Store(dst, (times("x", width),), value)
    return lines, loop("x", whole, count, offset, one)


def _streamed(dst: str, src: str, count: Term, width: int) -> Statement:
    """Full lines. Many chunks prefetch the one that is read 64 chunks later."""
    lanes, line = LINE_BYTES // width, _line(dst, src, width, stream=True)
    near = loop("x", 0, count, _prefetch_near(src, width), *line, step=lanes)
    later = least(plus("x", PREFETCH_CHUNKS), minus(count, 1))
    ahead = (
        Let("x_ahead", Load(LINE_TABLE, (later,), "i64")),
        Call("prefetch_line", (plus(src, "x_ahead"),)),
    )
    far = loop("x", 0, count, *ahead, *line, step=lanes)
    return If((compare(count, "le", PREFETCH_CHUNKS),), (near,), (far,))
