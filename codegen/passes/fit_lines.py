"""Name parts of expressions that are too long for a line of source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from codegen.ir.access_families import access_family
from codegen.ir.families import FAMILIES
from codegen.ir.index import Index
from codegen.ir.nodes import Function, Let
from codegen.ir.values import Const, IndexValue, Load, Local, Op, Reduce, Value
from codegen.passes.cut_values import cut_values
from codegen.passes.new_names import NewNames, wanted
from codegen.support.dataclasses import dataclass

SUFFIX = len("_10")
"""Characters of the number that makes a repeated name unique."""

ROUTINE = len("_f32x16()")
"""Characters of a call besides the family of its routine and its arguments."""


def fit_lines(function: Function) -> Function:
    """Assign operands to locals, in order, until each statement fits on its lines.

    before:  C[4*i] = select(gt(A[4*i], 0.5), add(mul(A[4*i], 0.25), B[4*i]), 0.0)
    after:   test = gt(A[4*i], 0.5); part = add(mul(A[4*i], 0.25), B[4*i]); C[4*i] = select(test, part, 0.0)

    The source is printed later, so widths are estimates. Constants stay in place.
    """
    return cut_values(function, _Fit().values)


@dataclass(frozen=True, slots=True)
class _Fit:
    names: NewNames = field(default_factory=lambda: NewNames("fit"))

    def values(self, values: tuple[Value, ...], room: int, lets: list[Let]) -> tuple[Value, ...]:
        """The values on one line. If several are too long, all of them are named, to keep their order."""
        if len(values) == 1:
            return (self.value(values[0], room, lets),)
        if _list_width(values) <= room:
            return values
        return tuple([self.named(value, lets) if _may_have_name(value) else value for value in values])

    def value(self, value: Value, room: int, lets: list[Let]) -> Value:
        """The value, with operands moved to locals until it fits."""
        if width(value) <= room:
            return value
        match value:
            case Op(_, (operand,)):
                rest = room - (width(value) - width(operand))
                return replace(value, operands=(self.value(operand, rest, lets),))
            case Op(_, operands):
                return replace(value, operands=self.operands(value, operands, room, lets))
            case Load(offsets=offsets) if offsets is not None:
                return replace(value, offsets=self.named(offsets, lets))
        return value

    def operands(self, value: Op, operands: Sequence[Value], room: int, lets: list[Let]) -> tuple[Value, ...]:
        """The operands, with the first ones replaced by locals, which keeps the order of evaluation."""
        excess, made = width(value) - room, list(operands)
        for k, operand in enumerate(operands):
            if excess > 0 and _may_have_name(operand):
                made[k] = self.named(operand, lets)
                excess -= width(operand) - width(made[k])
        return tuple(made)

    def named(self, value: Value, lets: list[Let]) -> Value:
        """A new local for a value."""
        name = self.names.name("test" if value.dtype == "i1" else "part")
        lets.append(Let(name, value))
        return Local(name, value.dtype, value.shape)


def width(value: Value) -> int:
    """The approximate number of characters of a value in source."""
    match value:
        case Const(number):
            return len(repr(number)) + len("as_f32()")
        case Local(name):
            return len(wanted(name)) + SUFFIX
        case IndexValue(index):
            return _index_width(index) + (2 * ROUTINE if value.shape else 0)
        case Load(array, subscripts):
            indices = [*subscripts, *([] if value.first is None else [value.first])]
            offsets = 0 if value.offsets is None else width(value.offsets)
            routine = access_family(value).name
            routine += "" if value.first is None else "_first"
            return len(routine) + ROUTINE + len(wanted(array)) + sum(map(_index_width, indices)) + offsets
        case Reduce(_, vector, start):
            return ROUTINE + _list_width((vector, start))
        case Op(name, operands):
            known = FAMILIES.get(name)
            if known is not None and known.is_operator:
                return sum(map(width, operands)) + len("() + ()")
            routine = known.routine if known is not None else name
            return len(routine) + ROUTINE + _list_width(operands)
    raise AssertionError(f"fit_lines: no rule for {type(value).__name__}")


def _list_width(values: Sequence[Value]) -> int:
    return sum(width(value) + len(", ") for value in values)


def _index_width(index: Index) -> int:
    text = str(index)
    return len(text) + 2 * text.count("*") + len(" + ")


def _may_have_name(value: Value) -> bool:
    """Whether a local for a value is worth a line; it isn't for constants and locals."""
    match value:
        case Op("broadcast", (Const(),)):
            return False
        case Op() | Load():
            return True
    return False
