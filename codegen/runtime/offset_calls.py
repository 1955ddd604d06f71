"""Kernels that loop over the entries of one offset table, which each call passes.

A program is compiled for the entries of one table. Its kernels do the same for any other table of the same
length, so callers that copy other tiles each time need not compile again.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from codegen.analysis.ranges import check_range
from codegen.runtime.copy_calls import TABLE_CHUNK, TableCalls
from codegen.runtime.kernel import KERNEL_PROTOTYPES, NativeFunction, copy_operands
from codegen.runtime.launch import Launch
from codegen.schedule.offset_tables import OFFSET_TABLES

_tables = Struct("=2q").pack


@dataclass(frozen=True, slots=True)
class OffsetCall:
    """One call of a kernel for a table of offsets.

    rest   the arguments after the two tables
    count  entries of a table
    """

    launch: Launch
    function: NativeFunction
    rest: bytes
    count: int

    def __call__(self, src: int, dst: int, src_offsets: int, dst_offsets: int) -> None:
        """Run it between two addresses.

        src_offsets, dst_offsets: the addresses of `count` 64-bit offsets in bytes, within the ranges that
        the call was made for.
        """
        operands = copy_operands(src + self.launch.src_offset, dst + self.launch.dst_offset)
        self.function(operands, 0, _tables(src_offsets, dst_offsets) + self.rest, 0, self.count)


def offset_calls(
    launches: tuple[Launch, ...], count: int, src_range: range, dst_range: range, *, hold_gil: bool
) -> tuple[OffsetCall, ...]:
    """The calls of launches over one table each, in order; none where another table needs other kernels.

    count: entries of every table. src_range, dst_range: where their offsets lie. hold_gil: whether calls hold
    Python's lock.

    Raises:
        KernelError: with such an offset, an entry would leave one of the storages.
    """
    found = []
    for launch in launches:
        calls = launch.calls
        if not isinstance(calls, TableCalls) or [x.extent for x in calls.tables] != [count]:
            return ()
        if launch.trips != count or count > TABLE_CHUNK:
            return ()
        if launch.misaligned or launch.scratch_bytes or launch.units != (1, 1):
            return ()
        if launch.step.kernel.arguments[:2] != OFFSET_TABLES:
            return ()
        low, high, dst_low, dst_high = calls.reach
        src_bounds, dst_bounds = calls.bounds
        check_range("source", src_range[0] + low, src_range[-1] + high, src_bounds)
        check_range("destination", dst_range[0] + dst_low, dst_range[-1] + dst_high, dst_bounds)
        function = KERNEL_PROTOTYPES[hold_gil](launch.step.kernel.address)
        found.append(OffsetCall(launch, function, launch.sizes[2:].tobytes(), count))
    return tuple(found)
