"""Elements narrower than a byte, one at a time, at addresses in bits."""

from __future__ import annotations

from typing import Any

from codegen.ir.packed_bits import PACKED_BITS
from codegen.simd.register.decorator import for_kernels
from codegen.simd.register.memory import load_u8, read_byte, store_u8


def _load(bits: int) -> Any:
    mask = (1 << bits) - 1

    @for_kernels
    def load(base, offset):
        """The element at an offset from an address, both in bits."""
        address = base + offset
        return (load_u8(address >> 3) >> (address & 7)) & mask

    return load


def _store(bits: int) -> Any:
    mask = (1 << bits) - 1

    @for_kernels
    def store(base, offset, value):
        """Write the element at an offset, as in a load, and keep its neighbors in the byte."""
        address = base + offset
        shift = address & 7
        if bits == 1:
            value = 1 if value != 0 else 0
        rest = read_byte(address >> 3) & ~(mask << shift)
        store_u8(address >> 3, rest | ((value & mask) << shift))

    return store


BIT_LOADS = {f"load_u{n}_at": _load(n) for n in PACKED_BITS}
BIT_STORES = {f"store_u{n}_at": _store(n) for n in PACKED_BITS}
