"""From a lowered copy to kernels, and from kernels to bytes moved.

The passes stand in NORMALISE (nest in, nest out), then `split_run` may cut a nest in two, and in SCHEDULED
(nest and schedule in, nest out), behind which `lift_sizes` parts code from numbers. An observer sees the nest
after each. A `CopyProgram` is a copy ready to run on two addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import prod

from codegen.access import AccessMap
from codegen.choose import choose
from codegen.choose_transpose import misaligned
from codegen.ir import Element, Elementwise, LoopNest, Transpose, refs
from codegen.kernel import Kernel, Step, kernel_for
from codegen.launch import GRID_ARGUMENTS, OFFSET_ARGUMENTS, Launch
from codegen.lower_copy import LoweredCopy, box_nest, lower_copy, pad_nest
from codegen.padding import PadBox
from codegen.passes.lift_sizes import lift_sizes
from codegen.passes.normalise import NORMALISE, int_size
from codegen.passes.pad_rank import pad_rank
from codegen.passes.split_run import split_run
from codegen.passes.super_vectorize import super_vectorize
from codegen.passes.widen import widen
from codegen.refine import Box, PairTable
from codegen.schedule import OUTER_RANKS, Schedule
from codegen.settings import settings
from codegen.threads import run_parts
from codegen.verify import affine_range, check_bounds, check_disjoint, verify_copy, verify_nest

SCHEDULED = (super_vectorize, pad_rank)
"""The passes that obey a schedule, in this order."""

Observer = Callable[[str, LoopNest], None]


@dataclass(frozen=True)
class CopyProgram:
    """A copy ready to run; `launches` write disjoint slots, `first` what must be there before them."""

    lowered: LoweredCopy
    first: tuple[Launch, ...]
    launches: tuple[Launch, ...]

    def run(self, src: int, dst: int, threads: int = 1, *, alive: object = None) -> None:
        """Copy between two addresses; `alive` is held until the last thread is done with them.

        Raises:
            KernelError: the storages overlap, or a table leaves them. Nothing has been written then, except
                by the boxes before the one whose table is wrong.
        """
        _disjoint(self.lowered, src, dst)
        for launches in (self.first, self.launches):
            for launch in launches:
                launch.prepare()
            if launches:
                run_parts(partial(_run_part, launches, src, dst, alive), threads)

    def pads_only(self) -> CopyProgram:
        """The same without the elements; `src` of its `run` is not touched."""
        pads = tuple(x for x in self.launches if x.fill is not None)
        return replace(self, lowered=replace(self.lowered, boxes=()), launches=pads)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The boxes, padding included, with all their stages."""
        return tuple(launch.step for launch in (*self.first, *self.launches))

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that the copy calls, each once."""
        return tuple(dict.fromkeys(step.kernel for step in self.steps))


def _run_part(launches: tuple[Launch, ...], src: int, dst: int, alive: object, part: int, parts: int) -> None:
    """One thread's share of every box; `alive` is not looked at, only held."""
    for launch in launches:
        launch.run(src, dst, part, parts)


def compile_copy(
    src: AccessMap,
    dst: AccessMap,
    source: Element,
    target: Element,
    *,
    swap: bool = False,
    padding: bytes | None = None,
    threads: int = 1,
    observe: Observer | None = None,
) -> CopyProgram:
    """Lower a copy and find its kernels; nothing is compiled before the program runs.

    `source` and `target` are what the two storages hold; `swap` reverses the bytes of source elements.
    `padding` is one element of the padding value in the destination's bytes (a packed one: its bits in one
    byte), or None to leave padding as it is.
    """
    unit = 1 if min(src.element_bits, dst.element_bits) < 8 else 8
    src, dst = src.in_units(unit), dst.in_units(unit)
    lowered = lower_copy(src, dst)
    if settings().verify:
        verify_copy(lowered)
    make = _Maker(lowered, source, target, swap, padding, threads, observe or (lambda name, nest: None))
    first: list[Launch] = []
    launches: list[Launch] = []
    if padding is not None:
        if lowered.fill_first and dst.slots:
            every = PadBox(dst.base, ((dst.slots - dst.tail, dst.width),))
            first += make.pad(every)
        for pad in lowered.pads:
            launches += make.pad(pad)
    for box in lowered.boxes:
        launches = make.box(box) + launches
    return CopyProgram(lowered, tuple(first), tuple(launches))


@dataclass(frozen=True, slots=True)
class _Maker:
    """Turns boxes into launches; holds what all boxes of a copy share."""

    lowered: LoweredCopy
    source: Element
    target: Element
    swap: bool
    padding: bytes | None
    threads: int
    observe: Observer

    @property
    def footprint(self) -> int:
        """Bytes that the whole copy reads and writes."""
        src, dst = self.lowered.src, self.lowered.dst
        written = (dst.slots or src.elements) * dst.element_bits
        return (src.elements * src.element_bits + written) // 8

    def box(self, box: Box) -> list[Launch]:
        if box.volume == 0:
            return []
        nest = self._normal(box_nest(self.lowered, box, self.source, self.target, swap=self.swap))
        folded = self._fold(nest, box)
        if folded is not box:
            nest = self._normal(box_nest(self.lowered, folded, self.source, self.target, swap=self.swap))
        return [self._launch(part, folded.tables) for part in self._parts(nest)]

    def pad(self, pad: PadBox) -> list[Launch]:
        if pad.volume == 0:
            return []
        box = Box(0, pad.dst_base, tuple((n, 0, stride) for n, stride in pad.digits))
        nest = self._normal(pad_nest(self.lowered, box, self.target))
        folded = self._fold(nest, box)
        if folded is not box:
            nest = self._normal(pad_nest(self.lowered, folded, self.target))
        return [self._launch(part, folded.tables) for part in self._parts(nest)]

    def _normal(self, nest: LoopNest) -> LoopNest:
        self.observe("box", nest)
        for run in NORMALISE:
            nest = run(nest)
            self.observe(run.__name__, nest)
        if settings().verify:
            verify_nest(nest)
        nest = widen(nest)
        self.observe("widen", nest)
        return nest

    def _fold(self, nest: LoopNest, box: Box) -> Box:
        """Outer loops beyond what any kernel has become a table."""
        most = OUTER_RANKS[-1]
        if len(nest.loops) <= most:
            return box
        src, dst = refs(nest.innermost)
        width = nest.buffer("dst").element.bits // nest.buffer("dst").unit_bits
        digits = [
            (int_size(x.extent), int_size(src.stride(x.axis)) if src else 0, int_size(dst.stride(x.axis)))
            for x in nest.loops
        ]
        tables = tuple(_strided_table(*d) for d in digits[:-most])
        kept = digits[-most:]
        run = width // self.lowered.dst.width
        if run > 1:
            kept.append((run, self.lowered.src.width, self.lowered.dst.width))
        return Box(int_size(src.const) if src else 0, int_size(dst.const), tuple(kept), box.tables + tables)

    def _parts(self, nest: LoopNest) -> tuple[LoopNest, ...]:
        return split_run(nest) if self.threads > 1 else (nest,)

    def _launch(
        self, nest: LoopNest, tables: tuple[PairTable, ...], schedule: Schedule | None = None
    ) -> Launch:
        schedule = schedule or choose(nest, threads=self.threads, footprint=self.footprint)
        vectorised = nest
        for run in SCHEDULED:
            vectorised = run(vectorised, schedule)
            self.observe(run.__name__, vectorised)
        lifted, sizes = lift_sizes(vectorised)
        self.observe("lift_sizes", lifted)
        inner = vectorised.innermost
        fills = refs(inner)[0] is None
        front: tuple[str, ...] = OFFSET_ARGUMENTS if tables else ()
        if isinstance(inner, Transpose):
            front += GRID_ARGUMENTS
        if fills:
            front += ("fill_low", "fill_high")
        kernel = kernel_for(lifted, (*front, *(name for name, _ in sizes)))
        reach = self._prove(nest, affine=not tables)
        src_ref, dst_ref = refs(nest.innermost)
        src_at = int_size(src_ref.const) if src_ref else 0
        dst_at = int_size(dst_ref.const)
        in_bytes = self.lowered.dst.unit_bits == 1 and vectorised.buffer("dst").unit_bits == 8
        src_at, dst_at = (src_at // 8, dst_at // 8) if in_bytes else (src_at, dst_at)
        launch = Launch(
            Step(nest, schedule, vectorised, kernel, sizes),
            src_at,
            dst_at,
            _trips(vectorised, tables),
            tables,
            self._pattern(inner) if fills else None,
            self.lowered.src.bounds,
            self.lowered.dst.bounds,
            reach,
            serial=vectorised.buffer("dst").unit_bits == 1,
        )
        otherwise = misaligned(schedule, nest)
        return replace(launch, misaligned=self._launch(nest, tables, otherwise)) if otherwise else launch

    def _prove(self, nest: LoopNest, *, affine: bool) -> tuple[int, int, int, int]:
        """The reach of a nest's loops on both sides; within the bounds, unless tables are still to come."""
        src, dst = refs(nest.innermost)
        reach: list[int] = []
        for ref, access, side in (
            (src, self.lowered.src, "source"),
            (dst, self.lowered.dst, "destination"),
        ):
            if ref is None:
                reach += [0, 0]
                continue
            digits = [(int_size(x.extent), int_size(ref.stride(x.axis))) for x in nest.loops]
            low, high = affine_range(int_size(ref.const), digits)
            buffer = nest.buffer(ref.buffer)
            stop = high + buffer.element.bits // buffer.unit_bits
            if affine:
                check_bounds(side, low, stop, access.bounds)
            reach += [low, stop]
        return reach[0], reach[1], reach[2], reach[3]

    def _pattern(self, inner: object) -> tuple[int, int]:
        """The padding as 16 bytes in two numbers; a packed value as it is, unless whole bytes are filled."""
        if self.padding is None:
            raise AssertionError("padding is written only where there is a value for it")
        element = self.padding
        bits = self.target.bits
        if bits < 8:
            value = element[0] & ((1 << bits) - 1)
            if isinstance(inner, Elementwise):
                return value, 0
            element = bytes([sum(value << k for k in range(0, 8, bits))])
        whole = (element * (16 // len(element)))[:16]
        return int.from_bytes(whole[:8], "little"), int.from_bytes(whole[8:], "little")


def _trips(nest: LoopNest, tables: tuple[PairTable, ...]) -> int:
    """What is shared among threads: entries of tables, tiles, or the first loop."""
    if tables:
        return prod(t.extent for t in tables)
    inner = nest.innermost
    if isinstance(inner, Transpose) and inner.grid:
        return inner.grid.count
    return int_size(nest.loops[0].extent)


def _strided_table(extent: int, src: int, dst: int) -> PairTable:
    return PairTable(extent, lambda m: m * src, lambda m: m * dst)


def _disjoint(lowered: LoweredCopy, src: int, dst: int) -> None:
    spans = []
    for access, address in ((lowered.src, src), (lowered.dst, dst)):
        low, stop = access.bounds
        scale = 8 // access.unit_bits
        spans.append((address + low // scale, address + -(-stop // scale)))
    if lowered.boxes:
        check_disjoint(spans[0], spans[1])
