"""Lower runs: bytes that are contiguous on both sides, and runs of the padding value."""

from __future__ import annotations

from codegen.ir.building import Term, compare, index_of, loop
from codegen.ir.index import index_symbol
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Blocks, Call, If, Let, Narrow, Statement, Store, Streamed, View
from codegen.ir.values import Load, Local, Op
from codegen.passes.lower_copies.lowered import Lowered, Sides
from codegen.schedule.limits import RUN_LONG_BYTES, RUN_SHORT_BYTES
from codegen.schedule.transfers import CopyRun, FillRun

LINES_MOVED = "Super-vectors of 64 bytes"


def line(dst: str, src: str, at: Term, count: int = LINE_BYTES) -> Store:
    """dst[at] = src[at], bytes of a line."""
    value = Load(src, (index_of(at),), "bits8", (count,), (0,), (1,))
    return Store(dst, (index_of(at),), value, (0,), (1,))


def part(dst: str, src: str, at: Term, count: Term) -> tuple[Statement, ...]:
    """Fewer bytes than a line, from `at` on."""
    if at == 0:
        return (Call("copy_part", (dst, src, index_of(count))),)
    ends = View(f"{dst}_at", dst, index_of(at)), View(f"{src}_at", src, index_of(at))
    return (*ends, Call("copy_part", (ends[0].name, ends[1].name, index_of(count))))


def lower_run(run: CopyRun, sides: Sides) -> Lowered:
    """Copy `count` bytes; full lines of the destination bypass the cache if streamed.

    before:  copy_run dst <- src, count bytes
    after:   if count >= 2048: memcpy
             else: for x in 0..count step 64: dst[x] = src[x] [64]     narrower: fewer than 64 bytes
    """
    dst, src, count = sides.dst, sides.src, run.count
    what = f"dst[{{at}}x] = src[{{at}}x], x < {count} bytes"
    streamed = _streams(run, sides) if run.stream else ()
    few = Narrow("left", part(dst, src, "x", "left"))
    blocks = Blocks((few,), streamed=streamed)
    lines = loop("x", 0, count, line(dst, src, "x"), step=LINE_BYTES, blocks=blocks)
    block = Call("copy_block", (dst, src, index_of(count)))
    either = If((compare(count, "ge", RUN_LONG_BYTES),), (block,), (lines,))
    return Lowered((lines if run.stream else either,), what, LINES_MOVED)


def _streams(run: CopyRun, sides: Sides) -> tuple[Streamed, ...]:
    """The ways to stream a run. Runs of full lines are often adjacent; others need a size worth their ends.

    Runs at table entries have one path, in which later entries are prefetched.
    """
    if sides.in_table:
        return (Streamed("headed"),)
    return Streamed("full", prefetch_bytes=run.schedule.prefetch_bytes), Streamed("headed", RUN_SHORT_BYTES)


def lower_fill(fill: FillRun, sides: Sides) -> Lowered:
    """Fill `count` bytes, a multiple of the repeated element, with the padding pattern.

    before:  fill_run dst, count bytes
    after:   pattern = padding [64]
             for x in 0..count step 64: dst[x] = pattern     narrower: fewer than 64 bytes
    """
    dst, count = sides.dst, fill.count
    low, high = (Local(name, "i64") for name in FILL)
    pattern = Let("pattern", Op("repeated_line", (low, high), "bits8", (LINE_BYTES,)))
    store = Store(dst, (index_symbol("x"),), Local("pattern", "bits8", (LINE_BYTES,)), (0,), (1,))
    left = Call("fill_part", ("tail", index_symbol("left"), *map(index_symbol, FILL)))
    few = Narrow("left", (View("tail", dst, index_symbol("x")), left))
    body = loop("x", 0, count, store, step=LINE_BYTES, blocks=Blocks((few,), shifts=False))
    what = f"dst[{{at}}x] = padding, x < {count} bytes"
    return Lowered((body,), what, LINES_MOVED, (pattern,))


FILL = ("fill_low", "fill_high")
"""The arguments with the padding pattern, as two eight-byte numbers."""
