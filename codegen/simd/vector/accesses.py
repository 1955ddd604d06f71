"""Loads, stores, streams and prefetches of vectors and blocks at raw addresses.

Accesses carry no alias information, because a kernel may write the array that it reads. Lanes that `_first`
forms leave out are never accessed, so they may be on an unmapped page. An "i1" takes a byte in memory, as in
NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.errors import TypingError

from codegen.ir.access_families import PREFETCH, AccessFamily
from codegen.ir.element_types import HALF_TYPES
from codegen.ir.lines import LINE_BYTES
from codegen.ir.routines import Routine
from codegen.simd.register.completed_lines import completed
from codegen.simd.register.intrinsics import routine as intrinsic
from codegen.simd.register.memory import I8, I16, I32, I64, load_untagged, prefetch, store_untagged
from codegen.simd.register.shuffles import concatenated, cut
from codegen.simd.register.values import (
    MASK,
    Vector,
    bytes_in,
    from_bytes,
    from_rows,
    in_rows,
    is_in_lines,
    joined,
    lane,
    lanes_of,
    number,
    row_of,
    rows_of,
    shape,
    to_bytes,
    wide,
)
from codegen.simd.vector.addresses import ADDRESSES
from codegen.simd.vector.masked import first_mask, gather, load_masked, scatter, store_masked
from codegen.simd.vector.minifloats import from_half, to_quiet_half
from codegen.simd.vector.strided import spaced
from codegen.support.dataclasses import dataclass


def access(routine: Routine, family: AccessFamily) -> Any:
    """The access of a vector or a block:

        load_f32x16(address)
        load_u32x16x4(address, pitch_bytes)          16 rows of 4 lanes
        strided_load_…(address, step_bytes)
        gather_…(address, offsets)                   by a vector of offsets in bytes
        store_…(address, v)
        strided_store_…(address, step_bytes, v)      of lanes that share an address the last one wins
        scatter_…(address, offsets, v)               the same, by a vector of offsets in bytes
        stream_…(address, v)                         non-temporal, at a multiple of its size or of a line
        prefetch_…(address)                          requests for lines

    "first" forms take a number of leading lanes as the last argument; the other lanes read as 0. For a block
    they store as many rows, fewer than all. "where" forms take a mask there, and "carried" ones the address
    of the line before each row (`Store.carry`). Stores also take all lanes of a
    block in one vector, and whole lines in any rows. A `stream_fence` must follow streams before other
    threads read the data.
    """
    made = _Access(routine, family)
    return intrinsic(routine.name, made.before_value + made.writes + bool(routine.form), made.rule)


@dataclass(frozen=True, slots=True)
class _Access:
    """The types and the code of one access."""

    routine: Routine
    family: AccessFamily

    @property
    def half(self) -> str:
        return self.routine.dtype if self.routine.dtype in HALF_TYPES else ""

    @property
    def kind(self) -> Vector:
        """The type of the value."""
        *rows, lanes = self.routine.shape
        return Vector("f32" if self.half else self.routine.dtype, lanes, *rows)

    @property
    def writes(self) -> bool:
        return not self.family.reads

    @property
    def is_block(self) -> bool:
        return len(self.routine.shape) > 1

    @property
    def before_value(self) -> int:
        """The arguments before the value: the address, the pitch or table of rows, and the step of lanes."""
        return 1 + self.is_block + bool(self.family.apart)

    def rule(self, *kinds: Any) -> Any:
        """The signature for arguments of these types, and the code."""
        name, kind = self.routine.name, self.kind
        signature: list[Any] = [types.int64] * len(kinds)
        if self.family.apart == "offsets":
            if shape(kinds[1]) != ("i64", kind.lanes):
                raise TypingError(f"{name}: expected {kind.lanes} 64-bit offsets, got {kinds[1]}")
            signature[1] = kinds[1]
        if self.writes:
            written = kinds[self.before_value]
            dtype, lanes = shape(written)
            if (dtype, lanes * rows_of(written)) != (kind.dtype, kind.lanes * kind.rows):
                raise TypingError(f"{name}: expected {kind}, got {written}; cast it first")
            if rows_of(written) not in (1, kind.rows) and not (is_in_lines(written) and is_in_lines(kind)):
                raise TypingError(f"{name}: expected {kind.rows} rows, got {written}")
            signature[self.before_value] = written
        if self.routine.form == "where":
            if shape(kinds[-1]) != (MASK, kind.lanes) or rows_of(kinds[-1]) != kind.rows:
                raise TypingError(f"{name}: expected a mask of {kind.lanes} lanes, got {kinds[-1]}")
            signature[-1] = kinds[-1]
        result = types.void if self.writes or self.family == PREFETCH else kind
        return result(*signature), self.emit

    def emit(self, builder: Any, address: Any, *operands: Any) -> Any:
        """A vector or a block; None for stores and prefetches."""
        values = list(operands)
        starts: Iterator[Any] = iter([address])
        if self.is_block:
            starts = ADDRESSES[self.routine.place](builder, address, values.pop(0), self.kind.rows)
        step = values.pop(0) if self.family.apart else None
        if self.writes:
            values[0] = in_rows(builder, self.kind, values[0])
        if self.is_block and self.routine.form == "first":
            self.first_rows(builder, starts, step, *values)
            return None
        if self.routine.form == "carried":
            self.completed_lines(builder, starts, *values)
            return None
        made = [
            self.row(builder, at, step, *(row_of(builder, value, k) for value in values))
            for k, at in enumerate(list(starts))
        ]
        return None if made[0] is None else from_rows(builder, made)

    def first_rows(self, builder: Any, starts: Iterator[Any], step: Any, block: Any, count: Any) -> None:
        """Stores of the first rows. Each of the nested tests of their number adds a store."""
        with ExitStack() as inside:
            for k in range(self.kind.rows - 1):
                more = builder.icmp_signed(">", count, number(I64, k))
                inside.enter_context(builder.if_then(more, likely=True))
                self.row(builder, next(starts), step, row_of(builder, block, k))

    def completed_lines(self, builder: Any, starts: Iterator[Any], block: Any, carry: Any) -> None:
        """Streams of the lines that rows complete. The rows then are the bytes before the next rows."""
        for k, address in enumerate(starts):
            row = builder.bitcast(row_of(builder, block, k), wide(I8, LINE_BYTES))
            waiting = builder.add(carry, number(I64, k * LINE_BYTES))
            begun = builder.and_(address, number(I64, LINE_BYTES - 1))
            line = completed(builder, load_untagged(builder, waiting, row.type), row, begun)
            self.store_lines(builder, line, builder.sub(address, begun))
            store_untagged(builder, row, waiting)

    def row(self, builder: Any, address: Any, step: Any, *values: Any) -> Any:
        """The access of one row; None for stores and prefetches."""
        if self.family == PREFETCH:
            for k in range(0, self.kind.row_bytes, LINE_BYTES):
                prefetch(builder, builder.add(address, number(I64, k)))
        elif self.writes:
            value, *mask = values
            self.store(builder, self.to_memory(builder, value), address, step, self.mask(builder, *mask))
        else:
            return self.load(builder, address, step, self.mask(builder, *values))
        return None

    def mask(self, builder: Any, given: Any = None) -> Any:
        """The lanes of a row in memory that are accessed; None for all."""
        if given is None:
            return None
        if self.routine.form == "first":
            given = first_mask(
                builder, given, self.kind.lanes, 16 if self.half else min(8 * self.kind.element_bytes, 64)
            )
        parts = max(self.kind.element_bytes // 8, 1)  # a wide element is several lanes
        if parts == 1:
            return given
        return joined(builder, [lane(builder, given, k // parts) for k in range(parts * self.kind.lanes)])

    def load(self, builder: Any, address: Any, step: Any, mask: Any) -> Any:
        element = I16 if self.half else I8 if self.kind.dtype == MASK else None
        memory = self.kind.row if element is None else wide(element, self.kind.lanes)
        if self.family.apart == "offsets":
            found = gather(builder, address, step, memory, mask)
        elif mask is not None:
            found = load_masked(builder, address, step, memory, mask)
        elif step is not None:
            found = spaced(builder, address, step, memory)
        else:
            found = _load_lines(builder, address, memory)
        if self.half:
            return from_half(builder, found, self.half)
        return from_bytes(builder, found) if self.kind.dtype == MASK else found

    def to_memory(self, builder: Any, value: Any) -> Any:
        """A row of the value as it is stored."""
        if self.half:
            return to_quiet_half(builder, value, self.half)
        return to_bytes(builder, value) if self.kind.dtype == MASK else value

    def store(self, builder: Any, value: Any, address: Any, step: Any, mask: Any) -> None:
        if self.family.apart == "offsets":
            scatter(builder, value, address, step, mask)
        elif mask is not None:
            store_masked(builder, value, address, step, mask)
        elif step is None:
            self.store_lines(builder, value, address)
        else:
            for k in range(lanes_of(value)):
                at = builder.add(address, builder.mul(step, number(I64, k)))
                store_untagged(builder, lane(builder, value, k), at)

    def store_lines(self, builder: Any, row: Any, address: Any) -> None:
        """Store a row, line by line."""
        for first, count in _lines(row.type):
            part = cut(builder, row, first, count) if count > 1 else row
            size = bytes_in(part.type)
            done = store_untagged(builder, part, builder.add(address, number(I64, first // count * size)))
            if self.family.streams:
                done.align = min(size & -size, LINE_BYTES)
                done.set_metadata("nontemporal", builder.module.add_metadata([number(I32, 1)]))


def _load_lines(builder: Any, address: Any, kind: Any) -> Any:
    """Load a row, line by line: LLVM merges shuffles of a longer load into shuffles that it splits badly.

    Lines are bytes. As floats, LLVM would compare them with zero as integers, and lose the flag that a
    signaling NaN sets.
    """
    size = bytes_in(kind)
    if size <= LINE_BYTES or size % LINE_BYTES:
        return load_untagged(builder, address, kind)
    starts = (builder.add(address, number(I64, k)) for k in range(0, size, LINE_BYTES))
    lines = [load_untagged(builder, at, wide(I8, LINE_BYTES)) for at in starts]
    return builder.bitcast(concatenated(builder, lines), kind)


def _lines(kind: Any) -> Iterator[tuple[int, int]]:
    """The first lane of each line of a row, and how many it has; all lanes if they don't fill lines."""
    lanes, size = (kind.count, bytes_in(kind)) if isinstance(kind, ir.VectorType) else (1, 0)
    count = lanes if size % LINE_BYTES or not size else lanes * LINE_BYTES // size
    return ((first, count) for first in range(0, lanes, count))
