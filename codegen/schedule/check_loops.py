"""Check that the loops of a kernel can run as directives say, and keep the result."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from codegen.analysis.bounds import FARTHEST
from codegen.analysis.dependence import first_reversed
from codegen.analysis.outcomes import legal_tail
from codegen.ir.nodes import Function
from codegen.ir.streams import Stream
from codegen.ir.visit import Loop, accesses_of, loops_of
from codegen.schedule.check_directives import check_directives, check_names, check_order, check_tiles
from codegen.schedule.choose_lanes import TAILS, LaneSchedule
from codegen.schedule.choose_registers import tail_once
from codegen.schedule.directives import Directive, Parallel, Reorder, Tail, Tile, Vectorize, lanes_of
from codegen.schedule.loop_groups import LoopGroup, deepest, groups_of, outer_loop
from codegen.schedule.loops import int_size
from codegen.schedule.read_directives import pointing, read_directives, refuse

MOST_LOOPS = 18
"""Loops of a kernel one inside the other, with tiles. Python has at most 20; transposed blocks add one."""

KINDS = (Tile, Reorder, Vectorize, Tail, Stream, Parallel)
"""The directives that kernels have."""


def read_loop_directives(text: str) -> tuple[Directive, ...]:
    """Read directives for the loops of any kernel.

    Raises:
        ScheduleError: it is not a list of directives that kernels have.
    """
    directives = read_directives(text)
    with pointing(text, directives):
        check_directives(directives)
        for x in directives:
            if not isinstance(x, KINDS):
                kinds = ", ".join(each.__name__ for each in KINDS)
                refuse(f"expected {kinds} for a kernel, got {type(x).__name__}", x)
            match x:
                case Tail(_, how, sizes) if how not in TAILS or sizes:
                    refuse(f"expected a tail of {', '.join(TAILS)}, got {x}", x)
                case Stream() if x != Stream("full"):
                    refuse(f'expected Stream("full") for a kernel, got {x}', x)
    return directives


def check_loops(function: Function, directives: Sequence[Directive]) -> None:
    """Check directives for a function of scalar loops, except which loops may run as lanes.

    Raises:
        ScheduleError: there is no such loop, or tiles or an order would change the result or cannot be made.
    """
    steps = {loop.node.index: loop.node.step for root in loops_of(function.body) for loop in root.all()}
    check_names(directives, [*steps])
    check_tiles(directives, {})
    for x in directives:
        if isinstance(x, Tile) and int_size(x.size) * abs(steps[x.axis]) > FARTHEST:
            refuse(f"expected smaller tiles of a loop by {steps[x.axis]}, got {x}", x)
    for group in groups_of(function.body, directives):
        _check_group(group, directives)
    for x in directives:
        if isinstance(x, Parallel) and x.loop != (outer := outer_loop(function, directives)):
            expected = f'Parallel("{outer}")' if outer else "no Parallel: threads cannot share these loops"
            refuse(f"expected {expected}, got {x}", x)
    changed = next((x for kind in (Reorder, Tile) for x in directives if isinstance(x, kind)), None)
    if changed is not None and (problem := order_problem(function, directives)):
        refuse(problem, changed)


def check_nests(function: Function, wide: Function, directives: Sequence[Directive]) -> None:
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
            refuse("a reduction in lanes, or a bound that is read, is between these loops", x)
        if isinstance(x, Tile) and x.axis in carrying and tiled.count(x.axis) > 1:
            refuse(f"{x.axis} carries a value, so it has one level of tiles", x)


def check_lanes(function: Function, schedule: LaneSchedule, directives: Sequence[Directive]) -> None:
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
            refuse(f"expected outer loops before those inside them, got {x}", x)
        for why in schedule.refusals:
            index = every[why.loop].node.index
            if index in names:
                refuse(f"{index} cannot run as lanes, {why.code}: {why.text}", x)
    if schedule.refusals:
        x = next(x for x in directives if isinstance(x, Vectorize))
        why = schedule.refusals[0]
        refuse(f"{every[why.loop].node.index} prevents lanes, {why.code}: {why.text}", x)


def _in_order(loop: Loop, names: Sequence[str]) -> bool:
    """Whether loops of these indices are nested in this order."""
    rest = names[1:] if loop.node.index == names[0] else names
    return not rest or any(_in_order(each, rest) for each in loop.inside)


def with_tails(function: Function, directives: Sequence[Directive]) -> tuple[Directive, ...]:
    """The directives with a tail for each innermost loop over super-vectors, shifted where a text has none.

    A shifted tail that would run iterations twice that may run once is masked or scalar.

    Raises:
        ScheduleError: a tail would run iterations twice that may run once, or there is no such tail.
    """
    lanes = lanes_of(directives)
    roots = loops_of(function.body)
    inner = {loop.node.index: loop for root in roots for loop in _innermost(root, lanes)}
    accesses = accesses_of(function.body, roots)
    tails = [x for x in directives if isinstance(x, Tail)]

    def legal(axis: str, how: str) -> str:
        own = [a for a in accesses if any(loop.number == inner[axis].number for loop in a.loops)]
        return legal_tail(inner[axis], own, how, tail_once())

    for x in tails:
        if x.axis not in inner:
            named = ", ".join(inner) or "a loop that runs in two lanes or more"
            refuse(f"expected a tail of {named}, got {x}", x)
        if legal(x.axis, x.how) != x.how:
            refuse(f"iterations of {x.axis} may not run twice, as {x} would", x)
    divisible = [x for x in tails if x.how == "assume_divisible"]
    if divisible and len(divisible) < len(inner):
        refuse(f"expected the same tail for {', '.join(inner)}", divisible[0])
    others = (axis for axis in inner if axis not in [x.axis for x in tails])
    return (*directives, *(Tail(axis, legal(axis, "shift")) for axis in others))  # type: ignore[arg-type]


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


def _check_group(group: LoopGroup, directives: Sequence[Directive]) -> None:
    """An order has all loops of its group, and larger tiles hold several smaller ones."""
    for x in directives:
        if isinstance(x, Reorder) and x.loops == group.order:
            check_order(x, group.names, [(tile.index, tile.axis) for tile in group.tiles])
    for loop in group.loops:
        for outer, inner in pairwise(group.tiles_of(loop.index)):
            if int_size(outer.size) % int_size(inner.size):
                refuse(f"expected a multiple of the {inner.size} of {inner}", outer)


def _innermost(loop: Loop, lanes: dict[str, int]) -> list[Loop]:
    """The loops over super-vectors that have none inside."""
    inside = [found for each in loop.inside for found in _innermost(each, lanes)]
    return inside or [loop] * (lanes.get(loop.node.index, 1) > 1)
