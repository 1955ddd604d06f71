"""Lower reversals: runs that are contiguous on both sides, with their elements in the opposite order."""

from __future__ import annotations

from codegen.ir.building import Term, compare, let, loop, minus, multiple, plus, rest, times
from codegen.ir.index import FloorDiv
from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.ir.nodes import Compare, If, Let, Load, Local, Op, Statement, Store, View
from codegen.passes.lower_copies.lowered import Lowered, Sides
from codegen.schedule.limits import REVERSAL_STREAMED_BYTES
from codegen.schedule.transfers import Reverse


def lower_reverse(reverse: Reverse, sides: Sides) -> Lowered:
    """Copy one run backward, or short runs that follow each other; `src` is the last element of the first.

    before:  reverse dst <- src, length elements of 4 bytes
    after:   if length >= 16:
               for x in 0..length - 16 step 16: dst[4*x] = reversed_elements(src[-4*x - 60] [16])
               and the last 16 elements
             elif length >= 4: the same, 4 elements at a time
             else: for x in 0..length: dst[4*x] = src[-4*x]
    """
    dst, src, width = sides.dst, sides.src, reverse.width
    length, count = reverse.length, reverse.count
    if count != 1:
        return _reversed_groups(dst, src, int(length), count, width)
    what = f"dst[{{at}}, x] = src[{{at}}, -x], x < {length} elements of {_bytes(width)}"
    plain = _reversed_run(dst, src, length, width)
    if not reverse.stream:
        return Lowered((plain,), what, "Super-vectors of 64 bytes, reversed in registers", opaque=True)
    body = If(_is_streamed(dst, length, width), _streamed(dst, src, length, width), (plain,))
    return Lowered((body,), what, "Lines of 64 bytes, reversed in registers, streamed", opaque=True)


def _bytes(width: int) -> str:
    return "1 byte" if width == 1 else f"{width} bytes"


def _block(
    dst: str, src: str, at: Term, width: int, lanes: int, *, stream: bool = False
) -> tuple[Statement, Statement]:
    """`lanes` elements, from dst[width * at] up and from src[-width * at] down."""
    name, dtype = "line" if lanes * width == LINE_BYTES else "lane", f"bits{8 * width}"
    first = minus(times(at, -width), width * (lanes - 1))
    value = Load(src, (first,), dtype, (lanes,), (0,), (width,))
    backward = Op("reversed_elements", (Local(name, dtype, (lanes,)),), dtype, (lanes,))
    return Let(name, value), Store(dst, (times(at, width),), backward, (0,), (width,), streamed=stream)


def _blocks(dst: str, src: str, length: Term, width: int, lanes: int) -> tuple[Statement, ...]:
    """At least `lanes` elements: full super-vectors, then one more that overlaps the last."""
    last = minus(length, lanes)
    blocks = loop("x", 0, last, *_block(dst, src, "x", width, lanes), step=lanes)
    return blocks, *_block(dst, src, last, width, lanes)


def _elements(dst: str, src: str, length: Term, width: int) -> Statement:
    value = Load(src, (times("x", -width),), f"bits{8 * width}")
    return loop("x", 0, length, Store(dst, (times("x", width),), value))


def _reversed_run(dst: str, src: str, length: Term, width: int) -> Statement:
    """By super-vectors of 64 bytes, by 16 bytes below these, or by elements."""
    lanes = LINE_BYTES // width
    short = _short_run(dst, src, length, width)
    return If((compare(length, "ge", lanes),), _blocks(dst, src, length, width, lanes), (short,))


def _short_run(dst: str, src: str, length: Term, width: int) -> Statement:
    """Fewer than 64 bytes."""
    one, lanes = _elements(dst, src, length, width), LANE_BYTES // width
    if lanes == 1:
        return one
    return If((compare(length, "ge", lanes),), _blocks(dst, src, length, width, lanes), (one,))


def _is_streamed(dst: str, length: Term, width: int) -> tuple[Compare, ...]:
    """Whether a run is long enough, and full lines of the destination consist of full elements."""
    long = compare(length, "ge", REVERSAL_STREAMED_BYTES // width)
    return (long,) if width == 1 else (long, compare(rest(dst, width), "eq", 0))


def _streamed(dst: str, src: str, length: Term, width: int) -> tuple[Statement, ...]:
    """The elements before the destination's first full line, the lines, and the elements after them."""
    lanes, before = LINE_BYTES // width, rest(times(dst, -1), LINE_BYTES)
    dst_tail, src_tail = f"{dst}_tail", f"{src}_tail"
    tail = (
        View(dst_tail, dst, times("stop", width), opaque=True),
        View(src_tail, src, times("stop", -width), opaque=True),
        _short_run(dst_tail, src_tail, "left", width),
    )
    return (
        let("head", before if width == 1 else FloorDiv(before, width)),
        let("stop", plus("head", multiple(minus(length, "head"), lanes))),
        If((compare("head", "gt", 0),), (_short_run(dst, src, "head", width),)),
        loop("x", "head", "stop", *_block(dst, src, "x", width, lanes, stream=True), step=lanes),
        let("left", minus(length, "stop")),
        If((compare("left", "gt", 0),), tail),
    )


def _reversed_groups(dst: str, src: str, length: int, count: int | str, width: int) -> Lowered:
    """Reverse each group of `length` elements. A group fits in 16 bytes.

    before:  reverse dst <- src, count runs of 3 elements of 1 byte
    after:   for group in 0..count - 5 step 5: dst[3*group] = reversed_groups_3(src[3*group - 2] [16])
             the other groups, element by element

    A super-vector that ends with a part of a group is stored completely. The next one overwrites that part.
    """
    each, lanes, dtype = length * width, LANE_BYTES // width, f"bits{8 * width}"
    full = LANE_BYTES // each
    more = int(LANE_BYTES % each > 0)  # a group of which only a part is stored
    at = times("group", each)
    value = Load(src, (minus(at, each - width),), dtype, (lanes,), (0,), (width,))
    backward = Op(f"reversed_groups_{length}", (Local("lane", dtype, (lanes,)),), dtype, (lanes,))
    store = Store(dst, (at,), backward, (0,), (width,))
    blocks = loop("group", 0, minus(count, full + more - 1), Let("lane", value), store, step=full)
    one = Load(src, (minus(at, times("x", width)),), dtype)
    elements = loop("x", 0, length, Store(dst, (plus(at, times("x", width)),), one))
    others = loop("group", multiple(minus(count, more), full), count, elements)
    body = (blocks,) if full + more == 1 else (blocks, others)
    what = f"dst[{{at}}, group, x] = src[{{at}}, group, -x], group < {count}, x < {length} elements of "
    how = "Super-vectors of 16 bytes, reversed in registers"
    return Lowered(body, what + _bytes(width), how, opaque=True)
