"""Map elements of a CuTe layout to slots and back, and find elements that share a slot."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen import AccessMap, LayoutError, Offsets, Opaque, Root, cached, shown
from tilejit.cute.digits import Digit, by_stride, digits_of, is_nested
from tilejit.cute.function import CHUNK, MAX_POINTS, Function, rows_of
from tilejit.cute.swizzled import swizzled_roots
from tilejit.layout.cute_shape import CuteShape

Table = NDArray[np.int64]


def cute_access_map(shape: CuteShape) -> AccessMap:
    """The buffer of a CuTe layout as an access map, in elements."""
    dims, bits, function = shape.dimensions, shape.bits, shape.function
    slots = size = shape.physical_size
    if bits < 8:
        size = -(-size * bits // 8) * 8 // bits  # the rest of the last byte is padding as well
    tail = size - slots
    if 0 in dims:
        return AccessMap(dims, (), 0, bits, bits, (0, size), size, 0)
    found = swizzled_roots(function, dims)
    if found:
        base, roots = found
        return AccessMap(dims, roots, base, bits, bits, (0, size), size, tail, _is_compact(shape))
    base = int(function((0,) * len(dims)))

    def offsets(rows: Offsets) -> Offsets:
        return np.broadcast_to(np.asarray(function(rows_of(dims, rows)) - base, np.int64), rows.shape)

    whole = Opaque(prod(dims), offsets, -base, slots - 1 - base)
    return AccessMap(dims, (Root(tuple(range(len(dims))), whole),), base, bits, bits, (0, size), size, tail)


def _is_compact(shape: CuteShape) -> bool:
    """Whether the layout is a plain sum of digits that reaches each slot of the buffer exactly once."""
    if shape.function.steps:
        return False
    reach = 1
    for digit in sorted(digits_of(shape.function.modes, shape.function.sizes), key=by_stride):
        if digit.stride != reach:
            return False
        reach *= digit.size
    return reach == shape.physical_size


def cute_slot(shape: CuteShape, index: tuple[Any, ...]) -> Any:
    """The slot of an element, integers or arrays that broadcast."""
    return shape.function(index)


def cute_index(shape: CuteShape, slot: Any) -> tuple[list[Any], Any]:
    """The index of the element in a slot, and whether there is one; the first in C order if several share it.

    Raises:
        LayoutError: the answer needs a table, and the array is too large for one.
    """
    if 0 in shape.dimensions:
        return [slot * 0 for _ in shape.dimensions], slot < 0
    digits = digits_of(shape.function.modes, shape.dimensions)
    if shape.function.permutations is None or not is_nested(digits):
        return _by_table(shape, slot)
    rest = shape.function.before_steps(slot)
    low = sum((size - 1) * stride for size, stride, _, _ in digits if stride < 0)
    rest = rest - low
    index: list[Any] = [rest * 0 for _ in shape.dimensions]
    valid = rest >= 0
    for size, stride, dim, weight in sorted(digits, key=lambda digit: -abs(digit.stride)):
        count = rest // abs(stride)
        at = np.minimum(count, size - 1) if isinstance(rest, np.ndarray) else min(count, size - 1)
        rest = rest - at * abs(stride)
        index[dim] = index[dim] + (at if stride > 0 else size - 1 - at) * weight
    valid = valid & (rest == 0)
    for at, size in zip(index, shape.dimensions, strict=True):
        valid = valid & (at < size)
    return index, valid


def overlap_of(shape: CuteShape) -> tuple[tuple[int, ...], tuple[int, ...], int] | None:
    """Return two indices of elements in one slot, and the slot; None if no two share one.

    (4,4):(1,2) of f32[4,4] -> (0, 1), (2, 0), 2

    Raises:
        LayoutError: the answer needs a table, and the array is too large for one.
    """
    return _overlap_of(shape.function, shape.dimensions, shape.physical_size)


def refuse_overlaps(shape: object) -> None:
    """Raise a LayoutError that names the slot and both elements if two elements share one."""
    found = overlap_of(shape) if isinstance(shape, CuteShape) else None
    if found:
        first, second, slot = found
        raise LayoutError(
            f"elements {first} and {second} share slot {slot} of {str(shape)[:120]}\n"
            "  use a layout whose offsets are distinct; this one can be read but not written"
        )


@cached(1024)
def _overlap_of(
    function: Function, dims: tuple[int, ...], slots: int
) -> tuple[tuple[int, ...], tuple[int, ...], int] | None:
    if prod(dims) <= 1:
        return None
    digits = sorted(digits_of(function.modes, dims), key=lambda digit: abs(digit.stride))
    if function.permutations is not None:
        if is_nested(digits):
            return None
        pair = _same_stride(digits, len(dims))
        if pair:
            return (*pair, int(function(pair[0])))
    count = prod(dims)
    if max(count, slots // 8) > MAX_POINTS:
        raise LayoutError(
            f"{shown(count)} elements over {shown(slots)} slots are too many to check for shared slots\n"
            "  use strides that each exceed all offsets of the smaller ones"
        )
    return _overlap_by_table(function, dims, slots)


def _overlap_by_table(
    function: Function, dims: tuple[int, ...], slots: int
) -> tuple[tuple[int, ...], tuple[int, ...], int] | None:
    """The first element in C order that shares a slot with an earlier one, found in chunks."""
    taken = np.zeros(slots, np.bool_)
    count = prod(dims)
    for start in range(0, count, CHUNK):
        rows = np.arange(start, min(start + CHUNK, count))
        table = np.broadcast_to(function(rows_of(dims, rows)), rows.shape)
        _, first = np.unique(table, return_index=True)
        again = taken[table]
        again[np.setdiff1d(np.arange(len(table)), first)] = True
        if again.any():
            second = int(np.argmax(again))
            slot = int(table[second])
            return _first_at(function, dims, slot), _index(dims, start + second), slot
        taken[table] = True
    return None


def _first_at(function: Function, dims: tuple[int, ...], slot: int) -> tuple[int, ...]:
    """The first element in C order in a slot."""
    for start in range(0, prod(dims), CHUNK):
        rows = np.arange(start, min(start + CHUNK, prod(dims)))
        hits = np.broadcast_to(function(rows_of(dims, rows)) == slot, rows.shape)
        if hits.any():
            return _index(dims, start + int(np.argmax(hits)))
    raise AssertionError(f"no element is in slot {slot}")


def _index(dims: tuple[int, ...], row: int) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(row, dims))


def _same_stride(digits: list[Digit], rank: int) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Two indices with one offset, if a stride is 0 or occurs twice."""

    def unit(digit: Digit) -> tuple[int, ...]:
        return tuple(digit.weight if d == digit.dim else 0 for d in range(rank))

    zero = next((digit for digit in digits if digit.stride == 0), None)
    if zero:
        return (0,) * rank, unit(zero)
    seen: dict[int, Digit] = {}
    for digit in digits:
        if digit.stride in seen:
            first, second = sorted((unit(digit), unit(seen[digit.stride])))
            return first, second
        seen[digit.stride] = digit
    return None


def _by_table(shape: CuteShape, slot: Any) -> tuple[list[Any], Any]:
    """`cute_index` by a search among the offsets of all elements."""
    order, offsets = _sorted_offsets(shape.function, shape.dimensions)
    place = np.minimum(np.searchsorted(offsets, slot), len(offsets) - 1)
    valid = offsets[place] == slot
    rows = np.asarray(order[place])
    index = [np.where(valid, at, 0) for at in rows_of(shape.dimensions, rows)]
    if isinstance(slot, np.ndarray):
        return list(index), valid
    return [int(at) for at in index], bool(valid)


@cached(4)
def _sorted_offsets(function: Function, dims: tuple[int, ...]) -> tuple[Table, Table]:
    count = prod(dims)
    if count > MAX_POINTS >> 3:
        raise LayoutError(
            f"{shown(count)} elements are too many for a table of their slots\n"
            "  use strides that each exceed all offsets of the smaller ones"
        )
    rows = np.arange(count)
    table = np.broadcast_to(np.asarray(function(rows_of(dims, rows)), np.int64), rows.shape)
    order = np.argsort(table, kind="stable")
    return order, table[order]
