"""Each instruction alone: a kernel that loads, runs it and stores, for one of the shapes that it supports.

Its source is printed from the IR. The interpreter, which runs the meaning, gives the expected result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from math import prod

import numpy as np

from codegen.emit.source import source_of
from codegen.ir.buffers import Buffer
from codegen.ir.building import index_of
from codegen.ir.dtypes import stored_dtype
from codegen.ir.element_types import bits_of
from codegen.ir.index import Affine, Index, index_symbol
from codegen.ir.instruction import Instruction
from codegen.ir.instructions import SHUFFLED_ROWS
from codegen.ir.instructions import instruction as instruction_named
from codegen.ir.interpreter import interpret
from codegen.ir.lines import LANE_BYTES
from codegen.ir.nodes import BufferArg, Call, Compare, Function, If, Let, ScalarArg, Statement, Store
from codegen.ir.packed_bits import PACKED_BITS
from codegen.ir.values import Load, Local, Op, Step, Value, VectorShape
from tests.codegen.simd import case
from tests.conftest import SEED

GAP = 3
"""Bytes between the rows of a block."""

PATTERN = {"low": 0x0123456789ABCDEF, "high": -0x123456789}
SHUFFLES = ("shuffled", "with_shuffled")
COUNTS = (0, 1, 3, 4, 7, 8, 15, 16, 31, 32, 33, 63, 64, 200)


@dataclass(frozen=True)
class SmallKernel:
    """A kernel with a few statements, given by its source."""

    name: str
    source: str


@dataclass(frozen=True)
class InstructionCase:
    """A run of an instruction: function, arguments, source, and the destination before and after."""

    name: str
    function: Function
    sizes: tuple[int, ...]
    src: case.Bytes
    before: case.Bytes
    after: case.Bytes

    def __str__(self) -> str:
        return self.name

    lows = (0, 0)

    @property
    def kernel(self) -> SmallKernel:
        return _kernel(self.function)

    def calls(self, dst_base: int) -> list[case.Call]:
        """The only call."""
        return [case.Call(self.kernel, 0, 0, self.sizes, 0, 0, {})]


TURNS = 2
"""CPU levels that take turns run every second case of an instruction."""


@lru_cache(4)  # the levels of one instruction follow each other
def instruction_cases(name: str) -> tuple[InstructionCase, ...]:
    """All elements and shapes of an operation, or several counts of a memory instruction.

    The cases of a turn are in one kernel, because compiling each alone takes twice as long.
    """
    cases = list(_separate_cases(instruction_named(name)))
    for turn in range(TURNS):
        cases[turn::TURNS] = _in_one_kernel(cases[turn::TURNS])
    return tuple(cases)


def _in_one_kernel(cases: Sequence[InstructionCase]) -> Iterator[InstructionCase]:
    """The cases with a kernel for all of them. Its first argument chooses the body.

    before:  dst[:] = a(src)
             dst[:] = b(src)
    after:   if chosen == 0: dst[:] = a(src)
             if chosen == 1: dst[:] = b(src)
    """
    chosen = ScalarArg("chosen", "i64")
    bodies = list(dict.fromkeys(each.function.body for each in cases))
    body = tuple(
        If((Compare(index_symbol(chosen.name), "eq", index_of(number)),), one)
        for number, one in enumerate(bodies)
    )
    for each in cases:
        function = _function(body, (chosen, *each.function.arguments))
        yield replace(each, function=function, sizes=(bodies.index(each.function.body), *each.sizes))


def _separate_cases(instruction: Instruction) -> Iterator[InstructionCase]:
    if not instruction.shapes:
        yield from _memory_cases(instruction)
    for bits, shapes in instruction.shapes.items():
        for shape in shapes:
            if instruction.name == "repeated_line":
                value = Op(instruction.name, (Local("low", "i64"), Local("high", "i64")), "bits8", (64,))
                yield _case(instruction.name, (_store(value),), PATTERN, 0, 64)
            elif instruction.name == "elements_to_line":
                for size, address in ((1, 130), (4, 128), (4, 68), (8, 4), (3, 61)):
                    distance = Op(instruction.name, (Local("low", "i64"), Local("high", "i64")), "i64")
                    given = {"low": address, "high": size}
                    yield _case(f"{instruction.name} {given}", (_store(distance),), given, 0, 8)
            else:
                yield _operation_case(instruction, bits, shape)


def operation_case(instruction: Instruction, bits: int, shape: VectorShape) -> InstructionCase:
    """The case of an operation with a shape, in the kernel of its turn."""
    shapes = [(bits, shape) for bits, shapes in instruction.shapes.items() for shape in shapes]
    return instruction_cases(instruction.name)[shapes.index((bits, shape))]


def _operation_case(instruction: Instruction, bits: int, shape: VectorShape) -> InstructionCase:
    """An operation on random elements."""
    if instruction.name in SHUFFLES:
        bits, shape = 8, _shuffled_shape(bits, shape)
    source, target = _dtypes(instruction.name, bits)
    made = _result_shape(instruction.name, shape)
    result = Op(instruction.name, _operands(instruction.name, source, shape), target, made)
    pitches = {"src_pitch": _pitch(shape, bits), "dst_pitch": _pitch(made, bits_of(target))}
    block = Let(f"block_{'x'.join(map(str, (bits, *shape)))}", result)
    body = (block, _store(Local(block.name, target, made)))
    label = f"{instruction.name} of {source}{list(shape)}"
    given = _elements(instruction.name, bits, prod(shape))
    return _case(label, body, pitches, _size(shape, bits), _size(made, bits_of(target)), given)


def _dtypes(name: str, bits: int) -> tuple[str, str]:
    """The dtypes of the operand and of the result, as integers of the same width."""
    target = name.rpartition("_to_")[2] if name.startswith("convert_") else f"u{bits}"
    return f"bits{bits}", f"bits{bits_of(target)}"


def _operands(name: str, dtype: str, shape: VectorShape) -> tuple[Value, ...]:
    """The operands. Rows to shuffle are read with an order, which is the bytes of the first row."""
    if name not in SHUFFLES:
        return (_loaded(dtype, shape),)
    rows, order = _loaded(dtype, (*shape[:-1], LANE_BYTES)), _loaded("bits64", (shape[-1] // 8,))
    return (rows, order) if name == "shuffled" else (_loaded(dtype, shape), rows, order)


def _shuffled_shape(bits: int, shape: VectorShape) -> VectorShape:
    """The result of a shuffle: registers of the given shape, or several of the size of the given order."""
    return shape if bits == 8 else (SHUFFLED_ROWS, 8 * shape[0])


def _loaded(dtype: str, shape: VectorShape) -> Value:
    """The operand."""
    steps = _steps("src_pitch", dtype, shape) if shape else ()
    return Load("src", (Affine(),), dtype, shape, (0,) * len(shape), steps)


def _store(value: Value) -> Store:
    shape = value.shape
    steps = _steps("dst_pitch", value.dtype, shape) if shape else ()
    return Store("dst", (Affine(),), value, (0,) * len(shape), steps)


def _steps(pitch: str, dtype: str, shape: VectorShape) -> tuple[Step, ...]:
    return (pitch, bits_of(dtype) // 8)[-len(shape) :]


def _pitch(shape: VectorShape, bits: int) -> int:
    return shape[-1] * bits // 8 + GAP if shape else 0


def _size(shape: VectorShape, bits: int) -> int:
    """The bytes from the first element to the last."""
    if len(shape) < 2:
        return prod(shape) * bits // 8
    return (shape[0] - 1) * _pitch(shape, bits) + shape[1] * bits // 8


def _result_shape(name: str, shape: VectorShape) -> VectorShape:
    count = prod(shape)
    if name == "transposed":
        return shape[::-1]
    if name in ("joined", "interleaved", "rows_in_line"):
        return (count,)
    if name.startswith("deinterleaved_"):
        rows = int(name.rpartition("_")[2])
        return rows, count // rows
    for bits in PACKED_BITS:
        if name.startswith(f"packed_{bits}"):
            return (count * bits // 8,)
        if name == f"unpacked_{bits}":
            return (count * 8 // bits,)
        if name.startswith(f"unpacked_{bits}_into_"):
            rows = int(name.split("_")[3])
            return rows, count * 8 // bits // rows
    return shape


def _elements(name: str, bits: int, count: int) -> case.Bytes:
    """Random elements: any bits, some of them 0, if they are moved; small numbers if they are converted."""
    rng = np.random.default_rng((SEED, bits, count))
    if not name.startswith("convert_"):
        moved = rng.integers(0, 256, count * bits // 8, np.uint8)
        return moved * (rng.integers(0, 4, moved.size) > 0)
    dtype = name.removeprefix("convert_").partition("_to_")[0]
    numbers = rng.integers(0, 16, count) / (1 if dtype[0] in "iu" else 4)
    return np.ascontiguousarray(numbers.astype(stored_dtype(dtype))).view(np.uint8)


def _memory_cases(instruction: Instruction) -> Iterator[InstructionCase]:
    active, name = instruction.active, instruction.name
    if active is None:
        operands = (index_symbol("src"),) if name == "prefetch_line" else ()
        yield _case(name, (Call(name, operands),), {}, 64, 64)
        return
    for count in COUNTS:
        if active.most is not None and count > active.most:
            break
        src, dst = _memory_sizes(name, count)
        many = index_symbol("count")
        operands: tuple[str | Index, ...] = ("dst", "src", many)
        if name == "fill_part":
            operands = ("dst", many, index_symbol("low"), index_symbol("high"))
        given = {"count": count, **(PATTERN if name == "fill_part" else {})}
        yield _case(f"{name} of {count} bytes", (Call(name, operands),), given, src, dst)


def _memory_sizes(name: str, count: int) -> tuple[int, int]:
    """The bytes that a memory instruction reads and writes."""
    way, _, bits = name.partition("_part_")
    each = 8 // int(bits) if bits else 1
    return {"pack": (each * count, count), "unpack": (count, each * count)}.get(way, (count, count))


def _case(
    name: str,
    body: tuple[Statement, ...],
    arguments: dict[str, int],
    src_bytes: int,
    dst_bytes: int,
    elements: case.Bytes | None = None,
) -> InstructionCase:
    """The case of a body. Bytes beside rows are random in the source, and stay in the destination."""
    rng = np.random.default_rng((SEED, src_bytes, dst_bytes))
    src, before = (rng.integers(0, 256, size, np.uint8) for size in (src_bytes, dst_bytes))
    if elements is not None:
        _put_rows(src, elements, arguments.get("src_pitch", 0))
    function = _function(body, tuple(ScalarArg(argument, "i64") for argument in arguments))
    after = before.copy()
    buffers = {"src": Buffer(src), "dst": Buffer(after)}
    interpret(function, tuple(arguments.values()), buffers)
    return InstructionCase(name, function, tuple(arguments.values()), src, before, after)


def _put_rows(src: case.Bytes, elements: case.Bytes, pitch: int) -> None:
    """Write the elements into rows of the source."""
    row = pitch - GAP
    if len(elements) == len(src):
        src[:] = elements
        return
    for k, start in enumerate(range(0, len(src), pitch)):
        src[start : start + row] = elements[k * row : k * row + row]


def _function(body: tuple[Statement, ...], arguments: tuple[ScalarArg, ...]) -> Function:
    buffers = BufferArg("src"), BufferArg("dst")
    name = f"instruction_{sha256(repr((body, arguments)).encode()).hexdigest()[:12]}"
    return Function(name, arguments, body, buffers=buffers, summary="dst = instruction(src).")


@lru_cache(4)
def _kernel(function: Function) -> SmallKernel:
    return SmallKernel(function.name, source_of(function))
