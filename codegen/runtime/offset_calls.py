"""Copies of entries at offsets, which each call makes from indices.

A program is compiled for the entries of one table, or for one entry. Its kernels do the same for any other
table of the same length, so callers that copy other entries each time need not compile again. A kernel of its
own checks the indices and makes the table, so that a call never returns to Python in between.
"""

from __future__ import annotations

import ctypes
from functools import partial
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
from codegen.runtime.threads import run_parts, scratch
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


MOST_DIRECT_CALLS = 16
"""The most kernel calls of one direct call."""


@dataclass(frozen=True, slots=True)
class OffsetCall:
    """One call of a kernel for tables of offsets.

    code        where its machine code begins; `function` calls it from Python
    src_offset  bytes from the source, and dst_offset from the destination, to what the offsets count from
    rest        its arguments after the two tables
    held        what they point to
    misaligned  the call that runs instead where `dst_offset` from the destination does not begin a line
    """

    function: NativeFunction
    code: int
    src_offset: int
    dst_offset: int
    rest: bytes
    held: object
    misaligned: OffsetCall | None = None


@dataclass(frozen=True, slots=True)
class OffsetCalls:
    """The calls of a copy between entries of a grid that indices name, and entries at fixed offsets.

    calls    one after the other, for `count` entries, at most TABLE_CHUNK at a time
    offsets  those of the other side's first TABLE_CHUNK entries, whose address is `offsets_at`
    stride   from one entry of the other side to the next; None if it differs, and then entries are few
    grid     arguments of the kernel that checks the indices: step, mask, rank, extents
    into     whether the grid is the destination
    divisible  whether threads may share the entries
    check    the kernel that checks the indices
    words    the class of its scratch, with one word more for what it refuses, `refused_at` bytes on
    scratch_bytes  the scratch of the others
    """

    calls: tuple[OffsetCall, ...]
    offsets: Integers
    offsets_at: int
    stride: int | None
    count: int
    grid: Integers
    grid_at: int
    into: bool
    divisible: bool
    check: NativeFunction
    words: Any
    refused_at: int
    scratch_bytes: int

    def __call__(
        self, grid: int, others: int, indices: int, threads: int = 1, *, alive: object = None
    ) -> bool:
        """Copy between two addresses; return False, with nothing written, if the indices are refused.

        indices: the address of `count` times as many 64-bit integers as the grid has axes.
        alive: what the addresses belong to.
        """
        if self.count <= TABLE_CHUNK:
            words: Any = self.words()
            at = ctypes.addressof(words)
        else:  # ctypes would clear it
            words = np.empty(self.refused_at // 8 + 1, np.int64)
            words[-1], at = 0, words.ctypes.data
        self.check(copy_operands(indices, at + self.refused_at), at, self.grid_at, 0, self.count)
        if words[-1]:
            return False
        if threads == 1 and self.count <= TABLE_CHUNK:
            self._copy(grid, others, at, self.count)
        else:
            parts = threads if self.divisible else 1
            run_parts(partial(self._part, grid, others, at, (words, alive)), parts)
        return True

    def _part(self, grid: int, others: int, table: int, alive: object, part: int, parts: int) -> None:
        begin, end = (self.count * k // parts for k in (part, part + 1))
        for start in range(begin, end, TABLE_CHUNK):
            there = others + start * (self.stride or 0)
            self._copy(grid, there, table + 8 * start, min(TABLE_CHUNK, end - start))

    def _copy(self, grid: int, others: int, table: int, count: int) -> None:
        """Copy entries, whose offsets in the grid are in the table at that address."""
        if self.into:
            src, dst, tables = others, grid, _tables(self.offsets_at, table)
        else:
            src, dst, tables = grid, others, _tables(table, self.offsets_at)
        room = scratch(self.scratch_bytes) if self.scratch_bytes else None
        room_at = 0 if room is None else room.ctypes.data
        for call in self.calls:
            if call.misaligned and (dst + call.dst_offset) % LINE_BYTES:
                call = call.misaligned
            operands = copy_operands(src + call.src_offset, dst + call.dst_offset)
            call.function(operands, room_at, tables + call.rest, 0, count)

    def is_direct(self, *, own: bool) -> bool:
        """Whether machine code may make the calls: they are few, and the same for any address.

        own: whether each call has scratch of its own.
        """
        chunks = -(-self.count // TABLE_CHUNK)
        few = chunks == 1 if own else chunks * len(self.calls) <= MOST_DIRECT_CALLS
        return few and not any(x.misaligned for x in self.calls)

    @property
    def direct_bytes(self) -> int:
        """The scratch of direct calls."""
        return self._words_bytes + self.scratch_bytes

    @property
    def _words_bytes(self) -> int:
        return -(-ctypes.sizeof(self.words) // LINE_BYTES) * LINE_BYTES

    def direct(
        self, grid: int, others: int, indices: int, scratch: int, own: int | None = None
    ) -> tuple[DirectCall, ...]:
        """The calls as machine code makes them.

        grid, others, indices: positions of the arguments.
        scratch: its address, which belongs to the GIL; 0 if each call has its own, at the position `own`.
        """
        code = native_address(_CHECK, _CHECK_SOURCE)
        calls = [DirectCall(code, ((indices, 0), RESULT), self.grid, 0, self.count, scratch=scratch)]
        slots = () if own is None else ((int(self.into), own),)
        for start in range(0, self.count, TABLE_CHUNK):
            table, moved = scratch + 8 * start, start * (self.stride or 0)
            tables = [self.offsets_at, table] if self.into else [table, self.offsets_at]
            for call in self.calls:
                src, dst = (grid, call.src_offset), (others, call.dst_offset + moved)
                if self.into:
                    src, dst = (others, call.src_offset + moved), (grid, call.dst_offset)
                calls.append(
                    DirectCall(
                        call.code,
                        (src, dst),
                        np.array([*tables, *np.frombuffer(call.rest, np.int64)], np.int64),
                        0,
                        min(TABLE_CHUNK, self.count - start),
                        slots,
                        scratch + self._words_bytes if self.scratch_bytes else 0,
                    )
                )
        return tuple(calls)


def offset_calls(
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
    """The calls of launches, in order; None where other indices need other kernels.

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
    make = _Made(count, starts, bounds, hold_gil, on_lines)
    calls = make.table_calls(launches) if bounds is None else (make.call_at_each(launches),)
    if not calls:
        return None
    every = [x for launch in launches for x in (launch, launch.misaligned) if x]
    slots = 1 << (2 * count - 1).bit_length() if unique else 0
    grid = np.array([step, max(slots - 1, 0), len(extents), *extents], np.int64)
    first = offsets[:TABLE_CHUNK].copy()
    return OffsetCalls(
        calls,
        first,
        first.ctypes.data,
        stride,
        count,
        grid,
        grid.ctypes.data,
        into,
        divisible and stride is not None,
        KERNEL_PROTOTYPES[count <= TABLE_CHUNK](native_address(_CHECK, _CHECK_SOURCE)),
        ctypes.c_int64 * (2 * count + slots + 1),
        8 * (2 * count + slots),
        max((launch.scratch_bytes for launch in every), default=0),
    )


def _stride(offsets: Integers) -> int | None:
    """From each offset to the next, if it is the same everywhere."""
    if len(offsets) < 2:
        return 0
    step = int(offsets[1] - offsets[0])
    return step if (np.diff(offsets) == step).all() else None


@dataclass(frozen=True, slots=True)
class _Made:
    """Makes the calls for `count` entries.

    starts    of entries, as `range` of their offsets in the source and in the destination
    bounds    as `offset_calls` has them
    on_lines  whether every entry begins at the same offset in a line as the destination
    """

    count: int
    starts: tuple[range, ...]
    bounds: tuple[Bounds, Bounds] | None
    hold_gil: bool
    on_lines: bool

    def table_calls(self, launches: tuple[Launch, ...]) -> tuple[OffsetCall, ...]:
        """The calls over one table of all entries each; none where another table needs others."""
        found = [self._table_call(launch) for launch in launches]
        return tuple(x for x in found if x) if all(found) else ()

    def _table_call(self, launch: Launch) -> OffsetCall | None:
        other = self._table_call(launch.misaligned) if launch.misaligned else None
        if launch.misaligned and not (other and self.on_lines):
            return other
        calls = launch.calls
        if not isinstance(calls, TableCalls) or [x.extent for x in calls.tables] != [self.count]:
            return None
        if launch.trips != self.count or launch.units != (1, 1):
            return None
        if launch.runs.kernel.arguments[:2] != OFFSET_TABLES:
            return None
        low, high, dst_low, dst_high = calls.reach
        self._check((low, high), (dst_low, dst_high), calls.bounds)
        rest = launch.sizes[2:].tobytes()
        return self._call(
            launch.runs.kernel.address,
            launch.src_offset,
            launch.dst_offset,
            rest,
            launch.runs,  # it has the tables that `rest` points to; the launch has those of all entries
            other,
        )

    def call_at_each(self, launches: tuple[Launch, ...]) -> OffsetCall:
        """The call that calls the kernels of one entry for each."""
        other = self._calls_at_each(launches, None, aligned=False)
        if self.on_lines and any(launch.misaligned for launch in launches):
            return self._calls_at_each(launches, other, aligned=True)
        return other

    def _calls_at_each(
        self, launches: tuple[Launch, ...], other: OffsetCall | None, *, aligned: bool
    ) -> OffsetCall:
        calls = tuple(call for launch in launches for call in launch.every_call(aligned=aligned))
        for launch, _ in calls:
            self._check(*launch.bounds, self.bounds)
        rows = np.array(
            [
                (
                    launch.runs.kernel.address,
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
        return self._call(code, 0, 0, rest, (calls, rows), other)

    def _call(
        self, code: int, src_offset: int, dst_offset: int, rest: bytes, held: object, other: OffsetCall | None
    ) -> OffsetCall:
        function = KERNEL_PROTOTYPES[self.hold_gil](code)
        return OffsetCall(function, code, src_offset, dst_offset, rest, held, other)

    def _check(self, src: Bounds, dst: Bounds, bounds: tuple[Bounds, Bounds] | None) -> None:
        """Check that an entry which touches [low, high) of both sides stays in bounds, wherever it begins."""
        assert bounds
        for name, starts, (low, high), allowed in zip(
            ("source", "destination"), self.starts, (src, dst), bounds, strict=True
        ):
            check_range(name, starts[0] + low, starts[-1] + high, allowed)
