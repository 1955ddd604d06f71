"""Lower runs: bytes that are contiguous on both sides, and runs of the padding value."""

from __future__ import annotations

from codegen.ir.building import Term, compare, index_of, least, let, loop, minus, multiple, plus, rest, times
from codegen.ir.index import index_symbol
from codegen.ir.lines import LINE_BYTES, PAGE_PREFETCH_BYTES
from codegen.ir.nodes import Call, If, Let, Load, Local, Op, Statement, Store, View
from codegen.passes.lower_copies.lowered import Lowered, Sides
from codegen.schedule.limits import RUN_LONG_BYTES, RUN_PREFETCH_BYTES, RUN_SHORT_BYTES
from codegen.schedule.transfers import CopyRun, FillRun

STREAMED = "Lines of 64 bytes, streamed"


def line(dst: str, src: str, at: Term, *, stream: bool = False, count: int = LINE_BYTES) -> Store:
    """dst[at] = src[at], bytes of a line."""
    value = Load(src, (index_of(at),), "bits8", (count,), (0,), (1,))
    return Store(dst, (index_of(at),), value, (0,), (1,), streamed=stream)


def part(dst: str, src: str, at: Term, count: Term) -> tuple[Statement, ...]:
    """Fewer bytes than a line, from `at` on."""
    if at == 0:
        return (Call("copy_part", (dst, src, index_of(count))),)
    ends = View(f"{dst}_at", dst, index_of(at)), View(f"{src}_at", src, index_of(at))
    return (*ends, Call("copy_part", (ends[0].name, ends[1].name, index_of(count))))


def copy_run(dst: str, src: str, count: int | str, *, long: bool = True) -> Statement:
    """Copy `count` bytes: full lines, then one more that overlaps the last.

    if count >= 2048: memcpy
    elif count >= 64: for x in 0..count - 64 step 64: dst[x] = src[x] [64]; and the last 64 bytes
    else: fewer than 64 bytes

    `long` says whether there may be RUN_LONG_BYTES.
    """
    last = minus(count, LINE_BYTES)
    lines = (loop("x", 0, last, line(dst, src, "x"), step=LINE_BYTES), line(dst, src, last))
    short = If((compare(count, "ge", LINE_BYTES),), lines, part(dst, src, 0, count))
    if not long:
        return short
    block = Call("copy_block", (dst, src, index_of(count)))
    return If((compare(count, "ge", RUN_LONG_BYTES),), (block,), (short,))


def lower_run(run: CopyRun, sides: Sides) -> Lowered:
    """Copy `count` bytes, with full lines of the destination past the cache if streaming.

    before:  copy_run dst <- src, count bytes, streamed
    after:   if dst % 64 == 0 and count % 64 == 0:
               for x in 0..count step 64: prefetch src[x + 256]; dst[x] = src[x] [64] @streamed
             elif count < 256: copy_run dst <- src, count bytes
             else: the bytes before the first full line; the lines; the bytes after them
    """
    dst, src, count = sides.dst, sides.src, run.count
    what = f"dst[{{at}}, x] = src[{{at}}, x], x < {count} bytes"
    if not run.stream:
        return Lowered((copy_run(dst, src, count),), what, "Super-vectors of 64 bytes")
    if sides.in_table:
        return Lowered(_prefetched(dst, src, count), what, STREAMED)
    at = plus("x", RUN_PREFETCH_BYTES)
    lines = loop("x", 0, count, _prefetch(src, at), line(dst, src, "x", stream=True), step=LINE_BYTES)
    aligned = compare(rest(dst, LINE_BYTES), "eq", 0), compare(rest(count, LINE_BYTES), "eq", 0)
    middle = loop("x", "head", "stop", line(dst, src, "x", stream=True), step=LINE_BYTES)
    few = (copy_run(dst, src, count, long=False),)
    unaligned = If((compare(count, "lt", RUN_SHORT_BYTES),), few, _ends(dst, src, count, middle))
    return Lowered((If(aligned, (lines,), (unaligned,)),), what, STREAMED)


def _prefetch(src: str, at: Term) -> Call:
    return Call("prefetch_line", (plus(src, at),))


def _limits(dst: str, count: int | str) -> tuple[Statement, ...]:
    """Where the full lines of the destination begin and end."""
    head = let("head", least(rest(times(dst, -1), LINE_BYTES), count))
    return head, let("stop", plus("head", multiple(minus(count, "head"), LINE_BYTES)))


def _ends(dst: str, src: str, count: int | str, middle: Statement) -> tuple[Statement, ...]:
    """The bytes before the destination's first full line, the lines, and the bytes after the last one."""
    first = Call("copy_part", (dst, src, index_symbol("head")))
    return *_limits(dst, count), first, middle, *part(dst, src, "stop", minus(count, "stop"))


def _prefetched(dst: str, src: str, count: int | str) -> tuple[Statement, ...]:
    """The same inside a loop over table entries, whose order no hardware prefetcher knows.

    Each line prefetches the one a page ahead. Past the end, these are lines of a later entry's run. Most runs
    have no bytes before or after full lines, so both ends are behind a branch.
    """
    later = plus("prefetch_distance", least(minus(PAGE_PREFETCH_BYTES, count), 0))
    ahead = plus("x", PAGE_PREFETCH_BYTES)
    inside = If(
        (compare(ahead, "lt", count),), (_prefetch(src, ahead),), (_prefetch(src, plus("x", "later")),)
    )
    middle = loop("x", "head", "stop", inside, line(dst, src, "x", stream=True), step=LINE_BYTES)
    first = _prefetch(src, index_of("later")), *part(dst, src, 0, "head")
    last = _prefetch(src, plus("stop", "later")), *part(dst, src, "stop", minus(count, "stop"))
    return (
        let("later", later),
        *_limits(dst, count),
        If((compare("head", "gt", 0),), first),
        middle,
        If((compare("stop", "lt", count),), last),
    )


def lower_fill(fill: FillRun, sides: Sides) -> Lowered:
    """Fill `count` bytes, a multiple of the repeated element, with the padding pattern.

    before:  fill_run dst, count bytes
    after:   pattern = padding [64]
             for x in 0..count // 64 * 64 step 64: dst[x] = pattern; the bytes after them
    """
    dst, count = sides.dst, fill.count
    lines = multiple(count, LINE_BYTES)
    low, high = (Local(name, "i64") for name in FILL)
    pattern = Let("pattern", Op("repeated_line", (low, high), "bits8", (LINE_BYTES,)))
    store = Store(dst, (index_symbol("x"),), Local("pattern", "bits8", (LINE_BYTES,)), (0,), (1,))
    last = Call("fill_part", ("tail", rest(count, LINE_BYTES), *map(index_symbol, FILL)))
    body = loop("x", 0, lines, store, step=LINE_BYTES), View("tail", dst, lines), last
    what = f"dst[{{at}}, x] = padding, x < {count} bytes"
    return Lowered(body, what, "Super-vectors of 64 bytes", (pattern,))


FILL = ("fill_low", "fill_high")
"""The arguments with the padding pattern, as two eight-byte numbers."""
