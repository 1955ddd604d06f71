"""Choose how loops over super-vectors run in registers: lanes, blocks, tails, streaming stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Literal

from codegen.analysis.bodies import flat, shared_loop, unmasked, vector_dtypes
from codegen.analysis.pressure import constants, most_live
from codegen.analysis.strides import ELEMENT_BYTES, held_dtype, lane_stride_bytes
from codegen.ir.blocks import INTERLEAVED_ROWS
from codegen.ir.families import CALL, FAMILIES, MASKS
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import For, Function, Let, Statement, Store
from codegen.ir.streams import Stream
from codegen.ir.values import Load, Op, Value
from codegen.ir.visit import constant_trips, loads, values_of
from codegen.schedule.choose_blocks import block_of
from codegen.schedule.choose_streams import streamed_array
from codegen.schedule.directives import OVERLAPPING, Directive, Parallel, Registers, Relax, Tail
from codegen.schedule.loop_groups import tails_of
from codegen.schedule.loop_schedule import LoopSchedule
from codegen.schedule.machine import machine
from codegen.support.dataclasses import dataclass

MAX_REGISTERS = 4
"""Maximum number of registers of a super-vector that are processed together."""

WHOLE = (2, 4)
"""Registers of a whole super-vector: routines have powers of two as lanes."""

MOST_HELD = 1.5
"""Values of whole super-vectors per register of the machine: LLVM reorders some of what does not fit."""


def choose_registers(
    function: Function, register_bytes: int, directives: Sequence[Directive] = (), *, fast: bool = False
) -> LoopSchedule:
    """The schedule of a function, scalar or super-vectorized, for registers of `register_bytes` bytes.

    for i step 64: C[i] = A[i]      f32, 32 bytes: 8 lanes in each of 4 registers, tail masked

    Its tails are those of `directives`, or masked. If they stream, arrays that are written once and not read
    are stored past the cache in full lines by loops whose tail is masked. With `fast`, float operations may
    be contracted and reassociated.
    """
    stream = any(isinstance(x, Stream) for x in directives)
    choice = _Choice(function, register_bytes, tails_of(directives), stream)
    choice.choose(function.body, ())
    loop = shared_loop(function)
    shared = () if loop is None else (Parallel(loop.index),)
    relaxed = (Relax(),) * fast
    return LoopSchedule((*shared, *choice.registers.values(), *choice.ends.values(), *relaxed))


@dataclass(frozen=True, slots=True)
class _Choice:
    """The function, what is requested, and the directives so far, by the loops that they name.

    blocked  the inner loops of blocks that are transposed
    """

    function: Function
    register_bytes: int
    tails: Mapping[str, str]
    stream: bool
    blocked: set[str] = field(default_factory=set)
    registers: dict[tuple[str, str], Registers] = field(default_factory=dict)
    ends: dict[str, Tail] = field(default_factory=dict)

    def choose(self, body: tuple[Statement, ...], around: tuple[str, ...]) -> None:
        """Choose for each loop of a body; `around` holds the indices of the loops around it."""
        for loop in body:
            if isinstance(loop, For):
                self.loop(loop, around)
                self.choose(loop.body, (*around, loop.index))

    def loop(self, loop: For, around: tuple[str, ...]) -> None:
        """Registers for the innermost loop over super-vectors, else blocks of two."""
        if loop.size > 1 and not any(isinstance(s, For) and s.size > 1 for s in flat(loop.body)):
            self.vector_loop(loop, around)
            return
        block = block_of(self.function, loop, self.register_bytes)
        if block is None:
            return
        self.add(block)
        self.blocked.add(block.axis)
        if self.tails.get(block.axis) in OVERLAPPING:
            self.ends[loop.index] = Tail(loop.index, "clamp")
        elif self.may_leave(block.axis, loop.size, block.lanes):
            self.ends[loop.index] = Tail(loop.index, "scalar")

    def vector_loop(self, loop: For, around: tuple[str, ...]) -> None:
        """The lanes per register, limited by the widest dtype and the super-vector, and the registers."""
        lanes, count = lanes_and_registers(self.function, loop, self.register_bytes)
        blocked = loop.index in self.blocked  # a few rows fill no block; their lines are not streamed, either
        count = 1 if blocked else count
        how, streamed = self.tail(loop, lanes * count), ""
        if self.stream and how in ("mask", *OVERLAPPING) and not blocked:
            streamed = streamed_array(self.function, loop, around, lanes)
        if streamed:
            how = "mask"  # the iterations before the first full line are also masked
        whole = self.is_whole(loop, count)
        self.add(Registers(loop.index, lanes, count, whole=whole, streamed=streamed))
        if how:
            self.ends[loop.index] = Tail(loop.index, how)

    def add(self, made: Registers) -> None:
        """Add the registers of loops, whose names are their own."""
        if self.registers.setdefault((made.rows, made.axis), made) != made:
            raise AssertionError(f"{self.function.name} has several loops over {made.axis}")

    def is_whole(self, loop: For, registers: int) -> bool:
        """Whether LLVM splits blocks of a loop into registers as well as the compiler does.

        It does so for elements at known steps and operations of a few instructions, if the values fit in
        registers. Otherwise it spills: the slowest of 40 kernels has 0.65 of the speed, and an `exp` 0.85.
        Casts to elements of four times the size have 0.77, and masks that are combined without mask registers
        0.62. All others have 0.95 to 1.25 (Zen 4, 2026-11).
        """
        body = tuple(x for x in flat(loop.body) if not _is_unrolled(x))
        if registers not in WHOLE or loop.carried or not all(isinstance(x, Let | Store) for x in body):
            return False
        if any(isinstance(x, Store) and x.where is not None for x in body):
            return False
        held = most_live(body) * registers + constants(body)
        if held > MOST_HELD * machine().registers:
            return False
        return all(map(_is_short, values_of(body))) and None not in strides(self.function, loop)

    def tail(self, loop: For, block: int) -> Literal["", "mask", "shift", "clamp", "scalar"]:
        """The tail of a loop: as directives say, "" if every iteration is in a full block."""
        how = self.tails.get(loop.index, "mask")
        if how in ("mask", *OVERLAPPING):
            return how  # type: ignore[return-value]
        return "scalar" if self.may_leave(loop.index, loop.size, block) else ""

    def may_leave(self, index: str, size: int, block: int) -> bool:
        """Whether iterations of a super-vector may be left that do not fill a block; `index` has the tail."""
        return self.tails.get(index) != "assume_divisible" or size % block != 0


def tail_once() -> Literal["mask", "scalar"]:
    """The tail of loops whose iterations may not repeat: masked if the processor has masks, else scalar.

    Without mask registers, c[i, j] += a[i, j] with rows of 12 and 100 elements takes 2.7 and 1.3 times as
    long as scalar code in f32 if its tail is masked, and 4 and 18 times in u8. With a scalar tail, it takes
    0.8 and 1.2, and 1.1 and 0.5 times as long (Zen 3, 2026-11).
    """
    return "mask" if machine().level in MASKS else "scalar"


def lanes_and_registers(function: Function, loop: For, register_bytes: int) -> tuple[int, int]:
    """Lanes per register of a loop over super-vectors, and the registers that are processed together.

    Where elements are a constant distance apart, these are a line, because instructions reorder its lanes.
    Accumulators need more registers, each of which waits for the one before.
    """
    widest = max((ELEMENT_BYTES[held_dtype(d)] for d in vector_dtypes(unmasked(loop))), default=8)
    lanes = min(max(1, register_bytes // widest), 1 << (loop.size.bit_length() - 1))
    is_apart = not loop.carried and strides(function, loop) - {0, 1, None}
    most = max(1, LINE_BYTES // register_bytes) if is_apart else MAX_REGISTERS
    return lanes, min(most, max(1, loop.size // lanes))


def strides(function: Function, loop: For) -> set[int | None]:
    """Elements from lane to lane of each access in a loop over super-vectors; None if calls decide."""
    found: set[int | None] = set()
    for access in _accesses(tuple(flat(loop.body))):
        array, step = function.array(access.array), loop.step // loop.size
        if access.along:
            found.add(None)
            continue
        stride = lane_stride_bytes(array, access.subscripts, loop.index, step)
        found.add(None if stride is None else stride // ELEMENT_BYTES[array.dtype])
    return found


def _accesses(body: tuple[Statement, ...]) -> Iterator[Load | Store]:
    """The stores of a body, and the loads of super-vectors."""
    yield from (x for x in body if isinstance(x, Store))
    yield from (load for value in values_of(body) for load in loads(value) if load.shape)


def _is_unrolled(statement: Statement) -> bool:
    """Whether a loop has as few iterations as instructions have rows."""
    if not isinstance(statement, For) or statement.carried:
        return False
    return constant_trips(statement) in INTERLEAVED_ROWS


def _is_short(value: Value) -> bool:
    """Whether a value takes a few instructions for each register, and casts at most double its elements."""
    if not isinstance(value, Op):
        return True
    family = FAMILIES.get(value.name)
    if family is None or family.cost >= CALL:
        return False
    if value.dtype == value.operands[0].dtype == "i1" and machine().level not in MASKS:
        return False
    if value.name == "cast" and ELEMENT_BYTES[value.dtype] > 2 * ELEMENT_BYTES[value.operands[0].dtype]:
        return False
    return all(map(_is_short, value.operands))
