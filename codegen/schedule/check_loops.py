"""Check that the loops of a kernel can run as directives say, and keep the result."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from codegen.analysis.bounds import FARTHEST
from codegen.analysis.dependence import first_reversed
from codegen.analysis.outcomes import legal_tail
from codegen.ir.nodes import Function
from codegen.ir.streams import Stream
from codegen.ir.visit import Loop, accesses_of, loops_of
from codegen.schedule.choose_lanes import TAILS, LaneSchedule
from codegen.schedule.directives import Directive, Reorder, Tail, Tile, Vectorize
from codegen.schedule.loop_groups import LEVELS, LoopGroup, deepest, groups_of, lanes_of
from codegen.schedule.loops import int_size
from codegen.schedule.read_directives import read_directives, refuse_directive
from codegen.schedule.vector_size import MOST_DIMS, MOST_ELEMENTS

MOST_LOOPS = 18
"""Loops of a kernel one inside the other, with tiles. Python has at most 20; transposed blocks add one."""

MOST_ITERATIONS = 1 << 30
"""The most iterations of a tile."""


def read_loop_directives(text: str) -> tuple[Directive, ...]:
    """Read directives for the loops of any kernel.

    Raises:
        ScheduleError: it is not a list of directives that kernels have.
    """
    directives = read_directives(text)
    once: set[object] = set()
    known: dict[str, int] = {}
    for x in directives:
        match x:
            case Vectorize(lanes):
                subjects: list[object] = []
                if prod(count for _, count in lanes) > MOST_ELEMENTS or len(lanes) > MOST_DIMS:
                    limit = f"{MOST_DIMS} loops and {MOST_ELEMENTS} lanes"
                    refuse_directive(text, x, f"expected at most {limit}, got {x}")
                if any(known.setdefault(axis, count) != count for axis, count in lanes):
                    refuse_directive(text, x, f"expected the same lanes of a loop everywhere, got {x}")
            case Tail(axis, how, sizes):
                subjects = [(Tail, axis)]
                if how not in TAILS or sizes:
                    refuse_directive(text, x, f"expected a tail of {', '.join(TAILS)}, got {x}")
            case Tile(axis, size, level, count):
                subjects = [(axis, level)]
                if not isinstance(size, int) or not 1 <= size <= MOST_ITERATIONS or count != 0:
                    refuse_directive(text, x, f"expected tiles of 1 to {MOST_ITERATIONS} iterations, got {x}")
                if level not in LEVELS:
                    refuse_directive(text, x, f"expected a level of {', '.join(LEVELS)}, got {level}")
            case Reorder(loops):
                subjects = [(Reorder, name) for name in loops]
                if not loops:
                    refuse_directive(text, x, "expected names of loops, got none")
            case Stream():
                subjects = [Stream]
                if x != Stream("full"):
                    refuse_directive(text, x, f'expected Stream("full") for a kernel, got {x}')
            case _:
                kinds = "Tile, Reorder, Vectorize, Tail and Stream"
                refuse_directive(text, x, f"expected {kinds} for a kernel, got {type(x).__name__}")
        if len({*subjects}) < len(subjects) or once & {*subjects}:
            refuse_directive(text, x, f"expected one directive of a kind for each loop, got {x} again")
        once |= {*subjects}
    return directives


def check_loops(function: Function, directives: Sequence[Directive], text: str) -> None:
    """Check directives for a function of scalar loops, except which loops may run as lanes.

    Raises:
        ScheduleError: there is no such loop, or tiles or an order would change the result or cannot be made.
    """
    steps = {loop.node.index: loop.node.step for root in loops_of(function.body) for loop in root.all()}
    names = [*steps]
    lanes, tiles = lanes_of(directives), [x for x in directives if isinstance(x, Tile)]
    for x in directives:
        for axis in _axes(x, tiles):
            if axis not in names:
                known = f"expected a loop over {', '.join(names)}" if names else "the function has no loops"
                refuse_directive(text, x, f"{known}, got {axis[:40]}")
    for x in tiles:
        if int_size(x.size) * abs(steps[x.axis]) > FARTHEST:
            refuse_directive(text, x, f"expected smaller tiles of a loop by {steps[x.axis]}, got {x}")
        if int_size(x.size) % lanes.get(x.axis, 1):
            refuse_directive(text, x, f"expected a multiple of {lanes[x.axis]} lanes, got {x}")
    for group in groups_of(function.body, directives):
        _check_names(group, directives, text)
    changed = next((x for x in directives if isinstance(x, Reorder)), tiles[0] if tiles else None)
    if changed is not None and (problem := order_problem(function, directives)):
        refuse_directive(text, changed, problem)


def check_nests(function: Function, wide: Function, directives: Sequence[Directive], text: str) -> None:
    """Check that loops are nested in the super-vectorized function as they are in the scalar one.

    Raises:
        ScheduleError: a reduction in lanes or the reading of a bound is between them, or a loop that carries
            a value has two levels of tiles.
    """
    groups, found = list(groups_of(function.body, directives)), list(groups_of(wide.body, directives))
    alike = [group.names for group in groups] == [group.names for group in found]
    carrying = {loop.index for group in found for loop in group.loops if loop.carried}
    tiled = [x.axis for x in directives if isinstance(x, Tile)]
    for x in directives:
        if not alike and isinstance(x, Tile | Reorder):
            refuse_directive(text, x, "a reduction in lanes, or a bound that is read, is between these loops")
        if isinstance(x, Tile) and x.axis in carrying and tiled.count(x.axis) > 1:
            refuse_directive(text, x, f"{x.axis} carries a value, so it has one level of tiles")


def check_lanes(
    function: Function, schedule: LaneSchedule, directives: Sequence[Directive], text: str
) -> None:
    """Check that the loops that Vectorize names are nested in this order and may run as lanes.

    Raises:
        ScheduleError: loops are named in another order, or may not run as lanes.
    """
    every = {loop.number: loop for root in loops_of(function.body) for loop in root.all()}
    for x in directives:
        if not isinstance(x, Vectorize):
            continue
        names = [axis for axis, _ in x.lanes]
        if not any(_in_order(root, names) for root in loops_of(function.body)):
            refuse_directive(text, x, f"expected outer loops before those inside them, got {x}")
        for why in schedule.refusals:
            index = every[why.loop].node.index
            if index in names:
                refuse_directive(text, x, f"{index} cannot run as lanes, {why.code}: {why.text}")
    if schedule.refusals:
        x = next(x for x in directives if isinstance(x, Vectorize))
        why = schedule.refusals[0]
        refuse_directive(text, x, f"{every[why.loop].node.index} prevents lanes, {why.code}: {why.text}")


def _in_order(loop: Loop, names: Sequence[str]) -> bool:
    """Whether loops of these indices are nested in this order."""
    rest = names[1:] if loop.node.index == names[0] else names
    return not rest or any(_in_order(each, rest) for each in loop.inside)


def with_tails(function: Function, directives: Sequence[Directive], text: str) -> tuple[Directive, ...]:
    """The directives with a tail for each innermost loop over super-vectors, masked if a text has none.

    Raises:
        ScheduleError: a tail would run iterations twice that may run once, or there is no such tail.
    """
    lanes = lanes_of(directives)
    roots = loops_of(function.body)
    inner = {loop.node.index: loop for root in roots for loop in _innermost(root, lanes)}
    accesses = accesses_of(function.body, roots)
    tails = [x for x in directives if isinstance(x, Tail)]
    for x in tails:
        if x.axis not in inner:
            named = ", ".join(inner) or "a loop that runs in two lanes or more"
            refuse_directive(text, x, f"expected a tail of {named}, got {x}")
        own = [a for a in accesses if any(loop.number == inner[x.axis].number for loop in a.loops)]
        if legal_tail(inner[x.axis], own, x.how) != x.how:
            refuse_directive(text, x, f"iterations of {x.axis} may not run twice, as {x} would")
    divisible = [x for x in tails if x.how == "assume_divisible"]
    if divisible and len(divisible) < len(inner):
        refuse_directive(text, divisible[0], f"expected the same tail for {', '.join(inner)}")
    masked = tuple(Tail(axis, "mask") for axis in inner if axis not in [x.axis for x in tails])
    return (*directives, *masked)


def order_problem(function: Function, directives: Sequence[Directive]) -> str:
    """Why the loops of a function cannot run in tiles or in another order; "" if they can."""
    if deepest(function, directives) > MOST_LOOPS:
        return f"a kernel has room for {MOST_LOOPS} loops, one inside the other"
    accesses, lanes = accesses_of(function.body, loops_of(function.body)), lanes_of(directives)
    for group in groups_of(function.body, directives):
        found = first_reversed(accesses, group.blocks(lanes), lanes)
        if found is not None:
            return f"the order {', '.join(group.order)} would change the result: {found.reason}"
    return ""


def _axes(directive: Directive, tiles: Sequence[Tile]) -> list[str]:
    """The loops of the function that a directive names."""
    match directive:
        case Vectorize(lanes):
            return [axis for axis, _ in lanes]
        case Tail(axis) | Tile(axis):
            return [axis]
        case Reorder(loops):
            over_tiles = [x.index for x in tiles]
            return [name for name in loops if name not in over_tiles]
    return []


def _check_names(group: LoopGroup, directives: Sequence[Directive], text: str) -> None:
    """An order has all loops of its group, those over tiles outside the loops that they split.

    Larger tiles hold several smaller ones.
    """
    x = next((x for x in directives if isinstance(x, Reorder) and x.loops == group.order), None)
    if x is not None and sorted(group.order) != sorted(group.names):
        nested = ", ".join(group.names)
        refuse_directive(text, x, f"expected an order of the perfectly nested loops {nested}, got {x}")
    for loop in group.loops:
        levels = group.tiles_of(loop.index)
        names = [*(tile.index for tile in levels), loop.index]
        if x is not None and sorted(names, key=group.order.index) != names:
            refuse_directive(text, x, f"expected {', '.join(names)} in this order, got {x}")
        for outer, inner in pairwise(levels):
            if int_size(outer.size) % int_size(inner.size):
                refuse_directive(text, outer, f"expected a multiple of the {inner.size} of {inner}")


def _innermost(loop: Loop, lanes: dict[str, int]) -> list[Loop]:
    """The loops over super-vectors that have none inside."""
    inside = [found for each in loop.inside for found in _innermost(each, lanes)]
    return inside or [loop] * (lanes.get(loop.node.index, 1) > 1)
