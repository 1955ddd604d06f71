"""The values of a function while it is read: their meanings in the kernel IR, and their names."""

from __future__ import annotations

import keyword
import re
from dataclasses import field
from typing import TypeAlias

from xdsl.ir import SSAValue

from codegen import Affine, Const, Index, IndexValue, Let, Local, Op, Statement, Value, dataclass
from tilejit.mlir.arithmetic import cast, held_unsigned
from tilejit.mlir.dtypes import INDEX, MemRef, View, whole
from tilejit.mlir.meanings import Counted, Held, Lanes, Lanewise, Moved, Progression, Splat
from tilejit.mlir.places import Unsupported


@dataclass(frozen=True, slots=True)
class Extremum:
    """The result of affine.min or affine.max; as the bound of a loop, each part is a bound."""

    kind: str
    parts: tuple[Index, ...]


Meaning: TypeAlias = Value | MemRef | View | Extremum | Lanes


@dataclass(slots=True)
class Scope:
    """What is known so far about a function.

    values       the meaning of each value
    loops        the indices of all loops
    nonnegative  the symbols of index expressions that are known to be nonnegative
    where        the i1 condition of stores; None without one
    names        the names in use
    allocations  the arrays that the function allocates in its text, and those that hold vectors
    spelled      the text's spelling of names that differ in the kernel
    elements     the index expressions of loaded integers, which may be subscripts
    of_indices   the arrays whose elements have the type index
    """

    values: dict[SSAValue, Meaning] = field(default_factory=dict)
    loops: set[str] = field(default_factory=set)
    nonnegative: set[str] = field(default_factory=set)
    where: Value | None = None
    names: set[str] = field(default_factory=set)
    allocations: list[MemRef] = field(default_factory=list)
    spelled: dict[str, str] = field(default_factory=dict)
    elements: dict[SSAValue, Index] = field(default_factory=dict)
    of_indices: set[str] = field(default_factory=set)

    def meaning(self, value: SSAValue) -> Meaning:
        """The meaning of a value of the text."""
        if value not in self.values:
            raise Unsupported(
                f"{_shown(value)} is used before it is defined",
                "move the operation after the one that defines it",
            )
        return self.values[value]

    def value(self, value: SSAValue) -> Value:
        """A value as a number to compute with."""
        match self.meaning(value):
            case MemRef(name) | View(MemRef(name)):
                raise Unsupported(f"expected a number, got the memref {name}", "load an element of it")
            case Held() | Splat() | Counted() | Progression() | Lanewise() | Moved():
                raise Unsupported(
                    f"expected a number, got the vector {_shown(value)}",
                    "write vector.reduction, or vector.transfer_write to a memref",
                )
            case Extremum(kind, parts):
                first, *rest = (IndexValue(part) for part in parts)
                total: Value = first
                for part in rest:
                    total = Op(kind, (total, part), INDEX)
                return total
            case IndexValue(Affine(constant, ())):
                return Const(constant, INDEX)
            case number:
                return number

    def index(self, value: SSAValue) -> Index:
        """A value as an index expression."""
        meaning = self.meaning(value)
        if isinstance(meaning, IndexValue) and value not in self.elements:
            return meaning.index
        raise Unsupported(
            f"{_shown(value)} is not an affine index: it depends on data, or on more than sums and multiples",
            "compute subscripts, sizes and bounds from loop indices, sizes and index arguments",
        )

    def subscript(self, value: SSAValue) -> Index:
        """A value as a subscript: an index expression, or one of loaded elements."""
        return self.elements[value] if value in self.elements else self.index(value)

    def several(self, value: SSAValue) -> tuple[Index, ...]:
        """A value as one or more index expressions, whose minimum it is, as in affine.min."""
        match self.meaning(value):
            case Extremum("min", parts):
                return parts
        return (self.index(value),)

    def array(self, value: SSAValue) -> View:
        """A value as an array."""
        match self.meaning(value):
            case MemRef() as memref:
                return whole(memref)
            case View() as view:
                return view
        raise Unsupported(f"{_shown(value)} is not a memref", "load from, or store to, a memref")

    def is_nonnegative(self, index: Index) -> bool:
        """Whether an index is known to be nonnegative."""
        return (
            isinstance(index, Affine)
            and index.constant >= 0
            and all(c > 0 and name in self.nonnegative for name, c in index.terms)
        )

    def let(self, hint: SSAValue | None, value: Value, out: list[Statement], otherwise: str = "v") -> Value:
        """Name a value, so that it is computed once.

        Unsigned numbers keep their dtype, and are cast where they are used.
        """
        if isinstance(value, Const | Local | IndexValue):
            return value
        name = self.fresh(hint, otherwise)
        held = held_unsigned(value) or value
        out.append(Let(name, held))
        return cast(Local(name, held.dtype), value.dtype)

    def hold(self, hint: SSAValue | None, dtype: str, shape: tuple[int, ...]) -> MemRef:
        """A new internal array for the lanes of a vector."""
        memref = MemRef(self.fresh(hint, "lanes"), dtype, tuple(map(Affine, shape)))
        self.allocations.append(memref)
        return memref

    def fresh(self, value: SSAValue | None, otherwise: str) -> str:
        """A unique name for a value that is valid in Python, based on its name in the text."""
        hint = None if value is None else value.name_hint
        name = re.sub(r"\W", "_", hint or otherwise, flags=re.ASCII)
        if keyword.iskeyword(name) or name[0].isdigit():
            name = f"{name}_" if keyword.iskeyword(name) else f"_{name}"
        unique, number = name, 0
        while unique in self.names:
            number += 1
            unique = f"{name}_{number}"
        self.names.add(unique)
        if hint and hint != unique:
            self.spelled[unique] = hint
        return unique


def _shown(value: SSAValue) -> str:
    return f"%{value.name_hint}" if value.name_hint else "a value"
