"""Reads and writes of one box of a tiled layout, checked and compiled once."""

from __future__ import annotations

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
        super().__init__((kind, spec, box), TiledSide(kind, spec), ArraySide(result), None)

    def program(self, threads: int) -> CopyProgram:
        """The copy on so many threads."""
        _, spec, (starts, steps, extents, _) = self._given
        strides = c_strides(extents, spec.dtype.itemsize)
        return window_program(spec, starts, steps, extents, strides, False, threads)


class WritePlan(TiledPlan[Array, Tiled, Tiled]):
    """A write of an array to one box of a layout; `box` as in `ReadPlan`.

    strides: of the array, and of the array as one of the extents of the box.
    """

    __slots__ = ()

    name = "value"

    def __init__(
        self,
        kind: type[Tiled],
        spec: Spec,
        box: tuple[tuple[int, ...], ...],
        strides: tuple[tuple[int, ...], tuple[int, ...]],
    ) -> None:
        value = ArrayLayout(box[3], strides[0], spec.dtype)
        super().__init__((kind, spec, box, strides), ArraySide(value), TiledSide(kind, spec), None)

    def program(self, threads: int) -> CopyProgram:
        """The copy on so many threads."""
        _, spec, (starts, steps, extents, _), (_, strides) = self._given
        return window_program(spec, starts, steps, extents, strides, True, threads)
