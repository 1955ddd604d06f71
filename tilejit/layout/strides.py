"""Strides of a laid-out array: where its tiles leave each dimension one, and whether they move anything."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilejit.layout.tiling import TileStep


@dataclass(frozen=True, slots=True)
class Digit:
    """A piece of an axis: it counts `extent` steps of `step` elements of the start axis numbered `axis`."""

    axis: int
    step: int
    extent: int


Axis = tuple[Digit, ...]


def buffer_digits(
    steps: tuple[TileStep, ...], extents: tuple[tuple[int, ...], ...]
) -> list[tuple[Digit, int]] | None:
    """Every digit of a tiled buffer with its stride there in elements, most major first.

    [16,128] by (8,128) -> ((0, step 8, extent 2), 1024), ((0, step 1, extent 8), 128), ((1, 1, 128), 1)

    None where a tile cuts an axis between its digits, so that no such list exists.
    """
    axes: list[Axis] = [(Digit(axis, 1, extent),) for axis, extent in enumerate(extents[0])]
    for step in steps:
        axes = [()] * step.lead + axes
        whole: list[Axis] = axes[: step.untouched]
        parts: list[Axis] = []
        for group, size in zip(step.groups, step.tile, strict=True):
            halves = _split(_joined([digit for axis in group for digit in axes[axis]]), size)
            if halves is None:
                return None
            whole.append(halves[0])
            parts.append(halves[1])
        axes = whole + parts
    # An axis may be longer than its digits: what is left over is padding.
    found: list[tuple[Digit, int]] = []
    stride = 1
    for axis, extent in zip(reversed(axes), reversed(extents[-1]), strict=True):
        within = stride
        for digit in reversed(axis):
            found.append((digit, within))
            within *= digit.extent
        stride *= extent
    return found[::-1]


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


def axis_stride(axis: int, steps: tuple[TileStep, ...], extents: tuple[tuple[int, ...], ...]) -> int | None:
    """The stride in elements of a start axis, or None where the tiles leave it no single one."""
    digits = buffer_digits(steps, extents)
    if digits is None:
        return None
    mine = [(digit, stride) for digit, stride in digits if digit.axis == axis and digit.extent > 1]
    if not mine:
        return row_major_strides(extents[0])[axis]
    ratios = {stride / digit.step if stride % digit.step else stride // digit.step for digit, stride in mine}
    ratio = ratios.pop()
    return ratio if isinstance(ratio, int) and not ratios else None


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
        elif digit.extent % left == 0 or place == 0:
            high = Digit(digit.axis, digit.step * left, -(-digit.extent // left))
            low = Digit(digit.axis, digit.step, min(left, digit.extent))
            return (*axis[:place], high), (low, *minor[::-1])
        else:
            return None
    return (), tuple(minor[::-1])
