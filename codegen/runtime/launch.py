"""One box of a copy ready to run: a kernel, its argument table, and how to call it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from itertools import chain
from math import gcd
from typing import TYPE_CHECKING, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from codegen.ir.lines import LINE_BYTES
from codegen.runtime.calls import FILL_ARGUMENTS, Calls, Pattern, PlainCall
from codegen.runtime.kernel import copy_operands
from codegen.runtime.threads import scratch
from codegen.schedule.call_limits import UNEVEN
from codegen.support.caching import lazy
from codegen.support.dataclasses import dataclass
from codegen.support.lookups import Known

if TYPE_CHECKING:  # a stored program loads neither tables nor schedules
    from codegen.maps.refine import PairTable
    from codegen.runtime.kernel import Kernel
    from codegen.runtime.loop_kernel import LoopKernel
    from codegen.runtime.step import Step
    from codegen.runtime.stored_step import StoredStep

T = TypeVar("T")

PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One call of a kernel, without the addresses of its operands and its scratch.

    operands       of each: units per byte of its address, and units from there to where the kernel begins
    bounds         of each: the bytes that the call is proven to stay within, [low, stop) from its address
    scratch_bytes  size of the thread's scratch; 0 for none
    held           what the argument table `sizes` points to
    slots          entries of `sizes` that are still 0, and which of the numbers each of them is
    """

    kernel: Kernel | LoopKernel
    sizes: NDArray[np.int64]
    begin: int
    end: int
    operands: tuple[tuple[int, int], ...]
    bounds: tuple[tuple[int, int], ...]
    scratch_bytes: int = 0
    held: object = None
    slots: tuple[tuple[int, int], ...] = ()

    def given(self, numbers: Sequence[int]) -> KernelCall:
        """The call with these numbers in its slots."""
        if not self.slots:
            return self
        sizes = self.sizes.copy()
        for slot, which in self.slots:
            sizes[slot] = numbers[which]
        return replace(self, sizes=sizes)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a call holds addresses of this process\n  pickle or copy its launch instead")


def call_numbers(calls: Sequence[KernelCall], most: int = 2) -> NDArray[np.int64]:
    """Numbers of each call: its code, arguments, begin and end, then both of each operand in `operands`.

    Calls with fewer than `most` operands repeat the last one. Callers must keep the calls, whose arguments
    the numbers point to.
    """
    rows = [
        (x.kernel.address, x.sizes.ctypes.data, x.begin, x.end, *chain(*filled(x.operands, most)))
        for x in calls
    ]
    return np.array(rows, np.int64).reshape(-1, 4 + 2 * most)


def filled(each: tuple[T, ...], most: int) -> tuple[T, ...]:
    """Something of each operand, for `most` operands: the last one is repeated."""
    return each + each[-1:] * (most - len(each))


def on_boundary(near: int, start: int, step: int, *, most_off: int) -> int:
    """The number k closest to `near` for which start + k*step begins a page, else a line, else `near`.

    500, 0, 1204, most_off=62 -> 496: byte 597184 begins a line
    """
    for boundary in (PAGE_BYTES, LINE_BYTES):
        common = gcd(step, boundary)
        period = boundary // common
        if start % common or period > 2 * most_off + 1:
            continue
        first = -start // common * pow(step // common, -1, period) % period
        below = near - (near - first) % period
        found = below if near - below <= period // 2 else below + period
        if abs(found - near) <= most_off:
            return found
    return near


@dataclass(frozen=True)
class Launch:
    """One box ready to run.

    runs        the kernel and its arguments
    trips       how many iterations threads share: table entries, tiles, segments, or trips of the first loop
    bounds      the bytes that it is proven to stay within, [low, stop) from the addresses of both sides
    fill        the padding pattern, where the box contains padding
    serial      whether parts of the box may share bytes of the destination
    misaligned  the launch that runs instead where the destination, or a table entry, does not begin on a line
    """

    runs: Step | StoredStep
    calls: Calls
    src_offset: int
    dst_offset: int
    trips: int
    bounds: tuple[tuple[int, int], tuple[int, int]]
    fill: Pattern | None = None
    serial: bool = False
    misaligned: Launch | None = None

    @property
    def step(self) -> Step:
        """The stages that led to the kernel."""
        return self.runs.compiled

    @property
    def tables(self) -> tuple[PairTable, ...]:
        """The offset tables that the kernel loops over, or none."""
        return self.calls.looped

    @lazy
    def sizes(self) -> NDArray[np.int64]:
        """The argument table; addresses of tables that each call gets are still 0."""
        given = Known({**self.calls.given, **self.runs.numbers})
        given.update((name, table.ctypes.data) for name, table in self.runs.tables.items())
        if self.fill:
            given.update(zip(FILL_ARGUMENTS, self.fill, strict=True))
        values = [given[name] for name in self.runs.kernel.arguments]
        return np.array([v - (1 << 64) if v >= 1 << 63 else v for v in values], np.int64)

    @lazy
    def scratch_bytes(self) -> int:
        """Size of the thread's scratch during each call; 0 for none."""
        return self.runs.scratch_bytes

    @property
    def is_one_call(self) -> bool:
        """Whether each part is one call, always with the same arguments."""
        return self.calls.is_one and self.misaligned is None

    def prepare(self) -> None:
        """Make the tables that all threads share, before they start."""
        _ = self.sizes
        self.calls.prepare()
        if self.misaligned:
            _ = self.misaligned.sizes

    @lazy
    def _step_bytes(self) -> int:
        """Destination stride of the first loop; 0 if trips are something else.

        Table entries and tiles lie where their tables say, and segments are full lines already.
        """
        return self.runs.loop_stride if isinstance(self.calls, PlainCall) and not self.serial else 0

    def _cut(self, dst: int, part: int, parts: int) -> int:
        """The first trip of a part: near its even share, where the destination begins a page or a line.

        Two threads that write the same line contend for it. The even share is used where trips never begin a
        line, or too seldom for shares to stay about even.
        """
        even = self.trips * part // parts
        if part in (0, parts) or not self._step_bytes:
            return even
        return on_boundary(even, dst, self._step_bytes, most_off=self.trips // (UNEVEN * parts))

    def __getstate__(self) -> dict[str, object]:
        """The fields only: cached values contain addresses of this process."""
        return {x.name: getattr(self, x.name) for x in fields(self)}

    @lazy
    def units(self) -> tuple[int, int]:
        """Units per byte of source and destination: 1 for bytes, 8 for bits."""
        units = 8 // self.runs.unit_bits
        return units, units

    def serving(self, dst: int) -> Launch:
        """The launch that runs for a destination at that address: this one, or `misaligned`."""
        if self.misaligned and ((dst + self.dst_offset) % LINE_BYTES or not self.calls.keeps_lines):
            return self.misaligned
        return self

    def run(self, src: int, dst: int, part: int, parts: int) -> None:
        """Copy one of `parts` parts of the box."""
        if self.serial and parts > 1:
            if part:
                return
            part, parts = 0, 1
        serving = self.serving(dst)
        if serving is not self:
            serving.run(src, dst, part, parts)
            return
        begin, end = (self._cut(dst + self.dst_offset, k, parts) for k in (part, part + 1))
        if begin == end:
            return
        src, dst = src * self.units[0] + self.src_offset, dst * self.units[1] + self.dst_offset
        native, operands, size = self.runs.kernel.call, copy_operands(src, dst), self.scratch_bytes
        buffer = scratch(size) if size else None
        at = 0 if buffer is None else buffer.ctypes.data
        if self.is_one_call:
            native(operands, at, self.sizes.ctypes.data, begin, end)
            return
        for call in self._calls(begin, end):
            native(operands, at, call.sizes.ctypes.data, call.begin, call.end)

    def every_call(self, *, aligned: bool) -> tuple[KernelCall, ...]:
        """Every call of the complete box, as `run` makes them, for callers that repeat them.

        `aligned` says whether the destination's address begins a line.
        """
        on_line = aligned and self.dst_offset % LINE_BYTES == 0 and self.calls.keeps_lines
        if self.misaligned and not on_line:
            return self.misaligned.every_call(aligned=aligned)
        return tuple(self._calls(0, self.trips)) if self.trips else ()

    def _calls(self, begin: int, end: int) -> Iterator[KernelCall]:
        """The calls for a part of the box, one per chunk of a table."""
        kernel = self.runs.kernel
        operands = (self.units[0], self.src_offset), (self.units[1], self.dst_offset)
        for tables, first, last in self.calls.chunks(begin, end):
            sizes = self.sizes.copy() if tables else self.sizes
            for name, table in tables.items():
                sizes[kernel.arguments.index(name)] = table.ctypes.data
            held = self, *tables.values()
            yield KernelCall(kernel, sizes, first, last, operands, self.bounds, self.scratch_bytes, held)
