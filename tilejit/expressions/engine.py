"""What the kinds of calls of an expression ask of it: programs and plans, kept from call to call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from codegen import Cache, Entry, Function, StagedLoops
from tilejit.arrays.memory import Array
from tilejit.expressions.recorded import Recorded
from tilejit.expressions.recording import Stage
from tilejit.expressions.reductions import Arrays, Plan
from tilejit.kernels.program import LoopOptions, LoopProgram


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """An expression computed block by block, and the program of its last block."""

    loops: StagedLoops
    program: LoopProgram


class Engine(Protocol):
    """An expression: what `Elementwise` is to calls in stages and to calls over tiled arrays."""

    options: LoopOptions
    programs: Cache[tuple[Any, ...], LoopProgram]
    block_plans: Cache[tuple[Any, ...], BlockPlan | None]
    last: LoopProgram | None

    @property
    def name(self) -> str:
        """What its kernels are called."""

    def __call__(self, *args: Any, out: Any = None, where: Any = True) -> Any:
        """Compute over plain arrays."""

    def record(self, given: Sequence[Any]) -> tuple[Recorded, list[Any]]:
        """What the function does with such arguments, and the numbers for its kernels."""

    def plan(self, recorded: Recorded, stages: Sequence[Stage], arrays: Arrays) -> Plan:
        """The plan of the first of these reductions."""

    def new_program(self, key: tuple[Any, ...], function: Function, options: LoopOptions) -> LoopProgram:
        """A new program, remembered if `on_fail` lets it pass."""

    def answered(self, entry: Entry | None = None) -> None:
        """Python answered this call; machine code answers the next ones like it, where there is an entry."""

    def run(
        self,
        recorded: Recorded,
        given: list[Any],
        numbers: list[Any],
        outs: list[Array],
        mask: Array | None,
        shape: tuple[int, ...],
        arrays: Arrays | None = None,
        which: tuple[int, ...] = (),
    ) -> None:
        """Compute outputs of one shape, all or those of these numbers; `arrays` has reductions too."""
