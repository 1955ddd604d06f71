"""Copies of entries at offsets, which each call makes from indices.

A program is compiled for the entries of one table, or for one entry. Its kernels do the same for any other
table of the same length, so callers that copy other entries each time need not compile again. A kernel of its
own checks the indices and makes the table, so that a call never returns to Python in between.
"""

from __future__ import annotations

import ctypes
from math import prod
from struct import Struct
from typing import Any

import numpy as np

from codegen.analysis.ranges import check_range
from codegen.emit.abi import kernel_head
from codegen.ir.lines import LINE_BYTES
from codegen.runtime.call_tables import Bounds, Integers
from codegen.runtime.copy_calls import TABLE_CHUNK, TableCalls
from codegen.runtime.direct_entries import RESULT, DirectCall
from codegen.runtime.kernel import KERNEL_PROTOTYPES, NativeFunction, copy_operands, native_address
from codegen.runtime.launch import Launch
from codegen.runtime.threads import scratch
from codegen.schedule.offset_tables import OFFSET_TABLES
from codegen.support.dataclasses import dataclass

_CHECK = "offsets_of_indices"
_CHECK_SOURCE = f'''"""{_CHECK}

for entries [begin, end): the offset of the cell that the entry's indices name in a grid, each index checked
offsets, homes and slots lie one after the other in `scratch`; refused[0] = 1 if an index lies outside
opaque: each index is read once, whatever another thread writes meanwhile
mask: of the slots, a hash table that refuses a cell named twice; 0 without. A slot holds an entry if this
entry's home is the slot, so nothing has to be cleared. The multiplier is 2**64 divided by the golden ratio
"""

{kernel_head(_CHECK)}
    indices, refused = addresses_2(operands)
    step, mask, rank = arguments_3(sizes)
    homes = scratch + 8 * (end - begin)
    slots = homes + 8 * (end - begin)
    for entry in range(begin, end):
        cell = 0
        for axis in range(rank):
            index = opaque(int64_at(indices, rank * entry + axis))
            extent = int64_at(sizes, 3 + axis)
            if index < 0 or index >= extent:
                store_u64_at(refused, 0, 1)
                return
            cell = extent * cell + index
        offset = step * cell
        if mask != 0:
            slot = ((cell * -7046029254386353131) >> 32) & mask
            other = int64_at(slots, slot)
            while 0 <= other and other < entry and int64_at(homes, other) == slot:
                if int64_at(scratch, other) == offset:
                    store_u64_at(refused, 0, 1)
                    return
                slot = (slot + 1) & mask
                other = int64_at(slots, slot)
            store_u64_at(slots, 8 * slot, entry)
            store_u64_at(homes, 8 * entry, slot)
        store_u64_at(scratch, 8 * entry, offset)
'''

_EACH = "call_at_offsets"
_EACH_SOURCE = f'''"""{_EACH}

for entries [begin, end) and `count` rows of 8 numbers: one call of a kernel, at the entry's offsets in bytes
"""

{kernel_head(_EACH)}
    src, dst = addresses_2(operands)
    src_offsets, dst_offsets, rows, count = arguments_4(sizes)
    own_operands = stack_16()
    for entry in range(begin, end):
        src_entry = src + int64_at(src_offsets, entry)
        dst_entry = dst + int64_at(dst_offsets, entry)
        for row in range(count):
            call = rows + 64 * row
            kernel, own_sizes, first, last, src_units, src_at, dst_units, dst_at = arguments_8(call)
            store_u64_at(own_operands, 0, src_units * src_entry + src_at)
            store_u64_at(own_operands, 8, dst_units * dst_entry + dst_at)
            call_kernel(kernel, own_operands, scratch, own_sizes, first, last)
'''

_tables = Struct("=2q").pack


@dataclass(frozen=True, slots=True)
class OffsetCall:
    """One call of a kernel for tables of offsets.

    code        where its machine code begins; `function` calls it from Python
    src_offset  bytes from the source, and dst_offset from the destination, to what the offsets count from
    rest        its arguments after the two tables
    held        what they point to
    """

    function: NativeFunction
    code: int
    src_offset: int
    dst_offset: int
    rest: bytes
    held: object


@dataclass(frozen=True, slots=True)
class OffsetCalls:
    """The calls of a copy between entries of a grid that indices name, and entries at fixed offsets.

    calls    one after the other, for `count` entries
    offsets  those of the other side's entries, whose address is `offsets_at`
    grid     arguments of the kernel that checks the indices: step, mask, rank, extents
    into     whether the grid is the destination
    check    the kernel that checks the indices
    words    the class of its scratch, with one word more for what it refuses
    scratch_bytes  the scratch of the others
    """

    calls: tuple[OffsetCall, ...]
    offsets: Integers
    offsets_at: int
    count: int
    grid: Integers
    grid_at: int
    into: bool
    check: NativeFunction
    words: Any
    scratch_bytes: int

    def __call__(self, grid: int, others: int, indices: int) -> bool:
        """Copy between two addresses; return False, with nothing written, if the indices are refused.

        indices: the address of `count` times as many 64-bit integers as the grid has axes.
        """
        words = self.words()
        at = ctypes.addressof(words)
        self.check(copy_operands(indices, at + 8 * (len(words) - 1)), at, self.grid_at, 0, self.count)
        if words[-1]:
            return False
        tables = _tables(self.offsets_at, at) if self.into else _tables(at, self.offsets_at)
        src, dst = (others, grid) if self.into else (grid, others)
        room = scratch(self.scratch_bytes) if self.scratch_bytes else None
        room_at = 0 if room is None else room.ctypes.data
        for call in self.calls:
            operands = copy_operands(src + call.src_offset, dst + call.dst_offset)
            call.function(operands, room_at, tables + call.rest, 0, self.count)
        return True

    @property
    def direct_bytes(self) -> int:
        """The scratch of direct calls."""
        return self._words_bytes + self.scratch_bytes

    @property
    def _words_bytes(self) -> int:
        return -(-ctypes.sizeof(self.words) // LINE_BYTES) * LINE_BYTES

    def direct(self, grid: int, others: int, indices: int, scratch: int) -> tuple[DirectCall, ...]:
        """The calls as machine code makes them while it holds the GIL, which `scratch` belongs to.

        grid, others, indices: positions of the arguments.
        """
        code = native_address(_CHECK, _CHECK_SOURCE)
        check = DirectCall(code, ((indices, 0), RESULT), self.grid, 0, self.count, scratch=scratch)
        tables = [self.offsets_at, scratch] if self.into else [scratch, self.offsets_at]
        src, dst = (others, grid) if self.into else (grid, others)
        return check, *(
            DirectCall(
                call.code,
                ((src, call.src_offset), (dst, call.dst_offset)),
                np.array([*tables, *np.frombuffer(call.rest, np.int64)], np.int64),
                0,
                self.count,
                scratch=scratch + self._words_bytes if self.scratch_bytes else 0,
            )
            for call in self.calls
        )


def offset_calls(
    launches: tuple[Launch, ...],
    offsets: Integers,
    extents: tuple[int, ...],
    step: int,
    *,
    into: bool,
    unique: bool,
    hold_gil: bool,
    bounds: tuple[Bounds, Bounds] | None = None,
) -> OffsetCalls | None:
    """The calls of launches, in order; None where other indices need other kernels.

    Args:
        launches: of the copy of all entries, over one table each; with `bounds`, of the copy of one entry.
        offsets: of the entries on the side that is not the grid, in bytes.
        extents: of the grid, the most major first.
        step: bytes from each cell of the grid to the next.
        into: whether the grid is the destination.
        unique: whether to refuse a cell that is named twice.
        hold_gil: whether calls hold Python's lock.
        bounds: bytes that may be touched, from the addresses of the source and of the destination.

    Raises:
        KernelError: with such an offset, an entry would leave one of the storages.
    """
    count, cells = len(offsets), prod(extents)
    ranges = range(0, step * (cells - 1) + 1), range(int(offsets.min()), int(offsets.max()) + 1)
    src_range, dst_range = ranges[::-1] if into else ranges
    if count > TABLE_CHUNK:
        return None
    if bounds is None:
        calls, scratch_bytes = _table_calls(launches, count, src_range, dst_range, hold_gil), 0
    else:
        calls = (_call_at_each(launches, src_range, dst_range, bounds, hold_gil),)
        scratch_bytes = max((launch.scratch_bytes for launch in launches), default=0)
    if not calls:
        return None
    slots = 1 << (2 * count - 1).bit_length() if unique else 0
    grid = np.array([step, max(slots - 1, 0), len(extents), *extents], np.int64)
    return OffsetCalls(
        calls,
        offsets,
        offsets.ctypes.data,
        count,
        grid,
        grid.ctypes.data,
        into,
        KERNEL_PROTOTYPES[True](native_address(_CHECK, _CHECK_SOURCE)),
        ctypes.c_int64 * (2 * count + slots + 1),
        scratch_bytes,
    )


def _table_calls(
    launches: tuple[Launch, ...], count: int, src_range: range, dst_range: range, hold_gil: bool
) -> tuple[OffsetCall, ...]:
    """The calls of launches over one table of `count` entries each; none where another table needs others."""
    found = []
    for launch in launches:
        calls = launch.calls
        if not isinstance(calls, TableCalls) or [x.extent for x in calls.tables] != [count]:
            return ()
        if launch.trips != count or launch.misaligned or launch.scratch_bytes or launch.units != (1, 1):
            return ()
        if launch.step.kernel.arguments[:2] != OFFSET_TABLES:
            return ()
        low, high, dst_low, dst_high = calls.reach
        src_bounds, dst_bounds = calls.bounds
        check_range("source", src_range[0] + low, src_range[-1] + high, src_bounds)
        check_range("destination", dst_range[0] + dst_low, dst_range[-1] + dst_high, dst_bounds)
        code, rest = launch.step.kernel.address, launch.sizes[2:].tobytes()
        function = KERNEL_PROTOTYPES[hold_gil](code)
        found.append(OffsetCall(function, code, launch.src_offset, launch.dst_offset, rest, launch))
    return tuple(found)


def _call_at_each(
    launches: tuple[Launch, ...],
    src_range: range,
    dst_range: range,
    bounds: tuple[Bounds, Bounds],
    hold_gil: bool,
) -> OffsetCall:
    """The call that calls the kernels of one entry for each."""
    calls = tuple(call for launch in launches for call in launch.every_call(aligned=False))
    for launch, _ in calls:
        (low, high), (dst_low, dst_high) = launch.bounds
        check_range("source", src_range[0] + low, src_range[-1] + high, bounds[0])
        check_range("destination", dst_range[0] + dst_low, dst_range[-1] + dst_high, bounds[1])
    rows = np.array(
        [
            (
                launch.step.kernel.address,
                call.sizes.ctypes.data,
                call.begin,
                call.end,
                launch.units[0],
                launch.src_offset,
                launch.units[1],
                launch.dst_offset,
            )
            for launch, call in calls
        ],
        np.int64,
    )
    code, rest = native_address(_EACH, _EACH_SOURCE), _tables(rows.ctypes.data, len(rows))
    return OffsetCall(KERNEL_PROTOTYPES[hold_gil](code), code, 0, 0, rest, (calls, rows))
