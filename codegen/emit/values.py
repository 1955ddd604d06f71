"""Print values and stores as Python: bits that are moved, and numbers that are computed with.

The dtype of a node determines which. Single elements of `bits…` belong to copies, whose sides never overlap,
so their routines let the compiler reorder accesses. Numbers may be in arrays that overlap. Each node is one
operator or one call. bf16 and f16 are held as f32, so their casts to f32 are not printed.
"""

from __future__ import annotations

from math import copysign
from typing import TypeAlias

from codegen.analysis.strides import HALVES, held_dtype
from codegen.emit.indices import address_text, index_expression, index_text, scaled_text, sum_text
from codegen.emit.text import ATOM, SIGN, Text, call, chosen, infix, prefix
from codegen.ir.access_families import access_family
from codegen.ir.element_types import bits_of, is_bits
from codegen.ir.families import FAMILIES, OWN_OF_F16, ROUNDINGS
from codegen.ir.index import Index, scale_index
from codegen.ir.instructions import instruction, is_instruction
from codegen.ir.nodes import ArrayArg, Function, Store
from codegen.ir.routines import name_of
from codegen.ir.values import Const, Each, Entries, IndexValue, Load, Local, Op, Step, Value
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError

CallText: TypeAlias = tuple[str, tuple[str, ...]]
"""A call: the name of the routine and its arguments."""

_WIDENED = tuple((f"{sign}{bits}", f"{sign}64") for sign in "iu" for bits in (8, 16, 32))
"""Casts that operators on single numbers do themselves."""


def values_of(function: Function) -> Values:
    """The printer of the values of a lowered function, whose only arrays are its tables."""
    return Values(frozenset(each.name for each in function.arguments if isinstance(each, ArrayArg)))


@dataclass(frozen=True, slots=True)
class Values:
    """Prints values and stores.

    Attributes:
        tables: the names of tables of 64-bit integers, whose subscripts count entries; others count units.
    """

    tables: frozenset[str]

    def text(self, value: Value) -> str:
        """A value without outer parentheses."""
        return self.value(value).text

    def store(self, store: Store) -> CallText:
        """The store of an element, a vector or a block."""
        dtype = store.value.dtype
        if store.value.shape:
            return self.store_vector(store)
        if is_bits(dtype):
            return self.store_bits(store)
        name = name_of(access_family(store).name, dtype, place="at")
        return name, (store.array, _offset(store), self.text(store.value))

    def store_bits(self, store: Store) -> CallText:
        """The store of an element of bits: a move if it is loaded from elsewhere."""
        value, bits, to = store.value, bits_of(store.value.dtype), (store.array, _offset(store))
        if isinstance(value, Load) and bits >= 8:
            return name_of("move", f"u{bits}", place="at"), (*to, value.array, _offset(value))
        return name_of("store", f"u{bits}", place="at"), (*to, self.text(value))

    def store_vector(self, store: Store) -> CallText:
        """The store of a vector or a block, or of some of its lanes."""
        form, last = _some(store.first)
        if store.where is not None:
            form, last = "where", [self.text(store.where)]
        if store.carry is not None:
            form, last = "carried", [_address(store.carry)]
        place, apart = self.apart(store)
        name = _access(access_family(store).name, store.value, form, place)
        return name, (_address(store), *apart, self.text(store.value), *last)

    def value(self, value: Value) -> Text:
        """A value, as an operand."""
        match value:
            case Const(number, dtype):
                return _constant(number, dtype)
            case Local(name):
                return Text(name)
            case IndexValue():
                return _index_value(value)
            case Load():
                return self.load(value)
            case Op("select", (test, IndexValue(then), IndexValue(otherwise)), _, ()):
                return chosen(self.value(test), index_expression(then), index_expression(otherwise))
            case Op("cast", (operand,), dtype) if is_bits(dtype):  # its store keeps the low bits
                return self.value(operand)
            case Op("cast", (operand,), "f32") if operand.dtype in HALVES:
                return self.value(operand)
            case Op(name, operands) if is_instruction(name):
                instruction(name).check_operands(operands)
                return call(name, *map(self.value, operands))
            case Op(shape=(_, *_)):
                return self.register(value)
            case Op():
                return self.number(value)
        raise AssertionError(f"emit: no rule for {type(value).__name__}")

    def load(self, load: Load) -> Text:
        """The load of an element, a vector or a block, or of its first lanes."""
        array, dtype = load.array, load.dtype
        match is_bits(dtype), load.shape:
            case True, ():
                return call(name_of("load", f"u{bits_of(dtype)}", place="at"), array, _offset(load))
            case _, () if array in self.tables:
                return call(name_of("int64_at"), array, _offset(load))
            case _ if array in self.tables:
                entries = [scale_index(each, 8) for each in load.subscripts]
                return call(_access("load", load), address_text(array, *entries))
            case _, ():
                return call(name_of(access_family(load).name, dtype, place="at"), array, _offset(load))
        name, arguments = self.access_call(access_family(load).name, load)
        return call(name, *arguments)

    def access_call(self, family: str, load: Load) -> CallText:
        """The load of a vector or a block, or a request for its lines."""
        form, live = _some(load.first)
        place, apart = self.apart(load)
        return _access(family, load, form, place), (_address(load), *apart, *live)

    def apart(self, access: Load | Store) -> tuple[str, list[str]]:
        """The place of a block's rows, and the arguments for it and for lanes that are not contiguous."""
        if access.offsets is not None:
            return "", [self.text(access.offsets)]
        steps = access.steps if access_family(access).apart == "step" else access.steps[:-1]
        place = ""
        match steps:
            case Entries(_, _, half), *_:
                place = f"at_{half}" if half else "at"
            case Each(), *_:
                place = "each"
        return place, list(map(_step_text, steps))

    def register(self, value: Op) -> Text:
        """An operation that makes a vector or a block."""
        operands = tuple(map(self.value, value.operands))
        if value.name == "cast" and value.dtype in HALVES:
            return call(name_of(ROUNDINGS[value.dtype]), *operands)
        return _operation(value, operands)

    def number(self, value: Op) -> Text:
        """An operation that makes a number."""
        name, dtype = value.name, value.dtype
        match name:
            case "div" if dtype[0] in "iu":
                raise KernelError("expected floats for /, got integers; use //")
            case "not" if dtype == "i1":
                return prefix("not ", *map(self.value, value.operands))
            case "cast":
                return call(name_of("as", dtype), *map(self.value, value.operands))
            case "shl" | "shr":
                return call(name_of(name, dtype), *map(self.value, value.operands))
        return _operation(value, tuple(map(self.operand, value.operands)))

    def operand(self, value: Value) -> Text:
        """The operand of one of Python's operators, which widens integers itself."""
        match value:
            case Op("cast", (operand,), dtype, ()) if (operand.dtype, dtype) in _WIDENED:
                return self.value(operand)
        return self.value(value)


def _access(family: str, value: Value, form: str = "", place: str = "") -> str:
    """The name of the access of a vector or a block."""
    dtype = f"u{bits_of(value.dtype)}" if is_bits(value.dtype) else value.dtype
    return name_of(family, dtype, value.shape, form, place)


def _step_text(step: Step) -> str:
    """The distance of rows or lanes, or the address of a table's entries."""
    match step:
        case Entries(table, first):
            at = scaled_text(8, first)
            return table if at == "0" else f"{table} + {at}"
        case Each(pitch):
            return str(pitch)
        case int() | str():
            return str(step)
    return index_text(step)


def _operation(value: Op, operands: tuple[Text, ...]) -> Text:
    """An operator, or a call of a routine, depending on the operation's family."""
    family = FAMILIES.get(value.name)
    if family is None:
        kinds = ", ".join(operand.dtype for operand in value.operands)
        raise KernelError(f"kernels do not support {value.name!r} of {kinds}")
    if family.named_by:
        dtype = held_dtype(value.dtype) if family.named_by == "dtype" else ""
        return call(name_of(family.routine, dtype, value.shape), *operands)
    if not family.is_operator:
        own = OWN_OF_F16.get(family.name) if value.dtype == "f16" else None
        return call(name_of(own or family.routine), *operands)
    return (
        prefix(family.routine, *operands)
        if family.arity == 1
        else infix(operands[0], family.routine, operands[1])
    )


def _some(first: Index | None) -> tuple[str, list[str]]:
    """The form of an access to the first lanes only, and their number."""
    return ("", []) if first is None else ("first", [index_text(first)])


def _offset(access: Load | Store) -> str:
    """The offset of an access, with its parts in dimension order."""
    return sum_text(None, *access.subscripts)


def _address(access: Load | Store) -> str:
    return address_text(access.array, *access.subscripts)


def _constant(number: float, dtype: str) -> Text:
    if dtype == "i1":
        return Text(str(bool(number)))
    if dtype in ("i64", "f64"):
        plain = int(number) if dtype == "i64" else float(number)
        return Text(repr(plain), SIGN if copysign(1, plain) < 0 else ATOM)
    value = float(number) if dtype[0] == "f" or dtype in HALVES else int(number)
    return call(name_of("as", dtype), repr(value))


def _index_value(value: IndexValue) -> Text:
    """An index expression as a number, or in each lane of a register."""
    text = index_expression(value.index)
    if not value.shape:
        return text
    (count,), (step,) = value.shape, value.steps
    splat, lanes = name_of("splat", "i64", (count,)), call(name_of("iota", "i64", (count,)))
    if step != 1:
        lanes = infix(lanes, "*", call(splat, str(step)))
    return infix(call(splat, text), "+", lanes)
