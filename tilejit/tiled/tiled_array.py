"""TiledArray: a flat buffer and the layout of its elements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from codegen import Cache, LayoutError, check_threads, compiler_lock
from tilejit.arrays.memory import Array, address
from tilejit.arrays.strided import c_strides
from tilejit.arrays.values import SCALARS_AS_ARRAYS
from tilejit.layout.as_layout import PLAIN_LAYOUTS, LayoutLike, as_layout, of_the_layout
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.dtypes import ElementLike
from tilejit.layout.indexing import padding_note, shape_name
from tilejit.layout.shape import Shape
from tilejit.programs.tuning import (
    AUTO,
    STRUCTURE,
    Casting,
    Padding,
    Specialize,
    Tune,
    Tuning,
    VectorSize,
    check_casting,
    is_plain,
    read_tuning,
)
from tilejit.support.notebook import notebook_html
from tilejit.tiled.box_plans import read_plan, write_plan
from tilejit.tiled.boxes import read_box, write_box
from tilejit.tiled.buffers import check_size, checked_buffer, flat_bytes, writable_layout
from tilejit.tiled.elements import elements_of
from tilejit.tiled.outputs import check_alike, padding_of
from tilejit.tiled.plan_elements import is_swapped, unpacked_dtype
from tilejit.tiled.plans import RelayoutPlan, UnpackPlan, relayout_plan, unpack_plan
from tilejit.tiled.strided_buffers import has_gaps, strided_buffer

if TYPE_CHECKING:
    from typing_extensions import Buffer


class TiledArray(NDArrayOperatorsMixin):
    """An array in a tiled buffer.

    >>> x = np.arange(15, dtype=np.float32).reshape(3, 5)
    >>> t = tilejit.pack(x, "{1,0:T(2,2)}")
    >>> t
    TiledArray(f32[3,5]{1,0:T(2,2)}, 96 bytes)
    >>> t[1:, ::2]
    array([[ 5.,  7.,  9.],
           [10., 12., 14.]], dtype=float32)
    >>> t[1, 1:3] = 0
    >>> np.asarray(t)[1]
    array([5., 0., 0., 8., 9.], dtype=float32)

    Indexing reads and writes elements and slices in place, without unpacking the rest. Slices are read-only
    copies; to write, assign to the slice. `t == u` compares object identity, and `x == t` raises
    TypeError for an array x. To compare or compute, use `tilejit.elementwise`, or unpack.

    Args:
        buffer: a 1-D array of the element dtype, or uint8 if elements are packed into bytes. Its size is that
            of the shape's buffer, padding included.
        layout: the Shape, or a CuteShape.

    Raises:
        LayoutError: the buffer's size does not match the shape, or the shape cannot be packed.
        TypeError: the buffer is not an array, or the layout is not a Shape.
    """

    __slots__ = ("_buffer", "_layout")

    def __init__(self, buffer: Array, layout: Spec) -> None:
        if not isinstance(layout, Shape | CuteShape):
            raise TypeError(
                f"expected a Shape as layout, got {type(layout).__name__}\n"
                "  TiledArray.from_buffer also reads text"
            )
        self._buffer = checked_buffer(buffer, layout, "the buffer")
        self._layout = layout

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._buffer, self._layout)

    @classmethod
    def from_buffer(
        cls,
        buffer: Array | Buffer,
        /,
        layout: LayoutLike,
        *,
        dtype: ElementLike | None = None,
        dims: Iterable[int] | None = None,
        **parameters: Any,
    ) -> TiledArray:
        """Create a TiledArray over existing memory, without a copy.

        >>> data = np.arange(24, dtype=np.float32).tobytes()
        >>> t = tilejit.TiledArray.from_buffer(data, "f32[3,5]{1,0:T(2,2)}")
        >>> float(t[2, 3])
        17.0
        >>> tilejit.TiledArray.from_buffer(bytes(80), "blis-a", dtype="f32", dims=(3, 5), mr=2)
        TiledArray(f32[3,5]{1,0:T(2,1)}, 80 bytes)

        Args:
            buffer: a bytes-like object or a C-contiguous array of any dtype and shape, in native byte order
                and of the size in bytes that the layout needs, such as an int32 array of words that hold u4
                elements. A field of a structured array also works if a layout has its strides; the result
                then has that layout.
            layout: the layout: anything that `as_layout` reads.
            dtype: the dtype of the elements, unless the layout names it.
            dims: the logical dimensions in elements, unless the layout names them.
            parameters: keywords of a named format, or sizes of a pattern's axes.

        Returns:
            The tiled array, which shares the buffer's memory.

        Raises:
            LayoutError: the buffer does not have the shape's size in bytes or is not in native byte order, or
                the shape cannot be packed.
            TypeError: the buffer is not bytes-like, or the layout does not take a parameter.
        """
        spec = as_layout(layout, dtype=dtype, dims=dims, **parameters)
        if isinstance(buffer, np.ndarray) and is_swapped(buffer.dtype):
            raise LayoutError(
                f"the buffer is {buffer.dtype}, which is not in native byte order\n"
                "  convert it with astype, or pass its bytes: buffer.view(np.uint8)"
            )
        if isinstance(buffer, np.ndarray) and has_gaps(buffer):
            check_size(buffer, spec, "the buffer")
            buffer, spec = strided_buffer(buffer, spec) or (buffer, spec)
        data = checked_buffer(flat_bytes(buffer), spec, "the buffer")
        return cls(data if spec.packed else data.view(spec.dtype), spec)

    @property
    def buffer(self) -> Array:
        """The buffer: a 1-D array of the element dtype, or uint8 if elements are packed into bytes."""
        return self._buffer

    def writable_buffer(self) -> Array:
        """Return the buffer if its elements can be written.

        >>> t = tilejit.pack(np.ones((3, 5), np.float32), "{1,0:T(2,2)}")
        >>> t.writable_buffer()[:] = 0  # all elements, and the padding
        >>> float(t[2, 3])
        0.0

        Returns:
            The buffer itself.

        Raises:
            LayoutError: the buffer is read-only, or two elements of the layout share a slot.
        """
        if not self._buffer.flags.writeable:
            raise LayoutError("the buffer of this tiled array is read-only\n  copy it first")
        writable_layout(self._layout)
        return self._buffer

    @property
    def layout(self) -> Spec:
        """The shape, including its layout."""
        return self._layout

    @property
    def shape(self) -> tuple[int, ...]:
        """The logical dimensions in elements."""
        return self._layout.dimensions

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements, as `unpack()` returns them."""
        return self._layout.dtype

    @property
    def ndim(self) -> int:
        """The number of logical dimensions."""
        return len(self._layout.dimensions)

    @property
    def size(self) -> int:
        """The number of elements, without padding."""
        return prod(self._layout.dimensions)

    @property
    def nbytes(self) -> int:
        """The size of the buffer in bytes, padding included."""
        return int(self._buffer.nbytes)

    @property
    def grid(self) -> tuple[int, ...]:
        """The number of tiles along each axis of the grid of tiles, the most major axis first.

        >>> tilejit.pack(np.zeros((1000, 300), np.float32), "{1,0:T(8,128)}").grid
        (125, 3)

        Raises:
            LayoutError: the layout has no tiles.
        """
        with compiler_lock:  # few arrays need it
            from tilejit.tiled.tile_grid import grid_of
        return grid_of(self._layout).extents

    def copy(self) -> TiledArray:
        """Copy the array, padding included, to a buffer of its own.

        >>> t = tilejit.pack(np.ones((3, 5), np.float32), "{1,0:T(2,2)}")
        >>> u = t.copy()
        >>> u[0, 0] = 7
        >>> float(t[0, 0])
        1.0

        Returns:
            The copy.
        """
        return type(self)(self._buffer.copy(), self._layout)

    def unpack(
        self,
        *,
        out: Array | None = None,
        dtype: ElementLike | None = None,
        casting: Casting = "no",
        threads: int | None = None,
        virtual_vector_size: VectorSize = AUTO,
        schedule: str | None = None,
        specialize: Specialize = STRUCTURE,
        tune: Tune = False,
    ) -> Array:
        """Copy all elements to an array: the method form of `tilejit.unpack`.

        >>> t = tilejit.pack(np.arange(6, dtype=np.float32).reshape(2, 3), "{1,0:T(2,2)}")
        >>> t.unpack()
        array([[0., 1., 2.],
               [3., 4., 5.]], dtype=float32)

        Args:
            out: an array of the logical shape to write to, of any strides and byte order. It must not overlap
                the buffer. None allocates an array in C order.
            dtype: the dtype of the result. None takes that of `out`, or else the layout's.
            casting: NumPy's rule for conversions.
            threads: the number of threads; None chooses it from the size.
            virtual_vector_size: elements that move at a time, one number or two; see `copyto`.
            schedule: directives for the largest part of the copy, as `explain` prints them; see `copyto`.
            specialize: "structure" shares kernels between shapes; "sizes" compiles one for this shape alone.
            tune: True measures a few kernels first and keeps the fastest; "live" does so on the first calls.

        Returns:
            `out`, or a new array, without padding.

        Raises:
            LayoutError: `out` or a keyword is invalid; nothing has been written.
            KernelValueError: `threads` is less than one.
            TypeError: an argument has the wrong type.
        """
        layout, known = self._layout, None
        plain = dtype is None and is_plain(casting, threads, virtual_vector_size, specialize, tune, schedule)
        if out is None:
            key: tuple[Any, ...] = id(layout), casting, threads
        elif type(out) is np.ndarray:
            key = id(layout), casting, threads, out.dtype, out.shape, out.strides
        else:
            plain = False
        if plain:
            known = _unpacks.get(key)
        if known is None or known[0] is not layout:
            tuning = read_tuning(virtual_vector_size, specialize, tune, schedule)
            check_size(self._buffer, layout, "the buffer")
            known = layout, _unpack_plan(layout, out, dtype, casting, threads, tuning)
            if plain:
                _unpacks.keep(key, known)
        result: Array = known[1](self) if out is None else known[1](self, out)
        return result

    def relayout(
        self,
        layout: LayoutLike,
        *,
        out: Array | TiledArray | None = None,
        padding: Padding | None = None,
        threads: int | None = None,
        virtual_vector_size: VectorSize = AUTO,
        schedule: str | None = None,
        specialize: Specialize = STRUCTURE,
        tune: Tune = False,
        **parameters: Any,
    ) -> TiledArray:
        """Copy the array into another layout: the method form of `tilejit.relayout`.

        >>> t = tilejit.pack(np.arange(6, dtype=np.float32).reshape(2, 3), "{1,0:T(2,2)}")
        >>> t.relayout("{0,1}").buffer
        array([0., 3., 1., 4., 2., 5.], dtype=float32)

        Args:
            layout: the new layout, of the same dimensions and dtype: anything that `as_layout` reads.
            out: a flat array of the element dtype, a uint8 array or a TiledArray to write to, of the right
                size. It must not overlap this array. None allocates a buffer.
            padding: the value of padding elements. None takes the new layout's own, or 0; "keep" keeps the
                padding of `out`.
            threads: the number of threads; None chooses it from the size.
            virtual_vector_size: elements that move at a time, one number or two; see `copyto`.
            schedule: directives for the largest part of the copy, as `explain` prints them; see `copyto`.
            specialize: "structure" shares kernels between shapes; "sizes" compiles one for this shape alone.
            tune: True measures a few kernels first and keeps the fastest; "live" does so on the first calls.
            parameters: keywords of a named format, or sizes of a pattern's axes.

        Returns:
            The tiled array in the new layout.

        Raises:
            LayoutError: the layout, `padding`, `out` or a keyword is invalid; nothing has been written.
            KernelValueError: `threads` is less than one.
            TypeError: an argument has the wrong type, or the layout does not take a keyword.
        """
        source, known = self._layout, None
        plain = padding is None and is_plain("no", threads, virtual_vector_size, specialize, tune, schedule)
        if plain and not parameters and type(layout) in PLAIN_LAYOUTS:
            key = id(source), layout, threads
            known = _relayouts.get(key)
        else:
            plain = False
        if known is None or known[0] is not source:
            tuning = read_tuning(virtual_vector_size, specialize, tune, schedule)
            own = of_the_layout(parameters, "relayout", "the tiled array")
            spec = as_layout(layout, dtype=source.element, dims=self.shape, **own)
            known = source, relayout_plan_of(source, spec, padding, out, threads, tuning)
            if plain:
                _relayouts.keep(key, known)
        result: TiledArray = known[1](self) if out is None else known[1](self, out)
        return result

    __copy__ = copy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("a tiled array must be unpacked, which makes a copy")
        array = self.unpack()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> NoReturn:
        """Refuse to compute, because NumPy would silently unpack the array."""
        raise TypeError(
            f"np.{ufunc.__name__} does not support tiled arrays\n"
            "  use tilejit.elementwise, which computes tile by tile, or np.asarray(t), which unpacks it"
        )

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    __hash__ = object.__hash__

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tiled array without dimensions has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __repr__(self) -> str:
        facts = (shape_name(self._layout), f"{self.nbytes} bytes", padding_note(self._layout))
        return f"TiledArray({', '.join(filter(None, facts))})"

    def _repr_html_(self) -> str | None:
        """Draw the layout for a notebook."""
        return notebook_html("layout_html", self._layout, repr(self))

    def __getitem__(self, key: Any) -> Any:
        """Read an element as a scalar, or a slice as a new, read-only array in C order.

        Raises:
            LayoutIndexError: the key is out of bounds or has too many parts.
            LayoutError: the buffer has been resized.
            TypeError: the key contains anything other than integers, slices, `...` and None.
        """
        found = elements_of(self._layout).read(self._buffer, key)
        if found is not None:
            return found
        plan = read_plan(TiledArray, self._layout, key)
        if plan is not None:
            found = plan(self)
        else:
            check_size(self._buffer, self._layout, "the buffer")
            found = read_box(self._buffer, self._layout, key)
        if isinstance(found, np.ndarray):
            found.flags.writeable = False
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write an element or a slice in place; the value broadcasts and converts as in NumPy assignment.

        Raises:
            LayoutIndexError: the key is out of bounds or has too many parts.
            LayoutError: the value does not broadcast, does not fit the dtype, or the buffer is read-only.
            TypeError: the key contains anything other than integers, slices, `...` and None, or the value is
                not numeric.
        """
        if type(value) is not np.ndarray:
            known = elements_of(self._layout)
            if known.takes(self._buffer, value):
                if known.write(self._buffer, key, value):
                    return
                value = np.array(value, self._layout.dtype)
            elif isinstance(value, SCALARS_AS_ARRAYS):
                value = np.asarray(value)
        if type(value) is np.ndarray:
            plan = write_plan(TiledArray, self._layout, key, value)
            if plan is not None:
                try:
                    plan(value, self)
                except LayoutError:
                    pass  # nothing is written: a value that overlaps the buffer is copied below
                else:
                    return
        check_size(self._buffer, self._layout, "the buffer")
        write_box(self.writable_buffer(), self._layout, key, value)


_unpacks: Cache[tuple[Any, ...], tuple[Spec, UnpackPlan[TiledArray]]] = Cache()
_relayouts: Cache[tuple[Any, ...], tuple[Spec, RelayoutPlan[TiledArray]]] = Cache()
"""Plans of earlier calls, each with the layout whose id is in its key."""


def _unpack_plan(
    layout: Spec, out: Any, dtype: Any, casting: Casting, threads: int | None, tuning: Tuning
) -> UnpackPlan[TiledArray]:
    check_threads(threads)
    check_casting(casting)
    want = unpacked_dtype(layout, out, dtype)
    strides = out.strides if isinstance(out, np.ndarray) else c_strides(layout.dimensions, want.itemsize)
    if isinstance(out, np.ndarray):
        check_alike(out, layout.dimensions, want)
    return unpack_plan(TiledArray, layout, strides, want, casting, threads, tuning)


def relayout_plan_of(
    source: Spec, spec: Spec, padding: Any, out: Any, threads: int | None, tuning: Tuning
) -> RelayoutPlan[TiledArray]:
    """The plan of a relayout with these keywords; `out` is not None if calls have one.

    Raises:
        LayoutError: the dtypes differ, the layout cannot be packed, or `padding` is invalid.
    """
    check_threads(threads)
    writable_layout(spec)
    if spec.primitive_type != source.primitive_type:
        raise LayoutError(
            f"the tiled array is {source.primitive_type}, but the layout is {spec.primitive_type}\n"
            "  pass a layout of the same dtype; to convert, pack(t.unpack(), ..., casting=...)"
        )
    return relayout_plan(TiledArray, source, spec, padding_of(padding, spec, out), threads, tuning)


def address_of(tiled: TiledArray) -> int:
    """The address of a tiled array's buffer.

    Raises:
        LayoutError: the buffer has been resized.
    """
    check_size(tiled.buffer, tiled.layout, "the buffer")
    return address(tiled.buffer)
