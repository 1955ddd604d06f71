"""Many kernel calls in a row, without returning to Python between them.

A call from Python costs some microseconds, as much as a copy of 100 KiB in cache. Copying block by block
would pay that twice per block.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.analysis.ranges import check_range
from codegen.emit.abi import kernel_head
from codegen.ir.lines import LINE_BYTES
from codegen.runtime.kernel import native
from codegen.runtime.launch import KernelCall, Launch, call_numbers, filled
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

Bounds: TypeAlias = tuple[int, int]
"""Bytes that may be touched, [low, stop) from an address."""

Places: TypeAlias = tuple[tuple[int, int], ...]
"""Of each operand: the index of an address, and an offset from it in bytes."""

Group: TypeAlias = Sequence[tuple[Sequence[Launch | KernelCall], Places]]
"""Copies, and calls of other kernels, that run in order, with the places of their operands."""


@dataclass(frozen=True, slots=True)
class CallTable:
    """Groups of calls in order, on addresses that are given when they run.

    calls      every distinct call
    which      the call of each row
    addresses  of each row: the index of the address of each operand; calls with few operands repeat the last
    offsets    of each row: bytes from there
    starts     the first row of each group, and then the number of rows
    lines      offset within a line that each address must have, given or of a block; None for any
    blocks     sizes in bytes of arrays in the thread's scratch, whose addresses follow the given ones
    """

    calls: tuple[KernelCall, ...]
    which: Integers
    addresses: Integers
    offsets: Integers
    starts: Integers
    lines: tuple[int | None, ...]
    blocks: tuple[int, ...] = ()

    def prepare(self) -> None:
        """Compile all kernels that the rows call, and the kernel that calls them.

        Raises:
            KernelError: one could not be built.
        """
        for call in self.calls:
            _ = call.kernel.address
        native(_NAME, _SOURCE)

    def run(self, given: tuple[int, ...], numbers: tuple[int, ...], first: int, last: int) -> None:
        """Make the calls of groups [first, last), in this thread's scratch.

        given    the addresses that offsets count from
        numbers  those in the slots of calls

        Raises:
            KernelError: an address is elsewhere in its line than the calls were chosen for.
        """
        rows = slice(int(self.starts[first]), int(self.starts[last]))
        buffer, blocks = self._scratch()
        self._check_lines((*given, *blocks))
        calls = [call.given(numbers) for call in self.calls]
        of_call = call_numbers(calls, self.addresses.shape[1])[self.which[rows]]
        at = np.array([*given, *blocks], np.int64)[self.addresses[rows]] + self.offsets[rows]
        operands = at * of_call[:, 4::2] + of_call[:, 5::2]
        table = np.empty((len(operands), CALL_FIELDS), np.int64)
        table[:, 0], table[:, 2:] = of_call[:, 0], of_call[:, 1:4]
        table[:, 1] = operands.ctypes.data + operands.strides[0] * np.arange(len(operands))
        native(_NAME, _SOURCE)(0, buffer.ctypes.data, table.ctypes.data, 0, len(table))

    def _check_lines(self, addresses: tuple[int, ...]) -> None:
        for address, line in zip(addresses, self.lines, strict=True):
            if line is not None and address % LINE_BYTES != line:
                raise KernelError(f"expected an address {line} bytes into a line, got {address:#x}")

    def _scratch(self) -> tuple[NDArray[np.uint8], tuple[int, ...]]:
        """This thread's scratch, which begins with the buffer of kernels, and the addresses of the blocks."""
        sizes = max((call.scratch_bytes for call in self.calls), default=0), *self.blocks
        *starts, total = accumulate((-(-size // LINE_BYTES) * LINE_BYTES for size in sizes), initial=0)
        buffer = scratch(total)
        return buffer, tuple(buffer.ctypes.data + start for start in starts[1:])


def call_table(
    groups: Sequence[Group],
    which: Integers,
    moved: Integers,
    lines: Sequence[int | None],
    bounds: Sequence[Bounds],
    blocks: tuple[int, ...] = (),
) -> CallTable:
    """The table whose group k makes the calls of groups[which[k]], at offsets farther on.

    moved   bytes to add to the offsets from each address and from each block, [which, addresses]
    lines   offset within a line of each address; None if no copy writes there. Blocks begin lines
    bounds  of each address, without the blocks
    blocks  as in `CallTable`

    Raises:
        KernelError: a call leaves the bounds of an address, or a block.
    """
    lines = *lines, *(0 for _ in blocks)
    calls, rows, begins = _listed(groups, lines)
    most = max((len(at) for _, at in rows), default=2)
    numbers = np.array([number for number, _ in rows], np.int64)
    places = np.array([filled(at, most) for _, at in rows], np.int64).reshape(-1, most, 2)
    counts = np.diff(begins)[which]
    starts = np.concatenate([[0], np.cumsum(counts)])
    group = np.repeat(np.arange(len(which)), counts)
    row = np.arange(starts[-1]) - starts[group] + np.array(begins)[which][group]
    addresses = places[row, :, 0]
    offsets = places[row, :, 1] + moved[group[:, None], addresses]
    table = CallTable(calls, numbers[row], addresses, offsets, starts, lines, blocks)
    _check_bounds(table, (*bounds, *((0, size) for size in blocks)))
    return table


def _listed(
    groups: Sequence[Group], lines: Sequence[int | None]
) -> tuple[tuple[KernelCall, ...], list[tuple[int, Places]], list[int]]:
    """The distinct calls; in order, the number and the places of each call; and where groups begin."""
    known: dict[tuple[int, bool], range] = {}
    calls: list[KernelCall] = []
    rows: list[tuple[int, Places]] = []
    begins = [0]
    for group in groups:
        for made, at in group:
            address, offset = at[-1]
            for x in made:
                key = id(x), ((lines[address] or 0) + offset) % LINE_BYTES == 0
                if key not in known:
                    first = len(calls)
                    calls += x.every_call(aligned=key[1]) if isinstance(x, Launch) else (x,)
                    known[key] = range(first, len(calls))
                rows += [(number, at) for number in known[key]]
        begins.append(len(rows))
    return tuple(calls), rows, begins


def _check_bounds(table: CallTable, bounds: Sequence[Bounds]) -> None:
    """Prove for every row that the call, which stays in its own bounds, stays in those of the addresses."""
    most = table.addresses.shape[1]
    own = np.array([filled(x.bounds, most) for x in table.calls], np.int64).reshape(-1, most, 2)
    reach = own[table.which] + table.offsets[:, :, None]
    limits = np.array(bounds, np.int64)[table.addresses]
    outside = (reach[..., 0] < limits[..., 0]) | (reach[..., 1] > limits[..., 1])
    for row, k in np.argwhere(outside)[:1].tolist():
        low, stop = reach[row, k].tolist()
        check_range(f"operand {k}", low, stop, tuple(limits[row, k].tolist()))
