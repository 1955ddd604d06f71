"""Many kernel calls in a row, without returning to Python between them.

A call from Python costs some microseconds, as much as a copy of 100 KiB in cache. Copying block by block
would pay that twice per block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.analysis.ranges import check_range
from codegen.emit.abi import kernel_head
from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import SIDES
from codegen.runtime.kernel import native
from codegen.runtime.launch import KernelCall, Launch, call_numbers
from codegen.runtime.threads import scratch
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError

Integers: TypeAlias = NDArray[np.int64]

CALL_FIELDS = 5
"""Numbers per row of the table: the kernel's address and its arguments, except scratch, which rows share."""

_NAME = "call_kernels"
_SOURCE = f'''"""{_NAME}

for rows [begin, end) of the table `sizes`, {CALL_FIELDS} numbers each: one call of a kernel
"""

{kernel_head(_NAME)}
    for row in range(begin, end):
        call = sizes + {8 * CALL_FIELDS} * row
        kernel, own_operands, own_sizes, first, last = arguments_{CALL_FIELDS}(call)
        call_kernel(kernel, own_operands, scratch, own_sizes, first, last)
'''


def call_rows(
    kernels: int | Integers,
    operands: Integers,
    sizes: int | Integers,
    begins: int | Integers,
    ends: int | Integers,
) -> Integers:
    """A row for each call: numbers that differ between calls are arrays; a row of `operands` is one table.

    Rows hold addresses, so callers must keep the memory that they point to.
    """
    table = np.empty((len(operands), CALL_FIELDS), np.int64)
    tables = operands.ctypes.data + operands.strides[0] * np.arange(len(operands))
    for k, numbers in enumerate((kernels, tables, sizes, begins, ends)):
        table[:, k] = numbers
    return table


@dataclass(frozen=True, slots=True)
class BufferOffsets:
    """Where launches read and write: index of an address, and an offset from it in bytes."""

    src: int
    src_offset: int
    dst: int
    dst_offset: int


Group: TypeAlias = Iterable[tuple[tuple[Launch, ...], BufferOffsets]]
"""Launches that run in order, each with its offsets."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Calls on given addresses.

    numbers   CALL_FIELDS of each
    operands  the tables that the numbers point to
    scratch   this thread's scratch
    blocks    the addresses of the blocks in there
    """

    numbers: Integers
    operands: Integers
    scratch: NDArray[np.uint8]
    blocks: tuple[int, ...]

    def call(self, numbers: Integers) -> None:
        """Make calls: these rows, perhaps with others between them."""
        native(_NAME, _SOURCE)(0, self.scratch.ctypes.data, numbers.ctypes.data, 0, len(numbers))


@dataclass(frozen=True, slots=True)
class CallTable:
    """Groups of calls in order, on addresses that are given when they run.

    calls   every distinct call, with its launch
    which   the call of each row
    offsets  of each row: (index of an address, offset) of its source, then of its destination
    starts  the first row of each group, and then the number of rows
    lines   offset within a line that each address must have, given or of a block; None for any
    blocks  sizes in bytes of arrays in the thread's scratch, whose addresses follow the given ones
    """

    calls: tuple[tuple[Launch, KernelCall], ...]
    which: Integers
    offsets: Integers
    starts: Integers
    lines: tuple[int | None, ...]
    blocks: tuple[int, ...] = ()

    def prepare(self) -> None:
        """Compile all kernels that the rows call, and the kernel that calls them.

        Raises:
            KernelError: one could not be built.
        """
        for launch, _ in self.calls:
            _ = launch.runs.kernel.call
        native(_NAME, _SOURCE)

    def run(self, addresses: tuple[int, ...], first: int, last: int) -> None:
        """Make the calls of groups [first, last); offsets count from `addresses`, in bytes.

        Raises:
            KernelError: an address is elsewhere in its line than the calls were chosen for.
        """
        rows = self.rows(addresses, first, last)
        rows.call(rows.numbers)

    def rows(self, addresses: tuple[int, ...], first: int, last: int) -> Rows:
        """The calls of groups [first, last), for this thread only, whose scratch they use.

        Raises:
            KernelError: an address is elsewhere in its line than the calls were chosen for.
        """
        rows = slice(int(self.starts[first]), int(self.starts[last]))
        which, offsets = self.which[rows], self.offsets[rows]
        buffer, blocks = self._scratch()
        self._check_lines((*addresses, *blocks))
        of_call = call_numbers(self.calls)[which]
        at = np.array([*addresses, *blocks], np.int64)
        operands = np.empty((len(which), len(SIDES)), np.int64)
        for side in range(len(SIDES)):
            address = at[offsets[:, 2 * side]] + offsets[:, 2 * side + 1]
            operands[:, side] = address * of_call[:, 4 + 2 * side] + of_call[:, 5 + 2 * side]
        kernels, *rest = of_call.T[:4]
        return Rows(call_rows(kernels, operands, *rest), operands, buffer, blocks)

    def _check_lines(self, addresses: tuple[int, ...]) -> None:
        for address, line in zip(addresses, self.lines, strict=True):
            if line is not None and address % LINE_BYTES != line:
                raise KernelError(f"expected an address {line} bytes into a line, got {address:#x}")

    def _scratch(self) -> tuple[NDArray[np.uint8], tuple[int, ...]]:
        """This thread's scratch, which begins with the buffer of kernels, and the addresses of the blocks."""
        sizes = max((launch.scratch_bytes for launch, _ in self.calls), default=0), *self.blocks
        *starts, total = accumulate((-(-size // LINE_BYTES) * LINE_BYTES for size in sizes), initial=0)
        buffer = scratch(total)
        return buffer, tuple(buffer.ctypes.data + start for start in starts[1:])


Bounds: TypeAlias = tuple[int, int]
"""Bytes that may be touched, [low, stop) from an address."""


def call_table(
    groups: Iterable[Group],
    lines: Sequence[int],
    bounds: Sequence[Bounds],
    blocks: tuple[int, ...] = (),
) -> CallTable:
    """The table of groups of launches at offsets.

    lines   offset within a line of each address; those of the blocks are not given
    bounds  of each address, without the blocks
    blocks  as in `CallTable`

    Raises:
        KernelError: a launch leaves the bounds of an address, or a block.
    """
    lines = *lines, *(0 for _ in blocks)
    written: set[int] = set()
    known: dict[tuple[int, bool], tuple[int, int]] = {}
    calls: list[tuple[Launch, KernelCall]] = []
    which: list[int] = []
    offsets: list[tuple[int, int, int, int]] = []
    starts = [0]
    for group in groups:
        for launches, at in group:
            written.add(at.dst)
            for launch in launches:
                key = id(launch), (lines[at.dst] + at.dst_offset) % LINE_BYTES == 0
                if key not in known:
                    first = len(calls)
                    calls += launch.every_call(aligned=key[1])
                    known[key] = first, len(calls)
                numbers = range(*known[key])
                which += numbers
                offsets += [(at.src, at.src_offset, at.dst, at.dst_offset)] * len(numbers)
        starts.append(len(which))
    numbered = np.array(offsets, np.int64).reshape(-1, 4)
    begins = tuple(line if k in written else None for k, line in enumerate(lines))
    rows = np.array(which, np.int64), numbered, np.array(starts, np.int64)
    table = CallTable(tuple(calls), *rows, begins, blocks)
    _check_bounds(table, (*bounds, *((0, size) for size in blocks)))
    return table


def repeated(table: CallTable, which: Integers, moved: Integers, bounds: Sequence[Bounds]) -> CallTable:
    """The table whose group k makes the calls of group which[k] of a table, at offsets farther on.

    moved   bytes to add to the offsets from each address, [groups, addresses]
    bounds  of each address and of each block

    Raises:
        KernelError: a launch leaves the bounds of an address, or a block.
    """
    counts = np.diff(table.starts)[which]
    starts = np.concatenate([[0], np.cumsum(counts)])
    group = np.repeat(np.arange(len(which)), counts)
    rows = np.arange(starts[-1]) - starts[group] + table.starts[which][group]
    offsets = table.offsets[rows]
    for side in (0, 2):
        offsets[:, side + 1] += moved[group, offsets[:, side]]
    out = replace(table, which=table.which[rows], offsets=offsets, starts=starts)
    _check_bounds(out, bounds)
    return out


def _check_bounds(table: CallTable, bounds: Sequence[Bounds]) -> None:
    """Prove for every row that the launch, which stays in its own bounds, stays in those of the addresses."""
    if not len(table.which):
        return
    own = np.array([launch.bounds for launch, _ in table.calls], np.int64)[table.which]
    allowed = np.array(bounds, np.int64)
    for side, name in enumerate(("source", "destination")):
        reach = own[:, side] + table.offsets[:, 2 * side + 1, None]
        limits = allowed[table.offsets[:, 2 * side]]
        outside = (reach[:, 0] < limits[:, 0]) | (reach[:, 1] > limits[:, 1])
        if outside.any():
            row = int(outside.argmax())
            low, stop = reach[row].tolist()
            check_range(name, low, stop, (int(limits[row, 0]), int(limits[row, 1])))
