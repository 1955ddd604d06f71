"""Choose the strips of a copy: the caller's super-vectors, or the parts of inner loops that run at a time."""

from __future__ import annotations

from math import prod

from codegen.ir.strided_box import Axis, StridedBox
from codegen.schedule.choose_directives import InnerLoops
from codegen.schedule.choose_interleave import strip_of_joined
from codegen.schedule.conditions import LOOPS_END, Conditions
from codegen.schedule.schedule import (
    COLUMNS,
    MOST_LOOPS,
    ROWS,
    STRIP,
    Cut,
)
from codegen.support.dataclasses import dataclass

MOST_GROUPS = 1 << 16
"""Short reversed runs per call, so that threads can share them."""

NO_ROOM = f"kernels have {MOST_LOOPS} loops at most"
"""Why super-vectors of a copy are smaller than requested."""


@dataclass(frozen=True, slots=True)
class CopyStrips:
    """The strips of the inner loops and of the outer ones.

    strip  iterations of the long inner loop at a time; None: all, of whatever number
    row    the outermost outer loop that a super-vector has iterations of, or None; loops inside
           it belong to the super-vector as well
    rows   iterations of `row` per super-vector; more than it has where super-vectors have all loops
    sized  what the caller's size became; "" without one
    """

    strip: int | None
    row: Axis | None = None
    rows: int = 1
    sized: str = ""

    def cuts(self, inner: InnerLoops) -> tuple[Cut, ...]:
        """The cuts of both loops; of the caller's size, also where one block has all iterations."""
        found = list[Cut]()
        if self.strip and inner.long is not None:
            found.append(Cut(inner.long, self.strip, COLUMNS if self.sized else STRIP))
        if self.row:
            found.append(Cut(self.row.name, self.rows, ROWS))
        return tuple(found)

    def around(self, box: StridedBox, inner: InnerLoops, outer: list[Axis]) -> list[Axis]:
        """The outer loops, with those over strips: a super-vector's own loops are innermost."""
        at = len(outer) if self.row is None else outer.index(self.row)
        before, inside = outer[:at], outer[at:]
        position = len(before)
        if self.strip and inner.long is not None and _is_loop(box, inner, self.strip):
            cut = box.axis(inner.long)
            position = _strip_position(inner, before, cut)
            before.insert(position, _counted(cut, self.strip, COLUMNS if self.sized else STRIP))
        if self.row and self.rows < self.row.extent:
            before.insert(position, _counted(self.row, self.rows, ROWS))
        return [*before, *inside]


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
    elements = _elements(box, inner, strip)
    limit, room = "", MOST_LOOPS - len(outer) - _is_loop(box, inner, strip)
    match size:
        case None:
            return CopyStrips(strip)
        case (wanted, columns):
            limit = LOOPS_END if elements < columns else ""
        case _:
            wanted = -(-size // elements) if strip is None else 1
    row, rows, count, why = _rows(outer, wanted, room)
    became = (count, elements) if isinstance(size, tuple) or count > 1 else elements
    return CopyStrips(strip, row, rows, when.became(became, why or limit))


def _is_loop(box: StridedBox, inner: InnerLoops, strip: int | None) -> bool:
    """Whether there is a loop over strips."""
    return strip is not None and inner.long is not None and strip < box.axis(inner.long).extent


def _rows(outer: list[Axis], wanted: int, room: int) -> tuple[Axis | None, int, int, str]:
    """The loop whose iterations end a super-vector of at least `wanted` runs of inner loops, and how many.

    room  how many more loops a kernel can have

    Returns the loop and its iterations, all runs of a super-vector, and why there are fewer than wanted.
    If all loops together are fewer runs, the number of iterations exceeds that of the outermost loop.
    """
    count, found, rows = 1, None, 1
    for loop in reversed(outer):
        if wanted == 1:
            break
        if wanted < loop.extent and not room:
            return found, rows, count, NO_ROOM
        found, rows, count = loop, wanted, count * min(wanted, loop.extent)
        wanted = -(-wanted // loop.extent)
    return found, rows, count, LOOPS_END if wanted > 1 else ""


def _counted(loop: Axis, strip: int, name: str) -> Axis:
    """The loop over full strips of a loop."""
    return Axis(name, loop.extent // strip, loop.src * strip, loop.dst * strip)


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
    return min(strip, extent) if strip < extent or extent * others == elements else None


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
