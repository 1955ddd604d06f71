"""Map elements of a shape to slots and back.

`xla_index` implements XLA's shapes, and `cute_index` implements CuTe's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from codegen import AccessMap, LayoutIndexError, cached, dataclass
from tilejit.layout.cute_index import cute_access_map, cute_index, cute_slot
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.dtypes import ElementLike
from tilejit.layout.helpers import Tiled
from tilejit.layout.shape import Shape
from tilejit.layout.xla_index import Index, xla_access_map, xla_index, xla_slot

if TYPE_CHECKING:
    from tilejit.layout.as_layout import LayoutLike


@overload
def linear_index(
    layout: LayoutLike | Tiled,
    index: tuple[int | np.integer[Any], ...],
    *,
    dtype: ElementLike | None = None,
    dims: Iterable[int] | None = None,
    **parameters: Any,
) -> int: ...


@overload
def linear_index(
    layout: LayoutLike | Tiled,
    index: tuple[ArrayLike, ...],
    *,
    dtype: ElementLike | None = None,
    dims: Iterable[int] | None = None,
    **parameters: Any,
) -> NDArray[np.int64]: ...


def linear_index(
    layout: LayoutLike | Tiled,
    index: tuple[Any, ...],
    *,
    dtype: ElementLike | None = None,
    dims: Iterable[int] | None = None,
    **parameters: Any,
) -> Index:
    """Return the slot of the element at a multi-index.

    >>> tilejit.linear_index("f32[3,5]{1,0:T(2,2)}", (2, 3))
    17
    >>> tilejit.linear_index("f32[3,5]{1,0:T(2,2)}", (2, np.arange(5)))
    array([12, 13, 16, 17, 20])
    >>> tilejit.linear_index("blis-a", (2, 3), dtype="f32", dims=(3, 5), mr=2)
    16

    Args:
        layout: a Shape, a TiledArray, or anything else that `as_layout` reads.
        index: a nonnegative integer for each dimension, or arrays of integers, which broadcast.
        dtype: the array's dtype, if the layout is not a complete shape.
        dims: the array's dimensions, if the layout is not a complete shape.
        parameters: keywords of a named format, or sizes of a pattern's axes.

    Returns:
        The slot, counted in elements from the start of the buffer: an int, or an int64 array for arrays.

    Raises:
        LayoutIndexError: an index is outside its dimension, the number of indices is wrong, or arrays of
            indices do not broadcast.
        LayoutError: the layout cannot be read.
        TypeError: an index is not an integer, or the layout has another type.
    """
    shape = _shape_of(layout, dtype, dims, parameters)
    checked = _checked_index(shape, index)
    slot = _RULES[type(shape)].slot(shape, checked)
    return slot if isinstance(slot, int) else np.asarray(slot, np.int64)


@overload
def multi_index(
    layout: LayoutLike | Tiled,
    slot: int | np.integer[Any],
    *,
    dtype: ElementLike | None = None,
    dims: Iterable[int] | None = None,
    **parameters: Any,
) -> tuple[int, ...] | None: ...


@overload
def multi_index(
    layout: LayoutLike | Tiled,
    slot: ArrayLike,
    *,
    dtype: ElementLike | None = None,
    dims: Iterable[int] | None = None,
    **parameters: Any,
) -> tuple[NDArray[np.int64], ...]: ...


def multi_index(
    layout: LayoutLike | Tiled,
    slot: ArrayLike,
    *,
    dtype: ElementLike | None = None,
    dims: Iterable[int] | None = None,
    **parameters: Any,
) -> tuple[int, ...] | tuple[NDArray[np.int64], ...] | None:
    """Return the multi-index of the element in a slot.

    >>> tilejit.multi_index("f32[3,5]{1,0:T(2,2)}", 17)
    (2, 3)
    >>> tilejit.multi_index("f32[3,5]{1,0:T(2,2)}", 9) is None
    True
    >>> tilejit.multi_index("f32[3,5]{1,0:T(2,2)}", [17, 9])
    (array([ 2, -1]), array([ 3, -1]))

    Args:
        layout: a Shape, a TiledArray, or anything else that `as_layout` reads.
        slot: counted in elements from the start of the buffer: an integer, or an array of integers.
        dtype: the array's dtype, if the layout is not a complete shape.
        dims: the array's dimensions, if the layout is not a complete shape.
        parameters: keywords of a named format, or sizes of a pattern's axes.

    Returns:
        For an integer, the index as a tuple of ints, or None if the slot is padding. For an array, an int64
        array of its shape for each dimension, with -1 in each where the slot is padding.

    Raises:
        LayoutIndexError: a slot is outside the buffer.
        LayoutError: the layout cannot be read.
        TypeError: a slot is not an integer, or the layout has another type.
    """
    shape = _shape_of(layout, dtype, dims, parameters)
    slots = _integer(slot, "a slot")
    size = shape.physical_size
    low, high = (slots, slots) if isinstance(slots, int) else _span(slots)
    if low < 0 or high >= size:
        wrong = low if low < 0 else high
        raise LayoutIndexError(
            f"slot {wrong} lies outside the buffer\n  {shape_name(shape)} has slots 0 to {size - 1}"
            if size
            else f"slot {wrong} lies outside the buffer\n  {shape_name(shape)} has no slots"
        )
    index, valid = _RULES[type(shape)].index(shape, slots)
    if isinstance(slots, int):
        return tuple(int(i) for i in index) if valid else None
    empty = np.full(slots.shape, -1, np.int64)
    return tuple(np.where(valid, i, empty) for i in index)


@cached(1024)
def access_map(shape: Spec) -> AccessMap:
    """The buffer of a shape as an access map, in elements.

    Raises:
        LayoutError: the size of the shape is unknown (`?` and the like).
    """
    return _RULES[type(shape)].access_map(shape)


def _checked_index(shape: Spec, index: tuple[Any, ...]) -> tuple[Index, ...]:
    if not isinstance(index, tuple | list):
        raise TypeError(f"expected a tuple of integers or arrays as an index, got {type(index).__name__}")
    if len(index) != shape.rank:
        raise LayoutIndexError(f"{shape_name(shape)} takes {shape.rank} indices, not {len(index)}")
    out: list[Index] = []
    for d, (value, extent) in enumerate(zip(index, shape.dimensions, strict=True)):
        checked = _integer(value, f"the index of dimension {d}")
        low, high = (checked, checked) if isinstance(checked, int) else _span(checked)
        if low < 0 or high >= extent:
            wrong = low if low < 0 else high
            raise LayoutIndexError(
                f"index {wrong} lies outside dimension {d}\n  {shape_name(shape)} has {extent} there; "
                + (f"write 0 to {extent - 1}" if extent else "there are no elements")
            )
        out.append(checked)
    try:
        np.broadcast_shapes(*(value.shape for value in out if not isinstance(value, int)))
    except ValueError as error:
        raise LayoutIndexError(f"the arrays of indices do not broadcast: {error}") from error
    return tuple(out)


def _shape_of(
    layout: Any, dtype: ElementLike | None, dims: Iterable[int] | None, parameters: dict[str, Any]
) -> Spec:
    """Return the shape of an argument: a shape, a tiled array, or anything else that `as_layout` reads."""
    own = layout if isinstance(layout, Shape | CuteShape) else getattr(layout, "layout", None)
    shape = own if isinstance(own, Shape | CuteShape) else None
    if shape is not None and dtype is None and dims is None and not parameters:
        return shape
    from tilejit.layout.as_layout import as_layout

    return as_layout(layout if shape is None else shape, dtype=dtype, dims=dims, **parameters)


def _integer(value: Any, what: str) -> Index:
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{what}: expected an integer, got a bool")
    if isinstance(value, int | np.integer):
        return int(value)
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise LayoutIndexError(
            f"{what}: expected an integer or an array, got {type(value).__name__}: {error}"
        ) from error
    if array.dtype.kind not in "iu":
        if array.size == 0:
            return array.astype(np.int64)
        raise TypeError(f"{what}: expected an integer or an array of integers, got {array.dtype}")
    if array.dtype == np.uint64 and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise LayoutIndexError(f"{what} is {int(array.max())}, larger than any buffer")
    return array.astype(np.int64, copy=False)


def _span(array: NDArray[np.int64]) -> tuple[int, int]:
    """The smallest and the largest value; an empty array has no range."""
    return (int(array.min()), int(array.max())) if array.size else (0, -1)


def shape_name(shape: Spec) -> str:
    """Format a shape for a message: XLA's or CuTe's text, or the repr if the text cannot show the padding."""
    return _RULES[type(shape)].name(shape)


def padding_note(spec: Spec) -> str:
    """The share of padding, if it is more than half of the buffer, else "".

    s64[30]{0:T(1024)} -> "97.1% padding"    f32[3,5]{1,0:T(2,2)} -> ""
    """
    share = spec.padding_fraction
    return f"{share:.1%} padding" if share > 0.5 else ""


def _xla_name(shape: Shape) -> str:
    plain = shape.padded_dimensions is None and shape.padding_value is None
    return str(shape) if plain else repr(shape)


@dataclass(frozen=True, slots=True)
class _Rules:
    """The functions for one kind of shape."""

    access_map: Callable[[Any], AccessMap]
    slot: Callable[[Any, tuple[Index, ...]], Any]
    index: Callable[[Any, Any], tuple[list[Any], Any]]
    name: Callable[[Any], str]


_RULES: dict[type, _Rules] = {
    Shape: _Rules(xla_access_map, xla_slot, xla_index, _xla_name),
    CuteShape: _Rules(cute_access_map, cute_slot, cute_index, str),
}
