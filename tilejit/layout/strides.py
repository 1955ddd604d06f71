"""Strides of a tiled array: which dimensions keep a single stride, and whether tiles move anything."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter

from codegen import dataclass
from tilejit.cute.digits import Digit, Mode, joined
from tilejit.layout.tiling import TileStep

GAP = -1


@dataclass(frozen=True, slots=True)
class AxisPart:
    """A part of a start axis, cut by tiles: `size` values, `weight` elements apart; GAP is only padding."""

    axis: int
    weight: int
    size: int


AxisParts = tuple[AxisPart, ...]
"""The parts that one axis of a tiled array counts, the most major first."""


def buffer_digits(steps: tuple[TileStep, ...], extents: tuple[tuple[int, ...], ...]) -> list[Digit] | None:
    """Every digit of a tiled buffer, most major first; its dimension is a start axis, or GAP for padding.

    [16,128] by (8,128) -> Digit(2, 1024, 0, 8), Digit(8, 128, 0, 1), Digit(128, 1, 1, 1)

    If a tile cuts merged axes between their digits, their combined number is an axis of its own until its
    parts are adjacent again. Returns None if it stays cut, because no such list exists then.
    """
    axes: list[AxisParts] = [(AxisPart(axis, 1, extent),) for axis, extent in enumerate(extents[0])]
    sizes = extents[-1]
    start, merged = [*extents[0]], {}
    for number, step in enumerate(steps):
        axes = [()] * step.lead + axes
        whole: list[AxisParts] = axes[: step.untouched]
        parts: list[AxisParts] = []
        counts = extents[number + 1][step.untouched :]
        for group, count, size in zip(step.groups, counts, step.tile, strict=False):
            axis = _joined([part for a in group for part in axes[a]])
            if len(step.groups) == 1 and number == len(steps) - 1:
                # Quotient and remainder stay adjacent: they are the merged axis, padded at its end.
                whole.append(axis)
                sizes = (*sizes[: step.untouched], count * size)
                break
            halves = _halves(axis, count, size, start)
            if halves is None:
                merged[len(start)] = axis
                number_of = AxisPart(len(start), 1, math.prod(part.size for part in axis))
                start.append(number_of.size)
                halves = _halves((number_of,), count, size, start)
                assert halves is not None
            whole.append(halves[0])
            parts.append(halves[1])
        axes = whole + parts
    found: list[Digit] = []
    stride = 1
    for axis, extent in zip(reversed(axes), reversed(sizes), strict=True):
        within = stride
        for part in reversed(axis):
            found.append(Digit(part.size, within, part.axis, part.weight))
            within *= part.size
        stride *= extent
    return _resolved(found[::-1], merged, start)


def _halves(
    axis: AxisParts, count: int, size: int, start: Sequence[int]
) -> tuple[AxisParts, AxisParts] | None:
    """Quotient and remainder of an axis by a tile size; None if the cut falls inside a digit."""
    padded = _padded(axis, count * size, start)
    return None if padded is None else _split(padded, size)


def _resolved(found: list[Digit], merged: dict[int, AxisParts], start: Sequence[int]) -> list[Digit] | None:
    """Digits of the start axes alone: those of a merged number become digits of its parts.

    Axes 0 and 1 of sizes 8 and 4 are merged; digits of weights 8 and 1 and strides 8 and 1 form one digit.
    -> Digit(8, 4, 0, 1), Digit(4, 1, 1, 1)
    """
    for number, axis in reversed(merged.items()):
        mine = sorted((digit for digit in found if digit.dim == number), key=attrgetter("weight"))
        found = [digit for digit in found if digit.dim != number]
        rest: AxisParts = axis
        pieces = joined(Mode(digit.size, digit.stride) for digit in mine)
        for place, (size, stride) in enumerate(pieces):
            low = rest
            if place + 1 < len(pieces):
                have = math.prod(part.size for part in rest)
                halves = _halves(rest, -(-have // size), size, start)
                if halves is None:
                    return None
                rest, low = halves
            for part in reversed(low):
                found.append(Digit(part.size, stride, part.axis, part.weight))
                stride *= part.size
    return sorted(found, key=lambda digit: -digit.stride) if merged else found


def keeps_order(steps: tuple[TileStep, ...], extents: tuple[tuple[int, ...], ...]) -> bool:
    """Whether tiles add no padding and leave every element in its slot of the untiled layout."""
    if math.prod(extents[0]) != math.prod(extents[-1]):
        return False
    if not math.prod(extents[0]):
        return True
    digits = buffer_digits(steps, extents)
    if digits is None:
        return False
    plain = row_major_strides(extents[0])
    return all(digit.size == 1 or digit.stride == plain[digit.dim] * digit.weight for digit in digits)


def axis_stride(
    axis: int, size: int, steps: tuple[TileStep, ...], extents: tuple[tuple[int, ...], ...]
) -> int | None:
    """The stride of a start axis with that many elements, or None if tiling leaves no single stride."""
    if 0 in extents[0]:
        return row_major_strides(extents[0])[axis]
    digits = buffer_digits(steps, extents)
    if digits is None:
        return None
    mine = [digit for digit in digits if digit.dim == axis and digit.size > 1 and digit.weight < size]
    if not mine:
        return row_major_strides(extents[0])[axis]
    last = mine[-1]
    if last.weight != 1 or any(digit.stride != last.stride * digit.weight for digit in mine):
        return None
    return last.stride


def row_major_strides(extents: tuple[int, ...]) -> list[int]:
    """Strides in elements of axes in row-major order.

    (3, 5, 7) -> [35, 7, 1]
    """
    strides = [1] * len(extents)
    for axis in range(len(extents) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * extents[axis + 1]
    return strides


def _joined(parts: list[AxisPart]) -> AxisParts:
    """Parts, with each run that counts one axis without a gap joined into one part."""
    out: list[AxisPart] = []
    for part in parts:
        last = out[-1] if out else None
        if last is not None and last.axis == part.axis and last.weight == part.weight * part.size:
            out[-1] = AxisPart(part.axis, part.weight, last.size * part.size)
        elif part.size != 1:
            out.append(part)
    return tuple(out)


def _padded(axis: AxisParts, whole: int, start: Sequence[int]) -> AxisParts | None:
    """An axis whose digits count up to `whole`, padding included; None if no digit can take the padding."""
    have = math.prod(part.size for part in axis)
    if have == whole:
        return axis
    if axis and axis[0].axis != GAP:
        top = axis[0]
        rest = have // top.size
        if top.weight * top.size >= start[top.axis] and whole % rest == 0:
            return (AxisPart(top.axis, top.weight, whole // rest), *axis[1:])
    return (AxisPart(GAP, 0, whole // have), *axis) if whole % have == 0 else None


def _split(axis: AxisParts, size: int) -> tuple[AxisParts, AxisParts] | None:
    """An axis cut into quotient and remainder by a tile size; None if the cut falls inside a digit."""
    minor: list[AxisPart] = []
    left = size
    for place in range(len(axis) - 1, -1, -1):
        part = axis[place]
        if left == 1:
            return axis[: place + 1], tuple(minor[::-1])
        if left % part.size == 0:
            minor.append(part)
            left //= part.size
        elif part.size % left == 0:
            high = AxisPart(part.axis, part.weight * left, part.size // left)
            low = AxisPart(part.axis, part.weight, left)
            return (*axis[:place], high), (low, *minor[::-1])
        else:
            return None
    return (), tuple(minor[::-1])
