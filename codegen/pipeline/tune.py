"""Tuning: measure a box's candidate schedules once on scratch memory, and store the winner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from math import prod
from time import perf_counter
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from codegen.backend.store import KernelStore, default_store
from codegen.backend.store_key import compiler_digest
from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Axis, Side, StridedBox
from codegen.pipeline.copy_options import STRUCTURE, Pick
from codegen.pipeline.passes import CUT, run_passes
from codegen.pipeline.program import run_part
from codegen.pipeline.steps import launch_of, reach_of, step_of, with_alternative
from codegen.runtime.launch import Launch
from codegen.runtime.threads import run_parts
from codegen.schedule.conditions import Conditions
from codegen.schedule.machine import machine
from codegen.schedule.schedule import Schedule
from codegen.support.caching import Cache
from codegen.support.cpu import cpu_name

MOST_BYTES = 64 << 20
"""The most scratch memory that a measurement uses, source and destination together."""

MOST_SPAN_BYTES = 1 << 30
"""Address space that a measurement may reserve."""

PAGE_BYTES = 2 << 20
"""Memory that one access may commit: the system may use huge pages."""

KEPT_EXTENT = 64
"""Loops up to this extent stay as they are while others can be shortened: inner loops depend on them."""

CONTENT = 0x3F
"""The bytes of scratch memory: ordinary numbers in every dtype, so that conversions avoid slow paths."""

REPEATS = 5
MOST_SECONDS = 10.0
"""Schedules without kernels after this time are not measured: the most promising come first."""

BATCH_BYTES = 4 << 20
"""Bytes that one measurement moves at least, unless that takes more than `MOST_RUNS`."""

MOST_RUNS = 32
"""Runs of one measurement. Each starts threads, so runs of tiny boxes take much longer than their bytes."""

Measure = Callable[[StridedBox, tuple[Schedule, ...]], tuple[float, ...]]
"""Seconds that a box takes with each of its schedules."""

Choice = TypeVar("Choice")

_winners: Cache[str, str] = Cache()
"""Winners measured in this process, for processes without a store."""


def tuned(
    threads: int = 1,
    *,
    specialize: str = STRUCTURE,
    measure: Measure | None = None,
    store: KernelStore | None = None,
) -> Pick:
    """A function that picks a schedule by measuring on `threads` threads, once per box and machine."""
    by_clock = partial(timed, threads=threads, specialize=specialize)
    facts = threads, specialize, *machine_facts()
    return partial(_pick, measure or by_clock, facts, store or default_store())


def machine_facts() -> tuple[object, ...]:
    """What measurements depend on besides what is measured: the machine and the compiler."""
    return cpu_name(), machine(), compiler_digest()


def _pick(
    measure: Measure,
    facts: tuple[object, ...],
    store: KernelStore,
    box: StridedBox,
    schedules: tuple[Schedule, ...],
) -> Schedule:
    def times() -> Sequence[float]:
        small = shortened(box, schedules)
        if small is None:
            raise MemoryError
        return measure(small, schedules)

    return fastest("schedule", {repr(x): x for x in schedules}, (box, facts), store, times)


def fastest(
    kind: str,
    choices: Mapping[str, Choice],
    facts: object,
    store: KernelStore,
    times: Callable[[], Sequence[float]],
) -> Choice:
    """The choice with the shortest time, measured once; the first if there is no memory to measure.

    kind: of the note. choices: by texts that identify them in every process. facts: what the times also
    depend on. times: measures the seconds of each.
    """
    texts = (*choices,)
    name = f"{kind}-{sha256(repr((texts, facts)).encode()).hexdigest()[:32]}"
    known = _winners.get(name) or (store.get_note(name) or {}).get("winner")
    if not isinstance(known, str) or known not in choices:
        try:
            seconds = times()
        except MemoryError:
            return choices[texts[0]]
        known = texts[seconds.index(min(seconds))]
        store.put_note(name, {"winner": known})
    return choices[_winners.keep(name, known)]


def shortened(
    box: StridedBox, schedules: tuple[Schedule, ...], most_bytes: int = MOST_BYTES
) -> StridedBox | None:
    """The box reduced to `most_bytes` of memory, so that it can be measured; None if that is impossible.

    before:  for i in 8192: for j in 8192:  dst[32768*j + 4*i] = src[32768*i + 4*j]
    after:   for i in 1024: for j in 1024:  dst[32768*j + 4*i] = src[32768*i + 4*j]

    Strides stay the same. On the side that reaches farther, the loop that reaches farthest is halved, long
    loops before short ones. Short inner loops keep their extent.
    """
    covered = {axis for schedule in schedules for axis in schedule.inner}
    fixed = {axis for schedule in schedules for axis in _fixed_axes(schedule)}
    while True:
        spans = [stop - low for low, stop in _spans_bytes(box)]
        touched = [_touched_bytes(box, "src") if box.source else 0, _touched_bytes(box, "dst")]
        if sum(touched) <= most_bytes and sum(spans) <= MOST_SPAN_BYTES:
            return box
        sizes = touched if sum(touched) > most_bytes else spans
        side: Side = "src" if box.source and sizes[0] > sizes[1] else "dst"
        reach = {x.name: (x.extent - 1) * abs(x.stride(side)) for x in box.axes}
        left = [x for x in box.axes if x.extent > KEPT_EXTENT or x.name not in covered]
        left = [x for x in left if reach[x.name] and x.name not in fixed]
        if not left:
            return None
        longest = max(left, key=lambda x: (x.extent > KEPT_EXTENT, reach[x.name]))
        box = box.with_axes(replace(x, extent=_half(x)) if x is longest else x for x in box.axes)


def _fixed_axes(schedule: Schedule) -> tuple[str, ...]:
    """The axes that follow each other without a gap: joined rows or columns, or those of layers."""
    joined = schedule.rows, schedule.columns
    return tuple(name for names in joined if len(names) > 1 or schedule.layers for name in names)


def _half(axis: Axis) -> int:
    if axis.extent <= KEPT_EXTENT:
        return axis.extent // 2
    return max(KEPT_EXTENT, axis.extent // 2 // KEPT_EXTENT * KEPT_EXTENT)


def _touched_bytes(box: StridedBox, side: Side) -> int:
    """Upper bound on the memory of a side, in bytes: segments without page-sized gaps, and their ends."""
    unit = 8 // box.unit_bits
    steps = sorted((abs(x.stride(side)) // unit, x.extent) for x in box.axes)
    segment, segments = -(-(box.width if side == "dst" else box.source_width) // unit), 1
    for stride, extent in steps:
        if stride <= segment + PAGE_BYTES:
            segment += (extent - 1) * stride
        else:
            segments *= extent
    return segment if segments == 1 else segments * (segment + 2 * PAGE_BYTES)


def _spans_bytes(box: StridedBox) -> tuple[tuple[int, int], tuple[int, int]]:
    """The bytes of source and destination that are touched, [low, stop) from their addresses."""
    low, stop, dst_low, dst_stop = reach_of(box)
    unit = 8 // box.unit_bits
    return (low // unit, -(-stop // unit)), (dst_low // unit, -(-dst_stop // unit))


def timed(
    box: StridedBox,
    schedules: tuple[Schedule, ...],
    *,
    threads: int = 1,
    specialize: str = STRUCTURE,
    clock: Callable[[], float] = perf_counter,
) -> tuple[float, ...]:
    """The best of several times of the box with each schedule, infinite without one; they take turns.

    Each turn begins with an untimed run, so that cache contents left by another schedule do not count. Small
    nests run many times per measurement, so that the clock's resolution does not count either.
    """
    spans, reach = _spans_bytes(box), reach_of(box)
    bounds = reach[:2], reach[2:]
    src, dst = (np.empty(stop - low + LINE_BYTES, np.uint8) for low, stop in spans)
    at, to = (x.ctypes.data - low for x, (low, _) in zip((src, dst), spans, strict=True))
    skipped = -at % LINE_BYTES, -to % LINE_BYTES
    at, to = at + skipped[0], to + skipped[1]
    _write_source(box, src[skipped[0] :], spans[0][0])
    bits = box.target.bits + (box.source.bits if box.source else 0)
    moved_bits = prod(x.extent for x in box.axes) * bits

    def runner(schedule: Schedule) -> Callable[[], None]:
        parts = run_passes(CUT, box, schedule)
        launches = tuple(_launch(part, schedule, bounds, specialize, threads) for part in parts)
        return partial(run_parts, partial(run_part, launches, at, to, (src, dst)), threads)

    return best_times([partial(runner, schedule) for schedule in schedules], moved_bits // 8, clock)


def best_times(
    make: Sequence[Callable[[], Callable[[], object]]],
    moved: int,
    clock: Callable[[], float],
    most_runs: int = MOST_RUNS,
) -> tuple[float, ...]:
    """The best of several times of each runner, infinite for those that are not made in time.

    make       makes a runner, whose kernels are compiled then
    moved      bytes that each run moves
    most_runs  runs of one measurement
    """
    runners: list[Callable[[], object]] = []
    began = perf_counter()
    for each in make:
        if runners and perf_counter() - began > MOST_SECONDS:
            break
        runners.append(each())
    runs = min(max(1, BATCH_BYTES // max(1, moved)), most_runs)
    best = [float("inf")] * len(make)
    for _ in range(REPEATS):
        for k, run in enumerate(runners):
            run()
            start = clock()
            for _ in range(runs):
                run()
            best[k] = min(best[k], (clock() - start) / runs)
    return tuple(best)


def _launch(
    box: StridedBox,
    schedule: Schedule,
    bounds: tuple[tuple[int, int], tuple[int, int]],
    specialize: str,
    threads: int,
) -> Launch:
    """A launch with its kernel and tables already built, so that no thread waits for another."""
    launch = launch_of(step_of(box, schedule, specialize=specialize), bounds)
    launch = with_alternative(
        launch, Conditions(threads), lambda part, other: _launch(part, other, bounds, specialize, threads)
    )
    _ = launch.step.kernel.call
    launch.prepare()
    return launch


def _write_source(box: StridedBox, memory: NDArray[np.uint8], low: int) -> None:
    """Fill the memory that the box reads: reading memory that was never written costs nothing."""
    if box.source is None or box.unit_bits == 1:
        memory[:] = CONTENT
        return
    extents = [x.extent for x in box.axes] + [box.source_width]
    strides = [x.src for x in box.axes] + [1]
    view = np.ndarray(extents, np.uint8, memory.data, box.src - low, strides)
    view[...] = CONTENT
