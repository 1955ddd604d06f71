"""Choose how loops over super-vectors run in registers: lanes, blocks, tails, streaming stores."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.analysis.bodies import flat, full_blocks, may_shift, vector_dtypes
from codegen.analysis.strides import ELEMENT_BYTES, held_dtype
from codegen.ir.nodes import For, Function, Statement
from codegen.schedule.choose_blocks import block_of
from codegen.schedule.choose_streams import streamed_array
from codegen.schedule.registers import LoopPlan, RegisterSchedule, Tail, TransposedLoops, VectorLoop
from codegen.support.dataclasses import dataclass

MAX_REGISTERS = 4
"""Maximum number of registers of a super-vector that are processed together."""


def choose_registers(
    function: Function, register_bytes: int, tail: str = "mask", *, stream: bool = False, fast: bool = False
) -> RegisterSchedule:
    """The schedule of a function, scalar or super-vectorized, for registers of `register_bytes` bytes.

    for i step 64: C[i] = A[i]      f32, 32 bytes: 8 lanes in each of 4 registers, tail masked

    With `stream`, arrays that are written once and not read are stored past the cache in full lines, if tails
    are masked. With `fast`, float operations may be contracted and reassociated.
    """
    choice = _Choice(function, register_bytes, tail, stream and tail == "mask")
    return RegisterSchedule(register_bytes, tail, tuple(choice.plans(function.body, ())), fast)


@dataclass(frozen=True, slots=True)
class _Choice:
    function: Function
    register_bytes: int
    tail: str
    stream: bool

    def plans(self, body: tuple[Statement, ...], around: tuple[str, ...]) -> Iterator[LoopPlan]:
        """The plan of each loop of a body; `around` holds the indices of the loops around it."""
        for loop in body:
            if isinstance(loop, For):
                yield self.plan(loop, around)
                yield from self.plans(loop.body, (*around, loop.index))

    def plan(self, loop: For, around: tuple[str, ...]) -> LoopPlan:
        """The plan of one loop: registers for the innermost loop over super-vectors, else blocks of two."""
        if loop.size > 1 and not any(isinstance(s, For) and s.size > 1 for s in flat(loop.body)):
            return self.vector_loop(loop, around)
        block = block_of(self.function, loop, self.register_bytes)
        if block is None:
            return None
        return TransposedLoops(
            between=len(block.between),
            side=block.side,
            columns=block.columns,
            rest=self.vector_loop(block.inner, (*around, loop.index, *block.between)),
            row_tail=self.may_leave(loop, block.side),
            lane_tail=self.may_leave(block.inner, block.side),
        )

    def vector_loop(self, loop: For, around: tuple[str, ...]) -> VectorLoop:
        """The lanes per register, limited by the widest dtype and the super-vector, and the registers."""
        lanes, registers = lanes_and_registers(loop, self.register_bytes)
        streamed = streamed_array(self.function, loop, around, lanes) if self.stream else ""
        return VectorLoop(lanes, registers, self.legal_tail(loop, lanes * registers), streamed)

    def legal_tail(self, loop: For, block: int) -> Tail:
        """The tail of a loop; one that may not run iterations twice is masked where a shift is requested."""
        if self.tail == "shift":
            return "shift" if may_shift(loop) else "mask"
        if self.tail == "mask":
            return "mask"
        return "scalar" if self.may_leave(loop, block) else ""

    def may_leave(self, loop: For, block: int) -> bool:
        """Whether iterations may be left that do not fill a block."""
        return self.tail != "assume_divisible" or loop.size % block != 0


def lanes_and_registers(loop: For, register_bytes: int) -> tuple[int, int]:
    """Lanes per register of a loop over super-vectors, and the registers that are processed together."""
    widest = max((ELEMENT_BYTES[held_dtype(d)] for d in vector_dtypes(full_blocks(loop))), default=8)
    lanes = min(max(1, register_bytes // widest), 1 << (loop.size.bit_length() - 1))
    return lanes, min(MAX_REGISTERS, max(1, loop.size // lanes))
