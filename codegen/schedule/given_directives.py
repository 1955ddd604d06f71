"""The directives that a user wrote for a copy, instead of those that the compiler chose."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from codegen.ir.streams import Stream
from codegen.schedule.check_directives import check_directives
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import (
    REST,
    Assemble,
    CopyBlock,
    Directive,
    Gather,
    Groups,
    LanesBeyond,
    Prefetch,
    Request,
    Stage,
    Table,
    Tail,
    Tile,
)
from codegen.schedule.loops import Loop
from codegen.schedule.read_directives import read_directives
from codegen.support.errors import ScheduleError


def given_nest(nest: CopyNest, text: str) -> CopyNest:
    """The same nest with the directives of a text.

    Tiles, the order of loops, register blocks, stages, streams and prefetches of transposes are free. Other
    copies keep their lanes, and choose among their tails and streams. Directives that hold tables or a panel,
    such as Table("src"), belong to the copy: a text repeats them as they are printed.

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
    if (own or not nest.order) and made.lanes != nest.lanes:
        _refuse(f"this copy needs {', '.join(map(str, _vectors(nest)))}")
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
    match directive:
        case Table() | Groups() | LanesBeyond() | Assemble() | Gather() | Request() | Prefetch():
            return True
        case Stage(panel):
            return panel is not None
        case Tile(level="panel"):
            return True
    return False


def _vectors(nest: CopyNest) -> list[Directive]:
    return [x for x in nest.directives if not isinstance(x, Tail | Stream | CopyBlock)]


def _long_enough(loop: Loop, nest: CopyNest) -> Loop:
    """The loop; requests for the next tile look for rows after those of its table."""
    if loop.axis != "row" or loop.src_table is None or nest.panel:
        return loop
    tallest = max((x.size for x in nest.tiles("row") if isinstance(x.size, int)), default=0)
    more = max(loop.src_table.more, 2 * tallest)
    return replace(loop, src_table=replace(loop.src_table, more=more))


def _check_choices(made: CopyNest, nest: CopyNest) -> None:
    """Runs, interleaves and other copies in one super-vector keep what decides how they run."""
    is_run = nest.copies and len(nest.loops) == 1 and not nest.loops[0].src_table
    forms = {x.form for x in nest.obeying(Stream)} | ({"full", "headed"} if is_run else set())
    for stream in made.obeying(Stream):
        if stream.form not in forms:
            _refuse(f"this copy streams by {', '.join(sorted(forms)) or 'no form'}, not {stream}")
    sizes = {x for tail in nest.obeying(Tail) for x in tail.sizes}
    for tail in made.obeying(Tail):
        if not {*tail.sizes} <= sizes:
            known = ", ".join(map(str, sorted(sizes - {REST}, key=str))) or REST
            _refuse(f"narrower super-vectors of this copy have {known} iterations, got {tail}")
    if bool(made.obeying(Tail)) != bool(nest.obeying(Tail)):
        _refuse(f"this copy needs {', '.join(map(str, nest.obeying(Tail))) or 'no Tail'}")
    if made.obeying(Tile) != nest.obeying(Tile) and nest.lanes:
        _refuse("a copy in super-vectors has no tiles")
    is_flat = is_run and (nest.target.bits, nest.loops[0].src, nest.loops[0].dst) == (8, 1, 1)
    if made.obeying(CopyBlock) and not is_flat:
        _refuse("CopyBlock copies contiguous bytes")
