"""Runs: bytes that are contiguous on both sides, and runs of the padding value."""

from __future__ import annotations

from typing import Any

from codegen.simd.register.decorator import for_kernels
from codegen.simd.register.memory import (
    drain_1,
    drain_2,
    drain_4,
    drain_8,
    drain_16,
    drain_32,
    move_1,
    move_2,
    move_4,
    move_8,
    move_16,
    move_32,
    store_u8,
    store_u16,
    store_u32,
    store_u64,
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
drain_part = part_of_line((drain_1, drain_2, drain_4, drain_8, drain_16, drain_32))
"""As `copy_part`, out of scratch."""


@for_kernels
def fill_part(dst, count, low, high):
    """Write `count` bytes of a repeated 16-byte pattern."""
    whole = count & ~15
    for k in range(0, whole, 16):
        store_u64(dst + k, low)
        store_u64(dst + k + 8, high)
    dst += whole
    rest = low
    if count & 8:
        store_u64(dst, low)
        dst += 8
        rest = high
    if count & 4:
        store_u32(dst, rest)
        dst += 4
        rest >>= 32
    if count & 2:
        store_u16(dst, rest)
        dst += 2
        rest >>= 16
    if count & 1:
        store_u8(dst, rest)
