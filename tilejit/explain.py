"""What TileJIT does for a copy: the nests, the schedule, the generated source, LLVM IR, machine code."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from codegen.access import AccessMap
from codegen.errors import LayoutError
from codegen.ir import Element, refs
from codegen.kernel import Kernel, Step
from codegen.pipeline import CopyProgram
from codegen.printer import format_nest
from codegen.threads import thread_count
from tilejit.convert import pack_program, unpack_program
from tilejit.layout.as_layout import as_layout
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.dtypes import from_numpy
from tilejit.layout.indexing import access_map
from tilejit.layout.shape import Shape
from tilejit.memory import Array, array_map
from tilejit.programs import compiled
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
        return "\n".join(format_nest(nest) for step in self.steps for nest in step.scalars)

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


def explain(src: Any, dst: Any, *, casting: str = "no", threads: int = 1) -> Explanation:
    """How the copy from one place to another is carried out.

    >>> print(tilejit.explain(None, "bf16[1000,300]{1,0:T(8,128)(2,1)}").source)

    src, dst: arrays, TiledArrays, anything `as_layout` reads, or None for an array in C order. At least one
    of them must tell the shape. From an array (or None) to a layout it is what `pack` does, casting and
    zero padding included, from a layout to an array what `unpack` does.

    Raises:
        LayoutError: the two sides have different shapes or dtypes, or neither has one.
        TypeError: a side is none of these.
    """
    count = thread_count(threads, 0)
    dims, dtype = _shape_of(src, dst)
    source, target = _layout_of(src, dims, dtype), _layout_of(dst, dims, dtype)
    if source is None and target is not None:
        array = _strided_source(src, target.dimensions, target.dtype if src is None else dtype)
        return Explanation(pack_program(array, target, casting=casting, threads=count))
    if source is not None and target is None:
        strides = _strides_of(dst, source)
        return Explanation(unpack_program(source, strides, threads=count))
    src_map, src_element = _side(src, source, dims, dtype)
    dst_map, dst_element = _side(dst, target, dims, dtype)
    if src_map.dims != dst_map.dims:
        raise LayoutError(
            f"the source has dimensions {list(src_map.dims)}, the destination {list(dst_map.dims)}"
        )
    if src_element.name != dst_element.name:
        raise LayoutError(f"the source holds {src_element.name}, the destination {dst_element.name}")
    padding = bytes(max(1, dst_element.bits // 8)) if target is not None else None
    return Explanation(
        compiled(src_map, dst_map, src_element, dst_element, threaded=count > 1, padding=padding)
    )


def _volume(step: Step) -> tuple[bool, int]:
    """What a box moves, padding behind all elements."""
    elements = prod(int(loop.extent) for loop in step.scalar.loops if isinstance(loop.extent, int))
    return refs(step.scalar.innermost)[0] is not None, elements


def _shape_of(*sides: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Dimensions and dtype from the first side that knows them."""
    for side in sides:
        if isinstance(side, np.ndarray | TiledArray):
            return side.shape, side.dtype
    for side in sides:
        if isinstance(side, Shape | CuteShape) or (isinstance(side, str) and "[" in side):
            shape = as_layout(side)
            return shape.dimensions, shape.dtype
    raise LayoutError('neither side tells the shape\n  write it out, e.g. "f32[1000,300]{1,0:T(8,128)}"')


def _layout_of(side: Any, dims: tuple[int, ...], dtype: np.dtype[Any]) -> Spec | None:
    """The layout of a side that has one; None for arrays."""
    if isinstance(side, TiledArray):
        return side.spec
    if side is None or isinstance(side, np.ndarray):
        return None
    spec = as_layout(side, dims=dims, dtype=dtype)
    check_packable(spec)
    return spec


def _strided_source(side: Any, dims: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """The array itself, or one in C order that takes no memory to speak of."""
    if side is not None:
        return np.asarray(side)
    return np.lib.stride_tricks.as_strided(
        np.empty(1, dtype), dims, c_strides(dims, dtype.itemsize), writeable=False
    )


def _strides_of(side: Any, source: Spec) -> tuple[int, ...]:
    if side is None:
        return c_strides(source.dimensions, source.dtype.itemsize)
    if side.shape != source.dimensions or side.dtype != source.dtype:
        raise LayoutError(
            f"the layout is {source.dtype}{list(source.dimensions)}, the array {side.dtype}{list(side.shape)}"
        )
    return tuple(side.strides)


def _side(
    side: Any, spec: Spec | None, dims: tuple[int, ...], dtype: np.dtype[Any]
) -> tuple[AccessMap, Element]:
    if spec is not None:
        return access_map(spec), Element(spec.primitive_type, spec.bits)
    array = _strided_source(side, dims, dtype)
    return array_map(array), Element(from_numpy(array.dtype).name, 8 * array.itemsize)


def c_strides(dims: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides, in bytes, of an array in C order."""
    strides = [itemsize] * len(dims)
    for d in reversed(range(len(dims) - 1)):
        strides[d] = strides[d + 1] * dims[d + 1]
    return tuple(strides)
