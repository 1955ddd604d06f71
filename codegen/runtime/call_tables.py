"""Many kernel calls in a row, without returning to Python between them.

A call from Python costs some microseconds, as much as a copy of 100 KiB in cache. Copying block by block
would pay that twice per block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.analysis.ranges import check_range
from codegen.runtime.kernel import native
from codegen.runtime.launch import KernelCall, Launch
from codegen.runtime.threads import scratch

Integers: TypeAlias = NDArray[np.int64]

CALL_FIELDS = 6
"""Numbers per row of the table: the kernel's address and its arguments."""

_NAME = "call_kernels"
_SOURCE = f'''"""{_NAME}

for rows [begin, end) of the table `sizes`, {CALL_FIELDS} numbers each: one call of a kernel
"""

def {_NAME}(src, dst, sizes, begin, end):
    for row in range(begin, end):
        kernel = int64_at(sizes, row * {CALL_FIELDS})
        source = int64_at(sizes, row * {CALL_FIELDS} + 1)
        target = int64_at(sizes, row * {CALL_FIELDS} + 2)
        arguments = int64_at(sizes, row * {CALL_FIELDS} + 3)
        first = int64_at(sizes, row * {CALL_FIELDS} + 4)
        last = int64_at(sizes, row * {CALL_FIELDS} + 5)
        call_kernel(kernel, source, target, arguments, first, last)
'''


@dataclass(frozen=True, slots=True)
class BufferOffsets:
    """Where launches read and write: index of an address, and an offset from it in bytes."""

    src: int
    src_offset: int
    dst: int
    dst_offset: int


@dataclass(frozen=True, slots=True)
class CallTable:
    """Groups of calls in order, on addresses that are given when they run.

    calls   every distinct call, with its launch
    which   the call of each row
    places  of each row: (index of an address, offset) of its source, then of its destination
    starts  the first row of each group, and then the number of rows
    """

    calls: tuple[tuple[Launch, KernelCall], ...]
    which: Integers
    places: Integers
    starts: Integers

    def prepare(self) -> None:
        """Compile all kernels that the rows call, and the kernel that calls them.

        Raises:
            KernelError: one could not be built.
        """
        for launch, _ in self.calls:
            _ = launch.step.kernel.call
        native(_NAME, _SOURCE)

    def run(self, addresses: tuple[int, ...], first: int, last: int) -> None:
        """Make the calls of groups [first, last); offsets count from `addresses`, in bytes."""
        table, call, _held = self.rows(addresses, first, last)
        call(0, 0, table.ctypes.data, 0, len(table))

    def rows(
        self, addresses: tuple[int, ...], first: int, last: int
    ) -> tuple[Integers, Callable[[int, int, int, int, int], None], object]:
        """The table of groups [first, last), a function that calls its rows, and objects to keep alive.

        call(0, 0, table.ctypes.data, begin, end)    only on this thread, whose buffers are in the table
        """
        rows = slice(int(self.starts[first]), int(self.starts[last]))
        which, places = self.which[rows], self.places[rows]
        buffer = scratch(max((call.scratch_bytes for _, call in self.calls), default=0))
        sizes = [_with_scratch(call, buffer.ctypes.data) for _, call in self.calls]
        of_call = np.array(
            [
                (
                    x.step.kernel.address,
                    s.ctypes.data,
                    call.begin,
                    call.end,
                    *x.units,
                    x.src_offset,
                    x.dst_offset,
                )
                for (x, call), s in zip(self.calls, sizes, strict=True)
            ],
            np.int64,
        ).reshape(-1, 8)[which]
        at = np.array(addresses, np.int64)
        table = np.empty((len(which), CALL_FIELDS), np.int64)
        table[:, 0], table[:, 3], table[:, 4], table[:, 5] = of_call.T[:4]
        for side in (0, 1):
            address = at[places[:, 2 * side]] + places[:, 2 * side + 1]
            table[:, 1 + side] = address * of_call[:, 4 + side] + of_call[:, 6 + side]
        return table, native(_NAME, _SOURCE), (buffer, sizes)


def _with_scratch(call: KernelCall, address: int) -> Integers:
    """The arguments with a buffer's address; each thread has its own buffer."""
    if not call.scratch_bytes:
        return call.sizes
    sizes = call.sizes.copy()
    sizes[call.scratch_at] = address
    return sizes


Bounds: TypeAlias = tuple[int, int]
"""Bytes that may be touched, [low, stop) from an address."""


def call_table(
    groups: Iterable[Iterable[tuple[tuple[Launch, ...], BufferOffsets]]],
    aligned: Callable[[BufferOffsets], bool],
    bounds: Sequence[Bounds],
) -> CallTable:
    """The table of groups of launches at offsets.

    aligned  whether the destination at given offsets begins a line
    bounds   of each address

    Raises:
        KernelError: a launch leaves the bounds of an address.
    """
    known: dict[tuple[int, bool], tuple[int, int]] = {}
    calls: list[tuple[Launch, KernelCall]] = []
    which: list[int] = []
    places: list[tuple[int, int, int, int]] = []
    starts = [0]
    for group in groups:
        for launches, at in group:
            for launch in launches:
                key = id(launch), aligned(at)
                if key not in known:
                    first = len(calls)
                    calls += launch.every_call(aligned=key[1])
                    known[key] = first, len(calls)
                numbers = range(*known[key])
                which += numbers
                places += [(at.src, at.src_offset, at.dst, at.dst_offset)] * len(numbers)
        starts.append(len(which))
    numbered = np.array(places, np.int64).reshape(-1, 4)
    table = CallTable(tuple(calls), np.array(which, np.int64), numbered, np.array(starts, np.int64))
    _check_bounds(table, bounds)
    return table


def repeated_calls(
    launches: tuple[Launch, ...],
    src_offsets: Integers,
    dst_offsets: Integers,
    bounds: tuple[Bounds, Bounds],
    *,
    aligned: bool,
) -> CallTable:
    """The table of the same launches at many offsets, from the first address to the second; one group each.

    aligned  whether the destination begins a line at every offset

    Raises:
        KernelError: the launches leave the `bounds` at one of the offsets.
    """
    calls = tuple(call for launch in launches for call in launch.every_call(aligned=aligned))
    count, each = len(src_offsets), len(calls)
    places = np.zeros((count * each, 4), np.int64)
    places[:, 1], places[:, 2], places[:, 3] = np.repeat(src_offsets, each), 1, np.repeat(dst_offsets, each)
    table = CallTable(calls, np.tile(np.arange(each), count), places, np.arange(count + 1) * each)
    _check_bounds(table, bounds)
    return table


def _check_bounds(table: CallTable, bounds: Sequence[Bounds]) -> None:
    """Prove for every row that the launch, which stays in its own bounds, stays in those of the addresses."""
    if not len(table.which):
        return
    own = np.array([launch.bounds for launch, _ in table.calls], np.int64)[table.which]
    allowed = np.array(bounds, np.int64)
    for side, name in enumerate(("source", "destination")):
        reach = own[:, side] + table.places[:, 2 * side + 1, None]
        limits = allowed[table.places[:, 2 * side]]
        outside = (reach[:, 0] < limits[:, 0]) | (reach[:, 1] > limits[:, 1])
        if outside.any():
            row = int(outside.argmax())
            low, stop = reach[row].tolist()
            check_range(name, low, stop, (int(limits[row, 0]), int(limits[row, 1])))
