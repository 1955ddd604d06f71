"""Tuning on a caller's own copies: the first runs of a copy try several programs, and the fastest stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from time import perf_counter
from typing import TypeAlias

from codegen.backend.store import KernelStore, default_store
from codegen.pipeline.copies import LEAST_TUNED_BYTES
from codegen.pipeline.copy_request import CopyRequest
from codegen.pipeline.program import CopyProgram, footprint_bytes
from codegen.pipeline.single_passes import single_passes
from codegen.pipeline.staged import StagedProgram
from codegen.pipeline.stored_programs import request_digest
from codegen.runtime.kernel import Kernel
from codegen.runtime.step import Step
from codegen.support.errors import KernelError

Program: TypeAlias = CopyProgram | StagedProgram

MOST_TRIED = 8
"""Programs that are tried at most. Each has kernels of its own, which are compiled before its first turn."""

TURNS = 4
"""Runs of each program. The first one counts for nothing: the program before it left the caches."""

FAR_BEHIND = 1.25
"""A program that takes this many times as long as the fastest so far has no more turns."""

GAIN = 0.97
"""The compiler's choice stays unless another program takes less than this part of its time."""


class LiveProgram:
    """A copy whose first runs take turns among several programs, until one of them is the fastest.

    All of them write the same bytes, so callers notice nothing but times. Any number of threads may run it:
    each run has a program of its own, and then programs may have a turn more.

    Attributes:
        programs: the compiler's choice, and others.
        best: the fastest of them; None until it is known.
    """

    def __init__(
        self,
        programs: Sequence[Program],
        keep: Callable[[int], object],
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self.programs, self.best = tuple(programs), None if len(programs) > 1 else programs[0]
        self._keep, self._clock = keep, clock
        self._seconds: tuple[list[float], ...] = tuple([] for _ in programs)

    def run(
        self,
        src: int,
        dst: int,
        threads: int = 1,
        *,
        alive: object = None,
        flags: list[int] | None = None,
        disjoint: bool = False,
    ) -> None:
        """Copy between two addresses, as the programs do.

        Raises:
            KernelError: as `CopyProgram.run`.
        """
        if self.best:
            self.best.run(src, dst, threads, alive=alive, flags=flags, disjoint=disjoint)
            return
        turn = self._turn()
        program = self.programs[turn]
        try:
            program.prepare(dst)  # it may compile kernels, which takes no part in the time
        except KernelError:
            if not turn:
                raise
            self._seconds[turn].extend([inf] * TURNS)
            turn, program = 0, self.programs[0]
        began = self._clock()
        program.run(src, dst, threads, alive=alive, flags=flags, disjoint=disjoint)
        self._seconds[turn].append(self._clock() - began)
        self._settle()

    def prepare(self, dst: int) -> None:
        """Build the tables and kernels of the program that runs first, before any byte is written.

        Raises:
            KernelError: a kernel could not be built.
        """
        self.now.prepare(dst)

    @property
    def now(self) -> Program:
        """The fastest program, or the compiler's choice until it is known."""
        return self.best or self.programs[0]

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of the fastest program, or of the compiler's choice until it is known."""
        return self.now.steps

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of the fastest program, or of the compiler's choice until it is known."""
        return self.now.kernels

    def _turn(self) -> int:
        """The program that runs next: each has two turns at first, and the others when all have had them."""
        for turns in (2, TURNS):
            for k, seconds in enumerate(self._seconds):
                if len(seconds) < turns and not self._is_behind(k):
                    return k
        return 0

    def _is_behind(self, number: int) -> bool:
        """Whether a program is much slower than another one."""
        times = [min(seconds[1:]) for seconds in self._seconds if len(seconds) > 1]
        own = self._seconds[number][1:]
        return bool(own) and min(own) > FAR_BEHIND * min(times)

    def _settle(self) -> None:
        """Choose the fastest program once none has another turn."""
        if any(len(x) < TURNS and not self._is_behind(k) for k, x in enumerate(self._seconds)):
            return
        times = [min(seconds[1:]) for seconds in self._seconds]
        fastest = times.index(min(times))
        if times[fastest] > GAIN * times[0]:
            fastest = 0
        if self.best is None:
            self.best = self.programs[fastest]
            self._keep(fastest)


def live_copy(
    program: Program,
    request: CopyRequest,
    *,
    store: KernelStore | None = None,
    clock: Callable[[], float] = perf_counter,
) -> Program | LiveProgram:
    """A program that tries others of the same copy, or the fastest one if the store knows it.

    program  the compiler's choice
    request  the copy in one pass, which others make
    """
    if footprint_bytes(request.src, request.dst) < LEAST_TUNED_BYTES:
        return program
    programs, held = (program, *_others(program, request)), store or default_store()
    digest = request_digest(request, held)
    name = digest and f"live-{digest[:32]}"
    known = ((name and held.get_note(name)) or {}).get("winner")
    if type(known) is int and 0 <= known < len(programs):
        return programs[known]

    def keep(winner: int) -> None:
        if name:
            held.put_note(name, {"winner": winner})

    return LiveProgram(programs, keep, clock)


def _others(program: Program, request: CopyRequest) -> list[CopyProgram]:
    """Other programs of a copy in one pass, the most promising first."""
    first = _text(program) if isinstance(program, CopyProgram) else ""
    found: dict[str, CopyProgram] = {}
    for each in single_passes(request):
        found.setdefault(_text(each), each)
        if len(found) == MOST_TRIED:
            break
    found.pop(first, None)
    return [*found.values()][: MOST_TRIED - 1]


def _text(program: CopyProgram) -> str:
    """A text that differs if two programs of a copy run it differently."""
    launches = *program.first, *program.launches
    return repr([(x.step.nest, x.step.kernel.name, x.src_offset, x.dst_offset, x.trips) for x in launches])
