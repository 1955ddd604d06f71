"""Lower reversals: runs that are contiguous on both sides, with their elements in the opposite order."""

from __future__ import annotations

from codegen.ir.building import Term, loop, minus, plus, times
from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.ir.nodes import Blocks, Let, Narrow, Statement, Store, Streamed
from codegen.ir.values import Load, Local, Op
from codegen.passes.lower_copies.lowered import Lowered, Sides, moved_element
from codegen.schedule.limits import REVERSAL_STREAMED_BYTES
from codegen.schedule.transfers import Reverse


def lower_reverse(reverse: Reverse, sides: Sides) -> Lowered:
    """Copy one run backward, or short runs that follow each other; `src` is the last element of the first.

    before:  reverse dst <- src, length elements of 4 bytes
    after:   for x in 0..length step 16: dst[4*x] = reversed_elements(src[-4*x - 60] [16])
             narrower: 4 elements at a time, single elements
    """
    dst, src, width = sides.dst, sides.src, reverse.width
    length, count = reverse.length, reverse.count
    if count != 1:
        return _reversed_groups(dst, src, int(length), count, width)
    what = f"dst[{{at}}x] = src[{{at}}-x], x < {length} elements of {_bytes(width)}"
    streamed = (Streamed("headed", REVERSAL_STREAMED_BYTES // width),) if reverse.stream else ()
    how = f"{'Lines' if reverse.stream else 'Super-vectors'} of 64 bytes, reversed in registers"
    line, lane = LINE_BYTES // width, LANE_BYTES // width
    one = moved_element(width, dst, times("x", width), src, times("x", -width))
    narrower = [Narrow(lane, _block(dst, src, "x", width, lane))] * (lane > 1) + [Narrow(1, one)]
    blocks = Blocks(tuple(narrower), streamed=streamed)
    body = loop("x", 0, length, *_block(dst, src, "x", width, line), step=line, blocks=blocks)
    return Lowered((body,), what, how, opaque=True)


def _bytes(width: int) -> str:
    return "1 byte" if width == 1 else f"{width} bytes"


def _block(dst: str, src: str, at: Term, width: int, lanes: int) -> tuple[Statement, Statement]:
    """`lanes` elements, from dst[width * at] up and from src[-width * at] down."""
    name, dtype = "line" if lanes * width == LINE_BYTES else "lane", f"bits{8 * width}"
    first = minus(times(at, -width), width * (lanes - 1))
    value = Load(src, (first,), dtype, (lanes,), (0,), (width,))
    backward = Op("reversed_elements", (Local(name, dtype, (lanes,)),), dtype, (lanes,))
    return Let(name, value), Store(dst, (times(at, width),), backward, (0,), (width,))


def _reversed_groups(dst: str, src: str, length: int, count: int | str, width: int) -> Lowered:
    """Reverse each group of `length` elements. A group fits in 16 bytes.

    before:  reverse dst <- src, count runs of 3 elements of 1 byte
    after:   for group in 0..count step 5: dst[3*group] = reversed_groups_3(src[3*group - 2] [16])
             narrower: single groups, element by element; beyond: 1

    A super-vector that ends with a part of a group is stored completely. The next one overwrites that part.
    """
    each, lanes, dtype = length * width, LANE_BYTES // width, f"bits{8 * width}"
    full = LANE_BYTES // each
    more = int(LANE_BYTES % each > 0)  # a group of which only a part is stored
    at = times("group", each)
    value = Load(src, (minus(at, each - width),), dtype, (lanes,), (0,), (width,))
    backward = Op(f"reversed_groups_{length}", (Local("lane", dtype, (lanes,)),), dtype, (lanes,))
    store = Store(dst, (at,), backward, (0,), (width,))
    forth, back = (f(at, times("x", width)) for f in (plus, minus))
    elements = loop("x", 0, length, *moved_element(width, dst, forth, src, back))
    blocks = Blocks((Narrow(1, (elements,)),), shifts=False, beyond=more) if full + more > 1 else None
    body = loop("group", 0, count, Let("lane", value), store, step=full, blocks=blocks)
    what = f"dst[{{at}}group, x] = src[{{at}}group, -x], group < {count}, x < {length} elements of "
    how = "Super-vectors of 16 bytes, reversed in registers"
    return Lowered((body,), what + _bytes(width), how, opaque=True)
