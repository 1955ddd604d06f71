"""The lanes and the locals at one point of a function whose super-vectors are split into registers."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TypeAlias

from codegen.ir.building import plus
from codegen.ir.index import Affine, Index, index_symbol, index_symbols, substitute_index
from codegen.ir.values import Load, Op, Value, VectorShape
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
    rows       in a block, the index of the outer loop that advances by row_step per register; else ""
    dimension  the vector dimension of the lanes
    """

    index: str
    count: int
    registers: int
    step: int
    live: Index | None = None
    rows: str = ""
    row_step: int = 1
    dimension: int = 0

    @property
    def shape(self) -> VectorShape:
        """The shape of a register."""
        return (self.count,)

    def shifted(self, index: Index, register: int) -> Index:
        """An index expression at the first lane of a register."""
        along = self.rows or self.index
        by = register * (self.row_step if self.rows else self.count * self.step)
        if isinstance(index, Affine):  # most are, and there are many
            return Affine(index.constant + by * index.coefficient(along), index.terms)
        return substitute_index(index, along, plus(index_symbol(along), by)) if by else index

    def transposed(self) -> Lanes:
        """The same block with its rows as lanes."""
        return replace(
            self,
            index=self.rows,
            step=self.row_step,
            rows=self.index,
            row_step=self.step,
            dimension=1 - self.dimension,
        )

    def moves(self, index: Index) -> bool:
        """Whether an expression differs within a register or from register to register."""
        return bool({self.index, self.rows} & index_symbols(index))


@dataclass(frozen=True, slots=True)
class Scope:
    """The values of locals; `columns` has the transposed loads of a statement in a block."""

    held: dict[str, Registers] = field(default_factory=dict)
    lanes: Lanes | None = None
    columns: dict[Load, tuple[Value, ...]] = field(default_factory=dict)


def spread(value: Registers, lanes: Lanes) -> tuple[Value, ...]:
    """One value per register; a single number is repeated in all lanes."""
    if isinstance(value, tuple):
        return value
    return (Op("broadcast", (value,), value.dtype, lanes.shape),) * lanes.registers
