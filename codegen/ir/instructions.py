"""Instructions: the register-level operations that copies use, each declared once with its meaning.

The interpreter runs the meaning, which is a loop over scalars. `simd/` registers a builder for each name,
which emits LLVM IR. A test runs every builder against its meaning on every CPU level.

There are two kinds. An operation takes super-vectors and returns one: `Op("transposed", …)`. A memory
instruction is a statement: `Call("copy_part", …)`. Its operands are buffers and integers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from codegen.ir import packed_bits
from codegen.ir.copies.tiles import INTERLEAVED_ROWS
from codegen.support.errors import KernelError

if TYPE_CHECKING:  # the interpreter's, which copies that are stored do not load
    from codegen.ir.buffers import Buffer

Lanes = NDArray[Any]
"""The elements of a super-vector."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """A register-level operation and its meaning."""

    name: str
    meaning: Callable[..., Any]


_INSTRUCTIONS: dict[str, Instruction] = {}


def instruction(name: str) -> Instruction:
    """The instruction of that name.

    Raises:
        KernelError: there is none.
    """
    if name not in _INSTRUCTIONS:
        raise KernelError(f"kernels have no instruction {name}")
    return _INSTRUCTIONS[name]


def is_instruction(name: str) -> bool:
    """Whether an instruction of that name is declared."""
    return name in _INSTRUCTIONS


def instructions() -> tuple[Instruction, ...]:
    """All instructions, by name."""
    return tuple(_INSTRUCTIONS[name] for name in sorted(_INSTRUCTIONS))


def _declare(name: str, meaning: Callable[..., Any]) -> None:
    _INSTRUCTIONS[name] = Instruction(name, meaning)


def _declared(meaning: Callable[..., Any]) -> Callable[..., Any]:
    _declare(meaning.__name__, meaning)
    return meaning


@_declared
def transposed(a: Lanes) -> Lanes:
    """[R, C] -> [C, R]: out[c, r] = a[r, c]."""
    rows, columns = a.shape
    out = np.empty((columns, rows), a.dtype)
    for r in range(rows):
        for c in range(columns):
            out[c, r] = a[r, c]
    return out


@_declared
def copy_part(dst: Buffer, src: Buffer, count: int) -> None:
    """Copy `count` bytes, fewer than a line."""
    copy_block(dst, src, count)


@_declared
def copy_block(dst: Buffer, src: Buffer, count: int) -> None:
    """Copy `count` bytes of disjoint buffers: memcpy."""
    for k in range(count):
        dst.write(k, 8, src.read(k, 8))


@_declared
def prefetch_line(address: int) -> None:
    """Request a line into the second cache. The address may be outside of the storage."""


@_declared
def fill_part(dst: Buffer, count: int, low: int, high: int) -> None:
    """Write the first `count` bytes of a 16-byte pattern, repeated: fewer than a line."""
    line = repeated_line(low, high)
    for k in range(count):
        dst.write(k, 8, line[k])


@_declared
def repeated_line(low: int, high: int) -> Lanes:
    """64 bytes: a 16-byte pattern, given as two 64-bit numbers, four times."""
    pattern = b"".join((int(x) & (1 << 64) - 1).to_bytes(8, "little") for x in (low, high))
    return np.array(list(pattern * 4), object)


@_declared
def stream_fence() -> None:
    """Order streamed stores before all later stores."""


@_declared
def joined(a: Lanes) -> Lanes:
    """[R, C] -> [R * C]: out[r * C + c] = a[r, c]."""
    rows, columns = a.shape
    out = np.empty(rows * columns, a.dtype)
    for r, c in product(range(rows), range(columns)):
        out[r * columns + c] = a[r, c]
    return out


@_declared
def reversed_elements(a: Lanes) -> Lanes:
    """[N] -> [N]: out[k] = a[N - 1 - k]."""
    out = np.empty_like(a)
    for k in range(len(a)):
        out[k] = a[len(a) - 1 - k]
    return out


@_declared
def reversed_groups_2(a: Lanes) -> Lanes:
    """[N] -> [N], n = 2: out[n * g + k] = a[n * g + n - 1 - k]; elements after the last full group stay."""
    return _reversed_groups(a, 2)


@_declared
def reversed_groups_3(a: Lanes) -> Lanes:
    """[N] -> [N], n = 3: the same."""
    return _reversed_groups(a, 3)


@_declared
def reversed_groups_4(a: Lanes) -> Lanes:
    """[N] -> [N], n = 4: the same."""
    return _reversed_groups(a, 4)


def _reversed_groups(a: Lanes, n: int) -> Lanes:
    out = a.copy()
    for g, k in product(range(len(a) // n), range(n)):
        out[n * g + k] = a[n * g + n - 1 - k]
    return out


@_declared
def drain_part(dst: Buffer, scratch: Buffer, count: int) -> None:
    """Copy `count` bytes, fewer than a line, out of scratch."""
    copy_block(dst, scratch, count)


@_declared
def interleaved(a: Lanes) -> Lanes:
    """[R, C] -> [C * R]: out[c*R + r] = a[r, c]."""
    rows, columns = a.shape
    out = np.empty(rows * columns, a.dtype)
    for r in range(rows):
        for c in range(columns):
            out[c * rows + r] = a[r, c]
    return out


def _deinterleaved(count: int, a: Lanes) -> Lanes:
    """deinterleaved_2 … deinterleaved_8: [R * count] -> [count, R]: out[c, r] = a[r*count + c]."""
    packed = a.ravel()
    out = np.empty((count, len(packed) // count), a.dtype)
    for c in range(count):
        for r in range(len(packed) // count):
            out[c, r] = packed[r * count + c]
    return out


for _count in INTERLEAVED_ROWS:
    _declare(f"deinterleaved_{_count}", partial(_deinterleaved, _count))


@_declared
def swap_16(value: Lanes) -> Lanes:
    """Each element of 16 bits with its bytes in reverse order."""
    return _swapped(value, 2)


@_declared
def swap_32(value: Lanes) -> Lanes:
    """Each element of 32 bits with its bytes in reverse order."""
    return _swapped(value, 4)


@_declared
def swap_64(value: Lanes) -> Lanes:
    """Each element of 64 bits with its bytes in reverse order."""
    return _swapped(value, 8)


def _swapped(value: Lanes, size: int) -> Lanes:
    """out[k] = the bytes of a[k] in reverse order, in the dtype of a."""
    out = [int.from_bytes(int(x).to_bytes(size, "big"), "little") for x in np.ravel(value)]
    return np.array(out, np.asarray(value).dtype).reshape(np.shape(value))


for _bits in packed_bits.PACKED_BITS:
    _declare(f"packed_{_bits}", partial(packed_bits.packed, _bits))
    _declare(f"unpacked_{_bits}", partial(packed_bits.unpacked, _bits))
    _declare(f"packed_{_bits}_from_rows", partial(packed_bits.packed_from_rows, _bits))
    _declare(f"pack_part_{_bits}", partial(packed_bits.pack_part, _bits))
    _declare(f"unpack_part_{_bits}", partial(packed_bits.unpack_part, _bits))
    for _rows in packed_bits.column_rows(_bits):
        _declare(f"unpacked_{_bits}_into_{_rows}_rows", partial(packed_bits.unpacked_into_rows, _bits, _rows))
