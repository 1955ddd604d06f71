"""The meaning of names at a statement of a kernel, and the facts known there."""

from __future__ import annotations

from typing import TypeAlias

from codegen.analysis.cases import Cases, Facts
from codegen.ir.index import Affine
from codegen.support.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """An offset from the address of a storage, in units of that many bits."""

    storage: str
    offset: Affine
    unit_bits: int


Pointer: TypeAlias = tuple[tuple[Facts, Place], ...]
"""The places that a name points to: one, or one for each branch that defined it."""


@dataclass(slots=True)
class Scope:
    """The names and the facts that are known at a statement.

    Attributes:
        symbols: the integers, over unknowns.
        pointers: the buffers and views.
        facts: the facts from conditions and loops.
        loops: the names of the enclosing loops, for messages.
    """

    symbols: dict[str, Affine]
    pointers: dict[str, Pointer]
    facts: Facts = ()
    loops: tuple[str, ...] = ()

    def inside(self, *facts: Cases, loop: str = "") -> Scope:
        """A scope in this one, with more facts."""
        loops = (*self.loops, loop) if loop else self.loops
        return Scope(dict(self.symbols), dict(self.pointers), (*self.facts, *facts), loops)

    @property
    def text(self) -> str:
        """The position, for messages."""
        return f" in the loops over {', '.join(self.loops)}" if self.loops else ""
