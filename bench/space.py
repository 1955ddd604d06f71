"""Every schedule of a copy, and the one that TileJIT chooses, each with its text.

They are those that `tune=True` can choose from: other schedules of the largest box, all boxes in one launch,
and two stages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np

from bench.arrays import BF16, LINE_BYTES, Array
from bench.peers import Call
from codegen import (
    AccessMap,
    CopyOptions,
    CopyProgram,
    CopyRequest,
    Element,
    PermutedMap,
    StagedProgram,
    Step,
    compile_copy,
    footprint_bytes,
    may_stage,
    single_passes,
    staged_copy,
    streamed_from,
)
from tilejit.programs.native_calls import native_calls

Program: TypeAlias = CopyProgram | StagedProgram
Make: TypeAlias = Callable[[], Call]
"""Makes the call with a schedule, whose kernels are compiled then."""

CONTENT_BYTES = 1048583
"""The source repeats random bytes of this length, a prime number: equal blocks have different lines."""


class Space(Protocol):
    """The schedules of one case."""

    @property
    def moved_bytes(self) -> int:
        """Bytes that it reads and writes."""
        ...

    @property
    def facts(self) -> dict[str, Any]:
        """What a cost can be computed from, besides the schedule."""
        ...

    def chosen(self) -> str:
        """The text of the schedule that TileJIT chooses, without compiling it."""
        ...

    def calls(self) -> tuple[Array, dict[str, Make]]:
        """The memory that calls write, and each call by the text of its schedule, that of `chosen` first."""
        ...


@dataclass(frozen=True, slots=True)
class CopySpace:
    """A copy between two maps.

    starts    bytes from the beginning of a line to the first byte of the source and of the destination
    staged    whether TileJIT considers two stages for such a copy of a sufficient size
    permuted  the layout of one side if it is swizzled
    """

    src: AccessMap
    dst: AccessMap
    source: Element
    target: Element
    padding: bytes | None = None
    starts: tuple[int, int] = (0, 0)
    staged: bool = False
    permuted: PermutedMap | None = None

    @property
    def moved_bytes(self) -> int:
        """Bytes that it reads and writes."""
        return footprint_bytes(self.src, self.dst)

    @property
    def facts(self) -> dict[str, Any]:
        """The elements, and the digits of the largest box: extents and strides in units of the boxes."""
        boxes = compile_copy(self._request()).boxed.boxes
        largest = max(boxes, key=lambda box: box.volume)
        names = [self.source.name, self.target.name]
        digits = [list(digit) for digit in largest.digits]
        return {"elements": names, "boxes": len(boxes), "digits": digits, "starts": list(self.starts)}

    def chosen(self) -> str:
        """The text of the program that runs without tuning."""
        return program_text(self._chosen())

    def calls(self) -> tuple[Array, dict[str, Make]]:
        """The destination, and the call of each program."""
        low, (memory, at) = self.dst.byte_bounds[0], _memory(self.dst, self.starts[1])
        content, source = _memory(self.src, self.starts[0])
        _fill(content, self.source, converts=self.source.name != self.target.name)
        stop = self.dst.byte_bounds[1] - low
        out = memory[at + low - memory.ctypes.data :][:stop]

        def make(program: Program) -> Call:
            program.prepare(at)
            alive = memory, content  # calls only have addresses
            repeated = native_calls(program, self.moved_bytes)
            if repeated is None:
                return partial(program.run, source, at, 1, alive=alive)

            def run(alive: object = alive) -> None:
                repeated(source, at)

            return run

        return out, {text: partial(make, program) for text, program in self.programs().items()}

    def programs(self) -> dict[str, Program]:
        """All programs by their texts, that of `chosen` first; of equal texts, the first counts."""
        found: dict[str, Program] = {}
        for program in (self._chosen(), *single_passes(self._request()), *self._stagings()):
            found.setdefault(program_text(program), program)
        return found

    def _chosen(self) -> Program:
        direct = compile_copy(self._request())
        return self._in_stages(direct) or direct

    def _request(self) -> CopyRequest:
        options = CopyOptions(stream_bytes=streamed_from(self.moved_bytes))
        return CopyRequest(
            self.src, self.dst, self.source, self.target, padding=self.padding, options=options
        )

    def _stagings(self) -> Sequence[Program]:
        found: list[Program] = []

        def pick(programs: Sequence[Any]) -> Any:
            found.extend(programs)
            return programs[0]

        self._in_stages(compile_copy(self._request()), pick)
        return found

    def _in_stages(self, direct: CopyProgram, pick: Any = None) -> StagedProgram | None:
        if not (self.staged and may_stage(self.moved_bytes)):
            return None
        how = {"padding": self.padding, "permuted": self.permuted, "pick": pick}
        return staged_copy(direct, self.source, self.target, **how)


def program_text(program: Program) -> str:
    """The schedule of a program's largest box; in two stages, the blocks and the schedule of each stage."""
    if isinstance(program, CopyProgram):
        return _largest_text([x.step.compiled for x in (*program.first, *program.launches)])
    first = next(iter(program.staging.kinds))
    stages = (_largest_text(copies.programs[first].steps) for copies in program.blocks.copies)
    return " || ".join([str(program.staging), *stages])


def _largest_text(steps: Sequence[Step]) -> str:
    if not steps:
        return "no elements"
    moves = [step for step in steps if step.box.source] or steps
    largest = max(moves, key=lambda step: step.box.size_bytes)
    return f"{largest.schedule} | {largest.nest.statement}"


def _memory(access: AccessMap, start: int) -> tuple[Array, int]:
    """Touched memory for a map, whose first byte is `start` bytes inside a line; the address of element 0."""
    low, stop = access.byte_bounds
    memory = np.empty(stop - low + LINE_BYTES + start, np.uint8)  # zeros would not have huge pages
    memory[:] = 0
    return memory, memory.ctypes.data + -memory.ctypes.data % LINE_BYTES + start - low


NARROW = {"pred": 1, "s4": 7, "u4": 15, "s2": 1, "u2": 3}
"""Values of bytes that hold one narrow element."""
FLOATS: dict[str, Any] = {"f16": np.float16, "bf16": BF16, "f32": np.float32, "f64": np.float64}


def _fill(memory: Array, element: Element, *, converts: bool) -> None:
    """Fill with random bytes; with ordinary numbers if they are converted."""
    rng = np.random.default_rng(0)
    content = rng.integers(0, 256, CONTENT_BYTES, np.uint8)
    if element.bits == 8:
        content &= NARROW.get(element.name, 255)
    if converts and element.name in FLOATS:
        content = rng.random(CONTENT_BYTES // 8).astype(FLOATS[element.name]).view(np.uint8)
    line = memory[-memory.ctypes.data % LINE_BYTES :]
    line[:] = np.resize(content, line.size)
