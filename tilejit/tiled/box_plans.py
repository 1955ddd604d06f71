"""Reads and writes of one box of a tiled layout, checked and compiled once, and kept for later keys."""

from __future__ import annotations

from math import prod
from typing import Any, Generic

import numpy as np

from codegen import Cache, CopyProgram
from tilejit.arrays.basic_index import box_of_key, hashable_key, is_element
from tilejit.arrays.memory import Array, address
from tilejit.arrays.strided import ArrayLayout, c_strides
from tilejit.arrays.values import broadcast, check_range
from tilejit.layout.cute_shape import Spec
from tilejit.tiled.boxes import window_program
from tilejit.tiled.buffers import may_overlap
from tilejit.tiled.conversions import converted
from tilejit.tiled.plan_elements import assigned_element, cast_of
from tilejit.tiled.plans import Tiled, TiledPlan
from tilejit.tiled.sides import ArraySide, TiledSide


class ReadPlan(TiledPlan[Tiled, Array, Array], Generic[Tiled]):
    """A read of one box of a layout into a new array, which can run many times.

    Args:
        kind: TiledArray.
        spec: the layout.
        box: starts, steps, extents and the shape of the result, as `box_of_key` returns them.
    """

    __slots__ = ()

    name = "t"

    def __init__(self, kind: type[Tiled], spec: Spec, box: tuple[tuple[int, ...], ...]) -> None:
        kept = box[3]
        result = ArrayLayout(kept, c_strides(kept, spec.dtype.itemsize), spec.dtype)
        array = ArraySide(result)
        super().__init__((kind, spec, box), TiledSide(kind, spec), array, None, 2 * array.size_bytes)

    def program(self, threads: int) -> CopyProgram:
        """The copy for that many threads."""
        _, spec, (starts, steps, extents, _) = self._given
        strides = c_strides(extents, spec.dtype.itemsize)
        return window_program(spec, starts, steps, extents, strides, False, threads)


class WritePlan(TiledPlan[Array, Tiled, Tiled]):
    """A write of an array to one box of a layout, to which it is broadcast.

    Args:
        kind: TiledArray.
        spec: the layout.
        box: as in `ReadPlan`.
        array: the array's shape, strides and dtype, and its strides when broadcast to the extents of the box.
            A kernel converts the dtype; see `assigned_element`.
    """

    __slots__ = ("_checks_range", "_element")

    name = "value"

    def __init__(
        self,
        kind: type[Tiled],
        spec: Spec,
        box: tuple[tuple[int, ...], ...],
        array: tuple[tuple[int, ...], tuple[int, ...], np.dtype[Any], tuple[int, ...]],
    ) -> None:
        value, dtype = ArraySide(ArrayLayout(*array[:3])), array[2]
        moved = prod(box[2]) * (dtype.itemsize + spec.dtype.itemsize)
        element, self._checks_range = assigned_element(dtype, spec)
        assert element, f"expected a dtype that kernels convert, got {dtype}"
        cast = cast_of(element, spec, dtype, spec.dtype)
        super().__init__((kind, spec, box, array), value, TiledSide(kind, spec), None, moved, cast)
        self._element = element

    def program(self, threads: int) -> CopyProgram:
        """The copy for that many threads."""
        _, spec, (starts, steps, extents, _), (*_, strides) = self._given
        return window_program(spec, starts, steps, extents, strides, True, threads, self._element)

    def _through_numpy(self, source: Array, target: Array) -> None:
        """Convert with NumPy, because its own loop reports underflow."""
        _, spec, (starts, steps, extents, kept), *_ = self._given
        values = broadcast(converted(source, spec.dtype), kept).reshape(extents)
        program = window_program(spec, starts, steps, extents, values.strides, True, 1)
        program.run(address(values), address(target), alive=(values, target))

    @property
    def _is_answerable(self) -> bool:
        return not self._checks_range

    def _check(self, source: Array) -> None:
        if self._checks_range:
            check_range(source, self._given[1].element)


_reads: Cache[tuple[Any, ...], tuple[Spec, ReadPlan[Any] | None]] = Cache()
_writes: Cache[tuple[Any, ...], tuple[Spec, WritePlan[Any] | None]] = Cache()
"""Plans of earlier keys, each with the layout whose id is in its cache key."""


def read_plan(kind: type[Tiled], layout: Spec, key: Any) -> ReadPlan[Tiled] | None:
    """Return the plan that reads a box; None for elements and for keys that are not plain."""
    parts = hashable_key(key)
    if parts is None:
        return None
    known = _reads.get((id(layout), parts))
    if known is None or known[0] is not layout:
        known = _reads.keep((id(layout), parts), (layout, _new_read_plan(kind, layout, key)))
    return known[1]


def _new_read_plan(kind: type[Tiled], layout: Spec, key: Any) -> ReadPlan[Tiled] | None:
    box = box_of_key(key, layout.dimensions)
    return None if is_element(key, layout.dimensions) or 0 in box[2] else ReadPlan(kind, layout, box)


def write_plan(kind: type[Tiled], layout: Spec, key: Any, value: Array) -> WritePlan[Tiled] | None:
    """Return the plan that writes an array to a box.

    Returns None for elements, for keys that are not plain, if elements overlap, or if only NumPy converts the
    array's dtype.

    Raises:
        LayoutError: the array does not broadcast to the box.
    """
    parts = hashable_key(key)
    if parts is None:
        return None
    known_as = id(layout), parts, value.shape, value.strides, value.dtype
    known = _writes.get(known_as)
    if known is None or known[0] is not layout:
        if is_element(key, layout.dimensions) or assigned_element(value.dtype, layout)[0] is None:
            return None  # quick to determine, so it is not cached
        known = _writes.keep(known_as, (layout, _new_write_plan(kind, layout, key, value)))
    return known[1]


def _new_write_plan(kind: type[Tiled], layout: Spec, key: Any, value: Array) -> WritePlan[Tiled] | None:
    box = box_of_key(key, layout.dimensions)
    if 0 in box[2] or may_overlap(layout):
        return None
    repeated = broadcast(value, box[3]).reshape(box[2])
    return WritePlan(kind, layout, box, (value.shape, value.strides, value.dtype, repeated.strides))
