"""The values of a text while its function is read: what each is in the IR of kernels, and names for them."""

from __future__ import annotations

import keyword
import re
from dataclasses import field
from typing import TypeAlias

from xdsl.ir import SSAValue

from codegen import Affine, Const, Index, IndexValue, Op, Value, dataclass
from tilejit.mlir.dtypes import INDEX, MemRef
from tilejit.mlir.places import Unsupported


@dataclass(frozen=True, slots=True)
class Extremum:
    """What affine.min and affine.max give; as a bound of a loop its parts are bounds."""

    kind: str
    parts: tuple[Index, ...]


Meaning: TypeAlias = Value | MemRef | Extremum


@dataclass(slots=True)
class Scope:
    """What is known of the values so far.

    loops        the indices of all loops
    nonnegative  symbols of index expressions that are certainly not negative
    where        an i1 value that says whether stores are made; None where nothing is tested
    """

    values: dict[SSAValue, Meaning] = field(default_factory=dict)
    loops: set[str] = field(default_factory=set)
    nonnegative: set[str] = field(default_factory=set)
    where: Value | None = None
    names: set[str] = field(default_factory=set)

    def meaning(self, value: SSAValue) -> Meaning:
        """What a value of the text is here."""
        if value not in self.values:
            raise Unsupported(
                f"{_shown(value)} is used before it is defined",
                "move the operation behind the one that defines it",
            )
        return self.values[value]

    def value(self, value: SSAValue) -> Value:
        """A value that can be computed with."""
        match self.meaning(value):
            case MemRef(name):
                raise Unsupported(f"expected a number, got the memref {name}", "load an element of it")
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
        if isinstance(meaning, IndexValue):
            return meaning.index
        raise Unsupported(
            f"{_shown(value)} is no affine index: it hangs on data, or on more than sums and multiples",
            "make subscripts, sizes and bounds of loop indices, sizes and index arguments",
        )

    def memref(self, value: SSAValue) -> MemRef:
        """A value as an array."""
        meaning = self.meaning(value)
        if isinstance(meaning, MemRef):
            return meaning
        raise Unsupported(f"{_shown(value)} is no memref", "load from, or store to, a memref")

    def is_nonnegative(self, index: Index) -> bool:
        """Whether an index is certainly not negative."""
        return (
            isinstance(index, Affine)
            and index.constant >= 0
            and all(c > 0 and name in self.nonnegative for name, c in index.terms)
        )

    def fresh(self, value: SSAValue | None, otherwise: str) -> str:
        """A name of a value's own that Python takes as well: its name in the text where it has one."""
        hint = None if value is None else value.name_hint
        name = re.sub(r"\W", "_", hint or otherwise, flags=re.ASCII)
        if keyword.iskeyword(name) or name[0].isdigit():
            name = f"{name}_" if keyword.iskeyword(name) else f"_{name}"
        unique, number = name, 0
        while unique in self.names:
            number += 1
            unique = f"{name}_{number}"
        self.names.add(unique)
        return unique


def _shown(value: SSAValue) -> str:
    return f"%{value.name_hint}" if value.name_hint else "a value"
