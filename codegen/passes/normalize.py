"""Bring a scalar copy nest into canonical form, so that equivalent copies become identical nests."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.copies.nodes import For, LoopNest, Ref, refs
from codegen.ir.copies.rewriting import int_size, keep_only, map_refs, rebuilt, scalar


def drop_units(nest: LoopNest) -> LoopNest:
    """Remove loops that run once.

    before:  for i in 1: for j in 5:  dst[9*i + j] = src[7*i + j]
    after:   for j in 5:              dst[j] = src[j]
    """
    kept = tuple(loop for loop in nest.loops if loop.extent != 1)
    return rebuilt(nest, kept, keep_only(scalar(nest), {loop.axis for loop in kept}))


def face_forward(nest: LoopNest) -> LoopNest:
    """Reverse loops with a negative destination stride.

    before:  for i in 5:  dst[8 - 2*i] = src[i]
    after:   for i in 5:  dst[2*i] = src[4 - i]
    """
    store = scalar(nest)
    for loop in nest.loops:
        _, dst = refs(store)
        if int_size(dst.stride(loop.axis)) < 0:
            store = map_refs(store, lambda ref, loop=loop: _reversed(ref, loop))
    return rebuilt(nest, nest.loops, store)


def order_by_destination(nest: LoopNest) -> LoopNest:
    """Sort loops by decreasing destination stride, outermost first; ties by the source stride.

    before:  for i in 3: for j in 5:  dst[3*j + i] = src[5*i + j]
    after:   for j in 5: for i in 3:  dst[3*j + i] = src[5*i + j]
    """
    src, dst = refs(nest.innermost)

    def rank(loop: For) -> tuple[int, int]:
        source = abs(int_size(src.stride(loop.axis))) if src else 0
        return -abs(int_size(dst.stride(loop.axis))), -source

    return rebuilt(nest, tuple(sorted(nest.loops, key=rank)), scalar(nest))


def coalesce(nest: LoopNest) -> LoopNest:
    """Fuse two loops that are equivalent to one longer loop on both sides.

    before:  for i in 4: for j in 5:  dst[5*i + j] = src[5*i + j]
    after:   for j in 20:             dst[j] = src[j]
    """
    loops = list(nest.loops)
    src, dst = refs(nest.innermost)

    def can_fuse(outer: For, inner: For) -> bool:
        sides = [dst] if src is None else [src, dst]
        return all(
            int_size(s.stride(outer.axis)) == int_size(inner.extent) * int_size(s.stride(inner.axis))
            for s in sides
        )

    fused = True
    while fused:
        fused = False
        for outer in loops:
            inner = next((x for x in loops if x is not outer and can_fuse(outer, x)), None)
            if inner is not None:
                loops.remove(outer)
                loops[loops.index(inner)] = replace(
                    inner, extent=int_size(outer.extent) * int_size(inner.extent)
                )
                fused = True
                break
    return rebuilt(nest, tuple(loops), keep_only(scalar(nest), {loop.axis for loop in loops}))


NORMALIZE = (drop_units, face_forward, coalesce, order_by_destination)
"""The passes that run on every scalar nest, in this order."""


def _reversed(ref: Ref, loop: For) -> Ref:
    stride = int_size(ref.stride(loop.axis))
    const = int_size(ref.const) + (int_size(loop.extent) - 1) * stride
    return replace(ref, const=const, terms=tuple((a, -s if a == loop.axis else s) for a, s in ref.terms))  # type: ignore[operator]
