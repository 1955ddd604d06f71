"""A small copy with the expected bytes and its calls, to run here or on another machine."""

from __future__ import annotations

import ast
import ctypes
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from codegen.ir.lines import LINE_BYTES
from codegen.pipeline.copy_request import CopyRequest
from codegen.pipeline.program import CopyProgram
from codegen.runtime.copy_calls import (
    OFFSET_ARGUMENTS,
    SegmentCalls,
)
from codegen.runtime.kernel import Kernel
from codegen.runtime.launch import Launch
from codegen.schedule.copy_nest import offset_tables
from codegen.schedule.segments import SEGMENT_ARGUMENTS, SEGMENT_FIELDS
from tests.tools.guard import Guarded

Bytes = NDArray[np.uint8]
PARTS = 2
"""The number of parts that each launch is divided into, as for threads."""


@dataclass(frozen=True)
class Case:
    """A copy, and the bytes of its storages: the source, and the destination before and after."""

    name: str
    request: CopyRequest
    program: CopyProgram
    src: Bytes
    before: Bytes
    after: Bytes

    def __str__(self) -> str:
        return self.name

    @property
    def lows(self) -> tuple[int, int]:
        """The lowest byte of the source and of the destination, relative to their base addresses."""
        src, dst = self.program.src, self.program.dst
        return src.bounds[0] * src.unit_bits // 8, dst.bounds[0] * dst.unit_bits // 8

    def calls(self, dst_base: int) -> list[Call]:
        """Its calls for a destination with that base address."""
        return calls_of(self.program, dst_base)

    def run(self, src: Guarded, dst: Guarded) -> None:
        """Run it here, in every placement between the guards of two segments of memory."""
        for at_end, gap in ((False, 0), (True, 0), (False, 16), (True, 3)):
            self.run_at(src, dst, at_end, gap, gap)

    def run_at(self, src: Guarded, dst: Guarded, at_end: bool, src_gap: int, dst_gap: int) -> None:
        """Run it here, each side that many bytes from a guard."""
        source = src.place(len(self.src), at_end=at_end, gap=src_gap)
        target = dst.place(len(self.before), at_end=at_end, gap=dst_gap)
        source[:], target[:] = self.src, self.before
        low, dst_low = self.lows
        self.program.run(source.ctypes.data - low, target.ctypes.data - dst_low)
        assert np.array_equal(target, self.after), f"{self}: wrong bytes, at end {at_end}, gap {dst_gap}"
        assert np.array_equal(source, self.src), f"{self}: the source changed"
        assert src.untouched(), f"{self}: bytes beside the source changed"
        assert dst.untouched(), f"{self}: bytes beside the destination changed"


class Compiled(Protocol):
    """Something that is compiled and called: a kernel, or its source."""

    @property
    def name(self) -> str: ...

    @property
    def source(self) -> str: ...


@dataclass(frozen=True)
class Call:
    """One call of a kernel.

    Attributes:
        kernel: the kernel.
        src: a place in units from the base address of the source.
        dst: a place in units from the base address of the destination.
        unit_bits: bits of a unit on either side.
        tables: the contents of tables, by the number of the argument that points to them.
        scratch: bytes of the kernel's scratch buffer; 0 if it has none.
    """

    kernel: Compiled
    src: int
    dst: int
    sizes: tuple[int, ...]
    begin: int
    end: int
    tables: dict[int, tuple[int, ...]]
    scratch: int = 0
    unit_bits: tuple[int, int] = (8, 8)


def calls_of(program: CopyProgram, dst_base: int) -> list[Call]:
    """The calls of a program for a destination with that base address, in order, without running any."""
    calls: list[Call] = []
    running: list[Launch] = []

    def record(kernel: Kernel, operands: bytes, scratch: int, sizes: int, begin: int, end: int) -> None:
        src, dst = np.frombuffer(operands, np.int64).tolist()
        numbers = _int64s(sizes, len(kernel.arguments))
        units = {buffer.name: buffer.unit_bits for buffer in kernel.function.buffers}
        dst -= dst_base * 8 // units["dst"]
        tables = {}
        for k, (name, number) in enumerate(zip(kernel.arguments, numbers, strict=True)):
            count = _table_length(running[-1], kernel, name, numbers, end)
            if count and number:
                tables[k] = _int64s(number, count)
        unit_bits = units["src"], units["dst"]
        size = running[-1].scratch_bytes if scratch else 0
        calls.append(Call(kernel, src, dst, numbers, begin, end, tables, size, unit_bits))

    def run(launch: Launch, *given: int) -> None:
        running.append(launch)
        launch_run(launch, *given)
        running.pop()

    native, launch_run = Kernel.call, Launch.run
    Kernel.call = property(lambda kernel: lambda *given: record(kernel, *given))  # type: ignore[assignment]
    Launch.run = run  # type: ignore[method-assign, assignment]
    try:
        for launches in (program.first, program.launches):
            for part in range(PARTS):
                for launch in launches:
                    launch.run(0, dst_base, part, PARTS)
    finally:
        Kernel.call, Launch.run = native, launch_run  # type: ignore[method-assign]
    return calls


def _table_length(launch: Launch, kernel: Kernel, name: str, numbers: tuple[int, ...], end: int) -> int:
    """The length of the table that an argument points to; 0 for any other argument."""
    if name in OFFSET_ARGUMENTS[:2]:
        return end
    inner = launch.step.nest
    if name in (tables := offset_tables(inner)):
        return int(tables[name].offsets.size)
    calls = launch.calls
    if name in SEGMENT_ARGUMENTS and isinstance(calls, SegmentCalls):
        return {
            "segments": end * SEGMENT_FIELDS,
            "moves": calls.segments.moves.size,
            "pattern": LINE_BYTES // 8,
        }[name]
    return 0


def _int64s(address: int, count: int) -> tuple[int, ...]:
    return tuple(np.frombuffer(ctypes.string_at(address, 8 * count), np.int64).tolist())


def called_names(source: str) -> set[str]:
    """The names that a kernel's source calls."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return {call.func.id for call in calls if isinstance(call.func, ast.Name)} - {"min", "range"}
