"""Kernels that loop over the entries of one offset table, which each call brings along.

A program is compiled for the entries of one table. Its kernels do the same for any other table of the same
length, so callers that copy other tiles each time need not compile again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from codegen.analysis.ranges import check_range
from codegen.runtime.copy_calls import TABLE_CHUNK, TableCalls
from codegen.runtime.kernel import KERNEL_PROTOTYPES, NativeFunction, copy_operands
from codegen.runtime.launch import Launch
from codegen.schedule.offset_tables import OFFSET_TABLES

Offsets = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class OffsetCall:
    """One call of a kernel for a table of offsets.

    tables  the positions of the tables of source and destination among the arguments
    """

    launch: Launch
    calls: TableCalls
    function: NativeFunction
    tables: tuple[int, int]

    def __call__(self, src: int, dst: int, offsets: tuple[Offsets, Offsets]) -> None:
        """Run it; the offsets of both sides, in bytes, are those of the first entry and of the others to it.

        Raises:
            KernelError: an entry leaves one of the storages; nothing has been written.
        """
        low, high, dst_low, dst_high = self.calls.reach
        src_offsets, dst_offsets = offsets
        src_bounds, dst_bounds = self.calls.bounds
        check_range("source", int(src_offsets.min()) + low, int(src_offsets.max()) + high, src_bounds)
        check_range(
            "destination", int(dst_offsets.min()) + dst_low, int(dst_offsets.max()) + dst_high, dst_bounds
        )
        sizes = self.launch.sizes.copy()
        for index, table in zip(self.tables, offsets, strict=True):
            sizes[index] = table.ctypes.data
        operands = copy_operands(src + self.launch.src_offset, dst + self.launch.dst_offset)
        self.function(operands, 0, sizes.ctypes.data, 0, len(src_offsets))


def offset_calls(launches: tuple[Launch, ...], *, hold_gil: bool) -> tuple[OffsetCall, ...]:
    """The calls of launches over one table each, in order; none where another table needs other kernels.

    hold_gil: whether calls hold Python's lock.
    """
    found = []
    for launch in launches:
        calls = launch.calls
        if not isinstance(calls, TableCalls) or len(calls.tables) != 1 or launch.trips > TABLE_CHUNK:
            return ()
        if launch.misaligned or launch.scratch_bytes or launch.units != (1, 1):
            return ()
        index = launch.step.kernel.arguments.index
        src, dst = map(index, OFFSET_TABLES)
        function = KERNEL_PROTOTYPES[hold_gil](launch.step.kernel.address)
        found.append(OffsetCall(launch, calls, function, (src, dst)))
    return tuple(found)
