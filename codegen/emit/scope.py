"""The scope of an expression in a loop kernel: its names and lanes, and the addresses of elements."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from codegen.analysis.strides import byte_stride, slope
from codegen.emit.names import Names, Table, affine_text, index_text, product_text
from codegen.emit.writer import Writer
from codegen.ir.index import Affine, FloorDiv, Index, Mod, Part, Sum, index_symbols
from codegen.ir.nodes import Function, Load, Store
from codegen.schedule.registers import Place

Text: TypeAlias = str | tuple[str, ...]
"""An expression, or one per register."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """The registers that a loop over super-vectors processes together.

    index      the loop's index
    count      lanes per register, a power of two
    registers  the number of registers
    step       the index step from lane to lane
    live       the name of the number of active lanes in a single register, "" if all are active
    fast       whether floats may be contracted and reassociated
    rows       in a block, the index of the outer loop that advances by row_step per register; else ""
    columns    in a block, the accesses that are loaded or stored by columns
    """

    index: str
    count: int
    registers: int
    step: int
    live: str = ""
    fast: bool = False
    rows: str = ""
    row_step: int = 1
    columns: frozenset[Place] = frozenset()

    @property
    def along(self) -> str:
        """The index that advances from register to register."""
        return self.rows or self.index

    def shift(self, register: int) -> int:
        """The distance of a register from the first one, in that index."""
        return register * (self.row_step if self.rows else self.count * self.step)

    def transposed(self) -> Lanes:
        """The same block with its rows as lanes."""
        return replace(
            self,
            index=self.rows,
            step=self.row_step,
            rows=self.index,
            row_step=self.step,
            columns=frozenset(),
        )

    def moves(self, index: Index) -> bool:
        """Whether an expression differs within a register or from register to register."""
        return bool({self.index, self.along} & index_symbols(index))


@dataclass(frozen=True, slots=True)
class Partial:
    """The accumulators of a reduction after its loop: one per register, and that of a scalar tail or ""."""

    registers: tuple[str, ...]
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Hoisted:
    """The lines before a loop over super-vectors, for values that are the same in all iterations.

    moving     the indices of that loop and of the loops inside it
    readable   arrays whose elements may be loaded before the loop: it does not write them, and it runs at
               least once
    """

    names: Names
    out: Writer
    moving: frozenset[str]
    readable: frozenset[str] = frozenset()
    held: dict[str, str] = field(default_factory=dict)
    loads: set[str] = field(default_factory=set)

    def stays(self, index: Index) -> bool:
        """Whether an expression is the same in all iterations."""
        return not index_symbols(index) & self.moving

    def named(self, wanted: str, text: str) -> str:
        """The name of an expression, assigned before the loop."""
        if text not in self.held:
            self.held[text] = self.names.fresh(wanted)
            self.out.line(f"{self.held[text]} = {text}")
        return self.held[text]


@dataclass(frozen=True, slots=True)
class Scope:
    """The meaning of names at one point of the kernel.

    streamed   the store that bypasses the cache here, or None
    """

    function: Function
    table: Table
    indices: dict[str, str] = field(default_factory=dict)
    held: dict[str, Text | Partial] = field(default_factory=dict)
    lanes: Lanes | None = None
    hoisted: Hoisted | None = None
    streamed: Store | None = None
    transposed: dict[Load, tuple[str, ...]] = field(default_factory=dict)

    def index(self, index: Index, register: int = 0) -> str:
        """An index expression at the first lane of a register."""
        if self.lanes is not None:
            index = shifted(index, self.lanes.along, self.lanes.shift(register))
        return index_text(index, self.indices, self.table)


def shifted(index: Index, name: str, by: int) -> Index:
    """The expression with a symbol increased by a number."""
    if name not in index_symbols(index):
        return index
    match index:
        case Affine():
            return index + Affine(by * index.coefficient(name))
        case FloorDiv(of, divisor):
            return FloorDiv(shifted(of, name, by), divisor)
        case Mod(of, divisor):
            return Mod(shifted(of, name, by), divisor)
        case Sum(parts, rest):
            moved = tuple((_shifted(part, name, by), k) for part, k in parts)
            return Sum(moved, rest + Affine(by * rest.coefficient(name)))
        case _:
            raise AssertionError(f"emit: no rule for {type(index).__name__}")


def _shifted(part: Part, name: str, by: int) -> Part:
    if not isinstance(part, FloorDiv | Mod):
        raise AssertionError(f"emit: no rule for {type(part).__name__}")
    return replace(part, of=shifted(part.of, name, by))


def element_address(access: Load | Store, scope: Scope, register: int = 0) -> tuple[str, str]:
    """The address of an element: the name of a base address, and an offset in bytes."""
    array = scope.function.array(access.array)
    base = scope.table.name(array.name)
    terms: list[str] = []
    rows: list[str] = []
    for dimension, subscript in enumerate(access.subscripts):
        stride = byte_stride(array, dimension)
        if stride is None:
            text = scope.index(subscript, register)
            text = (
                product_text(text, scope.table.name(f"{array.name}.stride[{dimension}]"))
                if text != "0"
                else ""
            )
        else:
            text = _scaled(subscript, stride, scope, register)
        if text and text != "0":
            hoist = scope.hoisted is not None and scope.hoisted.stays(subscript)
            (rows if hoist else terms).append(text)
    if scope.hoisted is not None and rows:
        base = scope.hoisted.named(f"{array.name}_row", " + ".join([base, *rows]))
    return base, " + ".join(terms) or "0"


def _scaled(index: Index, factor: int, scope: Scope, register: int) -> str:
    """An expression times a number of bytes; an affine expression is multiplied out."""
    if not isinstance(index, Affine):
        return product_text(scope.index(index, register), str(factor))
    lanes = scope.lanes
    index = shifted(index, lanes.along, lanes.shift(register)) if lanes else index
    assert isinstance(index, Affine)
    names = [(scope.indices.get(n) or scope.table.name(n), c * factor) for n, c in index.terms]
    return affine_text(index.constant * factor, names)


def lane_stride(access: Load | Store, scope: Scope) -> str | int:
    """Bytes from lane to lane: a number if known, else an expression; 0 if all lanes use the same element."""
    lanes = scope.lanes
    if lanes is None:
        return 0
    array, known, terms = scope.function.array(access.array), 0, []
    for dimension, subscript in enumerate(access.subscripts):
        step = slope(subscript, lanes.index) * lanes.step
        stride = byte_stride(array, dimension)
        if stride is not None:
            known += step * stride
        elif step:
            name = scope.table.name(f"{array.name}.stride[{dimension}]")
            terms.append(name if step == 1 else f"{step} * {name}")
    return " + ".join([*terms, *([str(known)] if known else [])]) if terms else known
