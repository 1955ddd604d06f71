"""What TileJIT does for a copy: the nests, the schedule, the generated source, LLVM IR, machine code."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from codegen.access import AccessMap, strided_map
from codegen.errors import LayoutError
from codegen.ir import Element
from codegen.kernel import Kernel, Step
from codegen.pipeline import CopyProgram, compile_copy
from codegen.printer import format_nest
from tilejit.layout.as_layout import as_layout
from tilejit.layout.dtypes import from_numpy
from tilejit.layout.indexing import access_map
from tilejit.layout.shape import Shape
from tilejit.memory import array_map
from tilejit.tiled_array import TiledArray, check_packable


@dataclass(frozen=True)
class Explanation:
    """One copy, taken apart; its boxes in the order they run.

    `kernel` is that of the box that moves most; the texts below speak of every box unless they say otherwise.
    """

    program: CopyProgram

    @property
    def steps(self) -> tuple[Step, ...]:
        """The boxes of the copy, the one that moves most first."""
        return tuple(sorted(self.program.steps, key=_volume, reverse=True))

    @property
    def kernel(self) -> Kernel:
        """The kernel of the largest box.

        Raises:
            LayoutError: the copy moves nothing.
        """
        if not self.steps:
            raise LayoutError("there are no elements to copy, so there is no kernel")
        return self.steps[0].kernel

    @property
    def nest(self) -> str:
        """The scalar nest of every box, with the sizes of this copy."""
        return "\n".join(format_nest(step.scalar) for step in self.steps)

    @property
    def schedule(self) -> str:
        """The schedule of every box, and its nest after the passes that obey it."""
        return "\n".join(f"{step.schedule}\n{format_nest(step.vectorised)}" for step in self.steps)

    @property
    def source(self) -> str:
        """The generated Python of every kernel, each once."""
        return "\n".join(kernel.source for kernel in self.program.kernels)

    @property
    def llvm_ir(self) -> str:
        """The optimised LLVM IR of every kernel."""
        return "\n".join(kernel.llvm_ir for kernel in self.program.kernels)

    @property
    def assembly(self) -> str:
        """The machine code of every kernel, as text."""
        return "\n".join(kernel.assembly for kernel in self.program.kernels)

    def report(self) -> str:
        """Nest, schedule and source of every box."""
        return "\n".join([*(step.report() for step in self.steps), self.source])


def explain(src: Any, dst: Any, *, threads: int = 1) -> Explanation:
    """How the copy from one place to another is carried out.

    >>> print(tilejit.explain(None, "bf16[1000,300]{1,0:T(8,128)(2,1)}").source)

    src, dst: arrays, TiledArrays, anything `as_layout` reads, or None for an array in C order. At least one
    of them must tell the shape.

    Raises:
        LayoutError: the two sides have different shapes, or neither has one.
    """
    dims, dtype = _shape_of(src, dst)
    source, source_element = _side(src, dims, dtype)
    target, target_element = _side(dst, dims, dtype)
    if source.dims != target.dims:
        raise LayoutError(
            f"the source has dimensions {list(source.dims)}, the destination {list(target.dims)}"
        )
    if source_element.name != target_element.name:
        names = source_element.name, target_element.name
        raise LayoutError(f"the source holds {names[0]}, the destination {names[1]}; explain moves one dtype")
    padding = bytes(max(1, target_element.bits // 8)) if target.slots is not None else None
    program = compile_copy(source, target, source_element, target_element, padding=padding, threads=threads)
    return Explanation(program)


def _volume(step: Step) -> int:
    return prod(int(loop.extent) for loop in step.scalar.loops if isinstance(loop.extent, int))


def _shape_of(*sides: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Dimensions and dtype from the first side that knows them."""
    for side in sides:
        if isinstance(side, np.ndarray | TiledArray):
            return side.shape, side.dtype
    for side in sides:
        if isinstance(side, Shape) or (isinstance(side, str) and "[" in side):
            shape = as_layout(side)
            return shape.dimensions, shape.dtype
    raise LayoutError('neither side tells the shape\n  write it out, e.g. "f32[1000,300]{1,0:T(8,128)}"')


def _side(side: Any, dims: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[AccessMap, Element]:
    if isinstance(side, TiledArray):
        side = side.spec
    if isinstance(side, np.ndarray):
        return array_map(side), Element(from_numpy(side.dtype).name, 8 * side.itemsize)
    if side is None:
        strides = [dtype.itemsize] * len(dims)
        for d in reversed(range(len(dims) - 1)):
            strides[d] = strides[d + 1] * dims[d + 1]
        bounds = (0, prod(dims) * dtype.itemsize)
        access = strided_map(dims, tuple(strides), bounds, element_bits=8 * dtype.itemsize)
        return access, Element(from_numpy(dtype).name, 8 * dtype.itemsize)
    spec = as_layout(side, dims=dims, dtype=dtype)
    check_packable(spec)
    return access_map(spec), Element(spec.primitive_type, spec.bits)
