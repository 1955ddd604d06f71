"""Check directives by themselves, and against the loops of a copy or kernel that they name.

`check_nest.py` checks what only copies need, and `check_loops.py` what only kernels need.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import TypeVar

from codegen.ir.streams import Stream
from codegen.schedule.directives import (
    CopyBlock,
    Directed,
    Directive,
    Prefetch,
    Reorder,
    Tail,
    Tile,
    Vectorize,
    lanes_of,
)
from codegen.schedule.loops import int_size
from codegen.schedule.read_directives import refuse
from codegen.schedule.vector_size import MOST_DIMS, MOST_ELEMENTS

D = TypeVar("D", bound=Directive)

MOST = 1 << 30
"""The largest tile or distance."""


def check_directives(directives: Sequence[Directive]) -> None:
    """Check that sizes are in range, and that each loop has one directive of a kind.

    Raises:
        ScheduleError: they are not.
    """
    once, known = set[object](), dict[str, int]()
    for x in directives:
        subjects: list[object] = [type(x)]
        match x:
            case Vectorize(lanes):
                subjects = [lanes]
                if prod(count for _, count in lanes) > MOST_ELEMENTS or len(lanes) > MOST_DIMS:
                    refuse(f"expected at most {MOST_DIMS} loops and {MOST_ELEMENTS} lanes, got {x}", x)
                if any(known.setdefault(axis, count) != count for axis, count in lanes):
                    refuse(f"expected the same lanes of a loop everywhere, got {x}", x)
            case Tail(axis):
                subjects = [(Tail, axis)]
            case Reorder(loops):
                subjects = [(Reorder, name) for name in loops]
            case Tile(_, size):
                subjects = [x.index]
                if not isinstance(size, int) or not 1 <= size <= MOST:
                    refuse(f"expected tiles of 1 to {MOST} iterations, got {x}", x)
            case Stream(form, least):
                subjects = [form]
                _check_distances(x, least)
            case Prefetch(loop, distance, chunks):
                subjects = [(Prefetch, loop)]
                _check_distances(x, chunks, *([distance] if isinstance(distance, int) else []))
            case CopyBlock(least):
                _check_distances(x, least)
        if len({*subjects}) < len(subjects) or once & {*subjects}:
            refuse(f"expected one directive of a kind for each loop, got {x} again", x)
        once |= {*subjects}


def _check_distances(directive: Directive, *distances: int) -> None:
    if any(not -MOST <= each <= MOST for each in distances):
        refuse(f"expected distances of at most {MOST}, got {directive}", directive)


def check_names(directives: Sequence[Directive], loops: Sequence[str]) -> None:
    """Check that directives name existing loops.

    Raises:
        ScheduleError: there is no such loop.
    """
    over_tiles = [x.index for x in directives if isinstance(x, Tile)]
    for x in directives:
        known: Collection[str] = loops
        match x:
            case Vectorize(pairs):
                names = [axis for axis, _ in pairs]
            case Tail(axis) | Tile(axis):
                names = [axis]
            case Reorder(order):
                names, known = [*order], [*loops, *over_tiles]
            case _:
                continue
        for name in names:
            if name not in known:
                listed = ", ".join(loops)
                known_loops = f"expected a loop over {listed}" if listed else "the function has no loops"
                refuse(f"{known_loops}, got {name[:40]}", x)


def check_tiles(directives: Sequence[Directive], extents: Mapping[str, int]) -> None:
    """Check that strips are inside larger tiles, and have full super-vectors or all iterations of a loop.

    extents  the iterations of loops, as far as they are known

    Raises:
        ScheduleError: a strip is larger than the tile around it, or the lanes do not divide a tile.
    """
    lanes, around = lanes_of(directives), dict[str, Tile]()
    for x in (x for x in directives if isinstance(x, Tile)):
        outer, size = around.get(x.axis, x), int_size(x.size)
        if size > int_size(outer.size) and x.level == "strip":
            refuse(f"expected strips of at most {outer.size} inside {outer}, got {x}", x)
        around[x.axis] = x
        if size < extents.get(x.axis, MOST + 1) and size % lanes.get(x.axis, 1):
            refuse(f"expected a multiple of {lanes[x.axis]} lanes, got {x}", x)


def check_order(order: Reorder, nested: Sequence[str], levels: Sequence[Sequence[str]]) -> None:
    """Check that an order has all loops, those over tiles outside the loops that they split.

    levels  the loops over tiles of each loop, and the loop, outermost first

    Raises:
        ScheduleError: it does not.
    """
    if sorted(order.loops) != sorted(nested):
        refuse(f"expected an order of the perfectly nested loops {', '.join(nested)}, got {order}", order)
    for names in levels:
        if sorted(names, key=order.loops.index) != [*names]:
            refuse(f"expected {', '.join(names)} in this order, got {order}", order)


def first(schedule: Directed, kind: type[D]) -> D | None:
    """The first directive of a kind, if there is one."""
    return next(iter(schedule.obeying(kind)), None)


def refuse_any(schedule: Directed, kinds: tuple[type, ...], problem: str) -> None:
    """Refuse directives of some kinds."""
    for x in schedule.directives:
        if isinstance(x, kinds):
            refuse(problem.format(x), x)
