"""The interface of the loop emitter to its parts; `nest_source` implements it."""

from __future__ import annotations

from typing import Protocol

from codegen.emit.names import Names
from codegen.emit.scope import Partial, Scope, Text
from codegen.emit.writer import Writer
from codegen.ir.nodes import Carried, For, Statement
from codegen.schedule.registers import VectorLoop


class Emitter(Protocol):
    """Writes statements and loops."""

    @property
    def names(self) -> Names:
        """The source of fresh names."""

    @property
    def fast(self) -> bool:
        """Whether floats may be contracted and reassociated."""

    def ends(self, loop: For, scope: Scope) -> tuple[str, str]:
        """The lower and upper bounds of a loop."""

    def bound_name(self, loop: For, bound: str, what: str, out: Writer) -> str:
        """A bound as a name or a number."""

    def statements(self, body: tuple[Statement, ...], scope: Scope, out: Writer) -> Scope:
        """Write a body; return the scope after it."""

    def carry(
        self, carried: tuple[Carried, ...], scope: Scope, out: Writer
    ) -> tuple[Scope, dict[str, Text | Partial]]:
        """Assign start values; return the scope inside a loop, and the carried names."""

    def plain_loop(
        self,
        loop: For,
        lower: str,
        upper: str,
        scope: Scope,
        carried: dict[str, Text | Partial],
        out: Writer,
        fill: str = "",
    ) -> None:
        """Write a `for` loop; `fill` is the name for its number of active lanes, "" if all are active."""

    def vector_loop(
        self, loop: For, plan: VectorLoop, lower: str, upper: str, scope: Scope, out: Writer
    ) -> None:
        """Write full blocks of registers, then the tail."""
