"""The two sides of a plan: arrays with fixed strides, and tiled arrays in a fixed layout."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from codegen import LayoutError, compiler_lock
from tilejit.arrays.memory import Array, sized
from tilejit.arrays.strided import ArrayLayout, overlaps_itself
from tilejit.layout.cute_shape import Spec
from tilejit.layout.indexing import shape_name
from tilejit.layout.shape import Shape
from tilejit.tiled.buffers import check_size
from tilejit.tiled.outputs import checked_out, output_buffer

if TYPE_CHECKING:
    from codegen import Argument


class ArraySide:
    """Arrays of one shape, strides and dtype."""

    __slots__ = ("layout", "overlaps", "size_bytes")

    def __init__(self, layout: ArrayLayout) -> None:
        self.layout = layout
        self.size_bytes = prod(layout.shape) * layout.dtype.itemsize
        self.overlaps = overlaps_itself(layout.shape, layout.strides, layout.dtype.itemsize)

    @property
    def minor_axis(self) -> int | None:
        """The dimension along which elements are closest."""
        return self.layout.minor_axis

    def memory(self, given: Any, name: str) -> Array:
        """Return the argument if it is an array of this layout.

        Raises:
            LayoutError: it has another layout.
            TypeError: it is not an array.
        """
        if not self._is_alike(given):
            if not isinstance(given, ndarray):
                raise TypeError(f"expected an array as {name}, got {type(given).__name__}")
            difference = self.layout.difference(given)
            if difference:
                raise LayoutError(
                    f"{name} {difference}, as the plan requires\n  create a plan for this array"
                )
        array: Array = given
        return array

    def new(self) -> tuple[Any, Array]:
        """Allocate an array in C order; return it as the caller and as the kernel see it."""
        made = sized(self.layout.shape, self.layout.dtype, self.size_bytes)
        return made, made

    def output(self, out: Any, source: Array) -> tuple[Any, Array]:
        """Return `out` as the caller and as the kernel see it, if it fits; overlaps are not checked.

        Raises:
            LayoutError: it has another layout, is read-only, or overlaps itself.
            TypeError: it is not an array, or has masked elements.
        """
        if not self._is_alike(out) or not out.flags.writeable or self.overlaps:
            checked_out(out, self.layout.shape, self.layout.dtype, source)
            self.memory(out, "out")
        return out, out

    def argument(self, given: Any, *, written: bool) -> Argument | None:
        """Native code's checks of such an argument; None if it goes through Python."""
        with compiler_lock:  # most processes repeat few calls
            from codegen import ArrayArgument
        if type(given) is not ndarray or given.strides != self.layout.strides:
            return None
        return ArrayArgument(given.dtype, given.shape, given.strides, written)

    def holder(self, out: Any) -> None:
        """Return None, because arrays need no holder."""
        return

    def _is_alike(self, given: Any) -> bool:
        own = self.layout
        return (
            type(given) is ndarray
            and given.shape == own.shape
            and given.strides == own.strides
            and given.dtype is own.dtype
        )

    def __str__(self) -> str:
        return str(self.layout)


def minor_dimension(spec: Spec) -> int | None:
    """The dimension along which elements of a layout are closest; None if the layout does not name it."""
    if not isinstance(spec, Shape) or spec.layout is None:
        return None
    return next((d for d in spec.layout.minor_to_major if spec.dimensions[d] > 1), None)


class TiledSide:
    """Tiled arrays in one layout, or their flat buffers.

    Args:
        kind: the class of tiled arrays.
        spec: the layout.
    """

    __slots__ = ("kind", "layout", "size_bytes", "spec")

    def __init__(self, kind: type, spec: Spec) -> None:
        self.kind, self.spec = kind, spec
        dtype = np.dtype(np.uint8) if spec.packed else spec.dtype
        self.layout = ArrayLayout((spec.size_in_bytes // dtype.itemsize,), (dtype.itemsize,), dtype)
        self.size_bytes = spec.size_in_bytes

    @property
    def minor_axis(self) -> int | None:
        """The dimension along which elements are closest, if the layout names it."""
        return minor_dimension(self.spec)

    def memory(self, given: Any, name: str) -> Array:
        """Return the buffer of the argument if it is a tiled array in this layout.

        Raises:
            LayoutError: it is in another layout, or its buffer has been resized.
            TypeError: it is not a tiled array.
        """
        if not isinstance(given, self.kind):
            raise TypeError(
                f"expected a TiledArray as {name}, got {type(given).__name__}\n"
                "  wrap a buffer with TiledArray.from_buffer"
            )
        tiled: Any = given
        if tiled._layout is not self.spec and tiled.layout != self.spec:
            raise LayoutError(
                f"{name} is {shape_name(tiled.layout)}, but the plan was made for {shape_name(self.spec)}\n"
                "  create a plan for this layout"
            )
        buffer: Array = tiled._buffer
        if buffer.shape != self.layout.shape:
            check_size(buffer, self.spec, "the buffer")
        return buffer

    def new(self) -> tuple[Any, Array]:
        """Allocate a tiled array; return it and its buffer."""
        made = sized(self.layout.shape, self.layout.dtype, self.size_bytes)
        return self.held(made), made

    def output(self, out: Any, source: Array) -> tuple[Any, Array]:
        """Return `out` as a tiled array and as a buffer, if it fits; overlap with the source is not checked.

        Raises:
            LayoutError: it has another layout or size, is read-only, or is not flat.
            TypeError: it is not an array.
        """
        is_tiled = type(out) is self.kind
        buffer, own = (out.buffer if is_tiled else out), self.layout
        if (
            type(buffer) is ndarray
            and buffer.shape == own.shape
            and buffer.strides == own.strides
            and buffer.dtype is own.dtype
            and buffer.flags.writeable
            and (not is_tiled or out.layout is self.spec)
        ):
            return (out if is_tiled else self.held(buffer)), buffer
        return self._checked(out, source)

    def _checked(self, out: Any, source: Array) -> tuple[Any, Array]:
        if not isinstance(out, self.kind):
            buffer = output_buffer(out, self.spec, source)
            return self.held(buffer), buffer
        tiled: Any = out
        if tiled.layout != self.spec:
            raise LayoutError(
                f"out holds {shape_name(tiled.layout)}, but the result is {shape_name(self.spec)}\n"
                "  pass a TiledArray in that layout, or a flat buffer"
            )
        return out, output_buffer(tiled.buffer, self.spec, source)

    def held(self, buffer: Array) -> Any:
        """Wrap a buffer that fits in a tiled array."""
        tiled: Any = object.__new__(self.kind)
        tiled._buffer, tiled._layout = buffer, self.spec
        return tiled

    def argument(self, given: Any, *, written: bool) -> Argument | None:
        """Native code's checks of such an argument; None if it goes through Python."""
        with compiler_lock:  # most processes repeat few calls
            from codegen import ArrayArgument, HolderArgument
        tiled: Any = given
        buffer = tiled.buffer if type(given) is self.kind else given
        if type(buffer) is not ndarray:
            return None
        array = ArrayArgument(buffer.dtype, buffer.shape, buffer.strides, written)
        return array if buffer is given else HolderArgument(self.kind, given.layout, array)

    def holder(self, out: Any) -> tuple[type, Spec] | None:
        """The class and the layout of the tiled array for new memory, or for a flat `out`."""
        return None if type(out) is self.kind else (self.kind, self.spec)

    def __str__(self) -> str:
        return shape_name(self.spec)
