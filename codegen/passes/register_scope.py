"""The lanes and the locals at one point of a function whose super-vectors are split into registers."""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from codegen.ir.building import plus
from codegen.ir.index import Affine, Index, index_symbol, index_symbols, substitute_index
from codegen.ir.values import Op, Value, VectorShape
from codegen.support.dataclasses import dataclass

Registers: TypeAlias = Value | tuple[Value, ...]
"""A value that is the same in all lanes, or one value per register."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """The registers that a loop over super-vectors processes together.

    index      the loop's index
    count      lanes per register, a power of two
    registers  the number of registers
    step       the index step from lane to lane
    live       the number of active lanes in a single register, None if all are active
    """

    index: str
    count: int
    registers: int
    step: int
    live: Index | None = None

    @property
    def shape(self) -> VectorShape:
        """The shape of a register."""
        return (self.count,)

    def shifted(self, index: Index, register: int) -> Index:
        """An index expression at the first lane of a register."""
        by = register * self.count * self.step
        if isinstance(index, Affine):  # most are, and there are many
            return Affine(index.constant + by * index.coefficient(self.index), index.terms)
        return substitute_index(index, self.index, plus(index_symbol(self.index), by)) if by else index

    def moves(self, index: Index) -> bool:
        """Whether an expression differs within a register or from register to register."""
        return self.index in index_symbols(index)


@dataclass(frozen=True, slots=True)
class Scope:
    """The values of locals, and the lanes."""

    held: dict[str, Registers] = field(default_factory=dict)
    lanes: Lanes | None = None


def spread(value: Registers, lanes: Lanes) -> tuple[Value, ...]:
    """One value per register; a single number is repeated in all lanes."""
    if isinstance(value, tuple):
        return value
    return (Op("broadcast", (value,), value.dtype, lanes.shape),) * lanes.registers
