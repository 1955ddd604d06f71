"""Coordinates to offsets and back: crd2idx, idx2crd, crd2crd."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from codegen.errors import LayoutError, LayoutIndexError
from tilejit.layout.cute.int_tuple import (
    IntTuple,
    congruent,
    flatten,
    prefix_product,
    rank,
    shortened,
    unflatten,
)
from tilejit.layout.tokens import shown


def crd2idx(crd: Any, shape: IntTuple, stride: IntTuple | None = None) -> Any:
    """The offset of a coordinate; integers are taken apart where the shape has tuples, first mode fastest.

    (1, 2), (4, 8) -> 9    9, ((2, 2), 8), ((1, 10), 100) -> 201

    Beyond its size the last mode goes on, as in CuTe. Integer arrays are coordinates too.

    Raises:
        LayoutIndexError: a coordinate is negative.
        LayoutError: the coordinate does not nest like the shape.
    """
    if stride is None:
        stride = prefix_product(shape)
    if isinstance(crd, tuple | list):
        if not isinstance(shape, tuple) or len(crd) != len(shape):
            raise LayoutError(
                f"the coordinate {shortened(crd)} does not fit the shape {shortened(shape)}\n"
                f"  give {rank(shape)} coordinate(s), or one integer"
            )
        assert isinstance(stride, tuple)
        return sum(crd2idx(c, s, d) for c, s, d in zip(crd, shape, stride, strict=True))
    at = _coordinate(crd)
    if not isinstance(shape, tuple):
        return at * stride
    return _digits_times(at, flatten(shape), flatten(stride))


def _digits_times(at: Any, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """The offset of an integer coordinate in flat modes, the last one without end."""
    if not sizes:
        return at * 0
    out = at * 0
    for size, step in zip(sizes[:-1], strides, strict=False):
        if size == 0:
            raise LayoutIndexError("a layout without elements has no coordinates\n  give a larger shape")
        out = out + at % size * step
        at = at // size
    return out + at * strides[-1]


def _coordinate(crd: object) -> Any:
    """An integer, or an array of them, none negative."""
    if isinstance(crd, np.ndarray) and crd.ndim and crd.dtype.kind in "iu":
        if crd.size and crd.min() < 0:
            raise LayoutIndexError(f"a coordinate is {crd.min()}\n  coordinates begin at 0")
        return crd.astype(np.int64, copy=False)
    try:
        at = operator.index(crd)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"a coordinate is made of integers, not of {type(crd).__name__}") from None
    if at < 0:
        raise LayoutIndexError(f"a coordinate is {shown(at)}\n  coordinates begin at 0")
    return at


def idx2crd(index: int, shape: IntTuple, stride: IntTuple | None = None) -> IntTuple:
    """The coordinate at an index, mode by mode: index / stride % size.

    9, ((2, 2), 8) -> ((1, 0), 2)    5, (2, 3), (3, 1) -> (1, 2)

    Without strides the index is a colexicographic number, and beyond the size the last mode goes on.

    Raises:
        LayoutIndexError: the index is negative.
        LayoutError: the strides do not nest like the shape, or a size is 0.
    """
    at = operator.index(_coordinate(index))
    sizes = flatten(shape)
    if 0 in sizes:
        raise LayoutIndexError("a shape without elements has no coordinates\n  give a larger one")
    if stride is not None:
        if not congruent(shape, stride):
            raise LayoutError(
                f"{shortened(stride)} does not nest like {shortened(shape)}\n  give a stride a size"
            )
        steps = flatten(stride)
        parts = [at // d % s if d else 0 for s, d in zip(sizes, steps, strict=True)]
        return unflatten(iter(parts), shape)  # type: ignore[no-any-return]
    parts = []
    for size in sizes[:-1]:
        at, digit = divmod(at, size)
        parts.append(digit)
    return unflatten(iter([*parts, at]), shape)  # type: ignore[no-any-return]


def crd2crd(crd: IntTuple, shape: IntTuple, into: IntTuple) -> IntTuple:
    """The coordinate of `into` with the same colexicographic number.

    (1, 2), (2, 6), (4, 3) -> (1, 1)

    Raises:
        LayoutIndexError, LayoutError: as crd2idx and idx2crd.
    """
    return idx2crd(crd2idx(crd, shape), into)
