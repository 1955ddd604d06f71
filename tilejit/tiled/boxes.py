"""Boxes of a tiled buffer, read and written in place: the operations behind indexing a tiled array."""

from __future__ import annotations

from typing import Any

import numpy as np

from codegen import CopyProgram, Element, cached, thread_count, window_map
from tilejit.arrays.basic_index import box_of_key, is_element
from tilejit.arrays.memory import Array, address, bytes_map, empty
from tilejit.arrays.values import broadcast, elements
from tilejit.layout.cute_shape import Spec
from tilejit.layout.indexing import access_map, linear_index
from tilejit.programs.compiled import array_element, buffer_element, compiled


def read_box(buffer: Array, spec: Spec, key: Any) -> Any:
    """Read an element as a scalar, or a slice as a new array in C order.

    Raises:
        LayoutIndexError: the key is out of bounds or has too many parts.
        TypeError: the key contains anything other than integers, slices, `...` and None.
    """
    starts, steps, extents, kept = box_of_key(key, spec.dimensions)
    if is_element(key, spec.dimensions):
        return _element(buffer, spec, starts)
    out = empty(extents, spec.dtype)
    if out.size:
        threads = thread_count(None, 2 * out.nbytes)
        program = window_program(spec, starts, steps, extents, out.strides, False, threads)
        program.run(address(buffer), address(out), threads, alive=(buffer, out))
    return out.reshape(kept)


def write_box(buffer: Array, spec: Spec, key: Any, value: Any) -> None:
    """Write an element or a slice in place; the value broadcasts and converts as in NumPy assignment.

    Raises:
        LayoutIndexError: the key is out of bounds or has too many parts.
        LayoutError: the value does not broadcast, or does not fit the dtype.
        TypeError: the key contains anything other than integers, slices, `...` and None, or the value is not
            numeric.
    """
    starts, steps, extents, kept = box_of_key(key, spec.dimensions)
    own = elements(value, spec.element)
    if np.may_share_memory(own, buffer):
        own = own.copy()
    values = broadcast(own, kept).reshape(extents)
    if is_element(key, spec.dimensions):
        _write_element(buffer, spec, starts, values)
    elif values.size:
        threads = thread_count(None, 2 * values.nbytes)
        program = window_program(spec, starts, steps, extents, values.strides, True, threads)
        program.run(address(values), address(buffer), threads, alive=(buffer, values))


def _element(buffer: Array, spec: Spec, index: tuple[int, ...]) -> Any:
    slot = linear_index(spec, index)
    if not spec.packed:
        return buffer.view(spec.dtype)[slot]
    at, shift = divmod(slot * spec.bits, 8)
    value = int(buffer[at]) >> shift & ((1 << spec.bits) - 1)
    return np.array([value], np.uint8).view(spec.dtype)[0]


def _write_element(buffer: Array, spec: Spec, index: tuple[int, ...], value: Array) -> None:
    slot = linear_index(spec, index)
    data, raw = buffer.view(np.uint8), value.reshape(1).view(np.uint8)
    if not spec.packed:
        data[slot * raw.size : (slot + 1) * raw.size] = raw
        return
    at, shift = divmod(slot * spec.bits, 8)
    mask = (1 << spec.bits) - 1
    data[at] = int(data[at]) & ~(mask << shift) | (int(raw[0]) & mask) << shift


@cached(256)
def window_program(
    spec: Spec,
    starts: tuple[int, ...],
    steps: tuple[int, ...],
    extents: tuple[int, ...],
    strides: tuple[int, ...],
    writes: bool,
    threads: int,
    element: Element | None = None,
) -> CopyProgram:
    """The copy between a box of the tiled array and a strided array.

    Args:
        spec: the layout.
        starts: the first index of the box in each dimension.
        steps: the step of the box in each dimension.
        extents: the size of the box in each dimension.
        strides: the array's strides in bytes.
        writes: whether the box is written.
        threads: the number of threads.
        element: the array's elements; None for elements of the layout's dtype.
    """
    window = window_map(access_map(spec), starts, steps, extents)
    element, stored = element or array_element(spec), buffer_element(spec)
    array = bytes_map(extents, strides, element.bits // 8)
    if writes:
        return compiled(array, window, element, stored, threads=threads)
    return compiled(window, array, stored, element, threads=threads)
