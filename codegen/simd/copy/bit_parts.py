"""Packing and unpacking less than a line of contiguous elements of 1, 2 or 4 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codegen.ir.packed_bits import PACKED_BITS
from codegen.simd.register.decorator import for_kernels
from codegen.simd.register.intrinsics import statement
from codegen.simd.register.memory import load, store, vector
from codegen.simd.register.packed_bits import packed_bytes, unpacked_bytes


def _packer(bits: int, count: int) -> Any:
    """Pack `count` bytes of the destination."""

    def emit(builder: Any, dst: Any, src: Any) -> None:
        elements = load(builder, src, vector(8, count * 8 // bits))
        store(builder, packed_bytes(builder, elements, bits), dst)

    return statement(emit, 2, f"pack_{count}_u{bits}")


def _unpacker(bits: int, count: int) -> Any:
    """Unpack `count` bytes of the source."""

    def emit(builder: Any, dst: Any, src: Any) -> None:
        store(builder, unpacked_bytes(builder, load(builder, src, vector(8, count)), bits), dst)

    return statement(emit, 2, f"unpack_{count}_u{bits}")


def _part(make: Callable[[int, int], Any], bits: int, dst_step: int, src_step: int) -> Any:
    """The routine over `count` packed bytes; dst_step, src_step: bytes on each side per packed byte."""
    eight, four, one = (make(bits, size) for size in (8, 4, 1))

    @for_kernels
    def part(dst, src, count):
        """Eights and one more that overlaps the last, or two fours, or ones."""
        if count >= 8:
            last = count - 8
            for k in range(0, last, 8):
                eight(dst + k * dst_step, src + k * src_step)
            eight(dst + last * dst_step, src + last * src_step)
        elif count >= 4:
            four(dst, src)
            four(dst + (count - 4) * dst_step, src + (count - 4) * src_step)
        else:
            for k in range(count):
                one(dst + k * dst_step, src + k * src_step)

    return part


PARTS = {
    **{f"pack_part_{n}": _part(_packer, n, 1, 8 // n) for n in PACKED_BITS},
    **{f"unpack_part_{n}": _part(_unpacker, n, 8 // n, 1) for n in PACKED_BITS},
}
"""By their names in kernels."""
