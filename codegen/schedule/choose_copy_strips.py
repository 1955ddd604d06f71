"""Choose the strips of a copy: the caller's super-vectors, or the parts of inner loops that run at a time."""

from __future__ import annotations

from itertools import takewhile
from math import prod

from codegen.ir.strided_box import Axis, StridedBox, strip_axis
from codegen.schedule.choose_directives import InnerLoops
from codegen.schedule.choose_interleave import strip_of_joined
from codegen.schedule.conditions import LOOPS_END, Conditions
from codegen.schedule.directives import Tile
from codegen.support.dataclasses import dataclass

MOST_GROUPS = 1 << 16
"""Short reversed runs per call, so that threads can share them."""


@dataclass(frozen=True, slots=True)
class CopyStrips:
    """The strips of a copy.

    tiles   of the inner loops and of an outer one
    around  the loops around the inner ones, with those over strips, outermost first
    shared  those of them that are around complete super-vectors, or all
    sized   what the caller's size became; "" without one
    """

    tiles: tuple[Tile, ...]
    around: tuple[Axis, ...]
    shared: tuple[Axis, ...]
    sized: str = ""


def choose_copy_strips(box: StridedBox, inner: InnerLoops, outer: list[Axis], when: Conditions) -> CopyStrips:
    """The strips of inner loops inside `outer` loops, outermost first.

    for i in 70: for j in 200:                         48: strips of 48 of j
                                                       8 x 48: strips of 8 of i, and of 48 of j
                                                       500: strips of 3 of i, since 2 have fewer elements
    for tile in 90: for row in 8: for j in 128:        256: strips of 2 rows    2048: strips of 2 tiles

    One number counts elements in the order of the loops. Of two, the second one counts elements of the
    inner loops, and the first one iterations of the loops around them.
    """
    size = when.size
    strip = _strip(box, inner, size[1] if isinstance(size, tuple) else size)
    elements, limit = _elements(box, inner, strip), ""
    match size:
        case None:
            wanted = 1
        case (wanted, columns):
            limit = LOOPS_END if elements < columns else ""
        case _:
            wanted = -(-size // elements) if strip is None else 1
    row, rows, count, why = _rows(outer, wanted)
    became = (count, elements) if isinstance(size, tuple) or count > 1 else elements
    at, tiles = outer.index(row) if row else len(outer), list[Tile]()
    before, position = outer[:at], at
    if strip and inner.long is not None:
        cut = box.axis(inner.long)
        tiles.append(_tile(box, inner, strip))
        position = _strip_position(inner, before, cut)
        before.insert(position, strip_axis(cut, strip, tiles[-1].index))
    if row and rows < row.extent:
        tiles.insert(0, Tile(row.name, rows, "strip"))
        before.insert(position, strip_axis(row, rows, tiles[0].index))
    loops = (*before, *outer[at:])
    sized = when.became(became, why or limit) if size else ""
    return CopyStrips(tuple(tiles), loops, tuple(before) if row and before else loops, sized)


def _tile(box: StridedBox, inner: InnerLoops, strip: int) -> Tile:
    """The tile of so many iterations of the long axis, in iterations of the loop that joins it.

    Packed elements are cut into bytes, which the first loop counts.
    """
    if inner.cuts:
        return Tile(inner.loops[0].name, strip // inner.unit, "strip")
    loop = next(x for x in inner.loops if inner.long in x.axes)
    within = takewhile(lambda name: name != inner.long, loop.axes)
    size = strip * prod(map(box.extents.__getitem__, within))
    return Tile(loop.name, size * box.target.bits // 8 if loop.in_bytes else size, "strip")


def _rows(outer: list[Axis], wanted: int) -> tuple[Axis | None, int, int, str]:
    """The loop whose iterations end a super-vector of at least `wanted` runs of inner loops, and how many.

    Returns the loop and its iterations, all runs of a super-vector, and why there are fewer than wanted.
    If all loops together are fewer runs, the number of iterations exceeds that of the outermost loop.
    """
    count, found, rows = 1, None, 1
    for loop in reversed(outer):
        if wanted == 1:
            break
        found, rows, count = loop, wanted, count * min(wanted, loop.extent)
        wanted = -(-wanted // loop.extent)
    return found, rows, count, LOOPS_END if wanted > 1 else ""


def _strip(box: StridedBox, inner: InnerLoops, elements: int | None) -> int | None:
    """Iterations of the long inner loop per strip; None if one strip has all, unless these are requested.

    They are a multiple of a byte if elements are packed, and fill registers if these are packed in columns.
    """
    if inner.long is None or (elements is None and not (inner.joins_rows or inner.joined("group"))):
        return None
    if inner.joins_rows and elements is None:
        return strip_of_joined(box, inner.loops[0].axes) if inner.packed == "dst" else None
    extent, others = box.extents[inner.long], _elements(box, inner, 1)
    if elements is None:
        return MOST_GROUPS if extent > 4 * MOST_GROUPS else None
    if inner.joins_rows:
        others = box.extents[inner.loops[1].axes[0]]
    strip = -(-elements // (others * inner.unit)) * inner.unit
    if inner.joins_rows:
        return strip_of_joined(box, inner.loops[0].axes, strip * box.width)
    return strip if strip < extent else None


def _elements(box: StridedBox, inner: InnerLoops, strip: int | None) -> int:
    """The elements of one strip of the inner loops."""
    own = {x.name: x.extent for x in box.axes if x.name in inner.inner}
    if strip is not None and inner.long is not None:
        own[inner.long] = strip
    return prod(own.values())


def _strip_position(inner: InnerLoops, outer: list[Axis], cut: Axis) -> int:
    """The position of the strip loop among the outer loops.

    It is innermost around one inner loop. For rows, it is outside the loops with smaller destination strides,
    which write next to their lines.
    """
    if not inner.joined("row"):
        return len(outer)
    step = abs(cut.dst)
    return next((k for k, loop in enumerate(outer) if abs(loop.dst) < step), len(outer))
