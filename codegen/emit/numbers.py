"""Values and stores of kernels that compute, as Python: numbers, and registers of lanes.

The arrays of such a kernel may overlap. bf16 and f16 are computed as f32 and rounded.
"""

from __future__ import annotations

from dataclasses import dataclass

from codegen.analysis.strides import ELEMENT_BYTES, HALVES, held_dtype
from codegen.emit.indices import index_text
from codegen.emit.moves import CallText
from codegen.ir.dtypes import FUNCTIONS
from codegen.ir.nodes import Const, IndexValue, Load, Local, Op, Store, Value
from codegen.support.errors import KernelError

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^"}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_CALLS = {"min": "minimum", "max": "maximum", "mod": "modulo"}
_VECTOR_INFIX = {**_INFIX, **_COMPARE, "shl": "<<", "shr": ">>"}


@dataclass(frozen=True, slots=True)
class Numbers:
    """fast: whether floats may be contracted and reassociated, by the routines named `fast_…`."""

    fast: bool = False

    def value_text(self, value: Value) -> str:
        """A value, without parentheses around all of it."""
        return _unwrapped(self.text(value))

    def store_call(self, store: Store) -> CallText:
        """The store of an element or of a register."""
        value, dtype = store.value, store.value.dtype
        if not value.shape:
            return f"write_{dtype}_at", (store.array, _offset(store), self.value_text(value))
        count = value.shape[0]
        name = f"f32x{count}_as_{dtype}" if dtype in HALVES else f"{dtype}x{count}"
        near = store.steps == (ELEMENT_BYTES[dtype],)
        how = "scatter" if not near else "stream" if store.streamed else "store"
        suffix, last = "", []
        if store.where is not None:
            suffix, last = "_where", [self.value_text(store.where)]
        elif store.first is not None:
            suffix, last = "_first", [index_text(store.first)]
        arguments = _address(store), *_apart(store, near), self.value_text(value), *last
        return f"{how}_{name}{suffix}", arguments

    def text(self, value: Value) -> str:
        """A value as an operand."""
        match value:
            case Const(number, dtype):
                return _constant(number, dtype)
            case Local(name):
                return name
            case IndexValue():
                return _index_value(value)
            case Load():
                return self.load(value)
            case Op():
                return self.operation(value)
        raise AssertionError(f"emit: no rule for {type(value).__name__}")

    def load(self, load: Load) -> str:
        """The load of an element or of a register."""
        if not load.shape:
            return f"read_{load.dtype}_at({load.array}, {_offset(load)})"
        name = f"{load.dtype}{'_as_f32' if load.dtype in HALVES else ''}x{load.shape[0]}"
        suffix, live = ("", []) if load.first is None else ("_first", [index_text(load.first)])
        if load.offsets is not None:
            return _call(f"pick_{name}{suffix}", _address(load), self.value_text(load.offsets), *live)
        near = load.steps == (ELEMENT_BYTES[load.dtype],)
        return _call(
            f"{'load' if near else 'gather'}_{name}{suffix}", _address(load), *_apart(load, near), *live
        )

    def operation(self, value: Op) -> str:
        """An operation on numbers or on registers."""
        name, dtype, operands = value.name, value.dtype, value.operands
        match name:
            case "broadcast":
                return f"splat_{held_dtype(dtype)}x{value.shape[0]}({self.value_text(operands[0])})"
            case "first":
                return f"first_{value.shape[0]}({self.value_text(operands[0])})"
            case "stack":
                return f"({', '.join(map(self.value_text, operands))})"
            case "transpose":
                return f"transposed_{held_dtype(dtype)}x{value.shape[0]}({self.text(operands[0])})"
            case "row":
                return f"{self.text(operands[0])}[{self.text(operands[1])}]"
            case "elements_to_line":
                return _call(name, *map(self.value_text, operands))
            case _ if name.startswith("reduce_"):
                return _call(name, self.value_text(operands[0]))
        texts = [self.text(operand) for operand in operands]
        return self.register(value, texts) if value.shape else _scalar(value, texts)

    def register(self, value: Op, texts: list[str]) -> str:
        """An operation on one register."""
        name, dtype, plain = value.name, value.dtype, list(map(_unwrapped, texts))
        match name:
            case "cast":
                return _cast_register(value, plain[0])
            case "select":
                return _call("select", *plain)
            case _ if name in _COMPARE:
                return f"({texts[0]} {_COMPARE[name]} {texts[1]})"
            case "not":
                return f"(~{texts[0]})"
            case "neg":
                out = f"(-{texts[0]})"
            case "add" | "sub" | "mul" | "div" if self.fast and dtype in ("f32", "f64"):
                out = _call(f"fast_{name}", *plain)
            case _ if name in _VECTOR_INFIX:
                out = f"({texts[0]} {_VECTOR_INFIX[name]} {texts[1]})"
            case _ if name in _CALLS or name in FUNCTIONS:
                out = _call(_called(name, dtype), *plain)
            case _:
                raise _unsupported(value)
        return f"round_to_{dtype}({_unwrapped(out)})" if dtype in HALVES else out


def _scalar(value: Op, texts: list[str]) -> str:
    """An operation on one element, in the dtype of the result."""
    name, dtype, plain = value.name, value.dtype, list(map(_unwrapped, texts))
    match name:
        case "div" if dtype[0] in "iu":
            raise KernelError("expected floats for /, got integers; use //")
        case "cast":
            return f"as_{dtype}({plain[0]})"
        case "select":
            return _call("select", *plain)
        case _ if name in _COMPARE:
            return f"({texts[0]} {_COMPARE[name]} {texts[1]})"
        case "not":
            return f"(not {texts[0]})" if dtype == "i1" else f"as_{dtype}(~{texts[0]})"
        case "neg":
            out = f"-{texts[0]}"
        case _ if name in _INFIX:
            out = f"{texts[0]} {_INFIX[name]} {texts[1]}"
        case _ if name in ("min", "max") and dtype == "i1":
            out = f"{texts[0]} {'&' if name == 'min' else '|'} {texts[1]}"
        case "shl" | "shr":
            return _call(f"{name}_{dtype}", *plain)
        case _ if name in _CALLS or name in FUNCTIONS:
            call = _call(_called(name, dtype), *plain)
            return f"as_{dtype}({call})" if dtype in HALVES else call
        case _:
            raise _unsupported(value)
    return f"({out})" if dtype in ("i64", "f64", "f32") else f"as_{dtype}({out})"


def _unsupported(value: Op) -> KernelError:
    return KernelError(
        f"kernels do not support {value.name!r} of {', '.join(o.dtype for o in value.operands)}"
    )


def _call(name: str, *arguments: str) -> str:
    return f"{name}({', '.join(arguments)})"


def _offset(access: Load | Store) -> str:
    """The offset of an access, its parts in the order of the dimensions."""
    return " + ".join(map(index_text, access.subscripts)) or "0"


def _address(access: Load | Store) -> str:
    offset = _offset(access)
    return access.array if offset == "0" else f"{access.array} + {offset}"


def _apart(access: Load | Store, near: bool) -> list[str]:
    """The distance between lanes, where they are not contiguous."""
    if near:
        return []
    (step,) = access.steps
    return [str(step) if isinstance(step, int) else index_text(step)]  # type: ignore[arg-type]


def _unwrapped(text: str) -> str:
    """The text without parentheses that enclose all of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0 and at < len(text) - 1:
            return text
    return text[1:-1]


def _constant(number: float, dtype: str) -> str:
    if dtype == "i1":
        return str(bool(number))
    if dtype in ("i64", "f64"):
        text = repr(int(number) if dtype == "i64" else float(number))
        return f"({text})" if text.startswith("-") else text
    value = float(number) if dtype[0] == "f" or dtype in HALVES else int(number)
    return f"as_{dtype}({value!r})"


def _index_value(value: IndexValue) -> str:
    """An index expression as a number, or in each lane of a register."""
    text = index_text(value.index)
    if not value.shape:
        return text if text.isidentifier() or text.isdigit() or _unwrapped(text) != text else f"({text})"
    wide, (step,) = f"i64x{value.shape[0]}", value.steps
    lanes = f"iota_{wide}()" if step == 1 else f"iota_{wide}() * splat_{wide}({step})"
    return f"(splat_{wide}({text}) + {lanes})"


def _called(name: str, dtype: str) -> str:
    """The routine of an operation; f16 has its own min and max, which order signed zeros differently."""
    routine = _CALLS.get(name, name)
    return f"{routine}_f16" if dtype == "f16" and name in ("min", "max") else routine


def _cast_register(value: Op, text: str) -> str:
    before, dtype = value.operands[0].dtype, value.dtype
    if (before, dtype) == ("f64", "f16"):
        # A plain conversion through float32 would round twice, as ml_dtypes does for bf16.
        return f"round_to_f16(round_to_odd_f32({text}))"
    if held_dtype(before) != held_dtype(dtype):
        text = f"cast_{held_dtype(dtype)}x{value.shape[0]}({text})"
    return f"round_to_{dtype}({text})" if dtype in HALVES and dtype != before else text
