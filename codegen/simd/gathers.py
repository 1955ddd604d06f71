"""Stretches of the destination from pieces: gathered in the first cache, drained in whole lines."""

from __future__ import annotations

from typing import Any

from numba import njit

from codegen.simd.memory import (
    drain_line,
    int64_at,
    load,
    pointer,
    prefetch_line,
    statement,
    vector,
)
from codegen.simd.staging import drain_part
from codegen.stretches import BYTES, DST, HEAD, MOVES, NEXT, PIECES, SRC, STRETCH_FIELDS
from codegen.tiles import LINE_BYTES


def _gatherer(width: int) -> Any:
    """A move into the buffer: its store belongs to neither side of the copy."""

    def emit(builder: Any, buffer: Any, src: Any) -> None:
        kind = vector(8, width)
        done = builder.store(load(builder, src, kind), pointer(builder, buffer, kind))
        done.align = 1

    return statement(emit, 2, f"gather_{width}")


def _carry_line(builder: Any, to: Any, at: Any) -> None:
    """A line from one place of the buffer to another."""
    kind = vector(8, LINE_BYTES)
    value = builder.load(pointer(builder, at, kind))
    value.align = 1
    done = builder.store(value, pointer(builder, to, kind))
    done.align = 1


_carry = statement(_carry_line, 2, "carry_line")


def _mover(width: int) -> Any:
    """Moves of one width; every line of the source is asked for once or twice, a stretch ahead."""
    gather, often = _gatherer(width), width == LINE_BYTES
    now_and_then = width >= LINE_BYTES // 4

    @njit(error_model="numpy")
    def move_pieces(buffer, src, following, table, count):
        k = 0
        while k + 4 <= count:
            for i in range(4):
                move: int = int64_at(table, k + i)
                at = (move << 32) >> 32
                gather(buffer + (move >> 32), src + at)
                if often or i == 0 or (now_and_then and i == 2):
                    prefetch_line(following + at)
            k += 4
        while k < count:
            move = int64_at(table, k)
            at = (move << 32) >> 32
            gather(buffer + (move >> 32), src + at)
            prefetch_line(following + at)
            k += 1
        return table + 8 * count

    return move_pieces


_move_64, _move_32, _move_16, _move_8, _move_4, _move_2, _move_1 = map(_mover, MOVES)
_ENTRY_BYTES = 8 * STRETCH_FIELDS


@njit(error_model="numpy")
def _gather_part(buffer, src, following, table):
    """All pieces of a part; a table begins with how many moves there are of each width."""
    moves = table + 8 * HEAD
    moves = _move_64(buffer, src, following, moves, int64_at(table, 0))
    moves = _move_32(buffer, src, following, moves, int64_at(table, 1))
    moves = _move_16(buffer, src, following, moves, int64_at(table, 2))
    moves = _move_8(buffer, src, following, moves, int64_at(table, 3))
    moves = _move_4(buffer, src, following, moves, int64_at(table, 4))
    moves = _move_2(buffer, src, following, moves, int64_at(table, 5))
    _move_1(buffer, src, following, moves, int64_at(table, 6))


@njit(error_model="numpy")
def stream_stretches(dst, src, stretches, pieces, begin, end, scratch, pattern):
    """Stretch by stretch; one that ends inside a line leaves those bytes to the next, if that follows it.

    The buffer has a line in front for them, and holds a stretch at the place within a line it goes to.
    """
    carried = False
    for k in range(begin, end):
        entry = stretches + _ENTRY_BYTES * k
        to = dst + int64_at(entry, DST)
        buffer = scratch + LINE_BYTES + (to & 63)
        table = pieces + int64_at(entry, PIECES)
        if int64_at(table, HEAD - 1):
            _gather_part(buffer, pattern, pattern, table)
        else:
            _gather_part(buffer, src + int64_at(entry, SRC), src + int64_at(entry, NEXT), table)
        count = int64_at(entry, BYTES)
        if count == 0:
            continue
        stop, here = to + count, buffer - to
        first = to & ~63
        if not carried:
            first = min((to + 63) & ~63, stop)
            drain_part(to, buffer, first - to)
        last = max(stop & ~63, first)
        for at in range(first, last, 64):
            drain_line(at, at + here)
        carried = last < stop and k + 1 < end and dst + int64_at(entry + _ENTRY_BYTES, DST) == stop
        if carried:
            _carry(scratch + LINE_BYTES, last + here)
        else:
            drain_part(last, last + here, stop - last)
