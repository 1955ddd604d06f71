"""The directives that a user wrote for a copy, instead of those that the compiler chose."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from codegen.ir.streams import Stream
from codegen.schedule.check_directives import check_directives
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import (
    Ahead,
    CopyBlock,
    Directive,
    Prefetch,
    Request,
    Stage,
    Tail,
    Tile,
    Vectorize,
)
from codegen.schedule.loops import Loop
from codegen.schedule.read_directives import HELD, read_directives
from codegen.support.errors import ScheduleError


def given_nest(nest: CopyNest, text: str) -> CopyNest:
    """The same nest with the directives of a text.

    Tiles, the order of loops, blocks, stages, streams and prefetches of transposes are free. Other copies
    keep their lanes, and runs choose their streams. Directives that hold tables or a panel, such as
    Table("src"), belong to the copy: a text repeats them as they are printed, with the same lanes.

    Raises:
        ScheduleError: it is not a list of directives, or passes cannot obey them.
    """
    own = {str(x): x for x in nest.directives if _belongs_to_copy(x)}
    directives = read_directives(text, own)
    for printed, each in own.items():
        if each not in directives:
            _refuse(f"this copy needs {printed}")
    for each in directives:
        if _belongs_to_copy(each) and each not in own.values():
            _refuse(f"this copy does not take {each}")
    made = replace(nest, directives=directives, loops=())
    made = replace(made, loops=tuple(_long_enough(x, made) for x in nest.loops))
    if own and made.lanes != nest.lanes:
        _refuse(f"this copy needs {nest.obeying(Vectorize)[0] if nest.lanes else 'no Vectorize'}")
    if nest.order and not made.order:
        _refuse("a transpose needs Reorder")
    if not nest.order:
        _check_choices(made, nest)
    check_directives(made)
    return made


def _refuse(problem: str) -> NoReturn:
    raise ScheduleError(f"schedule: {problem}\n  `explain` prints the schedule of the copy")


def _belongs_to_copy(directive: Directive) -> bool:
    """Whether a directive holds what a text does not say."""
    if isinstance(directive, Stage):
        return directive.panel is not None
    if isinstance(directive, Tile):
        return directive.level == "panel"
    return isinstance(directive, (*HELD, Prefetch, Request))


def _long_enough(loop: Loop, nest: CopyNest) -> Loop:
    """The loop; requests for the next tile look for rows after those of its table."""
    if loop.axis != "row" or loop.src_table is None or nest.panel:
        return loop
    tallest = max((x.size for x in nest.tiles("row") if isinstance(x.size, int)), default=0)
    more = max(loop.src_table.more, 2 * tallest)
    return replace(loop, src_table=replace(loop.src_table, more=more))


def _check_choices(made: CopyNest, nest: CopyNest) -> None:
    """Copies without blocks keep what decides how they run; runs choose their streams.

    Tails stop at the same sizes, and tiles are of the same axes.
    """
    is_run = nest.copies and len(nest.loops) == 1 and not nest.loops[0].src_table and not nest.entries
    is_flat = is_run and (nest.target.bits, nest.loops[0].src, nest.loops[0].dst) == (8, 1, 1)
    for stream in made.obeying(Stream):
        if stream not in nest.obeying(Stream) and not (is_run and stream.form in ("full", "headed")):
            _refuse(f"this copy does not stream by {stream}")
    free: set[type[Directive]] = {Stream} if is_run else set()
    free |= {CopyBlock} if is_flat else set()
    free |= {Ahead} if nest.obeying(Ahead) else set()
    kept = {*map(type, nest.directives)} - free - {Tail, Tile}
    for each in made.directives:
        if type(each) not in {*free, Tail, Tile, Stream} and each not in nest.directives:
            _refuse(f"this copy does not take {each}")
    for each in nest.directives:
        if type(each) in kept and each not in made.directives:
            _refuse(f"this copy needs {each}")
    _check_tails(made, nest)
    if [x.index for x in made.obeying(Tile)] != [x.index for x in nest.obeying(Tile)]:
        _refuse(f"this copy has tiles of {', '.join(x.axis for x in nest.obeying(Tile)) or 'no axis'}")


def _check_tails(made: CopyNest, nest: CopyNest) -> None:
    """A tail has some of the sizes of the copy's own, the last of which ends it."""
    if [x.axis for x in made.obeying(Tail)] != [x.axis for x in nest.obeying(Tail)]:
        _refuse(f"this copy needs {', '.join(map(str, nest.obeying(Tail))) or 'no Tail'}")
    for tail, own in zip(made.obeying(Tail), nest.obeying(Tail), strict=True):
        others = ("shift", "narrow") if own.how in ("shift", "narrow") else (own.how,)
        if tail.how not in others or not {*tail.sizes} <= {*own.sizes} or tail.sizes[-1:] != own.sizes[-1:]:
            _refuse(f"expected a tail like {own}, got {tail}")
