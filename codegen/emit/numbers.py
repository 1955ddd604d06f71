"""Values and stores of kernels that compute, as Python: numbers, and registers of lanes.

The arrays of such a kernel may overlap. Each node is one operator or one call. bf16 and f16 are held as f32:
their casts to f32 are not printed.
"""

from __future__ import annotations

from math import copysign

from codegen.analysis.strides import ELEMENT_BYTES, HALVES, held_dtype
from codegen.emit.indices import address_text, index_expression, index_text, sum_text
from codegen.emit.moves import RELATIONS, CallText
from codegen.emit.text import ATOM, SIGN, Text, call, infix, prefix
from codegen.ir.dtypes import FUNCTIONS
from codegen.ir.nodes import Const, IndexValue, Load, Local, Op, Store, Value
from codegen.passes.relax_floats import RELAXED
from codegen.support.errors import KernelError

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^", **RELATIONS}
_SHIFTS = {"shl": "<<", "shr": ">>"}
_CALLS = {"min": "minimum", "max": "maximum", "mod": "modulo", "round_to_odd": "round_to_odd_f32"}
_CALLS |= {name: name for name in ("select", *FUNCTIONS, *RELAXED.values())}

_WIDENED = tuple((f"{sign}{bits}", f"{sign}64") for sign in "iu" for bits in (8, 16, 32))
"""Casts that operators on single numbers do themselves."""


def value_text(value: Value) -> str:
    """A value, without parentheses around all of it."""
    return _value(value).text


def store_call(store: Store) -> CallText:
    """The store of an element or of a register."""
    value, dtype = store.value, store.value.dtype
    if not value.shape:
        return f"write_{dtype}_at", (store.array, _offset(store), value_text(value))
    count = value.shape[0]
    name = f"f32x{count}_as_{dtype}" if dtype in HALVES else f"{dtype}x{count}"
    near = store.steps == (ELEMENT_BYTES[dtype],)
    how = "scatter" if not near else "stream" if store.streamed else "store"
    suffix, last = "", []
    if store.where is not None:
        suffix, last = "_where", [value_text(store.where)]
    elif store.first is not None:
        suffix, last = "_first", [index_text(store.first)]
    arguments = _address(store), *_apart(store, near), value_text(value), *last
    return f"{how}_{name}{suffix}", arguments


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
        return call(f"read_{load.dtype}_at", load.array, _offset(load))
    name = f"{load.dtype}{'_as_f32' if load.dtype in HALVES else ''}x{load.shape[0]}"
    suffix, live = ("", []) if load.first is None else ("_first", [index_text(load.first)])
    if load.offsets is not None:
        return call(f"pick_{name}{suffix}", _address(load), value_text(load.offsets), *live)
    near = load.steps == (ELEMENT_BYTES[load.dtype],)
    return call(f"{'load' if near else 'gather'}_{name}{suffix}", _address(load), *_apart(load, near), *live)


def _register(value: Op) -> Text:
    """An operation that makes a register, or a block of registers."""
    name, dtype, operands = value.name, value.dtype, tuple(map(_value, value.operands))
    count = value.shape[0]
    match name:
        case "broadcast":
            return call(f"splat_{held_dtype(dtype)}x{count}", *operands)
        case "first":
            return call(f"first_{count}", *operands)
        case "stack":
            return Text(f"({', '.join(each.text for each in operands)})")
        case "transpose":
            return call(f"transposed_{held_dtype(dtype)}x{count}", *operands)
        case "row":
            return Text(f"{operands[0].text}[{operands[1].text}]")
        case "cast":
            return call(f"round_to_{dtype}" if dtype in HALVES else f"cast_{dtype}x{count}", *operands)
        case "not":
            return prefix("~", *operands)
        case "neg":
            return prefix("-", *operands)
        case _ if name in _INFIX or name in _SHIFTS:
            return infix(operands[0], _INFIX.get(name) or _SHIFTS[name], operands[1])
    return _called(value, operands)


def _number(value: Op) -> Text:
    """An operation that makes a number."""
    name, dtype = value.name, value.dtype
    match name:
        case "div" if dtype[0] in "iu":
            raise KernelError("expected floats for /, got integers; use //")
        case "not":
            return prefix("not " if dtype == "i1" else "~", _operand(*value.operands))
        case "neg":
            return prefix("-", _operand(*value.operands))
        case _ if name in _INFIX:
            left, right = map(_operand, value.operands)
            return infix(left, _INFIX[name], right)
    operands = tuple(map(_value, value.operands))
    match name:
        case "cast":
            return call(f"as_{dtype}", *operands)
        case "shl" | "shr":
            return call(f"{name}_{dtype}", *operands)
        case "elements_to_line":
            return call(name, *operands)
        case _ if name.startswith("reduce_"):
            return call(name, *operands)
    return _called(value, operands)


def _operand(value: Value) -> Text:
    """The operand of one of Python's operators, which widens integers itself."""
    match value:
        case Op("cast", (operand,), dtype, ()) if (operand.dtype, dtype) in _WIDENED:
            return _value(operand)
    return _value(value)


def _called(value: Op, operands: tuple[Text, ...]) -> Text:
    """A call of a routine; f16 has its own min and max, which order signed zeros differently."""
    if value.name not in _CALLS:
        kinds = ", ".join(operand.dtype for operand in value.operands)
        raise KernelError(f"kernels do not support {value.name!r} of {kinds}")
    own = "_f16" if value.dtype == "f16" and value.name in ("min", "max") else ""
    return call(f"{_CALLS[value.name]}{own}", *operands)


def _offset(access: Load | Store) -> str:
    """The offset of an access, its parts in the order of the dimensions."""
    return sum_text(None, *access.subscripts)


def _address(access: Load | Store) -> str:
    return address_text(access.array, *access.subscripts)


def _apart(access: Load | Store, near: bool) -> list[str]:
    """The distance between lanes, where they are not contiguous."""
    if near:
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
    return call(f"as_{dtype}", repr(value))


def _index_value(value: IndexValue) -> Text:
    """An index expression as a number, or in each lane of a register."""
    text = index_expression(value.index)
    if not value.shape:
        return text
    wide, (step,) = f"i64x{value.shape[0]}", value.steps
    lanes = call(f"iota_{wide}")
    if step != 1:
        lanes = infix(lanes, "*", call(f"splat_{wide}", str(step)))
    return infix(call(f"splat_{wide}", text), "+", lanes)
