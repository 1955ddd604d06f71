"""Tuning of complete copies: run several programs of one on scratch memory once, and store the fastest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from time import perf_counter
from typing import TypeAlias, cast

import numpy as np

from codegen.backend.store import KernelStore, default_store
from codegen.ir.lines import LINE_BYTES
from codegen.pipeline.copy_options import STRUCTURE, AnyProgram, PickCopy
from codegen.pipeline.program import CopyProgram
from codegen.pipeline.staged import StagedProgram
from codegen.pipeline.tune import CONTENT, best_times, fastest, machine_facts

MOST_BYTES = 256 << 20
"""Scratch memory of a measurement. Copies that take more are not measured: they cannot be shortened."""

Program: TypeAlias = CopyProgram | StagedProgram

MeasureCopies = Callable[[Sequence[Program]], Sequence[float]]
"""Seconds that each program takes."""


def tuned_copies(
    threads: int = 1,
    *,
    specialize: str = STRUCTURE,
    measure: MeasureCopies | None = None,
    store: KernelStore | None = None,
) -> PickCopy:
    """A function that picks one of several programs of a copy by measuring, once per copy and machine."""
    facts = threads, specialize, *machine_facts()
    return partial(_pick, measure or partial(timed_copies, threads=threads), facts, store or default_store())


def _pick(
    measure: MeasureCopies, facts: tuple[object, ...], store: KernelStore, given: Sequence[AnyProgram]
) -> AnyProgram:
    """The winner of an earlier measurement, else of a new one; the first program if none is possible."""
    programs = cast("Sequence[Program]", given)
    texts = [described(program) for program in programs]
    if None in texts or sum(map(sum, _spans(programs[0]))) > MOST_BYTES:
        return given[0]
    numbers = {sha256(repr(text).encode()).hexdigest(): k for k, text in enumerate(texts)}
    distinct = [programs[k] for k in numbers.values()]
    return given[fastest("copy", numbers, facts, store, lambda: measure(distinct))]


def described(program: Program) -> tuple[object, ...] | None:
    """A text that identifies a program in every process; None if its tables are computed."""
    launches = (*program.first, *program.launches) if isinstance(program, CopyProgram) else program.launches
    if any(launch.tables for launch in launches):
        return None
    steps = ((x.step.nest, x.step.kernel.name, x.src_offset, x.dst_offset, x.trips, x.fill) for x in launches)
    blocks = "" if isinstance(program, CopyProgram) else str(program.staging)
    return program.bounds, blocks, tuple(steps)


def timed_copies(
    programs: Sequence[Program], *, threads: int = 1, clock: Callable[[], float] = perf_counter
) -> tuple[float, ...]:
    """The best of several times of each program; they take turns, on memory with room for the copy."""
    bounds, spans = programs[0].bounds, _spans(programs[0])
    memory = [np.empty(sum(span), np.uint8) for span in spans]
    memory[0][:] = CONTENT
    src, dst = (
        x.ctypes.data + -x.ctypes.data % LINE_BYTES - low for x, (low, _) in zip(memory, bounds, strict=True)
    )
    moved = sum(stop - low for low, stop in bounds)

    def runner(program: Program) -> Callable[[], None]:
        program.prepare(dst)
        return partial(program.run, src, dst, threads, alive=memory)

    return best_times([partial(runner, program) for program in programs], moved, clock)


def _spans(program: Program) -> list[tuple[int, int]]:
    """The bytes of source and destination, and those that align them."""
    return [(stop - low, LINE_BYTES) for low, stop in program.bounds]
