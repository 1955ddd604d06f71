"""Runs: bytes that are contiguous on both sides, and runs of the padding value."""

from __future__ import annotations

from typing import Any

from codegen.ir.copies.tiles import PAGE_PREFETCH_BYTES
from codegen.simd.register.decorator import for_kernels
from codegen.simd.register.memory import (
    memcpy,
    move_1,
    move_2,
    move_4,
    move_8,
    move_16,
    move_32,
    move_64,
    prefetch_line,
    store_u8,
    store_u16,
    store_u32,
    store_u64,
    stream_64,
)


def part_of_line(moves: tuple[Any, ...]) -> Any:
    """A routine for less than a line: at most two moves of 1, 2, 4, 8, 16 or 32 bytes."""
    by_1, by_2, by_4, by_8, by_16, by_32 = moves

    @for_kernels
    def part(dst, src, count):
        if count >= 32:
            by_32(dst, src)
            by_32(dst + count - 32, src + count - 32)
        elif count >= 16:
            by_16(dst, src)
            by_16(dst + count - 16, src + count - 16)
        elif count >= 8:
            by_8(dst, src)
            by_8(dst + count - 8, src + count - 8)
        elif count >= 4:
            by_4(dst, src)
            by_4(dst + count - 4, src + count - 4)
        elif count >= 2:
            by_2(dst, src)
            by_2(dst + count - 2, src + count - 2)
        elif count == 1:
            by_1(dst, src)

    return part


copy_part = part_of_line((move_1, move_2, move_4, move_8, move_16, move_32))


@for_kernels
def copy_run(dst, src, count):
    """Copy `count` bytes: full vectors, then one more that overlaps the last."""
    if count >= 2048:
        memcpy(dst, src, count)
    elif count >= 64:
        last = count - 64
        for k in range(0, last, 64):
            move_64(dst + k, src + k)
        move_64(dst + last, src + last)
    else:
        copy_part(dst, src, count)


@for_kernels
def stream_middle(dst, src, count):
    """Copy a long run with unaligned ends, with non-temporal stores of the lines between them."""
    head = -dst & 63
    if head:
        copy_run(dst, src, head)
    stop = head + ((count - head) & ~63)
    for k in range(head, stop, 64):
        stream_64(dst + k, src + k)
    if stop < count:
        copy_run(dst + stop, src + stop, count - stop)


PREFETCH_BYTES = 256
"""Prefetch distance of short runs: a later run reads the bytes after this one."""


@for_kernels
def stream_run(dst, src, count):
    """Copy `count` bytes, with non-temporal stores of full destination lines."""
    if count == 64:
        prefetch_line(src + PREFETCH_BYTES)
        if dst & 63:
            move_64(dst, src)
        else:
            stream_64(dst, src)
    elif (dst | count) & 63 == 0:
        for k in range(0, count, 64):
            prefetch_line(src + PREFETCH_BYTES + k)
            stream_64(dst + k, src + k)
    elif count < 256:
        copy_run(dst, src, count)
    else:
        stream_middle(dst, src, count)


@for_kernels
def stream_run_prefetched(dst, src, count, distance):
    """As `stream_run`, prefetching lines a page ahead; past the end, those of the run at src + distance."""
    inside = max(count - PAGE_PREFETCH_BYTES, 0)
    begins = distance + (PAGE_PREFETCH_BYTES - count if inside else 0)
    head = min(-dst & 63, count)
    stop = head + ((count - head) & ~63)
    if head:
        prefetch_line(src + begins)
        copy_run(dst, src, head)
    for k in range(head, stop, 64):
        prefetch_line(src + k + (PAGE_PREFETCH_BYTES if k < inside else begins))
        stream_64(dst + k, src + k)
    if stop < count:
        prefetch_line(src + stop + begins)
        copy_run(dst + stop, src + stop, count - stop)


@for_kernels
def prefetch_span(start, count):
    """Prefetch the lines of `count` bytes."""
    for k in range(0, count, 64):
        prefetch_line(start + k)


@for_kernels
def fill_run(dst, count, low, high):
    """Fill `count` bytes, a multiple of the repeated element, with a 16-byte pattern."""
    whole = count & ~15
    for k in range(0, whole, 16):
        store_u64(dst + k, low)
        store_u64(dst + k + 8, high)
    dst += whole
    if count & 8:
        store_u64(dst, low)
        dst += 8
    if count & 4:
        store_u32(dst, low)
        dst += 4
    if count & 2:
        store_u16(dst, low)
        dst += 2
    if count & 1:
        store_u8(dst, low)
