"""Widen the element: a short run that is contiguous on both sides moves as one element of 2 to 64 bytes."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.copies.nodes import Buffer, Element, Load, LoopNest, refs
from codegen.ir.copies.rewriting import int_size, keep_only, rebuilt, scalar
from codegen.ir.lines import LINE_BYTES

WIDTHS = (2, 4, 8, 16, 32, 64)
MOST_AROUND_LINES = 2
ALIAS_BYTES = 2048
"""Rows whose distance is a multiple of this share L1 cache sets."""


def widen(nest: LoopNest) -> LoopNest:
    """Move the loop that is contiguous on both sides into the element, if it is short and other loops remain.

    before:  for i in 9: for j in 2:  dst[u16: 40*i + 2*j] = src[u16: 4*i + 2*j]
    after:   for i in 9:              dst[u32: 40*i] = src[u32: 4*i]
    """
    store = scalar(nest)
    if not isinstance(store.value, Load) or any(b.unit_bits != 8 for b in nest.buffers):
        return nest
    src, dst = refs(store)
    width = nest.buffer("dst").element.bits // 8
    if src is None or len(nest.loops) < 2:
        return nest
    for loop in nest.loops:
        run = int_size(loop.extent) * width
        if run == LINE_BYTES and not _worth_tiles(nest):
            continue
        if dst.stride(loop.axis) == width and src.stride(loop.axis) == width and run in WIDTHS:
            kept = tuple(x for x in nest.loops if x is not loop)
            wide = Element(f"u{8 * run}", 8 * run)
            buffers = tuple(Buffer(b.name, wide, b.unit_bits) for b in nest.buffers)
            widened = rebuilt(nest, kept, keep_only(store, {x.axis for x in kept}))
            return widen(replace(widened, buffers=buffers))
    return nest


def _worth_tiles(nest: LoopNest) -> bool:
    """Whether runs of a full line move faster in the tiles of a transpose than in order.

    They do if source rows share cache sets, except in a deep nest, whose own order touches fewer pages.
    """
    src, _ = refs(scalar(nest))
    far = src is not None and any(int_size(s) and int_size(s) % ALIAS_BYTES == 0 for _, s in src.terms)
    return far and len(nest.loops) <= MOST_AROUND_LINES + 1
