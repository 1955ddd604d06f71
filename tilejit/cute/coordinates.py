"""Coordinates to offsets and back: crd2idx, idx2crd, crd2crd."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from codegen import LayoutError, LayoutIndexError, shown
from tilejit.cute.int_tuple import (
    IntTuple,
    as_int_tuple,
    congruent,
    flatten,
    limit_nesting,
    prefix_product,
    product,
    rank,
    unflatten,
)
from tilejit.cute.integers import exact_integers, narrowed, reach_of
from tilejit.support.tokens import MAX_INT64, named

Term: TypeAlias = tuple[Any, tuple[int, ...], tuple[int, ...]]
"""An integer or an array of integers, and the flat sizes and strides that it indexes."""


def crd2idx(crd: Any, shape: object, stride: object = None) -> Any:
    """Map a coordinate to its offset.

    >>> crd2idx((1, 2), (4, 8)), crd2idx(9, ((2, 2), 8), ((1, 10), 100))
    (9, 201)

    Args:
        crd: a coordinate that nests like the shape. An integer in place of a tuple is split over its sizes,
            first mode fastest, and may exceed the size of the last mode, as in CuTe. Integers may be arrays.
        shape: an IntTuple of sizes.
        stride: an IntTuple that nests like the shape; None takes the compact strides, first mode fastest.

    Returns:
        The offset in elements: an int, or an array for arrays.

    Raises:
        LayoutIndexError: a coordinate is negative.
        LayoutError: the coordinate or the stride does not nest like the shape.
        TypeError: an argument is not made of integers.

    Source: CuTe's crd2idx.
    """
    sizes = as_int_tuple(shape, "a shape")
    limit_nesting(crd, "a coordinate")
    return offset_at(crd, sizes, _steps(sizes, stride))


def _steps(sizes: IntTuple, stride: object) -> IntTuple:
    """The given strides, or those of the compact layout."""
    if stride is None:
        return prefix_product(sizes)
    steps = as_int_tuple(stride, "a stride")
    if not congruent(sizes, steps):
        raise LayoutError(
            f"{named(steps)} does not nest like {named(sizes)}\n  pass one stride for each size"
        )
    return steps


def offset_at(crd: Any, shape: IntTuple, stride: IntTuple) -> Any:
    """`crd2idx` for a shape and a stride that are known to match."""
    if type(crd) is int and crd >= 0:
        return _digits_times(crd, flatten(shape), flatten(stride))
    terms = list(_terms(crd, shape, stride))
    arrays = [at for at, _, _ in terms if isinstance(at, np.ndarray)]
    if not arrays:
        return sum(_digits_times(*term) for term in terms)
    try:
        if len({at.shape for at in arrays}) > 1:
            np.broadcast_shapes(*(at.shape for at in arrays))
    except (ValueError, RuntimeError):  # ValueError for more than 32 dimensions
        shapes = " and ".join(str(at.shape) for at in arrays)[:80]
        raise LayoutError(
            f"arrays of coordinates of shapes {shapes} do not broadcast\n  pass equal shapes"
        ) from None
    if sum(_reach(*term) for term in terms) <= MAX_INT64:
        return sum(_digits_times(*term) for term in terms)
    exact = [(at.astype(object) if isinstance(at, np.ndarray) else at, n, d) for at, n, d in terms]
    return narrowed(sum(_digits_times(*term) for term in exact))


def _terms(crd: Any, shape: IntTuple, stride: IntTuple) -> Iterator[Term]:
    """The integers or arrays of a coordinate, each with the flat sizes and strides that it indexes."""
    if not isinstance(crd, tuple | list):
        yield _coordinate(crd), flatten(shape), flatten(stride)
        return
    if not isinstance(shape, tuple) or not isinstance(stride, tuple) or len(crd) != len(shape):
        raise LayoutError(
            f"the coordinate {named(crd)} does not fit the shape {named(shape)}\n"
            f"  pass {rank(shape)} coordinate(s), or one integer"
        )
    for c, s, d in zip(crd, shape, stride, strict=True):
        yield from _terms(c, s, d)


def _digits_times(at: Any, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """The offset of an integer coordinate in flat modes, the last one unbounded."""
    if not sizes:
        return at * 0
    out = at * 0
    for size, step in zip(sizes[:-1], strides, strict=False):
        if size == 0:
            raise LayoutIndexError("a layout without elements has no coordinates\n  pass sizes of 1 or more")
        out = out + at % size * step
        at = at // size
    return out + at * strides[-1]


def _reach(at: Any, sizes: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """An upper bound on all numbers in the computation of some coordinates' offsets."""
    most = reach_of(at) if isinstance(at, np.ndarray) else at
    out = most
    for size, step in zip(sizes[:-1], strides, strict=False):
        out += max(size, min(size, most) * abs(step))
        most //= max(size, 1)
    return out + max(most, 1) * abs(strides[-1]) if strides else out


def _coordinate(crd: object) -> Any:
    """Check that a coordinate is an integer, or an array of integers, and not negative."""
    if isinstance(crd, np.ndarray) and crd.ndim:
        at = exact_integers(crd, "a coordinate")
        if at.size and at.min() < 0:
            raise LayoutIndexError(f"a coordinate is {shown(int(at.min()))}\n  pass 0 or more")
        return at
    return whole_number(crd)


def whole_number(crd: object) -> int:
    """Read a coordinate that is one integer.

    Raises:
        LayoutIndexError: it is negative.
        TypeError: it is not an integer, or a bool.
    """
    try:
        at = operator.index(None if isinstance(crd, bool) else crd)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"expected integers in a coordinate, got {type(crd).__name__}") from None
    if at < 0:
        raise LayoutIndexError(f"a coordinate is {shown(at)}\n  pass 0 or more")
    return at


def idx2crd(index: int, shape: object, stride: object = None) -> IntTuple:
    """Map an index to a coordinate, mode by mode: index // stride % size.

    >>> idx2crd(9, ((2, 2), 8)), idx2crd(5, (2, 3), (3, 1))
    (((1, 0), 2), (1, 2))

    Args:
        index: a nonnegative integer. Without strides, it is a colexicographic number and may exceed the size
            of the last mode.
        shape: an IntTuple of sizes.
        stride: an IntTuple that nests like the shape; None takes the compact strides, first mode fastest.

    Returns:
        A coordinate that nests like the shape.

    Raises:
        LayoutIndexError: the index is negative, or it is not the offset of a coordinate under these strides.
        LayoutError: the strides do not nest like the shape, or one is negative.
        TypeError: an argument is not made of integers.

    Source: CuTe's idx2crd.
    """
    profile = as_int_tuple(shape, "a shape")
    at = whole_number(index)
    sizes = flatten(profile)
    if min(sizes, default=1) < 1:
        raise LayoutIndexError("a shape without elements has no coordinates\n  pass sizes of 1 or more")
    if stride is not None:
        steps = flatten(_steps(profile, stride))
        if min(steps, default=0) < 0:
            raise LayoutError(f"a stride is {min(steps)}\n  use nonnegative strides")
        parts = [at // d % s if d else 0 for s, d in zip(sizes, steps, strict=True)]
        found: IntTuple = unflatten(iter(parts), profile)
        if (there := sum(map(operator.mul, parts, steps))) != at:
            raise LayoutIndexError(
                f"index {shown(at)} is not an offset of {named(profile)}:{named(stride)}: {named(found)} is "
                f"at {shown(there)}\n"
                "  pass an index that the strides reach"
            )
        return found
    parts = []
    for size in sizes[:-1]:
        at, digit = divmod(at, size)
        parts.append(digit)
    return unflatten(iter([*parts, at][: len(sizes)]), profile)  # type: ignore[no-any-return]


def crd2crd(crd: Any, shape: object, into: object) -> IntTuple:
    """Map a coordinate of one shape to that of another with the same colexicographic number.

    >>> crd2crd((1, 2), (2, 6), (4, 3))
    (1, 1)

    Args:
        crd: a coordinate of `shape`.
        shape: an IntTuple of sizes.
        into: an IntTuple of sizes.

    Returns:
        A coordinate that nests like `into`.

    Raises:
        LayoutIndexError: a coordinate is negative.
        LayoutError: the coordinate does not nest like the shape.
        TypeError: an argument is not made of integers.

    Source: CuTe's crd2crd.
    """
    return idx2crd(crd2idx(crd, shape), into)


def check_within(crd: Any, shape: IntTuple, what: str) -> None:
    """Raise if an integer of a coordinate is outside its mode; `_` and None are always inside.

    Raises:
        LayoutIndexError: it is outside.
    """
    if isinstance(crd, tuple | list):
        if isinstance(shape, tuple) and len(crd) == len(shape):
            for part, size in zip(crd, shape, strict=True):
                check_within(part, size, what)
    elif hasattr(crd, "__index__") and not 0 <= operator.index(crd) < product(shape):
        size = product(shape)
        fix = f"pass a number from 0 to {shown(size - 1)}" if size else "use a layout with elements"
        raise LayoutIndexError(f"{what} {shown(operator.index(crd))} does not exist\n  {fix}")
