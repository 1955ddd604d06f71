"""Elements narrower than a byte, one at a time.

The first element is in the low bits. A byte that holds a single element has zeros above it.
"""

from __future__ import annotations

from typing import Any

from codegen.simd.register.decorator import for_kernels
from codegen.simd.register.memory import load_u8, read_byte, store_u8


def _pack(bits: int) -> Any:
    group, mask = 8 // bits, (1 << bits) - 1

    @for_kernels
    def pack(dst, src, count, src_step):
        for k in range(count):
            byte = 0
            for j in range(group):
                value = load_u8(src + (k * group + j) * src_step)
                if bits == 1:
                    value = 1 if value != 0 else 0
                byte |= (value & mask) << (j * bits)
            store_u8(dst + k, byte)

    return pack


def _unpack(bits: int) -> Any:
    group, mask = 8 // bits, (1 << bits) - 1

    @for_kernels
    def unpack(dst, src, count, dst_step):
        for k in range(count):
            byte = load_u8(src + k)
            for j in range(group):
                store_u8(dst + (k * group + j) * dst_step, (byte >> (j * bits)) & mask)

    return unpack


def _load(bits: int) -> Any:
    mask = (1 << bits) - 1

    @for_kernels
    def load(address):
        """The element at an address in bits."""
        return (load_u8(address >> 3) >> (address & 7)) & mask

    return load


def _store(bits: int) -> Any:
    mask = (1 << bits) - 1

    @for_kernels
    def store(address, value):
        """Write the element at an address in bits, and keep its neighbors in the byte."""
        shift = address & 7
        if bits == 1:
            value = 1 if value != 0 else 0
        rest = read_byte(address >> 3) & ~(mask << shift)
        store_u8(address >> 3, rest | ((value & mask) << shift))

    return store


WIDTHS = (1, 2, 4)
PACKERS = {f"pack_bits_{n}": _pack(n) for n in WIDTHS}
UNPACKERS = {f"unpack_bits_{n}": _unpack(n) for n in WIDTHS}
BIT_LOADS = {f"load_u{n}": _load(n) for n in WIDTHS}
BIT_STORES = {f"store_u{n}": _store(n) for n in WIDTHS}
