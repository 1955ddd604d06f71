"""Cut loops in whole blocks and a rest, so that blocks can be shared among threads."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir import For, LoopNest, Ref, refs
from codegen.passes.normalise import int_size, map_refs, rebuilt, scalar

RUN_BLOCK_BYTES = 1 << 18


def split_run(nest: LoopNest, block_bytes: int = RUN_BLOCK_BYTES) -> tuple[LoopNest, ...]:
    """Cut a nest that is one long loop into blocks, and a nest for the rest.

    before:  for i in 1000:                  dst[i] = src[i]
    after:   for o in 3: for i in 300:       dst[300*o + i] = src[300*o + i]
             for i in 100:                   dst[900 + i] = src[900 + i]
    """
    if len(nest.loops) != 1 or nest.table_loop:
        return (nest,)
    loop, store = nest.loops[0], scalar(nest)
    _, dst = refs(store)
    element_bits = nest.buffer("dst").element.bits
    block = block_bytes * 8 // element_bits
    extent = int_size(loop.extent)
    if extent < 4 * block or int_size(dst.stride(loop.axis)) == 0:
        return (nest,)
    whole, rest = divmod(extent, block)

    def blocked(ref: Ref) -> Ref:
        stride = int_size(ref.stride(loop.axis))
        return replace(ref, terms=(("block", stride * block), *ref.terms))

    def behind(ref: Ref) -> Ref:
        return replace(ref, const=int_size(ref.const) + int_size(ref.stride(loop.axis)) * whole * block)

    # The parts are no product of the box's digits any more, so there is nothing to hold them against.
    loops = (For("block", whole, store), replace(loop, extent=block))
    out = [replace(rebuilt(nest, loops, map_refs(store, blocked)), digits=())]
    if rest:
        tail = rebuilt(nest, (replace(loop, extent=rest),), map_refs(store, behind))
        out.append(replace(tail, digits=()))
    return tuple(out)
