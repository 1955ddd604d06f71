"""Runs whose source is traversed backward: full vectors are reversed in registers.

reverse_run_u16(dst, src, count)       dst[k] = src[-k]; src is the address of the first element read
reverse_groups_3_u8(dst, src, count)   the same for each of `count` adjacent groups of three
"""

from __future__ import annotations

from functools import cache
from typing import Any

from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.schedule.schedule import REVERSED, REVERSED_GROUPS
from codegen.simd.register.decorator import for_kernels
from codegen.simd.register.memory import (
    load,
    move_1,
    move_2,
    move_4,
    move_8,
    move_16,
    statement,
    store,
    store_streaming,
    vector,
)
from codegen.simd.register.shuffles import shuffle

MOVES = dict(zip(REVERSED, (move_1, move_2, move_4, move_8, move_16), strict=True))


def _reversed_groups(width: int, size: int, group: int, *, stream: bool = False) -> Any:
    """A move of `size` bytes that reverses each `group` of elements; bytes after the last full group stay."""
    item = min(width, 8)
    order = [
        start + (group - 1 - k) * width + byte
        for start in range(0, size - group * width + 1, group * width)
        for k in range(group)
        for byte in range(0, width, item)
    ]
    order += list(range(len(order) * item, size, item))
    mask = [byte // item for byte in order]

    def emit(builder: Any, dst: Any, src: Any) -> None:
        value = load(builder, src, vector(8 * item, size // item))
        (store_streaming if stream else store)(builder, shuffle(builder, value, value, mask), dst)

    name = f"{'stream' if stream else 'turn'}_{size}_by_{group}_u{8 * width}"
    return statement(emit, 2, name)


@cache
def reverse_run(width: int) -> Any:
    """Reverse by lines, by lanes below a line, or by elements. The last line or lane overlaps another."""
    line = _reversed_groups(width, LINE_BYTES, LINE_BYTES // width)
    lane = _reversed_groups(width, LANE_BYTES, LANE_BYTES // width)
    one = MOVES[width]

    @for_kernels
    def run(dst, src, count):
        size = count * width
        end = src + width
        if size >= 64:
            last = size - 64
            for k in range(0, last, 64):
                line(dst + k, end - k - 64)
            line(dst + last, end - last - 64)
        elif size >= 16:
            last = size - 16
            for k in range(0, last, 16):
                lane(dst + k, end - k - 16)
            lane(dst + last, end - last - 16)
        else:
            for k in range(0, size, width):
                one(dst + k, src - k)

    return run


@cache
def stream_reverse_run(width: int) -> Any:
    """The same, with non-temporal stores of full destination lines."""
    line, plain = _reversed_groups(width, LINE_BYTES, LINE_BYTES // width, stream=True), reverse_run(width)

    @for_kernels
    def run(dst, src, count):
        size = count * width
        head = -dst & 63
        if size < 256 or head % width:
            plain(dst, src, count)
            return
        if head:
            plain(dst, src, head // width)
        stop = head + ((size - head) & ~63)
        for k in range(head, stop, 64):
            line(dst + k, src + width - k - 64)
        if stop < size:
            plain(dst + stop, src - stop, (size - stop) // width)

    return run


@cache
def reverse_groups(group: int, width: int) -> Any:
    """Reverse the groups that fit in a lane, and store the full lane; the next move overwrites its rest."""
    each = group * width
    taken = LANE_BYTES // each * each
    lane, one = _reversed_groups(width, LANE_BYTES, group), MOVES[width]

    @for_kernels
    def groups(dst, src, count):
        start = src - (each - width)
        size = count * each
        k = 0
        while k + 16 <= size:
            lane(dst + k, start + k)
            k += taken
        while k < size:
            for i in range(0, each, width):
                one(dst + k + i, start + k + each - width - i)
            k += each

    return groups


REVERSALS = {f"reverse_run_u{8 * w}": reverse_run(w) for w in MOVES}
REVERSALS |= {f"stream_reverse_run_u{8 * w}": stream_reverse_run(w) for w in MOVES}
REVERSALS |= {
    f"reverse_groups_{g}_u{8 * w}": reverse_groups(g, w)
    for g in REVERSED_GROUPS
    for w in MOVES
    if g * w <= LANE_BYTES
}
