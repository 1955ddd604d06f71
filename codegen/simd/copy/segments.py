"""Segments of the destination: their chunks are gathered in the L1 cache and drained in full lines."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from codegen.ir.copies.segments import BYTES, CHUNKS, DST, HEAD, MOVES, NEXT, SEGMENT_FIELDS, SRC
from codegen.ir.lines import LINE_BYTES
from codegen.simd.copy.staging import drain_part
from codegen.simd.register.decorator import for_kernels
from codegen.simd.register.memory import I64, drain_line, int64_at, load, pointer, prefetch, statement, vector


def _moves(width: int, count: int) -> Any:
    """`count` moves of a table into the buffer. Their stores belong to neither side of the copy.

    Every line of the source is prefetched once or twice, a segment ahead.
    """
    kind, interval = vector(8, width), {64: 1, 32: 2, 16: 2}.get(width, 4)

    def emit(builder: Any, buffer: Any, src: Any, following: Any, table: Any) -> None:
        half = ir.Constant(I64, 32)
        for k in range(count):
            entry = builder.add(table, ir.Constant(I64, 8 * k))
            move = builder.load(pointer(builder, entry, I64))
            at = builder.ashr(builder.shl(move, half), half)
            to = builder.add(buffer, builder.ashr(move, half))
            done = builder.store(load(builder, builder.add(src, at), kind), pointer(builder, to, kind))
            done.align = 1
            if k % interval == 0:
                prefetch(builder, builder.add(following, at))

    return statement(emit, 4, f"gather_{count}_of_{width}")


def _carry_line(builder: Any, to: Any, at: Any) -> None:
    """Move a line within the buffer."""
    kind = vector(8, LINE_BYTES)
    value = builder.load(pointer(builder, at, kind))
    value.align = 1
    done = builder.store(value, pointer(builder, to, kind))
    done.align = 1


_carry = statement(_carry_line, 2, "carry_line")


def _mover(width: int) -> Any:
    """Do all moves of one width, and return the end of their table."""
    four, one = _moves(width, 4), _moves(width, 1)

    @for_kernels
    def move_chunks(buffer, src, following, table, count):
        stop = table + 8 * count
        while table + 32 <= stop:
            four(buffer, src, following, table)
            table += 32
        while table < stop:
            one(buffer, src, following, table)
            table += 8
        return stop

    return move_chunks


_move_64, _move_32, _move_16, _move_8, _move_4, _move_2, _move_1 = map(_mover, MOVES)
_ENTRY_BYTES = 8 * SEGMENT_FIELDS


@for_kernels
def _gather_part(buffer, src, following, table):
    """Gather all chunks of an entry. Its table begins with the number of moves of each width."""
    moves = table + 8 * HEAD
    moves = _move_64(buffer, src, following, moves, int64_at(table, 0))
    moves = _move_32(buffer, src, following, moves, int64_at(table, 1))
    moves = _move_16(buffer, src, following, moves, int64_at(table, 2))
    moves = _move_8(buffer, src, following, moves, int64_at(table, 3))
    moves = _move_4(buffer, src, following, moves, int64_at(table, 4))
    moves = _move_2(buffer, src, following, moves, int64_at(table, 5))
    _move_1(buffer, src, following, moves, int64_at(table, 6))


@for_kernels
def stream_segments(dst, src, segments, chunks, begin, end, scratch, pattern):
    """Copy segments in order. One that ends inside a line leaves those bytes to the next, if adjacent.

    The buffer has a line in front for them, and holds a segment at its destination's offset within a line.
    """
    carried = False
    for k in range(begin, end):
        entry = segments + _ENTRY_BYTES * k
        to = dst + int64_at(entry, DST)
        buffer = scratch + LINE_BYTES + (to & 63)
        table = chunks + int64_at(entry, CHUNKS)
        at, following = src + int64_at(entry, SRC), src + int64_at(entry, NEXT)
        if int64_at(table, HEAD - 1):
            at, following = pattern, pattern
        _gather_part(buffer, at, following, table)
        count = int64_at(entry, BYTES)
        if count == 0:
            continue
        stop, here = to + count, buffer - to
        first = to & ~63
        if not carried:
            first = min((to + 63) & ~63, stop)
            drain_part(to, buffer, first - to)
        last = max(stop & ~63, first)
        for line in range(first, last, 64):
            drain_line(line, line + here)
        carried = last < stop and k + 1 < end and dst + int64_at(entry + _ENTRY_BYTES, DST) == stop
        if carried:
            _carry(scratch + LINE_BYTES, last + here)
        else:
            drain_part(last, last + here, stop - last)
