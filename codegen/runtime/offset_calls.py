"""Copies of entries at offsets, which each call makes from indices.

A kernel of its own checks the indices and makes the table of offsets, so that a call never returns to Python
in between.
"""

from __future__ import annotations

from functools import partial
from struct import Struct

import numpy as np

from codegen.ir.lines import LINE_BYTES
from codegen.runtime.call_tables import Integers
from codegen.runtime.direct_entries import RESULT, DirectCall
from codegen.runtime.kernel import NativeFunction, copy_operands
from codegen.runtime.offset_kernels import CheckScratch, check_code
from codegen.runtime.threads import run_parts, scratch
from codegen.support.dataclasses import dataclass

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


class OffsetCalls:
    """The calls of a copy between entries of a grid that indices name, and entries at fixed offsets.

    calls          one after the other, for `count` entries, at most a chunk at a time
    offsets        those of the other side's first chunk of entries
    stride         from one entry of the other side to the next; None if it differs: then there is one chunk
    grid           arguments of the kernel that checks the indices: step, mask, rank, extents
    into           whether the grid is the destination
    divisible      whether threads may share the entries
    check          the kernel that checks the indices
    check_scratch  the scratch of that kernel
    scratch_bytes  the size of the scratch of the others
    """

    __slots__ = (
        "_calls",
        "_check",
        "_check_scratch",
        "_chunk",
        "_count",
        "_divisible",
        "_grid",
        "_grid_address",
        "_offsets",
        "_offsets_address",
        "_scratch_bytes",
        "_stride",
        "into",
    )

    def __init__(
        self,
        calls: tuple[OffsetCall, ...],
        offsets: Integers,
        stride: int | None,
        count: int,
        grid: Integers,
        *,
        into: bool,
        divisible: bool,
        check: NativeFunction,
        check_scratch: CheckScratch,
        scratch_bytes: int,
    ) -> None:
        self._calls, self._count, self._chunk, self._stride = calls, count, len(offsets), stride or 0
        self._offsets, self._offsets_address = offsets, offsets.ctypes.data
        self._grid, self._grid_address = grid, grid.ctypes.data
        self.into, self._divisible = into, divisible
        self._check, self._check_scratch, self._scratch_bytes = check, check_scratch, scratch_bytes

    def __call__(
        self, grid: int, others: int, indices: int, threads: int = 1, *, alive: object = None
    ) -> bool:
        """Copy between two addresses; return False, with nothing written, if the indices are refused.

        indices: the address of `count` times as many 64-bit integers as the grid has axes.
        alive: what the addresses belong to.
        """
        words, at = self._check_scratch.new()
        refused = at + self._check_scratch.refused_offset
        self._check(copy_operands(indices, refused), at, self._grid_address, 0, self._count)
        if words[-1]:
            return False
        if threads == 1 and self._count == self._chunk:
            self._copy(grid, others, at, self._count)
        else:
            parts = threads if self._divisible else 1
            run_parts(partial(self._part, grid, others, at, (words, alive)), parts)
        return True

    def _part(self, grid: int, others: int, table: int, alive: object, part: int, parts: int) -> None:
        begin, end = (self._count * k // parts for k in (part, part + 1))
        for start in range(begin, end, self._chunk):
            there = others + start * self._stride
            self._copy(grid, there, table + 8 * start, min(self._chunk, end - start))

    def _copy(self, grid: int, others: int, table: int, count: int) -> None:
        """Copy entries, whose offsets in the grid are in the table at that address."""
        if self.into:
            src, dst, tables = others, grid, _tables(self._offsets_address, table)
        else:
            src, dst, tables = grid, others, _tables(table, self._offsets_address)
        room = scratch(self._scratch_bytes) if self._scratch_bytes else None
        room_at = 0 if room is None else room.ctypes.data
        for call in self._calls:
            if call.misaligned and (dst + call.dst_offset) % LINE_BYTES:
                call = call.misaligned
            operands = copy_operands(src + call.src_offset, dst + call.dst_offset)
            call.function(operands, room_at, tables + call.rest, 0, count)

    def is_direct(self, *, own: bool) -> bool:
        """Whether machine code may make the calls: they are few, and the same for any address.

        own: whether each call has scratch of its own.
        """
        chunks = -(-self._count // self._chunk)
        few = chunks == 1 if own else chunks * len(self._calls) <= MOST_DIRECT_CALLS
        return few and not any(x.misaligned for x in self._calls)

    @property
    def direct_bytes(self) -> int:
        """The scratch of direct calls."""
        return self._check_bytes + self._scratch_bytes

    @property
    def _check_bytes(self) -> int:
        return -(-self._check_scratch.size_bytes // LINE_BYTES) * LINE_BYTES

    def direct(
        self, grid: int, others: int, indices: int, scratch: int, own: int | None = None
    ) -> tuple[DirectCall, ...]:
        """The calls as machine code makes them.

        grid, others, indices: positions of the arguments.
        scratch: its address, which belongs to the GIL; 0 if each call has its own, at the position `own`.
        """
        operands = (indices, 0), RESULT
        calls = [DirectCall(check_code(), operands, self._grid, 0, self._count, scratch=scratch)]
        slots = () if own is None else ((int(self.into), own),)
        for start in range(0, self._count, self._chunk):
            table, moved = scratch + 8 * start, start * self._stride
            tables = [self._offsets_address, table] if self.into else [table, self._offsets_address]
            for call in self._calls:
                src, dst = (grid, call.src_offset), (others, call.dst_offset + moved)
                if self.into:
                    src, dst = (others, call.src_offset + moved), (grid, call.dst_offset)
                calls.append(
                    DirectCall(
                        call.code,
                        (src, dst),
                        np.array([*tables, *np.frombuffer(call.rest, np.int64)], np.int64),
                        0,
                        min(self._chunk, self._count - start),
                        slots,
                        scratch + self._check_bytes if self._scratch_bytes else 0,
                    )
                )
        return tuple(calls)
