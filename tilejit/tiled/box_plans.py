"""Reads and writes of one box of a tiled layout, checked and compiled once."""

from __future__ import annotations

from math import prod
from typing import Generic

from codegen import CopyProgram
from tilejit.arrays.memory import Array
from tilejit.arrays.strided import ArrayLayout, c_strides
from tilejit.layout.cute_shape import Spec
from tilejit.tiled.boxes import window_program
from tilejit.tiled.plans import Tiled, TiledPlan
from tilejit.tiled.sides import ArraySide, TiledSide


class ReadPlan(TiledPlan[Tiled, Array, Array], Generic[Tiled]):
    """A read of one box of a layout into a new array, ready to run again and again.

    box: starts, steps, extents and the shape of the result, as of `box_of_key`.
    """

    __slots__ = ()

    name = "t"

    def __init__(self, kind: type[Tiled], spec: Spec, box: tuple[tuple[int, ...], ...]) -> None:
        kept = box[3]
        result = ArrayLayout(kept, c_strides(kept, spec.dtype.itemsize), spec.dtype)
        array = ArraySide(result)
        super().__init__((kind, spec, box), TiledSide(kind, spec), array, None, 2 * array.size_bytes)

    def program(self, threads: int) -> CopyProgram:
        """The copy on so many threads."""
        _, spec, (starts, steps, extents, _) = self._given
        strides = c_strides(extents, spec.dtype.itemsize)
        return window_program(spec, starts, steps, extents, strides, False, threads)


class WritePlan(TiledPlan[Array, Tiled, Tiled]):
    """A write of an array to one box of a layout, which it is broadcast to; `box` as in `ReadPlan`.

    array: its shape, its strides, and the strides of the array as one of the extents of the box.
    """

    __slots__ = ()

    name = "value"

    def __init__(
        self,
        kind: type[Tiled],
        spec: Spec,
        box: tuple[tuple[int, ...], ...],
        array: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]],
    ) -> None:
        value = ArraySide(ArrayLayout(*array[:2], spec.dtype))
        moved = 2 * prod(box[2]) * spec.dtype.itemsize
        super().__init__((kind, spec, box, array), value, TiledSide(kind, spec), None, moved)

    def program(self, threads: int) -> CopyProgram:
        """The copy on so many threads."""
        _, spec, (starts, steps, extents, _), (*_, strides) = self._given
        return window_program(spec, starts, steps, extents, strides, True, threads)
