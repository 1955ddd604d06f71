"""Tuning: measure a nest's candidate schedules once on scratch memory, and store the winner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from hashlib import sha256
from math import prod
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from codegen.backend.store import KernelStore, compiler_digest, default_store
from codegen.ir.copies.nodes import For, LoopNest, Ref, refs
from codegen.ir.copies.rewriting import int_size, rebuilt, scalar
from codegen.ir.lines import LINE_BYTES
from codegen.passes.strip_mine import strip_mine
from codegen.pipeline.copies import Pick
from codegen.pipeline.steps import STRUCTURE, launch_of, reach_of, run_part, step_of, with_alternative
from codegen.runtime.launch import Launch
from codegen.runtime.threads import run_parts
from codegen.schedule.schedule import Schedule
from codegen.support.caching import remember
from codegen.support.cpu import cpu_level, cpu_name

MOST_BYTES = 64 << 20
"""Scratch memory that a measurement may touch, source and destination together."""

MOST_SPAN_BYTES = 1 << 30
"""Address space that a measurement may reserve."""

PAGE_BYTES = 2 << 20
"""Memory that one access may commit: the system may use huge pages."""

KEPT_EXTENT = 64
"""Loops up to this extent stay as they are while others can be shortened: transfers depend on them."""

CONTENT = 0x3F
"""The bytes of scratch memory: ordinary numbers in every dtype, so that conversions avoid slow paths."""

REPEATS = 5
BATCH_BYTES = 4 << 20
"""Bytes that one measurement moves at least."""

Measure = Callable[[LoopNest, tuple[Schedule, ...]], tuple[float, ...]]
"""Seconds that a nest takes with each of its schedules."""

_winners: dict[str, str] = {}
"""Winners measured in this process, for processes without a store."""


def tuned(
    threads: int = 1,
    *,
    specialize: str = STRUCTURE,
    measure: Measure | None = None,
    store: KernelStore | None = None,
) -> Pick:
    """A function that picks a schedule by measuring on `threads` threads, once per nest and machine."""
    by_clock = partial(timed, threads=threads, specialize=specialize)
    facts = threads, specialize, cpu_name(), cpu_level().name, compiler_digest()
    return partial(_pick, measure or by_clock, facts, store or default_store())


def _pick(
    measure: Measure,
    facts: tuple[object, ...],
    store: KernelStore,
    nest: LoopNest,
    schedules: tuple[Schedule, ...],
) -> Schedule:
    """The winner of an earlier measurement, else of a new one; a note can only name one of `schedules`."""
    by_text = {str(schedule): schedule for schedule in schedules}
    name = f"schedule-{sha256(repr((nest, tuple(by_text), facts)).encode()).hexdigest()[:32]}"
    known = _winners.get(name) or (store.get_note(name) or {}).get("winner")
    if not isinstance(known, str) or known not in by_text:
        small = shortened(nest, schedules)
        if small is None:
            return schedules[0]
        try:
            times = measure(small, schedules)
        except MemoryError:
            return schedules[0]
        known = str(schedules[times.index(min(times))])
        store.put_note(name, {"winner": known})
    remember(_winners, name, known)
    return by_text[known]


def shortened(
    nest: LoopNest, schedules: tuple[Schedule, ...], most_bytes: int = MOST_BYTES
) -> LoopNest | None:
    """The nest reduced to `most_bytes` of memory, so that it can be measured; None where that is impossible.

    before:  for i in 8192: for j in 8192:  dst[32768*j + 4*i] = src[32768*i + 4*j]
    after:   for i in 1024: for j in 1024:  dst[32768*j + 4*i] = src[32768*i + 4*j]

    Strides stay the same. On the side that reaches farther, the loop that reaches farthest is halved, long
    loops before short ones. Short loops that a transfer covers keep their extent.
    """
    covered = {axis for schedule in schedules for axis in _transfer_axes(schedule)}
    fixed = {axis for schedule in schedules for axis in _layered_axes(schedule)}
    store = scalar(nest)
    src, dst = refs(store)
    while True:
        spans = [stop - low for low, stop in _spans_bytes(nest)]
        touched = [_touched_bytes(nest, src) if src else 0, _touched_bytes(nest, dst)]
        if sum(touched) <= most_bytes and sum(spans) <= MOST_SPAN_BYTES:
            return replace(nest, digits=())
        sizes = touched if sum(touched) > most_bytes else spans
        ref = src if src and sizes[0] > sizes[1] else dst
        reach = {x.axis: (int_size(x.extent) - 1) * abs(int_size(ref.stride(x.axis))) for x in nest.loops}
        loops_left = [x for x in nest.loops if int_size(x.extent) > KEPT_EXTENT or x.axis not in covered]
        loops_left = [x for x in loops_left if reach[x.axis] and x.axis not in fixed]
        if not loops_left:
            return None
        longest = max(loops_left, key=lambda x: (int_size(x.extent) > KEPT_EXTENT, reach[x.axis]))
        loops = tuple(replace(x, extent=_half(x)) if x is longest else x for x in nest.loops)
        nest = rebuilt(nest, loops, store)


def _transfer_axes(schedule: Schedule) -> tuple[str, ...]:
    """The axes that a transfer covers."""
    cut = schedule.transpose
    return (*schedule.inner, *cut.rows, *cut.columns) if cut else schedule.inner


def _layered_axes(schedule: Schedule) -> tuple[str, ...]:
    """The axes that layers of one buffer follow without a gap."""
    cut = schedule.transpose
    return (*cut.rows, *cut.columns) if cut and cut.layers else ()


def _half(loop: For) -> int:
    extent = int_size(loop.extent)
    if extent <= KEPT_EXTENT:
        return extent // 2
    return max(KEPT_EXTENT, extent // 2 // KEPT_EXTENT * KEPT_EXTENT)


def _touched_bytes(nest: LoopNest, ref: Ref) -> int:
    """Upper bound on the memory of a side, in bytes: segments without page-sized gaps, and their ends."""
    buffer = nest.buffer(ref.buffer)
    unit = 8 // buffer.unit_bits
    steps = sorted((abs(int_size(ref.stride(x.axis))) // unit, int_size(x.extent)) for x in nest.loops)
    segment, segments = -(-buffer.element.bits // 8), 1
    for stride, extent in steps:
        if stride <= segment + PAGE_BYTES:
            segment += (extent - 1) * stride
        else:
            segments *= extent
    return segment if segments == 1 else segments * (segment + 2 * PAGE_BYTES)


def _spans_bytes(nest: LoopNest) -> tuple[tuple[int, int], tuple[int, int]]:
    """The bytes that source and destination touch, [low, stop) from their addresses."""
    low, stop, dst_low, dst_stop = reach_of(nest)
    units = {b.name: 8 // b.unit_bits for b in nest.buffers}
    src, dst = units.get("src", 1), units["dst"]
    return (low // src, -(-stop // src)), (dst_low // dst, -(-dst_stop // dst))


def timed(
    nest: LoopNest,
    schedules: tuple[Schedule, ...],
    *,
    threads: int = 1,
    specialize: str = STRUCTURE,
    clock: Callable[[], float] = perf_counter,
) -> tuple[float, ...]:
    """The best of several times of the nest with each schedule; the schedules take turns.

    Each turn begins with an untimed run, so that cache contents left by another schedule do not count. Small
    nests run many times per measurement, so that the clock's resolution does not count either.
    """
    spans = _spans_bytes(nest)
    src, dst = (np.empty(stop - low + LINE_BYTES, np.uint8) for low, stop in spans)
    at, to = (x.ctypes.data - low for x, (low, _) in zip((src, dst), spans, strict=True))
    skipped = -at % LINE_BYTES, -to % LINE_BYTES
    at, to = at + skipped[0], to + skipped[1]
    _write_source(nest, src[skipped[0] :], spans[0][0])
    moved_bits = prod(int_size(x.extent) for x in nest.loops) * sum(b.element.bits for b in nest.buffers)
    runs = max(1, BATCH_BYTES // max(1, moved_bits // 8))
    runners = []
    for schedule in schedules:
        launches = tuple(_launch(part, schedule, specialize) for part in strip_mine(nest, schedule))
        runners.append(partial(run_parts, partial(run_part, launches, at, to, (src, dst)), threads))
    best = [float("inf")] * len(runners)
    for _ in range(REPEATS):
        for k, run in enumerate(runners):
            run()
            start = clock()
            for _ in range(runs):
                run()
            best[k] = min(best[k], (clock() - start) / runs)
    return tuple(best)


def _launch(nest: LoopNest, schedule: Schedule, specialize: str) -> Launch:
    """A launch with its kernel and tables already built, so that no thread waits for another."""
    launch = launch_of(step_of(nest, schedule, specialize=specialize))
    launch = with_alternative(launch, None, lambda other: _launch(nest, other, specialize))
    _ = launch.step.kernel.call
    launch.prepare()
    return launch


def _write_source(nest: LoopNest, memory: NDArray[np.uint8], low: int) -> None:
    """Fill the memory that the nest reads: reading memory that was never written costs nothing."""
    src, _ = refs(nest.innermost)
    buffer = nest.buffer("src")
    if src is None or buffer.unit_bits == 1:
        memory[:] = CONTENT
        return
    extents = [int_size(x.extent) for x in nest.loops] + [buffer.element.bits // 8]
    strides = [int_size(src.stride(x.axis)) for x in nest.loops] + [1]
    view = np.ndarray(extents, np.uint8, memory.data, int_size(src.const) - low, strides)
    view[...] = CONTENT
