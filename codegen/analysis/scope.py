"""What names stand for at a statement of a kernel, and what is known there."""

from __future__ import annotations

from typing import TypeAlias

from codegen.analysis.cases import Cases, Facts
from codegen.ir.index import Affine
from codegen.support.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """An offset from the address of a storage, in units of so many bits."""

    storage: str
    offset: Affine
    unit_bits: int


Pointer: TypeAlias = tuple[tuple[Facts, Place], ...]
"""Where a name points: one place, or one for each branch that defined it."""


@dataclass(slots=True)
class Scope:
    """Attributes:
    symbols: the integers, over unknowns.
    pointers: the buffers and views.
    facts: what conditions and loops say.
    loops: the names of the loops around, for messages.
    """

    symbols: dict[str, Affine]
    pointers: dict[str, Pointer]
    facts: Facts = ()
    loops: tuple[str, ...] = ()

    def inside(self, *facts: Cases, loop: str = "") -> Scope:
        """A scope in this one, where more is known."""
        loops = (*self.loops, loop) if loop else self.loops
        return Scope(dict(self.symbols), dict(self.pointers), (*self.facts, *facts), loops)

    @property
    def text(self) -> str:
        """Where this is, for messages."""
        return f" in the loops over {', '.join(self.loops)}" if self.loops else ""
