"""The meaning of the instructions that pack elements of 1, 2 or 4 bits, and unpack them.

A byte holds 8 / bits elements, the first one in the low bits. A loose element is one byte: its low bits, or,
for one bit, whether it is not zero.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from codegen.ir.buffers import Buffer

Lanes = NDArray[Any]

PACKED_BITS = (1, 2, 4)
"""Bits of an element that shares its byte."""

COLUMN_BYTES = (1, 2, 4)
"""Column sizes in bytes of packed elements with a specialized kernel; a TPU word has four bytes."""


COLUMNS = (1, 16, 64)
"""Columns of a block that is packed from rows, or unpacked into them."""

COSTS = {1: 6, 2: 10, 4: 6}
"""Vector instructions per register of a run that is packed or unpacked, at most, by bits of an element."""


def column_rows(bits: int) -> tuple[int, ...]:
    """The rows of loose elements that become columns of packed bytes."""
    return tuple(8 // bits * size for size in COLUMN_BYTES)


def element_bits(byte: int, bits: int) -> int:
    """The bits of a loose element."""
    return int(byte != 0) if bits == 1 else int(byte) & (1 << bits) - 1


def packed(bits: int, a: Lanes) -> Lanes:
    """packed_4: [2 * N] -> [N]: out[k] = a[2*k] | a[2*k + 1] << 4."""
    group = 8 // bits
    out = np.zeros(a.size // group, object)
    for k, element in enumerate(a.ravel()):
        out[k // group] |= element_bits(element, bits) << k % group * bits
    return out


def unpacked(bits: int, a: Lanes) -> Lanes:
    """unpacked_4: [N] -> [2 * N]: out[2*k] = a[k] & 15, out[2*k + 1] = a[k] >> 4."""
    mask = (1 << bits) - 1
    return np.array([int(byte) >> at & mask for byte in a for at in range(0, 8, bits)], object)


def packed_from_rows(bits: int, a: Lanes) -> Lanes:
    """packed_4_from_rows: [R, C] -> [C * R/2]: column c packed, and the columns after each other."""
    return packed(bits, np.transpose(a))


def unpacked_into_rows(bits: int, rows: int, a: Lanes) -> Lanes:
    """unpacked_4_into_8_rows: [C * 4] -> [8, C]: the inverse of packed_4_from_rows."""
    return np.transpose(unpacked(bits, a).reshape(-1, rows))


def pack_part(bits: int, dst: Buffer, src: Buffer, count: int) -> None:
    """pack_part_4: pack 2 * count elements into `count` bytes, fewer than a line."""
    group = 8 // bits
    for k in range(count):
        elements = np.array([src.read(k * group + j, 8) for j in range(group)], object)
        dst.write(k, 8, packed(bits, elements)[0])


def unpack_part(bits: int, dst: Buffer, src: Buffer, count: int) -> None:
    """unpack_part_4: unpack `count` bytes into 2 * count elements, fewer than a line."""
    group = 8 // bits
    for k, j in product(range(count), range(group)):
        dst.write(k * group + j, 8, int(unpacked(bits, np.array([src.read(k, 8)], object))[j]))
