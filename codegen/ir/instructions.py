"""Instructions: the register-level operations that copies use, each declared once with its meaning.

The interpreter runs the meaning, which is a loop over scalars. `simd/` registers a builder for each name,
which emits LLVM IR. A test runs every builder against its meaning on every CPU level.

There are two kinds. An operation takes super-vectors and returns one: `Op("transposed", …)`. A memory
instruction is a statement: `Call("copy_part", …)`. Its operands are buffers and integers.

Schedules choose an instruction only for elements and shapes that it takes. The emitter and the interpreter
refuse other shapes, and the interpreter refuses counts of lanes beyond the limit. Tests compare flags, costs
and levels with the machine code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from codegen.ir import conversions, packed_bits
from codegen.ir.blocks import BLOCK_SIDES, INTERLEAVED_ROWS, converted_shapes, transposed_shapes
from codegen.ir.element_types import CONVERSIONS, bits_of, dtype_of
from codegen.ir.instruction import ActiveCount, Instruction, Shapes
from codegen.ir.lines import LANE_BYTES, LINE_BYTES, WIDTHS
from codegen.support.cpu import LEVELS
from codegen.support.errors import KernelError

if TYPE_CHECKING:  # copies whose kernels are stored load neither loops nor the interpreter
    from codegen.ir.buffers import Buffer
    from codegen.ir.values import VectorShape

NEVER = 1 << 62
"""Larger than the element count of any array."""

Lanes = NDArray[Any]
"""The elements of a super-vector."""

REVERSED_GROUPS = (2, 3, 4)
"""Lengths of short runs, mostly pixels, that are reversed together if a run fits in a lane."""

SHUFFLED_ROWS = 4
"""Rows that are shuffled in the same order at a time: their bytes share one load of the order."""

SHUFFLED_BYTES = LANE_BYTES, LINE_BYTES
"""The sizes of a register whose bytes come from 16 bytes of each row."""

BYTE_SHUFFLES = tuple(level for level in LEVELS if level != "sse2")
"""The CPU levels that put the bytes of a register in any order by one instruction."""

STRUCTURED = ("neon",)
"""The CPU levels that load several interleaved rows at once, and store them."""


_INSTRUCTIONS: dict[str, Instruction] = {}


def instruction(name: str) -> Instruction:
    """The instruction with that name.

    Raises:
        KernelError: it does not exist.
    """
    if name not in _INSTRUCTIONS:
        raise KernelError(f"unknown instruction {name}")
    return _INSTRUCTIONS[name]


def is_instruction(name: str) -> bool:
    """Whether an instruction of that name is declared."""
    return name in _INSTRUCTIONS


def takes(name: str, bits: int) -> bool:
    """Whether there is such an operation for elements of that many bits."""
    return name in _INSTRUCTIONS and bits in _INSTRUCTIONS[name].shapes


def conversion(source: str, target: str) -> Instruction:
    """The instruction that converts between two element types; a source "swap u16" reverses bytes.

    Raises:
        KernelError: it does not exist.
    """
    if source.startswith("swap "):
        return instruction(f"swap_{bits_of(target)}")
    return instruction(f"convert_{dtype_of(source)}_to_{dtype_of(target)}")


def takes_blocks(name: str) -> bool:
    """Whether a conversion takes the blocks of a transpose, and not only their rows one by one."""
    return any(len(shape) == 2 for shapes in instruction(name).shapes.values() for shape in shapes)


def takes_block(source: str, target: str, block: tuple[int, int]) -> bool:
    """Whether a conversion takes such a block, or its rows if it takes no blocks."""
    each = conversion(source, target)
    shape = block if takes_blocks(each.name) else block[1:]
    return any(shape in shapes for shapes in each.shapes.values())


def instructions() -> tuple[Instruction, ...]:
    """All instructions, by name."""
    return tuple(_INSTRUCTIONS[name] for name in sorted(_INSTRUCTIONS))


def _declare(name: str, meaning: Callable[..., Any], **facts: Any) -> None:
    _INSTRUCTIONS[name] = Instruction(name, meaning, **facts)


def _declared(**facts: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a function, the meaning of the instruction with its name."""

    def declare(meaning: Callable[..., Any]) -> Callable[..., Any]:
        _declare(meaning.__name__, meaning, **facts)
        return meaning

    return declare


def _runs(size_bytes: Sequence[int], widths: Sequence[int]) -> Shapes:
    """One row of that many bytes, of elements of each of these widths in bytes."""
    return {8 * width: tuple((size // width,) for size in size_bytes) for width in widths}


def _packed_sizes(count: int) -> tuple[int, ...]:
    """Bytes of each row in a block of rows that are packed together. Three rows cannot fill half a line."""
    return (LINE_BYTES,) if count == 3 else (LINE_BYTES, LINE_BYTES // 2, LANE_BYTES)


def _transposed_shapes(width: int) -> tuple[tuple[int, int], ...]:
    """The blocks of copies, and the squares of kernels, whose elements are numbers."""
    squares = ((side, side) for side in BLOCK_SIDES if width <= 8)
    return tuple(dict.fromkeys((*transposed_shapes(width), *squares)))


@_declared(shapes={8 * w: _transposed_shapes(w) for w in WIDTHS}, permutes=True, cost=20)
def transposed(a: Lanes) -> Lanes:
    """[R, C] -> [C, R]: out[c, r] = a[r, c]."""
    rows, columns = a.shape
    out = np.empty((columns, rows), a.dtype)
    for r in range(rows):
        for c in range(columns):
            out[c, r] = a[r, c]
    return out


@_declared(active=ActiveCount(2, LINE_BYTES - 1), touched={0: 1, 1: 1})
def copy_part(dst: Buffer, src: Buffer, count: int) -> None:
    """Copy `count` bytes, fewer than a line."""
    copy_block(dst, src, count)


@_declared(active=ActiveCount(2), touched={0: 1, 1: 1})
def copy_block(dst: Buffer, src: Buffer, count: int) -> None:
    """Copy `count` bytes of disjoint buffers: memcpy."""
    for k in range(count):
        dst.write(k, 8, src.read(k, 8))


@_declared()
def prefetch_line(address: int) -> None:
    """Request a line into the second cache. The address may be outside of the storage."""


@_declared(active=ActiveCount(1, LINE_BYTES - 1), touched={0: 1})
def fill_part(dst: Buffer, count: int, low: int, high: int) -> None:
    """Write the first `count` bytes of a 16-byte pattern, repeated: fewer than a line."""
    line = repeated_line(low, high)
    for k in range(count):
        dst.write(k, 8, line[k])


@_declared(shapes={64: ((),)}, cost=4)
def repeated_line(low: int, high: int) -> Lanes:
    """64 bytes: a 16-byte pattern, given as two 64-bit numbers, four times."""
    pattern = b"".join((int(x) & (1 << 64) - 1).to_bytes(8, "little") for x in (low, high))
    return np.array(list(pattern * 4), object)


@_declared()
def stream_fence() -> None:
    """Order streamed stores before all later stores."""


@_declared(shapes={64: ((),)})
def elements_to_line(address: Any, size: Any) -> Any:
    """Elements of `size` bytes from an address to the next line; NEVER if none begins on a line."""
    ahead = -int(address) % LINE_BYTES
    return np.int64(ahead // int(size) if ahead % int(size) == 0 else NEVER)


@_declared(shapes={8 * w: ((LINE_BYTES // w, 1),) for w in (8, 16, 32)}, permutes=True, cost=1)
def joined(a: Lanes) -> Lanes:
    """[R, C] -> [R * C]: out[r * C + c] = a[r, c]."""
    rows, columns = a.shape
    out = np.empty(rows * columns, a.dtype)
    for r, c in product(range(rows), range(columns)):
        out[r * columns + c] = a[r, c]
    return out


@_declared(
    shapes={8 * w: ((2, LINE_BYTES // 2 // w), (4, LINE_BYTES // 4 // w)) for w in (1, 2, 4, 8)}, cost=1
)
def rows_in_line(a: Lanes) -> Lanes:
    """[R, C] -> [R * C]: the rows of a line, one after the other."""
    return a.reshape(-1)


@_declared(
    shapes=_runs((LANE_BYTES, LINE_BYTES // 2, LINE_BYTES), (1, 2, 4, 8, 16)),
    permutes=True,
    levels=BYTE_SHUFFLES,
    cost=2,
)
def reversed_elements(a: Lanes) -> Lanes:
    """[N] -> [N]: out[k] = a[N - 1 - k]."""
    out = np.empty_like(a)
    for k in range(len(a)):
        out[k] = a[len(a) - 1 - k]
    return out


_ORDERED: Shapes = {
    8: tuple(shape for n in SHUFFLED_BYTES for shape in ((SHUFFLED_ROWS, n), (n,))),
    64: tuple((n // 8,) for n in SHUFFLED_BYTES),
}


@_declared(shapes=_ORDERED, levels=BYTE_SHUFFLES, cost=2)
def shuffled(a: Lanes, order: Lanes) -> Lanes:
    """[R, 16], an order of N bytes -> [R, N]: out[r, k] = a[r, order[k] % 16], or 0 where order[k] >= 128."""
    rows = np.reshape(a, (-1, LANE_BYTES))
    bytes_ = b"".join((int(x) & (1 << 64) - 1).to_bytes(8, "little") for x in order)
    picked = [[row[k % LANE_BYTES] if k < 128 else 0 for k in bytes_] for row in rows]
    return np.reshape(np.array(picked, a.dtype), (*a.shape[:-1], len(bytes_)))


@_declared(shapes=_ORDERED, levels=BYTE_SHUFFLES, cost=3)
def with_shuffled(out: Lanes, a: Lanes, order: Lanes) -> Lanes:
    """[R, N], [R, 16], an order of N bytes -> [R, N]: the bits of `out` or those of shuffled(a, order)."""
    both: Lanes = np.bitwise_or(out, shuffled(a, order))
    return both


def _reversed_groups(n: int, a: Lanes) -> Lanes:
    """reversed_groups_2 … reversed_groups_4: [N] -> [N]: out[n * g + k] = a[n * g + n - 1 - k].

    Elements after the last full group stay.
    """
    out = a.copy()
    for g, k in product(range(len(a) // n), range(n)):
        out[n * g + k] = a[n * g + n - 1 - k]
    return out


for _group in REVERSED_GROUPS:
    _declare(
        f"reversed_groups_{_group}",
        partial(_reversed_groups, _group),
        shapes=_runs((LANE_BYTES,), [w for w in WIDTHS if _group * w <= LANE_BYTES]),
        permutes=True,
        levels=BYTE_SHUFFLES,
        cost=2,
    )


@_declared(active=ActiveCount(2, LINE_BYTES - 1), touched={0: 1, 1: 1})
def drain_part(dst: Buffer, scratch: Buffer, count: int) -> None:
    """Copy `count` bytes, fewer than a line, out of scratch."""
    copy_block(dst, scratch, count)


@_declared(
    shapes={
        8 * w: tuple((n, size // w) for n in INTERLEAVED_ROWS for size in _packed_sizes(n))
        for w in (1, 2, 4, 8)
    },
    permutes=True,
    levels=STRUCTURED,
    cost=4,
)
def interleaved(a: Lanes) -> Lanes:
    """[R, C] -> [C * R]: out[c*R + r] = a[r, c]."""
    rows, columns = a.shape
    out = np.empty(rows * columns, a.dtype)
    for r in range(rows):
        for c in range(columns):
            out[c * rows + r] = a[r, c]
    return out


def _deinterleaved(count: int, a: Lanes) -> Lanes:
    """deinterleaved_2 … deinterleaved_8: [R * count] -> [count, R]: out[c, r] = a[r*count + c].

    The operand may also be in `count` rows, the packed lines of a table.
    """
    packed = a.ravel()
    out = np.empty((count, len(packed) // count), a.dtype)
    for c in range(count):
        for r in range(len(packed) // count):
            out[c, r] = packed[r * count + c]
    return out


def _packed_shapes(count: int, width: int) -> Iterator[VectorShape]:
    yield from ((count * size // width,) for size in _packed_sizes(count))
    yield count, LINE_BYTES // width


_DEINTERLEAVED = (LEVELS, 4), (BYTE_SHUFFLES, 8), (("avx512", *STRUCTURED), 8), (STRUCTURED, 4)
for _count, (_levels, _cost) in zip(INTERLEAVED_ROWS, _DEINTERLEAVED, strict=True):
    _declare(
        f"deinterleaved_{_count}",
        partial(_deinterleaved, _count),
        shapes={8 * w: tuple(_packed_shapes(_count, w)) for w in (1, 2, 4, 8)},
        permutes=True,
        levels=_levels,
        cost=_cost,
    )


def _swapped(size: int, value: Lanes) -> Lanes:
    """swap_16 … swap_64: out[k] = the bytes of a[k] in reverse order, in the dtype of a."""
    out = [int.from_bytes(int(x).to_bytes(size, "big"), "little") for x in np.ravel(value)]
    return np.array(out, np.asarray(value).dtype).reshape(np.shape(value))


for _width in (2, 4, 8):
    _declare(
        f"swap_{8 * _width}",
        partial(_swapped, _width),
        shapes={8 * _width: ((), *converted_shapes(_width))},
        levels=BYTE_SHUFFLES,
        cost=1,
    )


def _converted_shapes(target_width: int, cost: int) -> tuple[VectorShape, ...]:
    """One element; runs; blocks of a transpose, or their rows one by one if a block would spill."""
    blocks: tuple[VectorShape, ...] = converted_shapes(target_width)
    if cost > conversions.IN_REGISTERS:
        blocks = tuple((columns,) for _, columns in blocks)
    return tuple(dict.fromkeys([(), (1,), (8,), (16,), (32,), *blocks]))


for _source, _target in CONVERSIONS:
    if _source.startswith("swap "):
        continue
    _from, _to, _cost = dtype_of(_source), dtype_of(_target), conversions.cost(_source, _target)
    _declare(
        f"convert_{_from}_to_{_to}",
        partial(conversions.converted, _from, _to),
        shapes={bits_of(_from): _converted_shapes(bits_of(_to) // 8, _cost)},
        sets_flags=conversions.sets_flags(_source, _target),
        cost=_cost,
    )


for _bits in packed_bits.PACKED_BITS:
    _declare(
        f"packed_{_bits}",
        partial(packed_bits.packed, _bits),
        shapes={8: tuple((8 // _bits * size,) for size in (1, 4, 8, LINE_BYTES))},
        cost=packed_bits.COSTS[_bits],
    )
    _declare(
        f"unpacked_{_bits}",
        partial(packed_bits.unpacked, _bits),
        shapes={8: tuple(dict.fromkeys((size,) for size in (1, 4, 8, LINE_BYTES * _bits // 8)))},
        cost=packed_bits.COSTS[_bits],
    )
    _declare(
        f"packed_{_bits}_from_rows",
        partial(packed_bits.packed_from_rows, _bits),
        shapes={8: tuple(product(packed_bits.column_rows(_bits), packed_bits.COLUMNS))},
        cost=6,
    )
    _declare(
        f"pack_part_{_bits}",
        partial(packed_bits.pack_part, _bits),
        active=ActiveCount(2, LINE_BYTES - 1),
        touched={0: 1, 1: 8 // _bits},
    )
    _declare(
        f"unpack_part_{_bits}",
        partial(packed_bits.unpack_part, _bits),
        active=ActiveCount(2, LINE_BYTES * _bits // 8 - 1),
        touched={0: 8 // _bits, 1: 1},
    )
    for _rows, _size in zip(packed_bits.column_rows(_bits), packed_bits.COLUMN_BYTES, strict=True):
        _declare(
            f"unpacked_{_bits}_into_{_rows}_rows",
            partial(packed_bits.unpacked_into_rows, _bits, _rows),
            shapes={8: tuple((columns * _size,) for columns in packed_bits.COLUMNS)},
            cost=13,
        )
