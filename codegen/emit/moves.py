"""Values and stores of copies as Python: elements and super-vectors that are moved or converted.

The buffers of a copy never overlap, so these routines let the compiler reorder accesses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from codegen.emit.indices import address_text, index_text, scaled_text
from codegen.ir.element_types import bits_of
from codegen.ir.instructions import instruction, is_instruction
from codegen.ir.nodes import Each, Entries, IndexValue, Load, Local, Op, Step, Store, Value

CallText: TypeAlias = tuple[str, tuple[str, ...]]
"""A call: the name of the routine, and its arguments."""

INTEGERS = tuple(f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64))
RELATIONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


def store_call(store: Store) -> CallText:
    """The store of an element or of a super-vector."""
    value, kind = store.value, f"u{bits_of(store.value.dtype)}"
    address = address_text(store.array, store.subscripts[0])
    if not value.shape:
        return _store_element(store)
    verb = "stream" if store.streamed else "write"
    verb += "" if store.first is None else "_first"
    suffix, more = _rows(store.steps)
    few = [] if store.first is None else [index_text(store.first)]
    return f"{verb}_{kind}_{_shape(value.shape)}{suffix}", (address, *more, value_text(value), *few)


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
            return f"move_u{bits}", (address, address_text(value.array, value.subscripts[0]))
        return f"store_u{bits}", (address, value_text(value))
    to = store.array, index_text(offset)
    if isinstance(value, Load):
        return f"move_u{bits}_at", (*to, value.array, index_text(value.subscripts[0]))
    kind = value.dtype if value.dtype in ("f32", "f64") else f"u{bits}"
    return f"store_{kind}_at", (*to, value_text(value))


def _load_element(load: Load) -> str:
    """The load of a scalar, in the form of `_store_element`; short floats are loaded as their bits."""
    array, offset, dtype = load.array, load.subscripts[0], load.dtype
    if dtype.startswith("bits"):
        return f"load_u{bits_of(dtype)}({address_text(array, offset)})"
    kind = dtype if dtype in (*INTEGERS, "f32", "f64") else f"u{bits_of(dtype)}"
    return f"load_{kind}_at({array}, {index_text(offset)})"


def _cast(value: Op) -> str:
    """A conversion. Single integers have 64 bits until they are stored, which keeps their low bits."""
    operand = value.operands[0]
    resized = not value.shape and operand.dtype in INTEGERS and value.dtype in INTEGERS
    if resized or value.dtype.startswith("bits"):
        return value_text(operand)
    return _operation(f"convert_{operand.dtype}_to_{value.dtype}", value.operands)


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
    suffix, more = _rows(load.steps)
    name = f"{verb}_u{bits_of(load.dtype)}_{_shape(load.shape)}{suffix}"
    return name, (address_text(load.array, load.subscripts[0]), *more)


def _shape(shape: tuple[int, ...]) -> str:
    """16x8 for rows at a pitch; 128 for one row."""
    return "x".join(map(str, shape))


def _rows(steps: Sequence[Step]) -> tuple[str, list[str]]:
    """The suffix and the argument for the distance between rows."""
    if len(steps) < 2:
        return "", []
    match steps[0]:
        case Entries(table, first, half):
            at = scaled_text(8, first)
            return f"_at_{half}" if half else "_at", [table if at == "0" else f"{table} + {at}"]
        case Each(pitch):
            return "_each", [str(pitch)]
        case pitch:
            return "", [str(pitch)]
