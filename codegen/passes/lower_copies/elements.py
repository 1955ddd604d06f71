"""Lower copies of single elements: moves, conversions and padding, in a loop over elements."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import Term, index_of, loop, times
from codegen.ir.element_types import INTEGER_TYPES, dtype_of
from codegen.ir.index import Affine, index_symbol
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Blocks, Call, For, Let, Narrow, Statement, Store, View
from codegen.ir.strided_box import Element
from codegen.ir.values import Load, Local, Op, Value
from codegen.passes.lower_copies.lowered import Lowered, Sides, converted, moved_element, named
from codegen.passes.lower_copies.runs import FILL
from codegen.schedule.offset_tables import PREFETCH_ELEMENTS
from codegen.schedule.transfers import Elementwise

WORD_BITS = 64
"""Wider elements are not vectorized any further."""


def lower_elements(stmt: Elementwise, sides: Sides) -> Lowered:
    """Move, convert or fill `count` elements.

    before:  dst <- bf16(f32 src), count elements, steps dst_step and src_step
    after:   for x in 0..count: dst[x * dst_step] = convert_f32_to_bf16(src[x * src_step])
    """
    what = f"dst[{{at}}x] = {_formula(stmt)}, x < {stmt.count}"
    steps = [stmt.dst_step, stmt.src_step] if stmt.source else [stmt.dst_step]
    apart = f"{' and '.join(str(step) for step in steps)} {'bits' if sides.in_bits else 'bytes'} apart"
    if sides.in_bits:
        return Lowered((_packed(stmt, sides),), what, f"Elements {apart}")
    body, how = _elements(stmt, sides.dst, sides.src), f"Elements {apart}"
    if _is_contiguous(stmt):
        body, how = _converted_run(stmt, sides.dst, sides.src), f"Super-vectors of {_lanes(stmt)} elements"
    if stmt.prefetch:
        body = replace(body, blocks=replace(body.blocks or Blocks(), ahead="elements"))
        how = f"Runs of {PREFETCH_ELEMENTS} elements, with prefetches between them"
    return Lowered((body,), what, how)


def _formula(stmt: Elementwise) -> str:
    """The value of an element, for readers: bf16(f32 src[…])."""
    if stmt.source is None:
        return "padding"
    match stmt.convert:
        case (source, _) if source.startswith("swap "):
            return f"swap_{stmt.source.bits}(src[{{at}}x])"
        case (source, target):
            return f"{dtype_of(target)}({dtype_of(source)} src[{{at}}x])"
    bits = stmt.target.bits
    return "src[{at}x]" if bits == stmt.source.bits else f"bits{bits}(src[{{at}}x])"


def _elements(stmt: Elementwise, dst: str, src: str) -> For:
    """for x in 0..count: dst[x * dst_step] = src[x * src_step], which LLVM vectorizes."""
    to, at = times("x", stmt.dst_step), times("x", stmt.src_step)
    if stmt.source and stmt.source.bits > WORD_BITS:
        return loop("x", 0, stmt.count, *moved_element(stmt.source.bits // 8, dst, to, src, at))
    if stmt.source:
        value = converted(stmt.convert, Load(src, (at,), f"bits{stmt.source.bits}"))
        return loop("x", 0, stmt.count, Store(dst, (to,), value))
    width = index_of(stmt.target.bits // 8)
    fill = Call("fill_part", ("dst_x", width, *map(index_symbol, FILL)))
    return loop("x", 0, stmt.count, View("dst_x", dst, to), fill)


def _is_contiguous(stmt: Elementwise) -> bool:
    """Whether super-vectors are converted: elements are contiguous on both sides, and not just resized."""
    if stmt.source is None or stmt.convert is None or stmt.convert[0].startswith("swap "):
        return False
    if set(stmt.convert) <= set(INTEGER_TYPES):
        return False
    return (stmt.dst_step, stmt.src_step) == (stmt.target.bits // 8, stmt.source.bits // 8)


def _lanes(stmt: Elementwise) -> int:
    """Elements of a super-vector: a line or more on one side."""
    return min(max(LINE_BYTES * 8 // min(e.bits for e in _sides(stmt)), 16), 32)


def _sides(stmt: Elementwise) -> tuple[Element, Element]:
    """The elements of destination and source; a conversion has both."""
    if stmt.source is None:
        raise AssertionError("expected elements with a source, got a fill")
    return stmt.target, stmt.source


def _converted_lanes(stmt: Elementwise, dst: str, src: str, at: Term, lanes: int) -> tuple[Statement, ...]:
    """dst[at] = convert_f32_to_bf16(src[at]), elements of a super-vector."""
    target, source = _sides(stmt)
    to, begin = (times(at, e.bits // 8) for e in (target, source))
    value = Load(src, (begin,), f"bits{source.bits}", (lanes,), (0,), (source.bits // 8,))
    block = converted(stmt.convert, value)
    store = Store(dst, (to,), named("block", block), (0,), (target.bits // 8,))
    return Let("block", block), store


def _converted_run(stmt: Elementwise, dst: str, src: str) -> For:
    """Convert contiguous elements in super-vectors, in eights, or one by one."""
    lanes, *narrower = (Narrow(n, _converted_lanes(stmt, dst, src, "x", n)) for n in (_lanes(stmt), 8, 1))
    return loop("x", 0, stmt.count, *lanes.body, step=_lanes(stmt), blocks=Blocks(tuple(narrower)))


def _packed(stmt: Elementwise, sides: Sides) -> Statement:
    """Elements at bit addresses; one side or both are packed."""
    views = [
        View(f"{name}_x", base, times("x", step), in_bytes=True)
        for name, base, step, element in (
            ("dst", sides.dst, stmt.dst_step, stmt.target),
            ("src", sides.src, stmt.src_step, stmt.source),
        )
        if element and element.bits >= 8
    ]
    count, bits = stmt.count, stmt.target.bits
    to = ("dst_x", Affine()) if bits >= 8 else (sides.dst, times("x", stmt.dst_step))
    if stmt.source is None and bits >= 8:
        fill = Call("fill_part", (to[0], index_of(bits // 8), *map(index_symbol, FILL)))
        return loop("x", 0, count, *views, fill)
    value: Value = Local("fill_low", "i64")
    if stmt.source:
        from_bits = stmt.source.bits
        at = ("src_x", Affine()) if from_bits >= 8 else (sides.src, times("x", stmt.src_step))
        value = Load(at[0], (at[1],), f"bits{from_bits}")
    if value.dtype != f"bits{bits}":
        value = Op("cast", (value,), f"bits{bits}")
    return loop("x", 0, count, *views, Store(to[0], (to[1],), value))
