"""Lower chunks: parts of lines, contiguous in the destination, at offsets from a table in the source."""

from __future__ import annotations

from codegen.ir.building import index_of, loop, times
from codegen.ir.index import index_symbol
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Blocks, Let, Narrow, Statement, Store, Streamed
from codegen.ir.values import Entries, Load, Local, Op
from codegen.passes.lower_copies.lowered import Lowered, Sides, moved_element
from codegen.schedule.offset_tables import LINE_TABLE
from codegen.schedule.transfers import CopyChunks


def lower_chunks(chunks: CopyChunks, sides: Sides) -> Lowered:
    """Join chunks into full lines of the destination, which bypass the cache if streamed.

    before:  copy_chunks dst <- src, count chunks of 16 bytes
    after:   for x in 0..count step 4: dst[16*x] = joined(src[«line_offsets»[x..x + 4]] [4, 1])
             narrower: single chunks

    Streaming needs a destination that is aligned and consists of full lines.
    """
    dst, src, width, count = sides.dst, sides.src, chunks.width, chunks.count
    lanes = LINE_BYTES // width
    what = f"dst[{{at}}x] = src[{{at}}{LINE_TABLE}[x]], x < {count} chunks of {width} bytes"
    how = f"Super-vectors of {lanes} x {width} bytes"
    ahead, entries = chunks.schedule.prefetch_bytes, chunks.schedule.prefetch_chunks
    full = Streamed("full", prefetch_bytes=ahead, entries_ahead=entries)
    streamed = (full,) if chunks.stream else ()
    one = Narrow(1, _chunk(dst, src, width))
    blocks = Blocks((one,), shifts=False, streamed=streamed, prefetch_bytes=ahead)
    body = loop("x", 0, count, *_line(dst, src, width), step=lanes, blocks=blocks)
    return Lowered((body,), what, how, opaque=chunks.stream)


def _line(dst: str, src: str, width: int) -> tuple[Statement, Statement]:
    """A line of the destination from as many chunks as fill it."""
    lanes, dtype = LINE_BYTES // width, f"bits{8 * width}"
    steps = Entries(LINE_TABLE, index_symbol("x")), width
    chunks = Load(src, (index_of(0),), dtype, (lanes, 1), (0, 0), steps)
    line = Op("joined", (Local("chunks", dtype, (lanes, 1)),), dtype, (lanes,))
    return Let("chunks", chunks), Store(dst, (times("x", width),), line, (0,), (width,))


def _chunk(dst: str, src: str, width: int) -> tuple[Statement, ...]:
    """A single chunk."""
    offset = Let("x_offset", Load(LINE_TABLE, (index_symbol("x"),), "i64"))
    return offset, *moved_element(width, dst, times("x", width), src, index_symbol(offset.name))
