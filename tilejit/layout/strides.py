"""Strides of a laid-out array: where its tiles leave each dimension one, and if they move anything."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilejit.layout.tiling import TileStep

GAP = -1


@dataclass(frozen=True, slots=True)
class Digit:
    """A piece of an axis: `extent` steps of `step` elements of a start axis; GAP is padding only."""

    axis: int
    step: int
    extent: int


Axis = tuple[Digit, ...]


def buffer_digits(
    steps: tuple[TileStep, ...], extents: tuple[tuple[int, ...], ...]
) -> list[tuple[Digit, int]] | None:
    """Every digit of a tiled buffer with its stride there in elements, most major first.

    [16,128] by (8,128) -> ((0, step 8, extent 2), 1024), ((0, step 1, extent 8), 128), ((1, 1, 128), 1)

    Where a tile cuts merged axes between their digits, their number is an axis of its own until what it was
    cut into is together again. None where it stays cut, so that no such list exists.
    """
    axes: list[Axis] = [(Digit(axis, 1, extent),) for axis, extent in enumerate(extents[0])]
    sizes = extents[-1]
    start, merged = [*extents[0]], {}
    for number, step in enumerate(steps):
        axes = [()] * step.lead + axes
        whole: list[Axis] = axes[: step.untouched]
        parts: list[Axis] = []
        counts = extents[number + 1][step.untouched :]
        for group, count, size in zip(step.groups, counts, step.tile, strict=False):
            axis = _joined([digit for a in group for digit in axes[a]])
            if len(step.groups) == 1 and number == len(steps) - 1:
                # Quotient and remainder stay side by side: the merged axis, padded at its end.
                whole.append(axis)
                sizes = (*sizes[: step.untouched], count * size)
                break
            halves = _halves(axis, count, size, start)
            if halves is None:
                merged[len(start)] = axis
                number_of = Digit(len(start), 1, math.prod(digit.extent for digit in axis))
                start.append(number_of.extent)
                halves = _halves((number_of,), count, size, start)
                assert halves is not None
            whole.append(halves[0])
            parts.append(halves[1])
        axes = whole + parts
    found: list[tuple[Digit, int]] = []
    stride = 1
    for axis, extent in zip(reversed(axes), reversed(sizes), strict=True):
        within = stride
        for digit in reversed(axis):
            found.append((digit, within))
            within *= digit.extent
        stride *= extent
    return _resolved(found[::-1], merged, start)


def _halves(axis: Axis, count: int, size: int, start: Sequence[int]) -> tuple[Axis, Axis] | None:
    """Quotient and remainder of an axis by a tile size; None where the cut falls inside a digit."""
    padded = _padded(axis, count * size, start)
    return None if padded is None else _split(padded, size)


def _resolved(
    found: list[tuple[Digit, int]], merged: dict[int, Axis], start: Sequence[int]
) -> list[tuple[Digit, int]] | None:
    """Digits of the start axes alone: those of a merged number become digits of what it is made of.

    Merged (0, step 1, extent 8) and (1, step 1, extent 4): its digits (step 3, stride 3), (step 1, stride 1)
    are one, of stride 1 -> (0, step 1), stride 4 and (1, step 1), stride 1
    """
    for number, axis in reversed(merged.items()):
        mine = sorted(((d, s) for d, s in found if d.axis == number), key=lambda pair: pair[0].step)
        found = [pair for pair in found if pair[0].axis != number]
        rest: Axis = axis
        pieces = _pieces(mine)
        for place, (extent, stride) in enumerate(pieces):
            low = rest
            if place + 1 < len(pieces):
                have = math.prod(digit.extent for digit in rest)
                halves = _halves(rest, -(-have // extent), extent, start)
                if halves is None:
                    return None
                rest, low = halves
            for digit in reversed(low):
                found.append((digit, stride))
                stride *= digit.extent
    return sorted(found, key=lambda pair: -pair[1]) if merged else found


def _pieces(digits: Sequence[tuple[Digit, int]]) -> list[tuple[int, int]]:
    """Extent and stride of each run of digits, least step first, that one stride walks through."""
    out: list[tuple[int, int]] = []
    for digit, stride in digits:
        if digit.extent == 1:
            continue
        if out and stride == out[-1][0] * out[-1][1]:
            out[-1] = out[-1][0] * digit.extent, out[-1][1]
        else:
            out.append((digit.extent, stride))
    return out


def keeps_order(steps: tuple[TileStep, ...], extents: tuple[tuple[int, ...], ...]) -> bool:
    """Whether tiles add no padding and leave every element where the untiled layout has it."""
    if math.prod(extents[0]) != math.prod(extents[-1]):
        return False
    if not math.prod(extents[0]):
        return True
    digits = buffer_digits(steps, extents)
    if digits is None:
        return False
    plain = row_major_strides(extents[0])
    return all(digit.extent == 1 or stride == plain[digit.axis] * digit.step for digit, stride in digits)


def axis_stride(
    axis: int, size: int, steps: tuple[TileStep, ...], extents: tuple[tuple[int, ...], ...]
) -> int | None:
    """The stride of a start axis of so many elements, or None where the tiles leave it no single one."""
    if 0 in extents[0]:
        return row_major_strides(extents[0])[axis]
    digits = buffer_digits(steps, extents)
    if digits is None:
        return None
    mine = [(d, stride) for d, stride in digits if d.axis == axis and d.extent > 1 and d.step < size]
    if not mine:
        return row_major_strides(extents[0])[axis]
    last, ratio = mine[-1]
    if last.step != 1 or any(stride != ratio * digit.step for digit, stride in mine):
        return None
    return ratio


def row_major_strides(extents: tuple[int, ...]) -> list[int]:
    """Strides in elements of axes that lie most major first.

    (3, 5, 7) -> [35, 7, 1]
    """
    strides = [1] * len(extents)
    for axis in range(len(extents) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * extents[axis + 1]
    return strides


def _joined(digits: list[Digit]) -> Axis:
    """Digits with each run that counts one axis without a gap made one."""
    joined: list[Digit] = []
    for digit in digits:
        last = joined[-1] if joined else None
        if last is not None and last.axis == digit.axis and last.step == digit.step * digit.extent:
            joined[-1] = Digit(digit.axis, digit.step, last.extent * digit.extent)
        elif digit.extent != 1:
            joined.append(digit)
    return tuple(joined)


def _padded(axis: Axis, whole: int, start: Sequence[int]) -> Axis | None:
    """An axis whose digits count `whole`, padding included; None where no digit can take the padding."""
    have = math.prod(digit.extent for digit in axis)
    if have == whole:
        return axis
    if axis and axis[0].axis != GAP:
        top = axis[0]
        rest = have // top.extent
        if top.step * top.extent >= start[top.axis] and whole % rest == 0:
            return (Digit(top.axis, top.step, whole // rest), *axis[1:])
    return (Digit(GAP, 0, whole // have), *axis) if whole % have == 0 else None


def _split(axis: Axis, size: int) -> tuple[Axis, Axis] | None:
    """An axis cut into quotient and remainder by a tile size; None where the cut falls inside a digit."""
    minor: list[Digit] = []
    left = size
    for place in range(len(axis) - 1, -1, -1):
        digit = axis[place]
        if left == 1:
            return axis[: place + 1], tuple(minor[::-1])
        if left % digit.extent == 0:
            minor.append(digit)
            left //= digit.extent
        elif digit.extent % left == 0:
            high = Digit(digit.axis, digit.step * left, digit.extent // left)
            low = Digit(digit.axis, digit.step, left)
            return (*axis[:place], high), (low, *minor[::-1])
        else:
            return None
    return (), tuple(minor[::-1])
