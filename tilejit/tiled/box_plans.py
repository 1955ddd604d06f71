"""Reads and writes of one box of a tiled layout, checked and compiled once."""

from __future__ import annotations

from math import prod
from typing import Any, Generic

import numpy as np

from codegen import CopyProgram
from tilejit.arrays.memory import Array
from tilejit.arrays.strided import ArrayLayout, c_strides
from tilejit.arrays.values import check_range
from tilejit.layout.cute_shape import Spec
from tilejit.tiled.boxes import window_program
from tilejit.tiled.plan_elements import assigned_element
from tilejit.tiled.plans import Tiled, TiledPlan
from tilejit.tiled.sides import ArraySide, TiledSide


class ReadPlan(TiledPlan[Tiled, Array, Array], Generic[Tiled]):
    """A read of one box of a layout into a new array, which can run many times.

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
    """A write of an array to one box of a layout, to which it is broadcast; `box` as in `ReadPlan`.

    array: its shape, strides and dtype, and its strides when broadcast to the extents of the box. A kernel
    converts the dtype; see `assigned_element`.
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
        super().__init__((kind, spec, box, array), value, TiledSide(kind, spec), None, moved)
        element, self._checks_range = assigned_element(dtype, spec)
        assert element, f"expected a dtype that kernels convert, got {dtype}"
        self._element = element

    def program(self, threads: int) -> CopyProgram:
        """The copy for that many threads."""
        _, spec, (starts, steps, extents, _), (*_, strides) = self._given
        return window_program(spec, starts, steps, extents, strides, True, threads, self._element)

    @property
    def _is_answerable(self) -> bool:
        return not self._checks_range

    def _check(self, source: Array) -> None:
        if self._checks_range:
            check_range(source, self._given[1].element)
