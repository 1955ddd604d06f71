"""The directives that a user wrote for a copy, instead of those that the compiler chose."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from codegen.ir.streams import Stream
from codegen.schedule.check_directives import check_directives
from codegen.schedule.directives import (
    REST,
    Assemble,
    CopyBlock,
    Directive,
    Groups,
    LanesBeyond,
    Prefetch,
    Request,
    Stage,
    Table,
    Tail,
    Tile,
)
from codegen.schedule.read_directives import read_directives
from codegen.schedule.transfer_loops import Loop, int_size
from codegen.schedule.transfers import Moves
from codegen.support.errors import ScheduleError


def given_moves(moves: Moves, text: str) -> Moves:
    """The same moves with the directives of a text.

    Tiles, the order of loops, register blocks, stages, streams and prefetches of transposes are free. Other
    copies keep their lanes, and choose among their tails and streams. Directives that hold tables or a panel,
    such as Table("src"), belong to the copy: a text repeats them as they are printed.

    Raises:
        ScheduleError: it is not a list of directives, or passes cannot obey them.
    """
    own = {str(x): x for x in moves.directives if _belongs_to_copy(x)}
    directives = read_directives(text, own)
    for printed, each in own.items():
        if each not in directives:
            _refuse(f"this copy needs {printed}")
    for each in directives:
        if _belongs_to_copy(each) and each not in own.values():
            _refuse(f"this copy does not take {each}")
    made = replace(moves, directives=directives, loops=())
    made = replace(made, loops=tuple(_long_enough(x, made) for x in moves.loops))
    if (own or not moves.order) and made.lanes != moves.lanes:
        _refuse(f"this copy needs {', '.join(map(str, _vectors(moves)))}")
    if moves.order and not made.order:
        _refuse("a transpose needs Reorder")
    if not moves.order:
        _check_choices(made, moves)
    check_directives(made)
    return made


def _refuse(problem: str) -> NoReturn:
    raise ScheduleError(f"schedule: {problem}\n  `explain` prints the schedule of the copy")


def _belongs_to_copy(directive: Directive) -> bool:
    """Whether a directive holds what a text does not say."""
    match directive:
        case Table() | Groups() | LanesBeyond() | Assemble() | Request() | Prefetch():
            return True
        case Stage(panel):
            return panel is not None
        case Tile(level="panel"):
            return True
    return False


def _vectors(moves: Moves) -> list[Directive]:
    return [x for x in moves.directives if not isinstance(x, Tail | Stream | CopyBlock)]


def _long_enough(loop: Loop, moves: Moves) -> Loop:
    """The loop; requests for the next tile look for rows after those of its table."""
    if loop.axis != "row" or loop.src_table is None or moves.panel:
        return loop
    tallest = max((int_size(x.size) for x in moves.tiles("row")), default=0)
    more = max(loop.src_table.more, 2 * tallest)
    return replace(loop, src_table=replace(loop.src_table, more=more))


def _check_choices(made: Moves, moves: Moves) -> None:
    """Runs, interleaves and other copies in one super-vector keep what decides how it moves."""
    is_run = moves.copies and len(moves.loops) == 1 and not moves.loops[0].src_table
    forms = {x.form for x in moves.obeying(Stream)} | ({"full", "headed"} if is_run else set())
    for stream in made.obeying(Stream):
        if stream.form not in forms:
            _refuse(f"this copy streams by {', '.join(sorted(forms)) or 'no form'}, not {stream}")
    sizes = {x for tail in moves.obeying(Tail) for x in tail.sizes}
    for tail in made.obeying(Tail):
        if not {*tail.sizes} <= sizes:
            known = ", ".join(map(str, sorted(sizes - {REST}, key=str))) or REST
            _refuse(f"narrower super-vectors of this copy have {known} iterations, got {tail}")
    if bool(made.obeying(Tail)) != bool(moves.obeying(Tail)):
        _refuse(f"this copy needs {', '.join(map(str, moves.obeying(Tail))) or 'no Tail'}")
    if made.obeying(Tile) != moves.obeying(Tile) and moves.lanes:
        _refuse("a copy in super-vectors has no tiles")
    is_flat = is_run and (moves.target.bits, moves.loops[0].src, moves.loops[0].dst) == (8, 1, 1)
    if made.obeying(CopyBlock) and not is_flat:
        _refuse("CopyBlock copies contiguous bytes")
