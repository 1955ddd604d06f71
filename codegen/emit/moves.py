"""Values and stores of copies as Python: elements and super-vectors that are moved or converted.

The buffers of a copy never overlap, so these routines let the compiler reorder accesses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from codegen.emit.indices import address_text, index_text, scaled_text
from codegen.ir.accesses import Access
from codegen.ir.element_types import bits_of, element_of_dtype
from codegen.ir.instructions import conversion, instruction, is_instruction
from codegen.ir.nodes import Each, Entries, IndexValue, Load, Local, Op, Step, Store, Value
from codegen.ir.routines import name_of

CallText: TypeAlias = tuple[str, tuple[str, ...]]
"""A call: the name of the routine, and its arguments."""

INTEGERS = tuple(f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64))
RELATIONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


def store_call(store: Store) -> CallText:
    """The store of an element or of a super-vector."""
    value = store.value
    address = address_text(store.array, store.subscripts[0])
    if not value.shape:
        return _store_element(store)
    how, more = _rows(store.steps)
    few = [] if store.first is None else [index_text(store.first)]
    verb = "stream" if store.streamed else "write"
    name = _access(verb, value.dtype, value.shape, how, first=store.first is not None)
    return name, (address, *more, value_text(value), *few)


def _store_element(store: Store) -> CallText:
    """The store of a scalar.

    Numbers have their base and offset as arguments: LLVM vectorizes loops where it sees which addresses are
    contiguous. Moved-only elements have one address.
    """
    value, offset = store.value, store.subscripts[0]
    bits = bits_of(value.dtype)
    if value.dtype.startswith("bits"):
        address = address_text(store.array, offset)
        if isinstance(value, Load) and bits >= 8:
            return name_of("move", f"u{bits}"), (address, address_text(value.array, value.subscripts[0]))
        return name_of("store", f"u{bits}"), (address, value_text(value))
    to = store.array, index_text(offset)
    if isinstance(value, Load):
        return name_of("move", f"u{bits}", which="at"), (*to, value.array, index_text(value.subscripts[0]))
    kind = value.dtype if value.dtype in ("f32", "f64") else f"u{bits}"
    return name_of("store", kind, which="at"), (*to, value_text(value))


def _load_element(load: Load) -> str:
    """The load of a scalar, in the form of `_store_element`; short floats are loaded as their bits."""
    array, offset, dtype = load.array, load.subscripts[0], load.dtype
    if dtype.startswith("bits"):
        return f"{name_of('load', f'u{bits_of(dtype)}')}({address_text(array, offset)})"
    kind = dtype if dtype in (*INTEGERS, "f32", "f64") else f"u{bits_of(dtype)}"
    return f"{name_of('load', kind, which='at')}({array}, {index_text(offset)})"


def _cast(value: Op) -> str:
    """A conversion. Single integers have 64 bits until they are stored, which keeps their low bits."""
    operand = value.operands[0]
    resized = not value.shape and operand.dtype in INTEGERS and value.dtype in INTEGERS
    if resized or value.dtype.startswith("bits"):
        return value_text(operand)
    return _operation(
        conversion(element_of_dtype(operand.dtype), element_of_dtype(value.dtype)).name, value.operands
    )


def _operation(name: str, operands: Sequence[Value]) -> str:
    """A call of an instruction that returns a super-vector, or an element."""
    instruction(name).check_operands(operands)
    return f"{name}({', '.join(map(value_text, operands))})"


def value_text(value: Value) -> str:
    """A value of a copy."""
    match value:
        case IndexValue(index):
            return index_text(index)
        case Local(name):
            return name
        case Load(array, (subscript,), "i64", ()):
            return f"int64_at({array}, {index_text(subscript)})"
        case Load(shape=(_, *_)):
            name, arguments = access_call("read", value)
            return f"{name}({', '.join(arguments)})"
        case Load():
            return _load_element(value)
        case Op("cast"):
            return _cast(value)
        case Op(name, operands) if is_instruction(name):
            return _operation(name, operands)
        case Op("select", (Op(relation, (left, right)), then, otherwise)) if relation in RELATIONS:
            test = f"{value_text(left)} {RELATIONS[relation]} {value_text(right)}"
            return f"{value_text(then)} if {test} else {value_text(otherwise)}"
        case _:
            raise AssertionError(f"emit: no rule for {value}")


def access_call(verb: str, load: Load) -> CallText:
    """The load of a super-vector, or a request for its lines."""
    how, more = _rows(load.steps)
    name = _access(verb, load.dtype, load.shape, how)
    return name, (address_text(load.array, load.subscripts[0]), *more)


def _access(verb: str, dtype: str, shape: tuple[int, ...], how: str, *, first: bool = False) -> str:
    """The name of a routine for super-vectors of a shape: of rows at a pitch or a table, or of one row."""
    rows, columns = shape if len(shape) == 2 else (0, shape[0])
    return Access(verb, bits_of(dtype), rows, columns, how, first).name


def _rows(steps: Sequence[Step]) -> tuple[str, list[str]]:
    """How the rows of a super-vector are apart, and the argument that says it."""
    if len(steps) < 2:
        return "", []
    match steps[0]:
        case Entries(table, first, half):
            at = scaled_text(8, first)
            return f"at_{half}" if half else "at", [table if at == "0" else f"{table} + {at}"]
        case Each(pitch):
            return "each", [str(pitch)]
        case pitch:
            return "", [str(pitch)]
