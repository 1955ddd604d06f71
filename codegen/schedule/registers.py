"""How the loops of a kernel run in registers: the decisions that its source is printed from."""

from __future__ import annotations

from typing import Literal, TypeAlias

from codegen.ir.index import Index
from codegen.support.dataclasses import dataclass

Tail: TypeAlias = Literal["", "mask", "shift", "scalar"]
Place: TypeAlias = tuple[str, tuple[Index, ...]]
"""An access: its array and subscripts."""


@dataclass(frozen=True, slots=True)
class VectorLoop:
    """A loop over super-vectors that runs as blocks of registers, then a tail.

    lanes      lanes per register, a power of two
    registers  registers per block
    tail       how the iterations that fill no block run; "" if there are none
    streamed   the array whose full lines the loop's only store to it writes past the cache, or ""
    whole      whether a block is one value in the source, which LLVM splits into registers
    """

    lanes: int
    registers: int
    tail: Tail
    streamed: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True)
class TransposedLoops:
    """Two loops over super-vectors that run as square blocks, some of whose accesses are transposed.

    between    the number of loops between the outer one, which has this plan, and the inner one
    side       iterations of each loop in a block: registers, and lanes per register
    columns    the accesses that are contiguous along the outer loop: a register of these is a column
    rest       how the inner loop runs for rows and lanes that fill no block
    row_tail   whether iterations of the outer loop may be left after the last block
    lane_tail  whether iterations of the inner loop may be
    """

    between: int
    side: int
    columns: frozenset[Place]
    rest: VectorLoop
    row_tail: bool
    lane_tail: bool


LoopPlan: TypeAlias = VectorLoop | TransposedLoops | None
"""How one loop runs; None: iteration by iteration."""


@dataclass(frozen=True, slots=True)
class RegisterSchedule:
    """How the loops of one function run in registers.

    register_bytes  the size of a register
    loops           the plan of each loop, in source order
    fast            whether float operations on registers may be contracted and reassociated
    """

    register_bytes: int
    loops: tuple[LoopPlan, ...]
    fast: bool = False

    @property
    def vector_loops(self) -> tuple[VectorLoop, ...]:
        """The plans of the loops that run as registers, including those of rows that fill no block."""
        plans = (plan.rest if isinstance(plan, TransposedLoops) else plan for plan in self.loops)
        return tuple(plan for plan in plans if plan is not None)

    @property
    def streamed(self) -> tuple[str, ...]:
        """The arrays whose full lines are stored past the cache."""
        return tuple(dict.fromkeys(plan.streamed for plan in self.vector_loops if plan.streamed))

    @property
    def transposes(self) -> bool:
        """Whether blocks are transposed in registers."""
        return any(isinstance(plan, TransposedLoops) for plan in self.loops)
