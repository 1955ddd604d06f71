"""Functions of XLA's index_util, shape_util and layout_util, under XLA's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np

from codegen import LayoutError, LayoutIndexError, shown
from tilejit.cute.int_tuple import as_integer
from tilejit.layout.checks import int_tuple
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.fields import UNBOUNDED
from tilejit.layout.shape import Shape
from tilejit.layout.shape_facts import tile_steps_of
from tilejit.layout.strides import axis_stride, row_major_strides

_LETTERS: dict[int, tuple[str, ...]] = {
    0: (),
    1: ("x",),
    2: ("y", "x"),
    3: ("z", "y", "x"),
    4: ("p", "z", "y", "x"),
}


class Tiled(Protocol):
    """An object with a shape, such as a `TiledArray`."""

    @property
    def layout(self) -> Spec:
        """The shape, including its layout."""


ShapeLike: TypeAlias = Shape | str | Tiled
"""The arguments that the public helpers read."""


def normalize_dimension(layout: ShapeLike | int, dimension: int) -> int:
    """Convert a dimension that may count from the end, as in Python, to one that counts from the front.

    >>> tilejit.normalize_dimension("f32[2,3,5]", -1)
    2
    >>> tilejit.normalize_dimension(3, -3)
    0

    Args:
        layout: a Shape, XLA's text of one, a TiledArray, or the number of dimensions.
        dimension: the dimension; -1 is the last.

    Returns:
        The dimension, from 0 to rank - 1.

    Raises:
        LayoutIndexError: there is no such dimension.
        LayoutError: the text is not a shape, or the tiled array has a CuTe layout.
        TypeError: the dimension is not an integer, or the layout has another type.
    """
    rank = as_integer(layout, "a rank") if isinstance(layout, int | np.integer) else _shape_of(layout).rank
    number = as_integer(dimension, "a dimension")
    if not -rank <= number < rank:
        fix = f"name one from {-rank} to {rank - 1}" if rank > 0 else "a scalar has no dimensions"
        raise LayoutIndexError(f"dimension {shown(number)} is out of range for rank {shown(rank)}\n  {fix}")
    return number % rank


def axis_letters(rank: int) -> tuple[str, ...]:
    """Return the usual letters of the dimensions, dimension 0 first.

    >>> tilejit.axis_letters(2), tilejit.axis_letters(4)
    (('y', 'x'), ('p', 'z', 'y', 'x'))

    Args:
        rank: the number of dimensions, from 0 to 4.

    Returns:
        A letter for each dimension.

    Raises:
        LayoutError: letters are not defined for that rank.
        TypeError: the rank is not an integer.

    Source: XLA's page "Shapes and layout".
    """
    letters = _LETTERS.get(as_integer(rank, "a rank"))
    if letters is None:
        raise LayoutError(f"letters are not defined for {shown(rank)} dimensions\n  pass a rank from 0 to 4")
    return letters


def is_dim_minor(layout: ShapeLike, dimension: int) -> bool:
    """Whether a dimension is the fastest varying one, the first of minor_to_major.

    >>> tilejit.is_dim_minor("f32[2,3]{0,1}", 0), tilejit.is_dim_minor("f32[2,3]{1,0}", 0)
    (True, False)

    Args:
        layout: a Shape, XLA's text of one, or a TiledArray. Tiles are ignored.
        dimension: the dimension; -1 is the last.

    Returns:
        True for the most minor dimension.

    Raises:
        LayoutIndexError: there is no such dimension.
        LayoutError: the text is not a shape, or the tiled array has a CuTe layout.
        TypeError: the dimension is not an integer, or the layout has another type.
    """
    shape = _shape_of(layout)
    number = normalize_dimension(shape, dimension)
    return shape.minor_to_major[0] == number


def is_dim_major(layout: ShapeLike, dimension: int) -> bool:
    """Whether a dimension is the slowest varying one, the last of minor_to_major.

    >>> tilejit.is_dim_major("f32[2,3]{1,0}", 0), tilejit.is_dim_major("f32[2,3]{1,0}", -1)
    (True, False)

    Args:
        layout: a Shape, XLA's text of one, or a TiledArray. Tiles are ignored.
        dimension: the dimension; -1 is the last.

    Returns:
        True for the most major dimension.

    Raises:
        LayoutIndexError: there is no such dimension.
        LayoutError: the text is not a shape, or the tiled array has a CuTe layout.
        TypeError: the dimension is not an integer, or the layout has another type.
    """
    shape = _shape_of(layout)
    number = normalize_dimension(shape, dimension)
    return shape.minor_to_major[-1] == number


def is_monotonic_with_dim0_minor(layout: ShapeLike) -> bool:
    """Whether dimension 0 varies fastest and the last slowest: column-major for rank 2.

    >>> tilejit.is_monotonic_with_dim0_minor("f32[2,3,5]{0,1,2}")
    True
    >>> tilejit.is_monotonic_with_dim0_minor("f32[2,3,5]{0,2,1}")
    False

    Args:
        layout: a Shape, XLA's text of one, or a TiledArray. Tiles are ignored.

    Returns:
        True if minor_to_major ascends.

    Raises:
        LayoutError: the text is not a shape, or the tiled array has a CuTe layout.
        TypeError: the layout has another type.

    Source: XLA's LayoutUtil::IsMonotonicWithDim0Minor.
    """
    shape = _shape_of(layout)
    return shape.minor_to_major == tuple(range(shape.rank))


def is_monotonic_with_dim0_major(layout: ShapeLike) -> bool:
    """Whether dimension 0 varies slowest and the last fastest: row-major for rank 2.

    >>> tilejit.is_monotonic_with_dim0_major("f32[2,3,5]")
    True
    >>> tilejit.is_monotonic_with_dim0_major("f32[2,3,5]{1,2,0}")
    False

    Args:
        layout: a Shape, XLA's text of one, or a TiledArray. Tiles are ignored.

    Returns:
        True if minor_to_major descends, as it does by default.

    Raises:
        LayoutError: the text is not a shape, or the tiled array has a CuTe layout.
        TypeError: the layout has another type.

    Source: XLA's LayoutUtil::IsMonotonicWithDim0Major.
    """
    return _shape_of(layout).descending


def in_bounds(layout: ShapeLike, index: Sequence[int]) -> bool:
    """Whether a multi-index names an element.

    >>> tilejit.in_bounds("f32[2,3]", (1, 2))
    True
    >>> tilejit.in_bounds("f32[2,3]", (1, 3)), tilejit.in_bounds("f32[2,3]", (-1, 0))
    (False, False)

    Args:
        layout: a Shape, XLA's text of one, or a TiledArray. A bound `<=n` counts as n, and `?` has no bound.
        index: an integer for each dimension. Negative ones are out of bounds.

    Returns:
        True if each number lies within its dimension.

    Raises:
        LayoutIndexError: the index does not have one number for each dimension.
        LayoutError: the text is not a shape, or the tiled array has a CuTe layout.
        TypeError: an index is not an integer, or the layout has another type.

    Source: XLA's IndexUtil::IndexInBounds.
    """
    shape = _shape_of(layout)
    numbers = _multi_index(shape, index)
    return all(i >= 0 and (i < n or n == UNBOUNDED) for i, n in zip(numbers, shape.dimensions, strict=True))


def bump_indices(layout: ShapeLike, index: Sequence[int]) -> tuple[int, ...] | None:
    """Return the next multi-index in minor-to-major order.

    >>> tilejit.bump_indices("f32[2,3]{1,0}", (0, 2))
    (1, 0)
    >>> tilejit.bump_indices("f32[2,3]{0,1}", (0, 2))
    (1, 2)
    >>> tilejit.bump_indices("f32[2,3]", (1, 2)) is None
    True

    Starting at (0, 0, ...), this visits the elements of an untiled layout in memory order.
    XLA's IndexUtil::BumpIndices always counts in row-major order, so it differs for other layouts.

    Args:
        layout: a Shape, XLA's text of one, or a TiledArray. Tiles are ignored.
        index: an integer for each dimension.

    Returns:
        The next index, or None after the last.

    Raises:
        LayoutIndexError: the index is out of bounds.
        LayoutError: a dimension is `?`, the text is not a shape, or the tiled array has a CuTe layout.
        TypeError: an index is not an integer, or the layout has another type.
    """
    shape = _shape_of(layout)
    if UNBOUNDED in shape.dimensions:
        raise LayoutError(
            "a dimension is '?', so its last index is unknown\n  write its size, or a bound such as <=456"
        )
    if not in_bounds(shape, index):
        raise LayoutIndexError(
            f"the index {_index_text(index)} is out of bounds\n  stay within {dims_text(shape.dimensions)}"
        )
    bumped = list(_multi_index(shape, index))
    for dimension in shape.minor_to_major:
        bumped[dimension] += 1
        if bumped[dimension] < shape.dimensions[dimension]:
            return tuple(bumped)
        bumped[dimension] = 0
    return None


def dimension_stride(layout: ShapeLike, dimension: int) -> int:
    """Return the distance in elements between neighbors along a dimension in the buffer.

    >>> tilejit.dimension_stride("f32[3,5,7]", 0)
    35
    >>> tilejit.dimension_stride("f32[3,5]{0,1}", 1)
    3
    >>> tilejit.dimension_stride("f32[5,100]{1,0:T(8,128)}", 0)
    128

    Args:
        layout: a Shape, XLA's text of one, or a TiledArray.
        dimension: the dimension; -1 is the last.

    Returns:
        The stride in elements, the same between all neighbors.

    Raises:
        LayoutError: tiling leaves the dimension without a single stride, the size is unknown, the text is not
            a shape, or the tiled array has a CuTe layout.
        LayoutIndexError: there is no such dimension.
        TypeError: the dimension is not an integer, or the layout has another type.

    Source: XLA's IndexUtil::GetDimensionStride, which does not support tiles.
    """
    shape = _shape_of(layout)
    number = normalize_dimension(shape, dimension)
    axis = shape.rank - 1 - shape.minor_to_major.index(number)
    stride = axis_stride(axis, shape.dimensions[number], *tile_steps_of(shape))
    if stride is None:
        raise LayoutError(
            f"tiling leaves dimension {number} without a single stride\n"
            "  use linear_index, or a layout without tiles"
        )
    return stride


def byte_strides(shape: Shape) -> tuple[int, ...] | None:
    """Bytes between neighbors along each dimension; None if tiles or packing leave no single strides.

    f32[3,5,7] -> (140, 28, 4)    s4[10,20]{1,0:E(4)} -> None

    Raises:
        LayoutError: the size of the shape is unknown.
    """
    _, extents = tile_steps_of(shape)
    if shape.bits % 8 or not shape.untiled:
        return None
    physical = row_major_strides(extents[0])
    strides = [0] * shape.rank
    for stride, dimension in zip(physical, reversed(shape.minor_to_major), strict=True):
        strides[dimension] = stride * shape.bits // 8
    return tuple(strides)


def validate_layout(shape: Shape) -> None:
    """Raise a LayoutError if a Shape cannot describe a buffer: without a layout, or with an invalid split."""
    if shape.layout is None:
        if shape.element.is_array_element:
            raise LayoutError(
                f"the shape {shape.primitive_type}{dims_text(shape.dimensions)} has no layout\n"
                "  give it one, e.g. row-major"
            )
        return
    for dimension, indices in shape.layout.split_configs:
        size = shape.dimensions[dimension]
        for index in indices:
            if size != UNBOUNDED and index >= size:
                raise LayoutError(
                    f"split index {index} lies outside dimension {dimension}, which has {size} elements\n"
                    f"  use indices below {size}"
                )


def reshape_is_bitcast(source: Shape, target: Shape) -> bool:
    """Whether a row-major reshape from one shape to the other leaves every element in its slot.

    (f32[3,2,2]{1,0,2}, f32[6,2]{0,1}) -> True    (f32[3,4]{0,1}, f32[6,2]{1,0}) -> False

    Tiled layouts count as moved unless the two shapes are the same.
    """
    if source == target:
        return True
    if not (source.untiled and target.untiled) or source.bits != target.bits:
        return False
    if source.padded_dimensions is not None or target.padded_dimensions is not None:
        return False
    return _walk(source) == _walk(target)


def _walk(shape: Shape) -> list[tuple[int, int]]:
    """The row-major walk through a buffer as (extent, stride), with contiguous neighbors joined."""
    strides = row_major_strides(tile_steps_of(shape)[1][0])[::-1]
    joined: list[tuple[int, int]] = []
    for dimension, size in enumerate(shape.dimensions):
        if size == 0:
            return [(0, 0)]
        if size == 1:
            continue
        stride = strides[shape.minor_to_major.index(dimension)]
        if joined and joined[-1][1] == stride * size:
            size *= joined.pop()[0]
        joined.append((size, stride))
    return joined


def _shape_of(layout: ShapeLike) -> Shape:
    """Return the shape of an argument: a Shape, its text, or that of a tiled array.

    Raises:
        LayoutError: the text is not a shape, or the layout is a CuTe layout.
        TypeError: the argument has another type.
    """
    if isinstance(layout, Shape):
        return layout
    if isinstance(layout, str):
        return Shape.parse(layout)
    found: object = layout if isinstance(layout, CuteShape) else getattr(layout, "layout", None)
    if isinstance(found, Shape):
        return found
    if isinstance(found, CuteShape):
        raise LayoutError(f"{str(found)[:80]} is a CuTe layout, which has no minor_to_major\n  pass a Shape")
    raise TypeError(
        f"expected a layout, got {type(layout).__name__}\n  pass a Shape, XLA's text of one, or a TiledArray"
    )


def _multi_index(shape: Shape, index: Sequence[int]) -> tuple[int, ...]:
    numbers = int_tuple(index, "an index")
    if len(numbers) != shape.rank:
        raise LayoutIndexError(
            f"the index has {len(numbers)} numbers for {shape.rank} dimensions\n  pass one for each"
        )
    return numbers


def _index_text(index: Sequence[int]) -> str:
    return f"({', '.join(shown(i) for i in int_tuple(index, 'an index')[:16])})"


def dims_text(dims: Sequence[int]) -> str:
    """Format dimensions in brackets for a message, cut if there are many.

    (2, -1, 3) -> "[2,?,3]"
    """
    text = ",".join("?" if n == UNBOUNDED else shown(n) for n in dims[:16])
    return f"[{text}{',…' if len(dims) > 16 else ''}]"
