"""How the loops of a kernel run in registers: the decisions that its source is printed from."""

from __future__ import annotations

from codegen.schedule.directives import Directed, Directive, Registers
from codegen.support.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoopSchedule(Directed):
    """How the loops of one function over super-vectors run in registers.

    directives  Parallel for the loop whose range calls choose; Registers and Tail of loops over
                super-vectors; Relax. Loops without Registers run iteration by iteration, and loops without a
                Tail fill their blocks
    """

    directives: tuple[Directive, ...]

    def registers(self, axis: str) -> Registers | None:
        """The registers of a loop; None if it runs iteration by iteration."""
        return next((x for x in self.obeying(Registers) if x.axis == axis and not x.rows), None)

    def block(self, rows: str) -> Registers | None:
        """The blocks of a loop and one inside it, some of whose accesses are transposed; None without."""
        return next((x for x in self.obeying(Registers) if rows and x.rows == rows), None)

    @property
    def streamed(self) -> tuple[str, ...]:
        """The arrays whose full lines are stored past the cache."""
        return tuple(dict.fromkeys(x.streamed for x in self.obeying(Registers) if x.streamed))

    @property
    def blocks(self) -> tuple[tuple[str, str, int], ...]:
        """The two loops of each block that is transposed in registers, and its rows, as many as lanes."""
        return tuple((x.rows, x.axis, x.lanes) for x in self.obeying(Registers) if x.rows)
