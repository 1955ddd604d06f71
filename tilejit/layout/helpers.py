"""The questions that XLA's index_util and shape_util answer about a shape, by their own names."""

from __future__ import annotations

from collections.abc import Sequence

from codegen import LayoutError, LayoutIndexError, shown
from tilejit.layout.checks import int_tuple
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


def normalize_dimension(shape: Shape | int, dimension: int) -> int:
    """A dimension number counted from the front; -1 is the last. Takes a shape or its rank.

    (f32[2,3,5], -1) -> 2    (3, -3) -> 0

    Raises:
        LayoutIndexError: there is no such dimension.
    """
    rank = shape if isinstance(shape, int) else shape.rank
    (number,) = int_tuple((dimension,), "a dimension")
    if not -rank <= number < rank:
        mend = f"name one from {-rank} to {rank - 1}" if rank else "a scalar has no dimensions"
        raise LayoutIndexError(f"there is no dimension {shown(number)} among {rank}\n  {mend}")
    return number % rank


def axis_letters(rank: int) -> tuple[str, ...]:
    """The usual letters of the dimensions, dimension 0 first.

    2 -> ("y", "x")    3 -> ("z", "y", "x")    4 -> ("p", "z", "y", "x")

    Raises:
        LayoutError: no letters are usual for that rank.
    """
    if rank not in _LETTERS:
        raise LayoutError(f"no letters are usual for {shown(rank)} dimensions\n  ask for 0 to 4")
    return _LETTERS[rank]


def is_dim_minor(shape: Shape, dimension: int) -> bool:
    """Whether a dimension is the fastest varying: "dim 0 is minor" of f32[2,3]{0,1}."""
    number = normalize_dimension(shape, dimension)
    return shape.minor_to_major[0] == number


def is_dim_major(shape: Shape, dimension: int) -> bool:
    """Whether a dimension is the slowest varying: "dim 0 is major" of f32[2,3]{1,0}."""
    number = normalize_dimension(shape, dimension)
    return shape.minor_to_major[-1] == number


def in_bounds(shape: Shape, index: Sequence[int]) -> bool:
    """Whether a multi-index names an element; `<=n` counts as n, and `?` holds any index from 0.

    (f32[2,3], (1, 2)) -> True    (f32[2,3], (1, 3)) -> False    (f32[2,3], (-1, 0)) -> False

    Raises:
        LayoutIndexError: the index has not one number for each dimension.
    """
    numbers = _multi_index(shape, index)
    return all(i >= 0 and (i < n or n == UNBOUNDED) for i, n in zip(numbers, shape.dimensions, strict=True))


def bump_indices(shape: Shape, index: Sequence[int]) -> tuple[int, ...] | None:
    """The multi-index that follows in minor-to-major order, or None after the last; tiles play no part.

    (f32[2,3]{1,0}, (0, 2)) -> (1, 0)    (f32[2,3]{0,1}, (0, 2)) -> (1, 2)    (f32[2,3], (1, 2)) -> None

    Raises:
        LayoutIndexError: the index names no element.
        LayoutError: a dimension is `?`.
    """
    if UNBOUNDED in shape.dimensions:
        raise LayoutError(
            "a dimension is '?', so its last index is not known\n  write its size, or a bound such as <=456"
        )
    if not in_bounds(shape, index):
        raise LayoutIndexError(
            f"the index {_index_text(index)} names no element\n  stay within {dims_text(shape.dimensions)}"
        )
    bumped = list(_multi_index(shape, index))
    for dimension in shape.minor_to_major:
        bumped[dimension] += 1
        if bumped[dimension] < shape.dimensions[dimension]:
            return tuple(bumped)
        bumped[dimension] = 0
    return None


def dimension_stride(shape: Shape, dimension: int) -> int:
    """Element slots from one index of a dimension to the next.

    (f32[3,5,7], 0) -> 35    (f32[3,5]{0,1}, 1) -> 3    (f32[16,256]{1,0:T(8,128)}, 0) raises

    Raises:
        LayoutError: the tiles leave the dimension no single stride, or the shape has no size.
        LayoutIndexError: there is no such dimension.
    """
    number = normalize_dimension(shape, dimension)
    axis = shape.rank - 1 - shape.minor_to_major.index(number)
    stride = axis_stride(axis, shape.dimensions[number], *tile_steps_of(shape))
    if stride is None:
        raise LayoutError(
            f"the tiles leave dimension {number} no single stride\n"
            "  use linear_index, or a layout without tiles"
        )
    return stride


def byte_strides(shape: Shape) -> tuple[int, ...] | None:
    """Bytes from one index to the next, a number for each dimension; None where tiles or packing leave none.

    f32[3,5,7] -> (140, 28, 4)    s4[10,20]{1,0:E(4)} -> None

    Raises:
        LayoutError: the shape has no size.
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
    """Raise a LayoutError for what a Shape may be and a buffer not: no layout, a split out of its range."""
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
    """Whether a row-major reshape from one shape to the other leaves every element where it lies.

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
    """The row-major walk through a buffer as (extent, stride), with neighbors that walk as one joined."""
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


def _multi_index(shape: Shape, index: Sequence[int]) -> tuple[int, ...]:
    numbers = int_tuple(index, "an index")
    if len(numbers) != shape.rank:
        raise LayoutIndexError(
            f"the index has {len(numbers)} numbers for {shape.rank} dimensions\n  give one for each"
        )
    return numbers


def _index_text(index: Sequence[int]) -> str:
    return f"({', '.join(shown(i) for i in int_tuple(index, 'an index')[:16])})"


def dims_text(dims: Sequence[int]) -> str:
    """Dimensions in brackets for a message, cut where they are many.

    (2, -1, 3) -> "[2,?,3]"
    """
    text = ",".join("?" if n == UNBOUNDED else shown(n) for n in dims[:16])
    return f"[{text}{',…' if len(dims) > 16 else ''}]"
