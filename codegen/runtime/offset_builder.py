"""Builds the calls of copies of entries at offsets from launches.

A program is compiled for the entries of one table, or for one entry. Its kernels do the same for any other
table of the same length, so callers that copy other entries each time need not compile again.
"""

from __future__ import annotations

from math import prod
from struct import Struct

import numpy as np

from codegen.analysis.ranges import check_range
from codegen.ir.lines import LINE_BYTES
from codegen.runtime.call_tables import Bounds, Integers
from codegen.runtime.copy_calls import TABLE_CHUNK, TableCalls
from codegen.runtime.kernel import KERNEL_PROTOTYPES
from codegen.runtime.launch import Launch, call_numbers
from codegen.runtime.offset_calls import OffsetCall, OffsetCalls
from codegen.runtime.offset_kernels import CheckScratch, check_code, each_code
from codegen.schedule.offset_tables import OFFSET_TABLES
from codegen.support.dataclasses import dataclass

_rows = Struct("=2q").pack
"""The rows' address and their number, as the kernel reads them."""


def build_offset_calls(
    launches: tuple[Launch, ...],
    offsets: Integers,
    extents: tuple[int, ...],
    step: int,
    *,
    into: bool,
    unique: bool,
    divisible: bool,
    hold_gil: bool,
    bounds: tuple[Bounds, Bounds] | None = None,
) -> OffsetCalls | None:
    """The calls of launches, in order; None if other indices need other kernels.

    Args:
        launches: of the copy of all entries, over one table each; with `bounds`, of the copy of one entry.
        offsets: of the entries on the side that is not the grid, in bytes.
        extents: of the grid, the most major first.
        step: bytes from each cell of the grid to the next.
        into: whether the grid is the destination.
        unique: whether to refuse a cell that is named twice.
        divisible: whether no two entries of the destination share a byte.
        hold_gil: whether calls hold Python's lock.
        bounds: bytes that may be touched, from the addresses of the source and of the destination.

    Raises:
        KernelError: with such an offset, an entry would leave one of the storages.
    """
    count, cells, stride = len(offsets), prod(extents), _stride(offsets)
    if count > TABLE_CHUNK and stride is None:
        return None
    ranges = range(0, step * (cells - 1) + 1), range(int(offsets.min()), int(offsets.max()) + 1)
    starts = ranges[::-1] if into else ranges
    on_lines = not (step % LINE_BYTES if into else (offsets % LINE_BYTES).any())
    builder = _Builder(count, starts, bounds, hold_gil, on_lines)
    calls = builder.over_table(launches) if bounds is None else (builder.per_entry(launches),)
    if not calls:
        return None
    every = [x for launch in launches for x in (launch, launch.misaligned) if x]
    slots = 1 << (2 * count - 1).bit_length() if unique else 0
    return OffsetCalls(
        calls=calls,
        offsets=offsets[:TABLE_CHUNK].copy(),
        stride=stride,
        count=count,
        grid=np.array([step, max(slots - 1, 0), len(extents), *extents], np.int64),
        into=into,
        divisible=divisible and stride is not None,
        check=KERNEL_PROTOTYPES[count <= TABLE_CHUNK](check_code()),
        check_scratch=CheckScratch(count, slots),
        scratch_bytes=max((launch.scratch_bytes for launch in every), default=0),
    )


def _stride(offsets: Integers) -> int | None:
    """From each offset to the next, if it is the same everywhere."""
    if len(offsets) < 2:
        return 0
    step = int(offsets[1] - offsets[0])
    return step if (np.diff(offsets) == step).all() else None


@dataclass(frozen=True, slots=True)
class _Builder:
    """Builds the calls for `count` entries.

    starts    of entries, as `range` of their offsets in the source and in the destination
    bounds    as `build_offset_calls` has them
    on_lines  whether every entry begins at the same offset in a line as the destination
    """

    count: int
    starts: tuple[range, ...]
    bounds: tuple[Bounds, Bounds] | None
    hold_gil: bool
    on_lines: bool

    def over_table(self, launches: tuple[Launch, ...]) -> tuple[OffsetCall, ...]:
        """The calls over one table of all entries each; none where another table needs others."""
        found = [self._launch_over_table(launch) for launch in launches]
        return tuple(x for x in found if x) if all(found) else ()

    def _launch_over_table(self, launch: Launch) -> OffsetCall | None:
        misaligned = self._launch_over_table(launch.misaligned) if launch.misaligned else None
        if launch.misaligned and not (misaligned and self.on_lines):
            return misaligned
        calls, kernel = launch.calls, launch.runs.kernel
        if not isinstance(calls, TableCalls) or [x.extent for x in calls.tables] != [self.count]:
            return None
        if launch.trips != self.count or launch.units != (1, 1) or kernel.arguments[:2] != OFFSET_TABLES:
            return None
        low, high, dst_low, dst_high = calls.reach
        self._check((low, high), (dst_low, dst_high), calls.bounds)
        return OffsetCall(
            function=KERNEL_PROTOTYPES[self.hold_gil](kernel.address),
            code=kernel.address,
            src_offset=launch.src_offset,
            dst_offset=launch.dst_offset,
            rest=launch.sizes[2:].tobytes(),
            held=launch.runs,  # it has the tables that `rest` points to; the launch has those of all entries
            misaligned=misaligned,
        )

    def per_entry(self, launches: tuple[Launch, ...]) -> OffsetCall:
        """The call that calls the kernels of one entry for each."""
        misaligned = self._kernels_per_entry(launches, None, aligned=False)
        if self.on_lines and any(launch.misaligned for launch in launches):
            return self._kernels_per_entry(launches, misaligned, aligned=True)
        return misaligned

    def _kernels_per_entry(
        self, launches: tuple[Launch, ...], misaligned: OffsetCall | None, *, aligned: bool
    ) -> OffsetCall:
        calls = tuple(call for launch in launches for call in launch.every_call(aligned=aligned))
        for call in calls:
            src, dst = call.bounds
            self._check(src, dst, self.bounds)
        rows = call_numbers(calls)
        code = each_code()
        return OffsetCall(
            function=KERNEL_PROTOTYPES[self.hold_gil](code),
            code=code,
            src_offset=0,
            dst_offset=0,
            rest=_rows(rows.ctypes.data, len(rows)),
            held=(calls, rows),
            misaligned=misaligned,
        )

    def _check(self, src: Bounds, dst: Bounds, bounds: tuple[Bounds, Bounds] | None) -> None:
        """Check that an entry which touches [low, high) of both sides stays in bounds, wherever it begins."""
        assert bounds
        for name, starts, (low, high), allowed in zip(
            ("source", "destination"), self.starts, (src, dst), bounds, strict=True
        ):
            check_range(name, starts[0] + low, starts[-1] + high, allowed)
