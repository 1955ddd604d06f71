"""Select the instructions that reorder lanes which are apart in memory, by what they mean."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from codegen.analysis.bodies import flat, stored
from codegen.ir.blocks import INTERLEAVED_ROWS
from codegen.ir.building import minus, plus, times
from codegen.ir.index import Affine, Index
from codegen.ir.names import names_of
from codegen.ir.nodes import For, Function, If, Let, Statement, Store, View
from codegen.ir.rewriting import Body, OfValue, map_value, map_values, substituted
from codegen.ir.values import Load, Local, Op, Step, Value
from codegen.ir.visit import coefficient, constant_trips, loads
from codegen.passes.new_names import NewNames, wanted
from codegen.passes.strided_groups import Group, group_of, placed_as
from codegen.schedule.loop_schedule import LoopSchedule
from codegen.support.dataclasses import dataclass


def select_instructions(function: Function, _: LoopSchedule) -> Function:
    """Access adjacent elements as they are in memory, and reorder them as lanes.

    before:  C[4*i] = A[-4*i] [16]                                  lanes of A are -4 bytes apart
    after:   C[4*i] = reversed_elements(A[-4*i - 60] [16])

    before:  C[8*i] = A[4*i] [16]; C[8*i + 4] = B[4*i] [16]         lanes of C are 8 bytes apart
    after:   block = stack_2(A[4*i], B[4*i]); C[8*i] = interleaved(block) [32]

    before:  C[4*i] = A[8*i] [16]; D[4*i] = A[8*i + 4] [16]         lanes of A are 8 bytes apart
    after:   block = deinterleaved_2(A[8*i] [32])
             C[4*i] = row_0(block); D[4*i] = row_1(block)

    The accesses of a group cover all elements between the first and the last one, and statements between
    them do not conflict. A loop whose iterations make a group is unrolled:

    before:  for j in 0..3: C[12*i + 4*j] = A[a_stride*j + 4*i] [16]
    after:   block = A[4*i] [3, 16]; C[12*i] = interleaved(block) [48]

    `lane_orders` finds the instructions, as in copies. Where there are none, lanes keep their steps.
    """
    views = {x.name: x for x in flat(function.body) if isinstance(x, View)}
    return replace(function, body=_Select(NewNames("select"), views).body(function.body)[0])


@dataclass(frozen=True, slots=True)
class _Select:
    """The names of new locals, and the views of buffers."""

    names: NewNames
    views: Mapping[str, View]

    def body(self, body: Body, updates: tuple[Value, ...] = ()) -> tuple[Body, tuple[Value, ...]]:
        """A body, and the values that its loop evaluates after it."""
        inside = tuple(made for node in body for made in self.inside(node))
        loaded, updates = self.loads(inside, updates)
        return self.stores(loaded), updates

    def inside(self, node: Statement) -> Body:
        """A statement with changed bodies, or the iterations of a loop."""
        match node:
            case If(tests, then, otherwise):
                return (If(tests, self.body(then)[0], self.body(otherwise)[0]),)
            case For() if self.makes_group(node):
                return self.unrolled(node)
            case For():
                body, updates = self.body(node.body, tuple(c.update for c in node.carried))
                pairs = zip(node.carried, updates, strict=True)
                return (replace(node, body=body, carried=tuple(replace(c, update=x) for c, x in pairs)),)
        return (node,)

    def unrolled(self, loop: For) -> Body:
        """The iterations of a loop, each with locals of its own."""
        made: list[Statement] = []
        (start,) = loop.lower
        for k in range(constant_trips(loop) or 0):
            own = {x.name: self.names.name(wanted(x.name)) for x in loop.body if isinstance(x, Let)}

            def part(value: Value, own: Mapping[str, str] = own) -> Value:
                match value:
                    case Local(name) if name in own:
                        return replace(value, name=own[name])
                return value

            for node in loop.body:
                at = _with_parts(substituted(node, loop.index, plus(start, k * loop.step)), part)
                made.append(replace(at, name=own[at.name]) if isinstance(at, Let) else at)
        return tuple(made)

    def buffer(self, name: str) -> str:
        """The buffer that a name views."""
        while name in self.views:
            name = self.views[name].buffer
        return name

    def address(self, access: Load | Store) -> Index:
        """The offset of an access in the buffer that its array views."""
        name, address = access.array, plus(*access.subscripts)
        while name in self.views:
            name, address = self.views[name].buffer, plus(self.views[name].offset, address)
        return address

    def group(self, access: Load | Store) -> tuple[Group, int] | None:
        """The group of an access, and its offset."""
        return group_of(access, self.buffer(access.array), self.address(access))

    def makes_group(self, loop: For) -> bool:
        """Whether the iterations of a loop access what is adjacent, for which there are instructions."""
        trips = constant_trips(loop)
        if trips not in INTERLEAVED_ROWS or loop.carried or len(loop.lower) > 1:
            return False
        if not all(isinstance(x, Store) or (isinstance(x, Let) and x.value.shape) for x in loop.body):
            return False
        accesses: list[Load | Store] = [x for x in loop.body if isinstance(x, Store)]
        accesses += [load for node in loop.body for value in _own_values(node) for load in loads(value)]
        groups = [found[0] for x in accesses if (found := self.group(x)) is not None]
        return any(
            group.members == trips
            and abs(loop.step * (coefficient(group.rest, loop.index) or 0)) == group.width
            and group.reordered() is not None
            for group in groups
        )

    def loads(self, body: Body, updates: tuple[Value, ...]) -> tuple[Body, tuple[Value, ...]]:
        """The values of a body with blocks in place of groups of loads.

        A group is loaded before the first statement that has one of its loads, so nothing is stored to its
        buffer from there to the last one.
        """
        first: dict[tuple[Group, int], tuple[int, Load]] = {}
        written = Counter[str]()
        after: list[Counter[str]] = []
        for place, values in enumerate((*map(_own_values, body), updates)):
            after.append(written.copy())
            for load in (each for value in values for each in loads(value)):
                if (key := self.key(load, written)) is not None:
                    first.setdefault(key, (place, load))
            if place < len(body):
                written.update(map(self.buffer, stored((body[place],))))
        known, before = self.blocks(first)

        def part_at(place: int) -> OfValue:
            def part(value: Value) -> Value:
                key = self.key(value, after[place]) if isinstance(value, Load) else None
                return value if key is None else known.get(key, value)

            return part

        made: list[Statement] = []
        for place, node in enumerate(body):
            own = isinstance(node, Let | Store)
            made += [*before[place], _with_parts(node, part_at(place)) if own else node]
        return (*made, *before[len(body)]), tuple(map_value(x, part_at(len(body))) for x in updates)

    def key(self, load: Load, written: Counter[str]) -> tuple[Group, int] | None:
        """The group of a load after some stores, and its offset."""
        found = self.group(load)
        return found and (found[0]._replace(stores_before=written[self.buffer(load.array)]), found[1])

    def blocks(
        self, first: Mapping[tuple[Group, int], tuple[int, Load]]
    ) -> tuple[dict[tuple[Group, int], Value], dict[int, list[Statement]]]:
        """What replaces the loads of complete groups, and the blocks to load before each place.

        first  the first place of each load
        """
        offsets = defaultdict[Group, list[int]](list)
        for group, offset in first:
            offsets[group].append(offset)
        known: dict[tuple[Group, int], Value] = {}
        before = defaultdict[int, list[Statement]](list)
        for group, every in offsets.items():
            for found in group.complete(every):
                value = _loaded(group, first[group, found[0]][1])
                if value is None:
                    continue
                if group.members == 1:
                    known[group, found[0]] = value
                    continue
                block = Local(self.names.name("block"), value.dtype, value.shape)
                place = min(first[group, each][0] for each in found)
                before[place].append(Let(block.name, value))
                for row, each in enumerate(found):
                    known[group, each] = Op(f"row_{row}", (block,), group.dtype, group.shape)
        return known, before

    def stores(self, body: Body) -> Body:
        """A body with one store in place of each group of them, where its last one is."""
        made: list[Statement | None] = []
        waiting: dict[tuple[Group, int], int] = {}
        for node in body:
            waiting = {key: k for key, k in waiting.items() if self.may_follow(key, made[k], node)}
            made.append(node)
            key = self.group(node) if isinstance(node, Store) else None
            if key is None:
                continue
            group, _ = key
            waiting[key] = len(made) - 1
            for found in group.complete(offset for other, offset in waiting if other == group):
                places = [waiting.pop((group, each)) for each in found]
                at_once = self.stored(group, [made[k] for k in places])
                if at_once:
                    for k in places:
                        made[k] = None
                    made += at_once
        return _joined([x for x in made if x is not None])

    def stored(self, group: Group, stores: Sequence[Statement | None]) -> Body:
        """The store of all elements of a group, after the block of its rows; nothing without instructions."""
        found = group.reordered()
        if found is None:
            return ()
        every = [x for x in stores if isinstance(x, Store)]
        value, memory, first = _stacked([x.value for x in every]), found.store, every[0]
        before: Body = ()
        if len(value.shape) > 1:
            before = (Let(self.names.name("block"), value),)
            value = Local(before[0].name, value.dtype, value.shape)
        for name, shape in found.instructions:
            value = Op(name, (value,), group.dtype, shape)
        count = None if first.first is None else times(first.first, group.members)
        return *before, replace(placed_as(first, memory), value=value, first=count)

    def may_follow(self, key: tuple[Group, int], store: Statement | None, node: Statement) -> bool:
        """Whether a store may run after the statement that follows it."""
        assert isinstance(store, Store)
        if not isinstance(node, Let | Store):
            return isinstance(node, View)
        reads = {self.buffer(load.array) for value in _own_values(node) for load in loads(value)}
        if self.buffer(store.array) in reads:
            return False
        if isinstance(node, Let):
            return node.name not in names_of((store,))
        if self.buffer(node.array) == self.buffer(store.array):
            other = self.group(node)
            return other is not None and other[0] == key[0] and key[0].are_apart(key[1], other[1])
        return self.buffer(node.array) not in {
            self.buffer(load.array) for value in store.values for load in loads(value)
        }


def _with_parts(node: Statement, part: OfValue) -> Statement:
    """A statement with changed parts of its values."""
    return map_values(node, lambda value: map_value(value, part))


def _joined(body: list[Statement]) -> Body:
    """A body with one store in place of those of all rows of a block, in order at a constant distance.

    before:  C[4*i] = row_0(block); C[c_stride + 4*i] = row_1(block)
    after:   C[4*i] = block [2, 16]
    """
    made: list[Statement] = []
    while body:
        match body[0]:
            case (
                Store(
                    value=Op("row_0", (Local(shape=(count, *_)) as block,)), where=None, first=None
                ) as store
            ):
                every = [_row_stored(x, block, k) for k, x in enumerate(body[:count])]
                if len(every) == count and (pitch := _pitch(every)) is not None:
                    made.append(replace(store, value=block, steps=(pitch, *store.steps)))
                    body = body[count:]
                    continue
        made.append(body.pop(0))
    return tuple(made)


def _row_stored(node: Statement, block: Local, row: int) -> Statement:
    """The store of a row of a block, as a store of the block; another statement as it is."""
    match node:
        case Store(value=Op(name, (of,))) if name == f"row_{row}" and of == block:
            return replace(node, value=block)
    return node


def _own_values(node: Statement) -> tuple[Value, ...]:
    """The values that a statement evaluates, without those of loops and branches."""
    match node:
        case Let(_, value):
            return (value,)
        case Store():
            return node.values
    return ()


def _loaded(group: Group, load: Load) -> Value | None:
    """The registers of a group of loads, of which this is the first one; None without instructions."""
    found = group.reordered()
    if found is None:
        return None
    memory = found.load
    count = None if load.first is None else times(load.first, group.members)
    value: Value = replace(placed_as(load, memory), shape=memory.shape, first=count)
    for name, shape in found.instructions:
        value = Op(name, (value,), group.dtype, shape)
    return value


def _stacked(rows: Sequence[Value]) -> Value:
    """Registers as the rows of a block; one register as it is.

    Registers that are loaded at a constant distance are one load:

    before:  stack_2(A[4*i] [16], A[a_stride + 4*i] [16])
    after:   A[4*i] [2, 16]
    """
    first, shape = rows[0], (len(rows), *rows[0].shape)
    if len(rows) == 1:
        return first
    match first:
        case Load(first=None, offsets=None) if (pitch := _pitch(rows)) is not None:
            return replace(first, shape=shape, steps=(pitch, *first.steps))
    return Op(f"stack_{len(rows)}", tuple(rows), first.dtype, shape)


def _pitch(rows: Sequence[Value | Statement]) -> Step | None:
    """The distance of accesses that differ by it alone; None for others."""
    every = [x for x in rows if isinstance(x, Load | Store)]
    alike = {replace(x, subscripts=()) for x in every}
    pitches = {minus(plus(*b.subscripts), plus(*a.subscripts)) for a, b in pairwise(every)}
    if len(every) < len(rows) or len(alike) != 1 or len(pitches) != 1:
        return None
    (pitch,) = pitches
    return (pitch if pitch.terms else pitch.constant) if isinstance(pitch, Affine) else None
