"""Choose where long digits of a transpose are split, so that tables of their offsets stay small."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Axis, Side, StridedBox, cut_axis, long_axis
from codegen.schedule.transpose_box import MOST_JOINED, TransposeBox, size_of

LONG_DIGIT = 1 << 13
"""Elements per block of a transpose's long digit: a multiple of a line for every element size."""


@dataclass(frozen=True, slots=True)
class Cut:
    """An axis that is split into blocks of that extent; `outer` names the axis over the blocks."""

    axis: str
    block: int
    outer: str


def cuts_of_long_digits(box: StridedBox, block: int = LONG_DIGIT) -> tuple[Cut, ...]:
    """The cuts of long digits along which the sides are contiguous, and of those that short ones join.

    for i in 5: for j in 20000:             dst[i + 5*j] = src[20000*i + j]        blocks of 8192 of j
    for i in 2: for j in 14000: for k in 31: dst[…j, k] = src[…k, j, i]            blocks of 4096 of j
    """
    row, column = box.contiguous("dst"), box.contiguous("src")
    if box.unit_bits != 8 or row is None or column is None or row is column:
        return ()
    cuts = (*long_cut(box, row.name, block), *long_cut(box, column.name, block))
    return cuts or _cuts_of_following(box, block)


def long_cut(box: StridedBox, name: str, block: int) -> tuple[Cut, ...]:
    """The cut of an axis if it is longer than two blocks."""
    return (Cut(name, block, long_axis(name)),) if box.axis(name).extent > 2 * block else ()


def first_part(box: StridedBox, cuts: tuple[Cut, ...]) -> StridedBox:
    """The box over the full blocks of all cuts."""
    for cut in cuts:
        box = cut_axis(box, cut.axis, cut.block, cut.outer)[0]
    return box


def _cuts_of_following(box: StridedBox, block: int) -> tuple[Cut, ...]:
    """The cut of the digit that follows digits shorter than a line, if it is too long to be joined to them.

    A copy whose longer digits are split into parts of less than a line gains nothing.
    """
    whole = TransposeBox.of(box)
    sides: tuple[tuple[Axis, Side, Axis], ...]
    sides = (whole.column, "src", whole.row), (whole.row, "dst", whole.column)
    for first, side, other in sides:
        following = _too_long(whole, first, side, other)
        if following is not None:
            axis, joined = following
            part = max(block // joined, 1)
            return (Cut(axis.name, part, long_axis(axis.name)),) if axis.extent > part else ()
    return ()


def _too_long(box: TransposeBox, first: Axis, side: Side, other: Axis) -> tuple[Axis, int] | None:
    """The digit that would be joined next if it were shorter, and the size of those before it."""
    chain = box.chain(first, side, (other,))
    width, size = box.width if side == "dst" else box.source_width, size_of(chain)
    if size * width >= LINE_BYTES:
        return None
    others = (x for x in box.axes if x not in chain and x is not other)
    following = next((x for x in others if x.stride(side) == size * width), None)
    return (following, size) if following and following.extent * size > MOST_JOINED else None
