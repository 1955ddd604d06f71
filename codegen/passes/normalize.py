"""Bring a box into canonical form, so that equivalent copies become identical boxes."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.strided_box import Axis, StridedBox


def drop_units(box: StridedBox, _: object = None) -> StridedBox:
    """Remove loops that run once.

    before:  for i in 1: for j in 5:  dst[9*i + j] = src[7*i + j]
    after:   for j in 5:              dst[j] = src[j]
    """
    return box.with_axes(axis for axis in box.axes if axis.extent != 1)


def face_forward(box: StridedBox, _: object = None) -> StridedBox:
    """Reverse loops whose smaller stride is negative, so that only the distance between rows may be.

    before:  for i in 5:  dst[4 - i] = src[2*i]
    after:   for i in 5:  dst[i] = src[8 - 2*i]
    """
    for k, axis in enumerate(box.axes):
        if axis.runs_backward:
            last = axis.extent - 1
            box = box.moved(last * axis.src, last * axis.dst)
            box = box.with_axes((*box.axes[:k], axis.reversed(), *box.axes[k + 1 :]))
    return box


def order_by_destination(box: StridedBox, _: object = None) -> StridedBox:
    """Sort loops by decreasing destination stride, outermost first; ties by the source stride.

    before:  for i in 3: for j in 5:  dst[3*j + i] = src[5*i + j]
    after:   for j in 5: for i in 3:  dst[3*j + i] = src[5*i + j]
    """
    return box.with_axes(sorted(box.axes, key=lambda axis: (-abs(axis.dst), -abs(axis.src))))


def coalesce(box: StridedBox, _: object = None) -> StridedBox:
    """Fuse two loops that are equivalent to one longer loop on both sides.

    before:  for i in 4: for j in 5:  dst[5*i + j] = src[5*i + j]
    after:   for j in 20:             dst[j] = src[j]
    """
    axes = list(box.axes)

    def can_fuse(outer: Axis, inner: Axis) -> bool:
        return outer is not inner and all(
            far == inner.extent * near for far, near in ((outer.src, inner.src), (outer.dst, inner.dst))
        )

    while pair := next(((a, b) for a in axes for b in axes if can_fuse(a, b)), None):
        outer, inner = pair
        axes.remove(outer)
        extent, fixed = outer.extent * inner.extent, outer.fixed and inner.fixed
        axes[axes.index(inner)] = replace(inner, extent=extent, fixed=fixed)
    return box.with_axes(axes)
