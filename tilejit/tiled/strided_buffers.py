"""Buffers with gaps, such as a field of a structured array: the same layout with the array's strides."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from codegen import LayoutError, cached, compiler_lock
from tilejit.arrays.memory import Array
from tilejit.arrays.strided import overlaps_itself, span
from tilejit.layout.cute_shape import CuteShape, Spec

if TYPE_CHECKING:
    from tilejit.cute.layout import Layout


def has_gaps(array: object) -> TypeGuard[Array]:
    """Whether it is an array whose elements do not follow each other in C order."""
    return isinstance(array, np.ndarray) and not array.flags.c_contiguous


def strided_buffer(array: Array, spec: Spec) -> tuple[Array, CuteShape] | None:
    """The memory that an array with gaps spans, and the layout of its elements there.

    The bytes of the array in C order are a buffer of `spec`. A field of 16 bytes in records of 18 holds

        u4[2,32]{1,0:E(4)}  as  u4[2,32] (2,32):(36,1) E(4)

    Returns:
        The memory as bytes and the layout, or None if no layout has these strides: elements cross gaps, or
        the buffer has padding.
    """
    overlaps = overlaps_itself(array.shape, array.strides, array.itemsize)
    if 0 in array.shape or overlaps or array.dtype.hasobject:
        return None
    shape = _strided_shape(spec, array.shape, array.strides, array.itemsize)
    if shape is None:
        return None
    first = np.lib.stride_tricks.as_strided(array, (1,), (array.itemsize,)).view(np.uint8)
    return np.lib.stride_tricks.as_strided(first, (shape.size_in_bytes,), (1,)), shape


@cached(256)
def _strided_shape(
    spec: Spec, dims: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> CuteShape | None:
    low, _ = span(dims, strides, itemsize)
    whole = spec.physical_size == prod(spec.dimensions) and spec.physical_size * spec.bits % 8 == 0
    widths = 8 * itemsize, *(8 * stride for stride in strides)
    if low < 0 or not whole or any(width % spec.bits for width in widths):
        return None
    with compiler_lock:  # few buffers have gaps
        from tilejit.cute.compose import composition
        from tilejit.cute.layout import Layout
        from tilejit.layout.bridge.from_xla import bounded
    item, *steps = (width // spec.bits for width in widths)
    sizes = (item, *reversed(dims))
    try:
        inner = spec.layout if isinstance(spec, CuteShape) else bounded(spec).layout
        outer: Layout = Layout(sizes, (1, *reversed(steps)))
        layout = composition(outer, inner)
    except LayoutError:
        return None
    if not isinstance(layout, Layout):
        return None  # with a swizzle between, only a table says where elements are
    return CuteShape(spec.primitive_type, spec.dimensions, layout, spec.bits % 8, spec.padding_value)
