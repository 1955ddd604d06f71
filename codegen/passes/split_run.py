"""Split loops into full blocks and a remainder, so that threads can share the blocks."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.copies.nodes import For, LoopNest, Ref, refs
from codegen.ir.copies.rewriting import cut_axis, int_size, map_refs, rebuilt, scalar

RUN_BLOCK_BYTES = 1 << 18


def split_run(nest: LoopNest, block_bytes: int = RUN_BLOCK_BYTES) -> tuple[LoopNest, ...]:
    """Split a nest that is one long loop into blocks, and a nest for the remainder.

    before:  for i in 1000:                  dst[i] = src[i]
    after:   for o in 3: for i in 300:       dst[300*o + i] = src[300*o + i]
             for i in 100:                   dst[900 + i] = src[900 + i]
    """
    if len(nest.loops) != 1 or nest.table_loop:
        return (nest,)
    loop, store = nest.loops[0], scalar(nest)
    _, dst = refs(store)
    element_bits = nest.buffer("dst").element.bits
    block = max(1, block_bytes * 8 // element_bits)
    extent = int_size(loop.extent)
    if extent < 4 * block or int_size(dst.stride(loop.axis)) == 0:
        return (nest,)
    full, rest = divmod(extent, block)

    def blocked(ref: Ref) -> Ref:
        stride = int_size(ref.stride(loop.axis))
        return replace(ref, terms=(("block", stride * block), *ref.terms))

    def after_blocks(ref: Ref) -> Ref:
        return replace(ref, const=int_size(ref.const) + int_size(ref.stride(loop.axis)) * full * block)

    # The parts are no longer a product of the box's digits, so the verifier cannot check them.
    loops = (For("block", full, store), replace(loop, extent=block))
    out = [replace(rebuilt(nest, loops, map_refs(store, blocked)), digits=())]
    if rest:
        tail = rebuilt(nest, (replace(loop, extent=rest),), map_refs(store, after_blocks))
        out.append(replace(tail, digits=()))
    return tuple(out)


LONG_DIGIT = 1 << 13
"""Elements per block of a transpose's long digit: a multiple of a line for every element size."""


def split_long(nest: LoopNest, block: int = LONG_DIGIT) -> tuple[LoopNest, ...]:
    """Split the digits along which the sides are contiguous, so that tables of rows and columns stay small.

    before:  for i in 5: for j in 20000:                   dst[i + 5*j] = src[20000*i + j]
    after:   for i in 5: for long in 2: for j in 8192:     dst[i + 40960*long + 5*j] = src[…]
             for i in 5: for j in 3616:                    dst[81920 + i + 5*j] = src[16384 + 20000*i + j]
    """
    src, dst = refs(scalar(nest))
    if src is None or any(b.unit_bits != 8 for b in nest.buffers):
        return (nest,)
    row = _contiguous(nest, dst, nest.buffer("dst").element.bits // 8)
    column = _contiguous(nest, src, nest.buffer("src").element.bits // 8)
    if row is None or column is None or row is column:
        return (nest,)
    parts: tuple[LoopNest, ...] = (nest,)
    for axis in (row.axis, column.axis):
        parts = tuple(split for part in parts for split in cut_axis(part, axis, block))
    return parts


def _contiguous(nest: LoopNest, ref: Ref, width: int) -> For | None:
    return next((loop for loop in nest.loops if ref.stride(loop.axis) == width), None)
