"""TiledArray: a flat buffer and the layout that says which element lies where in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from codegen import Cache, LayoutError, check_threads, compiler_lock
from tilejit.arrays.basic_index import box_of_key, hashable_key, is_element
from tilejit.arrays.memory import Array, address
from tilejit.arrays.strided import c_strides
from tilejit.arrays.values import SCALARS_AS_ARRAYS, broadcast
from tilejit.layout.as_layout import PLAIN_LAYOUTS, LayoutLike, as_layout, of_the_layout
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.dtypes import ElementLike
from tilejit.layout.indexing import shape_name
from tilejit.layout.shape import Shape
from tilejit.programs.tuning import (
    AUTO,
    STRUCTURE,
    Casting,
    Padding,
    Specialize,
    Tuning,
    VectorSize,
    check_casting,
    is_plain,
    read_tuning,
)
from tilejit.support.notebook import notebook_html
from tilejit.tiled.box_plans import ReadPlan, WritePlan
from tilejit.tiled.boxes import read_box, write_box
from tilejit.tiled.buffers import check_size, checked_buffer, flat_bytes, may_overlap, writable_layout
from tilejit.tiled.elements import elements_of
from tilejit.tiled.outputs import check_alike, padding_of
from tilejit.tiled.plan_elements import assigned_element, unpacked_dtype
from tilejit.tiled.plans import RelayoutPlan, UnpackPlan, relayout_plan, unpack_plan

if TYPE_CHECKING:
    from typing_extensions import Buffer


class TiledArray(NDArrayOperatorsMixin):
    """An array in a tiled buffer.

    >>> t = tilejit.pack(x, "{1,0:T(8,128)}")
    >>> t[5, 7], t[2:9, ::2], t.unpack()

    `buffer` is 1-D: of the element dtype, or uint8 when elements are packed into bytes. Indexing reads and
    writes in place, element by element or slice by slice, without unpacking the rest. Slices are read-only
    copies: to write, assign to the slice. `t == x` says whether two names are the same object, and `x == t`
    of an array x raises TypeError; to compare or to compute, use `tilejit.elementwise`, or unpack.

    Raises:
        LayoutError: at construction, where the buffer does not hold the shape, or the shape cannot be packed.
        TypeError: at construction, where the buffer is not an array or the layout is not a Shape.
    """

    __slots__ = ("_buffer", "_layout")

    def __init__(self, buffer: Array, layout: Spec) -> None:
        if not isinstance(layout, Shape | CuteShape):
            raise TypeError(
                f"layout is a Shape, not {type(layout).__name__}\n  TiledArray.from_buffer also reads text"
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
        """A TiledArray over memory that is there already; nothing is copied.

        >>> TiledArray.from_buffer(file.read(), "f32[1000,300]{1,0:T(8,128)}")
        >>> TiledArray.from_buffer(file.read(), "blis-a", dtype="f32", dims=(1000, 300), mr=8)

        layout, dtype, dims, parameters: as in `as_layout`.

        Raises:
            LayoutError: the buffer has not the shape's size in bytes, or the shape cannot be packed.
            TypeError: the buffer is not bytes-like, or a parameter is not the layout's.
        """
        spec = as_layout(layout, dtype=dtype, dims=dims, **parameters)
        data = checked_buffer(flat_bytes(buffer), spec, "the buffer")
        return cls(data if spec.packed else data.view(spec.dtype), spec)

    @property
    def buffer(self) -> Array:
        """The flat memory: of the element dtype, or uint8."""
        return self._buffer

    def writable_buffer(self) -> Array:
        """The buffer, where elements can be written to it.

        >>> t.writable_buffer()[:] = 0     # all elements, and the padding

        Raises:
            LayoutError: it is read-only, or the layout has two elements in one slot.
        """
        if not self._buffer.flags.writeable:
            raise LayoutError("the buffer of this tiled array is read-only\n  copy it first")
        writable_layout(self._layout)
        return self._buffer

    @property
    def layout(self) -> Spec:
        """The shape and its layout."""
        return self._layout

    @property
    def shape(self) -> tuple[int, ...]:
        """The logical dimensions."""
        return self._layout.dimensions

    @property
    def dtype(self) -> np.dtype[Any]:
        """The elements' dtype, as `unpack()` gives them."""
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
        """Bytes of the buffer, padding included."""
        return int(self._buffer.nbytes)

    @property
    def grid(self) -> tuple[int, ...]:
        """The tiles along each axis of the grid of tiles, most major first; see `tilejit.gather_tiles`.

        >>> tilejit.pack(np.zeros((1000, 300), np.float32), "{1,0:T(8,128)}").grid
        (125, 3)

        Raises:
            LayoutError: the layout has no tiles.
        """
        with compiler_lock:  # most arrays are never asked
            from tilejit.tiled.tile_grid import grid_of
        return grid_of(self._layout).extents

    def copy(self) -> TiledArray:
        """The same array in a buffer of its own, padding included."""
        return type(self)(self._buffer.copy(), self._layout)

    def unpack(
        self,
        *,
        out: Array | None = None,
        dtype: ElementLike | None = None,
        casting: Casting = "no",
        threads: int | None = None,
        virtual_vector_size: VectorSize = AUTO,
        specialize: Specialize = STRUCTURE,
        tune: bool = False,
    ) -> Array:
        """All elements as an array, in C order or in `out`: `tilejit.unpack`, which describes the keywords.

        Raises:
            LayoutError: `out` or a keyword is wrong; nothing has been written.
            TypeError: an argument has the wrong type.
        """
        layout, known = self._layout, None
        plain = dtype is None and is_plain(casting, threads, virtual_vector_size, specialize, tune)
        if out is None:
            key: tuple[Any, ...] = id(layout), casting, threads
        elif type(out) is np.ndarray:
            key = id(layout), casting, threads, out.dtype, out.shape, out.strides
        else:
            plain = False
        if plain:
            known = _unpacks.get(key)
        if known is None or known[0] is not layout:
            tuning = read_tuning(virtual_vector_size, specialize, tune)
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
        specialize: Specialize = STRUCTURE,
        tune: bool = False,
        **parameters: Any,
    ) -> TiledArray:
        """The same array in another layout: `tilejit.relayout`, which describes the keywords.

        Raises:
            LayoutError: the layout, `padding`, `out` or a keyword is wrong; nothing has been written.
            TypeError: an argument has the wrong type, or the layout does not know a keyword.
        """
        source, known = self._layout, None
        plain = padding is None and is_plain("no", threads, virtual_vector_size, specialize, tune)
        if plain and not parameters and type(layout) in PLAIN_LAYOUTS:
            key = id(source), layout, threads
            known = _relayouts.get(key)
        else:
            plain = False
        if known is None or known[0] is not source:
            tuning = read_tuning(virtual_vector_size, specialize, tune)
            own = of_the_layout(parameters, "relayout", "the tiled array")
            spec = as_layout(layout, dtype=source.primitive_type, dims=self.shape, **own)
            known = source, relayout_plan_of(source, spec, padding, out, threads, tuning)
            if plain:
                _relayouts.keep(key, known)
        result: TiledArray = known[1](self) if out is None else known[1](self, out)
        return result

    __copy__ = copy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("a tiled array has to be unpacked; there is no view without a copy")
        array = self.unpack()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> NoReturn:
        """Refuse to compute: NumPy would unpack the array in silence."""
        raise TypeError(
            f"a tiled array does not compute np.{ufunc.__name__}\n"
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
        return f"TiledArray({shape_name(self._layout)}, {self.nbytes} bytes)"

    def _repr_html_(self) -> str | None:
        """The picture of its layout that notebooks show."""
        return notebook_html("layout_html", self._layout, repr(self))

    def __getitem__(self, key: Any) -> Any:
        """An element as a scalar, or a slice as a new, read-only array in C order.

        Raises:
            LayoutIndexError: the key is out of bounds or has too many parts.
            LayoutError: the buffer has been resized.
            TypeError: the key holds anything but integers, slices, `...` and None.
        """
        found = elements_of(self._layout).read(self._buffer, key)
        if found is not None:
            return found
        plan = self._read_plan(key)
        if plan is not None:
            found = plan(self)
        else:
            check_size(self._buffer, self._layout, "the buffer")
            found = read_box(self._buffer, self._layout, key)
        if isinstance(found, np.ndarray):
            found.flags.writeable = False
        return found

    def _read_plan(self, key: Any) -> ReadPlan[TiledArray] | None:
        """The plan that reads a box; None for elements, and for keys that are not plain."""
        parts, layout = hashable_key(key), self._layout
        if parts is None:
            return None
        known = _reads.get((id(layout), parts))
        if known is None or known[0] is not layout:
            known = _reads.keep((id(layout), parts), (layout, _new_read_plan(layout, key)))
        return known[1]

    def _write_plan(self, key: Any, value: Array) -> WritePlan[TiledArray] | None:
        """The plan that writes an array to a box.

        None as above, if elements overlap, or if only NumPy converts the array's dtype.

        Raises:
            LayoutError: the array does not broadcast to the box.
        """
        parts, layout = hashable_key(key), self._layout
        if parts is None:
            return None
        known_as = id(layout), parts, value.shape, value.strides, value.dtype
        known = _writes.get(known_as)
        if known is None or known[0] is not layout:
            if is_element(key, self.shape) or assigned_element(value.dtype, layout)[0] is None:
                return None  # quick to find out, so it takes no plan's room
            known = _writes.keep(known_as, (layout, _new_write_plan(layout, key, value)))
        return known[1]

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write an element or a slice in place; the value broadcasts and converts as NumPy assigns.

        Raises:
            LayoutIndexError: the key is out of bounds or has too many parts.
            LayoutError: the value does not broadcast, an element cannot hold it, or the buffer is read-only.
            TypeError: the key holds anything but integers, slices, `...` and None, or the value no numbers.
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
            plan = self._write_plan(key, value)
            if plan is not None:
                try:
                    plan(value, self)
                except LayoutError:
                    pass  # nothing is written: a value that overlaps the buffer is copied below
                else:
                    return
        check_size(self._buffer, self._layout, "the buffer")
        write_box(self.writable_buffer(), self._layout, key, value)


_reads: Cache[tuple[Any, ...], tuple[Spec, ReadPlan[TiledArray] | None]] = Cache()
_writes: Cache[tuple[Any, ...], tuple[Spec, WritePlan[TiledArray] | None]] = Cache()
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
        LayoutError: the dtypes differ, nothing can be packed into the layout, or `padding` is wrong.
    """
    check_threads(threads)
    writable_layout(spec)
    if spec.primitive_type != source.primitive_type:
        raise LayoutError(
            f"the tiled array is {source.primitive_type}, the layout {spec.primitive_type}\n"
            "  give the layout of the same dtype; to convert, pack(t.unpack(), ..., casting=...)"
        )
    return relayout_plan(TiledArray, source, spec, padding_of(padding, spec, out), threads, tuning)


def _new_read_plan(layout: Spec, key: Any) -> ReadPlan[TiledArray] | None:
    box = box_of_key(key, layout.dimensions)
    return None if is_element(key, layout.dimensions) or 0 in box[2] else ReadPlan(TiledArray, layout, box)


def _new_write_plan(layout: Spec, key: Any, value: Array) -> WritePlan[TiledArray] | None:
    box = box_of_key(key, layout.dimensions)
    if 0 in box[2] or may_overlap(layout):
        return None
    repeated = broadcast(value, box[3]).reshape(box[2])
    return WritePlan(TiledArray, layout, box, (value.shape, value.strides, value.dtype, repeated.strides))


def address_of(tiled: TiledArray) -> int:
    """The address of a tiled array's buffer.

    Raises:
        LayoutError: the buffer has been resized since.
    """
    check_size(tiled.buffer, tiled.layout, "the buffer")
    return address(tiled.buffer)
