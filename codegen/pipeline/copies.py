"""Compile copies to kernels, and run the kernels on memory.

`passes.py` lists the passes. Those that run here normalize a box and split it; `steps.py` makes the nest
that a schedule describes, turns sizes into arguments, and lowers the nest to loops over super-vectors.
An observer sees what each pass returns. A `CopyProgram` is a copy ready to run on two addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from codegen.frontend.box_copy import box_copy, copied_box, padding_box
from codegen.ir.strided_box import Element, StridedBox
from codegen.maps.access import in_common_units
from codegen.maps.boxed_copy import BoxedCopy
from codegen.maps.refine import Box, PairTable
from codegen.pipeline.copy_options import STRUCTURE, CopyOptions
from codegen.pipeline.copy_request import CopyRequest
from codegen.pipeline.faults import planned
from codegen.pipeline.gather import joined_launch
from codegen.pipeline.observer import Observer, nobody
from codegen.pipeline.passes import CUT, NORMALIZE, SPLIT, WIDEN, run_passes
from codegen.pipeline.program import CopyProgram, footprint_bytes
from codegen.pipeline.steps import launch_of, step_of, with_alternative, with_given_schedule
from codegen.pipeline.verify import verify_box, verify_copy
from codegen.runtime.launch import Launch
from codegen.schedule.candidates import candidates, joined_candidates
from codegen.schedule.choose import choose, simplest
from codegen.schedule.choose_cuts import choose_cuts
from codegen.schedule.choose_joined import JoinedBoxes, choose_joined
from codegen.schedule.choose_tables import table_axes
from codegen.schedule.choose_width import wide_axes
from codegen.schedule.conditions import Conditions
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import Assemble
from codegen.schedule.schedule import Schedule
from codegen.support.dataclasses import dataclass
from codegen.support.settings import settings

STAGED_SIZES = "column_tile_size", "layer_tile_size"
"""The sizes of tiles with complete result rows, which are literals if the caller gave the tile."""

LEAST_TUNED_BYTES = 1 << 16
"""Footprint of the smallest copy that is tuned. For smaller ones a better schedule hardly matters."""


def compile_copy(request: CopyRequest, observe: Observer = nobody) -> CopyProgram:
    """Lower a copy and find its kernels. Nothing is compiled before the program runs."""
    return planned(partial(_compile, request, observe), partial(_compile_simply, request, observe), request)


def _compile_simply(request: CopyRequest, observe: Observer) -> CopyProgram:
    """The program that makes no decisions: each box has the schedule that fits every box."""
    options = CopyOptions(request.options.threads, specialize=request.options.specialize)
    boxed = box_copy(*in_common_units(request.src, request.dst))
    how = boxed, request.source, request.target, request.swap, request.padding, options, observe
    return replace(_Maker(*how, simple=True).program(None), fallback=True)


def _compile(request: CopyRequest, observe: Observer) -> CopyProgram:
    options = request.options
    boxed = box_copy(*in_common_units(request.src, request.dst))
    if settings().verify:
        verify_copy(boxed)
    make = _Maker(boxed, request.source, request.target, request.swap, request.padding, options, observe)
    joinings = (None,) if request.apart else make.joinings()
    if options.pick_copy is None:
        return make.program(joinings[0])
    programs = [make.program(joined) for joined in joinings]
    return options.pick_copy(programs) if len(programs) > 1 else programs[0]


@dataclass(frozen=True, slots=True)
class _Maker:
    """Turns boxes into launches, using the settings that all boxes of a copy share."""

    boxed: BoxedCopy
    source: Element
    target: Element
    swap: bool
    padding: bytes | None
    options: CopyOptions
    observe: Observer
    simple: bool = False

    @property
    def footprint(self) -> int:
        """Bytes that the complete copy reads and writes."""
        return footprint_bytes(self.boxed.src, self.boxed.dst)

    def program(self, joined: JoinedBoxes | None) -> CopyProgram:
        """The program with boxes joined as given, or run one by one."""
        if joined:
            launch = joined_launch(self.boxed, joined, self.target, self._padding, self.observe)
            return self._program((), (launch,))
        first: list[Launch] = []
        launches: list[Launch] = []
        dst = self.boxed.dst
        if self.padding is not None:
            if self.boxed.fill_first and dst.slots:
                every = ((dst.slots - dst.tail, 0, dst.width),)
                first += self.pad(Box(0, dst.bounds[0], every, ("slot",)))
            for pad in self.boxed.pads:
                launches += self.pad(pad)
        for k, box in enumerate(self.boxed.boxes):
            # Edges run before the full box, which is listed first, and padding last.
            maker = self if k == 0 else replace(self, options=replace(self.options, schedule=""))
            launches = maker.box(box) + launches
        return self._program(tuple(first), tuple(launches))

    def _program(self, first: tuple[Launch, ...], launches: tuple[Launch, ...]) -> CopyProgram:
        return CopyProgram(self.boxed.src, self.boxed.dst, bool(self.boxed.boxes), first, launches)

    @property
    def _padding(self) -> tuple[int, int] | None:
        """The padding as two eight-byte numbers."""
        return None if self.padding is None else repeated(self.padding)

    def joinings(self) -> tuple[JoinedBoxes | None, ...]:
        """How all boxes are joined, or None to run them one by one; several ways if one is to be picked."""
        converts = self.swap or self.source.name != self.target.name or self.boxed.dst.unit_bits != 8
        given = self.options
        if converts or given.schedule or given.virtual_vector_size or given.specialize != STRUCTURE:
            return (None,)
        when, padded = self._conditions(), self.padding is not None
        if self.options.pick_copy and self.footprint >= LEAST_TUNED_BYTES:
            return joined_candidates(self.boxed, self._largest, when, padded=padded)
        return (choose_joined(self.boxed, self._largest, when, padded=padded),)

    def _largest(self) -> StridedBox | None:
        """The box that moves the most elements, in normal form; None if no box moves any."""
        box = max(self.boxed.boxes, key=lambda x: x.volume, default=None)
        if box is None or not box.volume:
            return None
        made = copied_box(self.boxed, box, self.source, self.target, swap=self.swap)
        return replace(self, observe=nobody)._normal(made)

    def box(self, box: Box) -> list[Launch]:
        if box.volume == 0:
            return []

        def with_elements(box: Box) -> StridedBox:
            return copied_box(self.boxed, box, self.source, self.target, swap=self.swap)

        return self._box(box, with_elements)

    def pad(self, pad: Box) -> list[Launch]:
        if pad.volume == 0:
            return []
        size_bytes = len(self.padding or b"")
        return self._box(pad, lambda box: padding_box(self.boxed, box, self.target, size_bytes))

    def _box(self, box: Box, with_elements: Callable[[Box], StridedBox]) -> list[Launch]:
        """The launches of a box, some of whose loops become tables if there are too many."""
        made = self._normal(with_elements(box))
        folded = self._fold(made, box)
        if folded is not box:
            made = self._normal(with_elements(folded))
        parts = self._parts(made)
        return [x for part in parts for x in self._for(part, parts)._launches(part, folded.tables)]

    def _for(self, part: StridedBox, parts: Sequence[StridedBox]) -> _Maker:
        """What makes the launches of one of several parts: only the largest has the caller's schedule."""
        is_largest = part is max(parts, key=lambda x: x.size_bytes)
        return self if is_largest else replace(self, options=replace(self.options, schedule=""))

    def _normal(self, box: StridedBox) -> StridedBox:
        self.observe("box", box)
        normal: StridedBox
        (normal,) = run_passes(NORMALIZE, box, None, self.observe)
        if settings().verify:
            verify_box(box, normal)
        if self.simple:
            return normal
        wide: StridedBox
        (wide,) = run_passes(WIDEN, normal, wide_axes(normal), self.observe)
        return wide

    def _fold(self, made: StridedBox, box: Box) -> Box:
        """Turn outer loops into tables if there are more than any kernel has."""
        past_cache = not self.simple and self._conditions().go_past_cache(made)
        folded = table_axes(made, past_cache=past_cache)
        if not folded:
            return box
        tables = tuple(_strided_table(*digit) for digit in made.digits(folded))
        names = [axis.name for axis in made.axes if axis.name not in folded]
        tiles = [x.extent * x.fixed for x in map(made.axis, names)]
        kept, run = [*made.digits(names)], made.width // self.boxed.dst.width
        if run > 1:
            kept.append((run, self.boxed.src.width, self.boxed.dst.width))
            names.append("run")
            tiles.append(run)
        return Box(made.src, made.dst, tuple(kept), tuple(names), box.tables + tables, tuple(tiles))

    def _parts(self, box: StridedBox) -> tuple[StridedBox, ...]:
        if self.simple:
            return (box,)
        return run_passes(SPLIT, box, choose_cuts(box, self._conditions()), self.observe)

    def _launches(self, box: StridedBox, tables: tuple[PairTable, ...]) -> list[Launch]:
        """The launches of a box: one, or one for full blocks of a cut axis and one for the remainder."""
        schedule = self._schedule(box)
        parts = run_passes(CUT, box, schedule, self.observe)
        return [self._for(part, parts)._launch(part, schedule, tables) for part in parts]

    def _schedule(self, box: StridedBox) -> Schedule:
        """The schedule of a box, by `choose` or by measurements, with the size that the caller gave."""
        if self.simple:
            return simplest(box)
        found = self._choose(box)
        self.observe("choose", found)
        return found

    def _choose(self, box: StridedBox) -> Schedule:
        when = self._conditions(box)
        pick = self.options.pick if self.footprint >= LEAST_TUNED_BYTES else None
        if pick is None:
            given = self.options.schedule
            return choose(box, when, shuffles=not given or Assemble.__name__ in given)
        several = candidates(box, when)
        return pick(box, several) if len(several) > 1 else several[0]

    def _conditions(self, box: StridedBox | None = None) -> Conditions:
        """What schedules depend on: of a box, its super-vectors and tiles as well."""
        given, when = (
            self.options,
            Conditions(self.options.threads, self.footprint, self.options.stream_bytes),
        )
        if box is None:
            return when
        merged = max(1, box.target.bits // self.target.bits)
        tile = given.tile and (given.tile[0], -(-given.tile[1] // merged))
        return replace(when, given=given.virtual_vector_size, merged=merged, tile=tile)

    def _launch(self, box: StridedBox, schedule: Schedule, tables: tuple[PairTable, ...]) -> Launch:
        given = self.options.schedule if box.source else ""
        step = step_of(
            box,
            schedule,
            specialize=self.options.specialize,
            given=given,
            literals=STAGED_SIZES if self.options.tile else (),
            observe=self.observe,
        )
        fill = self._pattern(step.nest) if step.nest.fills else None
        bounds = self.boxed.src.bounds, self.boxed.dst.bounds
        launch = launch_of(step, bounds, tables, fill)
        if given:
            chosen = replace(self, options=replace(self.options, schedule=""))
            return with_given_schedule(launch, chosen._launch(box, schedule, tables))
        return with_alternative(
            launch,
            self._conditions(box),
            lambda part, other: self._misaligned_launch(part, other, tables),
        )

    def _misaligned_launch(
        self, box: StridedBox, schedule: Schedule, tables: tuple[PairTable, ...]
    ) -> Launch:
        self.observe("misaligned", schedule)
        return self._launch(box, schedule, tables)

    def _pattern(self, nest: CopyNest) -> tuple[int, int]:
        """The padding as 16 bytes in two numbers; a packed value as it is, unless full bytes are filled."""
        if self.padding is None:
            raise AssertionError("expected a padding value, got None")
        element = self.padding
        bits = self.target.bits
        if bits < 8:
            value = element[0] & ((1 << bits) - 1)
            if nest.target.bits < 8:
                return value, 0
            element = bytes([sum(value << k for k in range(0, 8, bits))])
        return repeated(element)


def repeated(element: bytes) -> tuple[int, int]:
    """The bytes of an element, repeated, as two eight-byte numbers."""
    pattern = (element * (16 // len(element)))[:16]
    return int.from_bytes(pattern[:8], "little"), int.from_bytes(pattern[8:], "little")


def _strided_table(extent: int, src: int, dst: int) -> PairTable:
    return PairTable(extent, lambda m: m * src, lambda m: m * dst)
