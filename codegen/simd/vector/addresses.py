"""The addresses of the rows of a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from llvmlite import ir

from codegen.simd.register.memory import I64, hidden, pointer


def row_addresses(builder: Any, address: Any, pitch: Any, rows: int) -> Iterator[Any]:
    """base, base + p, base + 2p, base + 3p, then a new base: x86 addressing modes, and two registers.

    Each base is opaque. Otherwise LLVM keeps a multiple of the pitch for each row, and runs out of registers:
    streamed blocks of 16 x 16 u32 fell from 0.75 to 0.58 of memcpy (Zen 3, 2026-11).
    """
    base = address
    for row in range(rows):
        if row and row % 4 == 0:
            base = hidden(builder, builder.add(base, builder.shl(pitch, ir.Constant(I64, 2))))
        yield builder.add(base, builder.mul(pitch, ir.Constant(I64, row % 4)))


def each_address(builder: Any, address: Any, pitch: Any, rows: int) -> Iterator[Any]:
    """The addresses of rows, each from the first one: LLVM may use the rows in any order.

    The pitch is opaque. If it is a known number, LLVM computes all rows before it stores the first one, and
    spills them: 1.2 times the time for 32 rows of 64 bytes in AVX2 registers (Zen 4, 2026-11).
    """
    pitch = hidden(builder, pitch)
    return (builder.add(address, builder.mul(pitch, ir.Constant(I64, row))) for row in range(rows))


def table_addresses(half: str, builder: Any, address: Any, table: Any, rows: int) -> Iterator[Any]:
    """The addresses of rows at the first offsets of a table, or at one half of each of its entries."""
    for row in range(rows):
        offset = builder.load(pointer(builder, builder.add(table, ir.Constant(I64, 8 * row)), I64))
        if half == "low":
            offset = builder.and_(offset, ir.Constant(I64, (1 << 32) - 1))
        elif half == "high":
            offset = builder.lshr(offset, ir.Constant(I64, 32))
        yield builder.add(address, offset)


ADDRESSES: Mapping[str, Callable[..., Iterator[Any]]] = MappingProxyType(
    {
        "": row_addresses,
        "each": each_address,
        "at": partial(table_addresses, ""),
        "at_low": partial(table_addresses, "low"),
        "at_high": partial(table_addresses, "high"),
    }
)
"""The addresses of the rows, computed when the caller asks for each, by the last word of a routine's name."""
