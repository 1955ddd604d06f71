"""Values and stores of kernels that compute, as Python: numbers, and registers of lanes.

The arrays of such a kernel may overlap. Each node is one operator or one call. bf16 and f16 are held as f32:
their casts to f32 are not printed.
"""

from __future__ import annotations

from math import copysign

from codegen.analysis.strides import HALVES, family_of_load, held_dtype, is_contiguous
from codegen.emit.indices import address_text, index_expression, index_text, sum_text
from codegen.emit.moves import CallText
from codegen.emit.text import ATOM, SIGN, Text, call, infix, prefix
from codegen.ir.families import FAMILIES, OWN_OF_F16, ROUNDINGS
from codegen.ir.index import Index
from codegen.ir.instructions import is_instruction
from codegen.ir.nodes import Const, IndexValue, Load, Local, Op, Store, Value
from codegen.ir.routines import name_of
from codegen.support.errors import KernelError

_WIDENED = tuple((f"{sign}{bits}", f"{sign}64") for sign in "iu" for bits in (8, 16, 32))
"""Casts that operators on single numbers do themselves."""


def value_text(value: Value) -> str:
    """A value, without parentheses around all of it."""
    return _value(value).text


def store_call(store: Store) -> CallText:
    """The store of an element or of a register."""
    value, dtype = store.value, store.value.dtype
    if not value.shape:
        name = name_of("write", dtype, which="at")
        return name, (store.array, _offset(store), value_text(value))
    how = "strided_store" if not is_contiguous(store) else "stream" if store.streamed else "store"
    which, last = _some(store.first)
    if store.where is not None:
        which, last = "where", [value_text(store.where)]
    arguments = _address(store), *_apart(store), value_text(value), *last
    return name_of(how, dtype, value.shape[0], which), arguments


def _value(value: Value) -> Text:
    match value:
        case Const(number, dtype):
            return _constant(number, dtype)
        case Local(name):
            return Text(name)
        case IndexValue():
            return _index_value(value)
        case Load():
            return _load(value)
        case Op("cast", (operand,), "f32") if operand.dtype in HALVES:
            return _value(operand)
        case Op(shape=(_, *_)):
            return _register(value)
        case Op():
            return _number(value)
    raise AssertionError(f"emit: no rule for {type(value).__name__}")


def _load(load: Load) -> Text:
    """The load of an element or of a register."""
    if not load.shape:
        return call(name_of("read", load.dtype, which="at"), load.array, _offset(load))
    which, live = _some(load.first)
    apart = _apart(load) if load.offsets is None else [value_text(load.offsets)]
    name = name_of(family_of_load(load), load.dtype, load.shape[0], which)
    return call(name, _address(load), *apart, *live)


def _register(value: Op) -> Text:
    """An operation that makes a register, or a block of registers."""
    operands = tuple(map(_value, value.operands))
    match value.name:
        case "stack":
            return Text(f"({', '.join(each.text for each in operands)})")
        case "row":
            return Text(f"{operands[0].text}[{operands[1].text}]")
        case "cast" if value.dtype in HALVES:
            return call(name_of(ROUNDINGS[value.dtype]), *operands)
    return _operation(value, operands)


def _number(value: Op) -> Text:
    """An operation that makes a number."""
    name, dtype = value.name, value.dtype
    match name:
        case "div" if dtype[0] in "iu":
            raise KernelError("expected floats for /, got integers; use //")
        case "not" if dtype == "i1":
            return prefix("not ", *map(_value, value.operands))
        case "cast":
            return call(name_of("as", dtype), *map(_value, value.operands))
        case "shl" | "shr":
            return call(name_of(name, dtype), *map(_value, value.operands))
        case _ if is_instruction(name):
            return call(name, *map(_value, value.operands))
    return _operation(value, tuple(map(_operand, value.operands)))


def _operand(value: Value) -> Text:
    """The operand of one of Python's operators, which widens integers itself."""
    match value:
        case Op("cast", (operand,), dtype, ()) if (operand.dtype, dtype) in _WIDENED:
            return _value(operand)
    return _value(value)


def _operation(value: Op, operands: tuple[Text, ...]) -> Text:
    """An operator, or a call of a routine, as the family of the operation says."""
    family = FAMILIES.get(value.name)
    if family is None:
        kinds = ", ".join(operand.dtype for operand in value.operands)
        raise KernelError(f"kernels do not support {value.name!r} of {kinds}")
    if family.named_by:
        dtype = held_dtype(value.dtype) if family.named_by == "dtype" else ""
        return call(name_of(family.routine, dtype, value.shape[0]), *operands)
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
    """The offset of an access, its parts in the order of the dimensions."""
    return sum_text(None, *access.subscripts)


def _address(access: Load | Store) -> str:
    return address_text(access.array, *access.subscripts)


def _apart(access: Load | Store) -> list[str]:
    """The distance between lanes, where they are not contiguous."""
    if is_contiguous(access):
        return []
    (step,) = access.steps
    return [str(step) if isinstance(step, int) else index_text(step)]  # type: ignore[arg-type]


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
    splat, lanes = name_of("splat", "i64", count), call(name_of("iota", "i64", count))
    if step != 1:
        lanes = infix(lanes, "*", call(splat, str(step)))
    return infix(call(splat, text), "+", lanes)
