"""Read the directives of a user's text for a copy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from codegen.ir.streams import Stream
from codegen.schedule.check_directives import first
from codegen.schedule.check_nest import check_nest, ordered_axes
from codegen.schedule.check_transpose import check_scratch, layers
from codegen.schedule.copy_nest import CopyNest, shared_among_threads
from codegen.schedule.directives import (
    Directive,
    LanesBeyond,
    Reorder,
    Request,
    Tail,
    Tile,
    Vectorize,
)
from codegen.schedule.read_directives import HELD, pointing, read_directives, refuse
from codegen.schedule.transposed_nest import with_tables

MOST_LANES = 1024
"""The most lanes of a super-vector that a text gives a copy without blocks: LLVM is slow with more."""


def given_nest(nest: CopyNest, text: str) -> CopyNest:
    """The same nest with the directives of a text.

    Tiles and the order of loops are free, and so are the blocks, stages, streams and prefetches of
    transposes. Other copies take any lanes that have instructions, and runs choose their streams. Directives
    that hold tables, such as Table("src"), belong to the copy: a text repeats them with the same lanes, which
    layers need as well.

    Without Reorder, loops over tiles have the order of the text. Without Tail, the last blocks of a transpose
    begin earlier.

    Raises:
        ScheduleError: it is not a list of directives, or passes cannot obey them.
    """
    own = {str(x): x for x in nest.directives if _belongs_to_copy(x)}
    directives = read_directives(text, own)
    made = replace(nest, directives=directives, staged_block=None)
    made = shared_among_threads(_with_defaults(made, nest))
    with pointing(text, directives, "`explain` prints the schedule of the copy"):
        for each in own.values():
            if each not in directives:
                refuse(f"this copy needs {each}", first(made, type(each)))
        for x in directives:
            if _belongs_to_copy(x) and x not in own.values():
                refuse(f"this copy does not take {x}", x)
        lanes, fixed = first(nest, Vectorize), bool(own or layers(nest))
        if made.lanes.keys() != nest.lanes.keys() or (fixed and made.lanes != nest.lanes):
            such = "lanes such as " if lanes and not fixed else ""
            got = first(made, Vectorize)
            refuse(f"this copy needs {such}{lanes or 'no Vectorize'}, got {got or 'none'}", got)
        _check_choices(made, nest)
        check_nest(made)
        made = with_tables(made) if made.transposes or made.staged else made
        check_scratch(made)
    return made


def _with_defaults(made: CopyNest, nest: CopyNest) -> CopyNest:
    """The nest with an order, if loops are in tiles, and with tails of the blocks of a transpose."""
    axes, outermost = ordered_axes(made), made.outer_tiles
    tails = (Tail(axis, "clamp") for axis in axes if axis in made.lanes and made.tail(axis) is None)
    added: list[Directive] = [*tails] if nest.transposes else []
    if not made.order and (nest.transposes or made.obeying(Tile)):
        outer = [x.axis for x in made.around if not made.tiles(x.axis)]
        tiles = (x.index for x in made.obeying(Tile) if x in outermost)
        inner = (x.index for x in made.obeying(Tile) if x not in outermost)
        inside = (axis for axis in axes if axis not in (*outer, *layers(made)))
        added.insert(0, Reorder((*outer, *tiles, *layers(made), *inner, *inside)))
    return replace(made, directives=(*made.directives, *added))


def _belongs_to_copy(directive: Directive) -> bool:
    """Whether a text repeats a directive: it follows from the layouts of both sides."""
    return isinstance(directive, (*HELD, LanesBeyond, Request))


def _check_choices(made: CopyNest, nest: CopyNest) -> None:
    """Copies without blocks have lanes, tails and streams for which there are instructions."""
    is_run = nest.copies and len(nest.loops) == 1 and not nest.loops[0].src_table and not nest.entries
    for x in made.directives if not nest.transposes else ():
        own, taken = nest.obeying(type(x)), True
        match x:
            case Vectorize(pairs):
                taken = _has_powers(count for axis, count in pairs if count != nest.lanes[axis])
            case Tail() | Stream() if made.staged:
                pass  # `check_nest` knows what a stage needs
            case Tail(sizes=sizes) if nest.staged:
                taken = sizes[-1:] == (1,) and _has_powers(sizes[:-1])
            case Stream(form) if nest.staged:
                taken = form == "begun"
            case Tail(axis):
                taken = _replaces(x, nest.tail(axis))
            case Stream(form):
                taken = x in own or (is_run and form in ("full", "headed"))
        if not taken:
            refuse(f"this copy does not take {x}", x)


def _replaces(x: Tail, own: Tail | None) -> bool:
    """Whether a copy may have a tail instead of its own."""
    if own is None:
        return False
    others = ("shift", "narrow") if own.how in ("shift", "narrow") else (own.how,)
    return x.how in others and x.sizes[-1:] == own.sizes[-1:] and _has_powers({*x.sizes} - {*own.sizes})


def _has_powers(lanes: Iterable[int | str]) -> bool:
    """Whether all numbers of lanes are powers of two."""
    return all(isinstance(n, int) and 1 < n <= MOST_LANES and n & (n - 1) == 0 for n in lanes)
