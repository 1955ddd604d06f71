"""Strip-mine the loop of a 1-D transfer, or the last joined loop of an interleave; a nest takes the tail."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.copies.nodes import For, LoopNest, Ref
from codegen.ir.copies.rewriting import int_size, map_refs, rebuilt, scalar
from codegen.schedule.schedule import STRIP, Schedule


def strip_mine(nest: LoopNest, schedule: Schedule) -> tuple[LoopNest, ...]:
    """Split a loop of the transfer into full strips, and a nest for the remainder.

    before:  for i in 9: for j in 100:                    dst[512*i + 4*j] = src[1200*i + 4*j]
    after:   for i in 9: for strip in 3: for j in 32:     dst[512*i + 128*strip + 4*j] = src[…]
             for i in 9: for strip in 1: for j in 4:      dst[384 + 512*i + 4*j] = src[…]

    Both nests have all axes that the schedule names.
    """
    size = schedule.strip
    if size is None:
        return (nest,)
    axis, store = schedule.stripped, scalar(nest)
    at = next(k for k, loop in enumerate(nest.loops) if loop.axis == axis)
    before, loop, after = nest.loops[:at], nest.loops[at], nest.loops[at + 1 :]
    full, rest = divmod(int_size(loop.extent), size)

    def stripped(ref: Ref) -> Ref:
        return replace(ref, terms=((STRIP, size * int_size(ref.stride(axis))), *ref.terms))

    def after_strips(ref: Ref) -> Ref:
        return replace(ref, const=int_size(ref.const) + full * size * int_size(ref.stride(axis)))

    out = []
    for strips, extent, moved in ((full, size, stripped), (1, rest, after_strips)):
        if strips and extent:
            loops = (*before, For(STRIP, strips, store), replace(loop, extent=extent), *after)
            # The parts are no longer a product of the box's digits, so the verifier cannot check them.
            out.append(replace(rebuilt(nest, loops, map_refs(store, moved)), digits=()))
    return tuple(out)
