"""What the parts of the emitter of loops ask of it; `loops_source` has it."""

from __future__ import annotations

from typing import Protocol

from codegen.emit.names import Names
from codegen.emit.scope import Partial, Scope, Text
from codegen.emit.writer import Writer
from codegen.ir.nodes import Carried, For, Statement


class Emitter(Protocol):
    """What writes statements and loops."""

    @property
    def names(self) -> Names:
        """Free names."""

    @property
    def tail(self) -> str:
        """The rule for tails."""

    @property
    def fast(self) -> bool:
        """Whether floats may be contracted and reassociated."""

    def ends(self, loop: For, scope: Scope) -> tuple[str, str]:
        """Where a loop begins and ends."""

    def bound_name(self, loop: For, bound: str, what: str, out: Writer) -> str:
        """A bound as a name or a number."""

    def statements(self, body: tuple[Statement, ...], scope: Scope, out: Writer) -> Scope:
        """A body."""

    def carry(
        self, carried: tuple[Carried, ...], scope: Scope, out: Writer
    ) -> tuple[Scope, dict[str, Text | Partial]]:
        """The scope inside a loop, with what it carries."""

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
        """`for` around a body; `fill` names lanes that count in this iteration, where not all do."""

    def vector_loop(self, loop: For, lower: str, upper: str, scope: Scope, out: Writer) -> None:
        """Registers of super-vectors, then what is left."""
