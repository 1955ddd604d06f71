"""Values of loop kernels as Python expressions, for one element or for the registers of a super-vector.

A value that is the same in all lanes remains a number until an operation combines it with a vector.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.analysis.strides import ELEMENT_BYTES, HALVES, byte_stride, held_dtype
from codegen.emit.names import FUNCTIONS
from codegen.emit.scope import Lanes, Partial, Scope, Text, element_address, lane_stride
from codegen.ir.index import Affine, FloorDiv, Index, Mod, Sum, index_symbols
from codegen.ir.nodes import ArrayArg, Const, IndexValue, Load, Local, Op, Reduce, Store, Value
from codegen.ir.visit import coefficient
from codegen.support.errors import KernelError

_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "and": "&",
    "or": "|",
    "xor": "^",
}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_CALLS = {"min": "minimum", "max": "maximum", "mod": "modulo", "fmod": "fmod"}
_VECTOR_INFIX = {**_INFIX, **_COMPARE, "shl": "<<", "shr": ">>"}


def value_text(value: Value, scope: Scope) -> Text:
    """The expression of a value, or one per register if the lanes differ."""
    match value:
        case Const(number, dtype):
            return _constant(number, dtype)
        case Local():
            return _local(value, scope)
        case IndexValue(index, dtype):
            return _index_value(index, dtype, scope)
        case Load():
            return _load(value, scope)
        case Op(name, operands, dtype):
            return _operation(name, operands, dtype, scope)
        case Reduce():
            return _reduce(value, scope)
    raise AssertionError(f"emit: no rule for {type(value).__name__}")


def accumulated(store: Store, dtype: str) -> Value:
    """The stored value combined with the old element, for an accumulating store."""
    old = Load(store.array, store.subscripts, dtype, store.value.shape, store.dims, store.steps)
    return Op(store.accumulate, (old, store.value), dtype, store.value.shape)


def spread(text: Text, dtype: str, lanes: Lanes) -> tuple[str, ...]:
    """One expression per register; a single number is repeated in all lanes."""
    if isinstance(text, str):
        return (f"splat_{held_dtype(dtype)}x{lanes.count}({unwrapped(text)})",) * lanes.registers
    return text


def unwrapped(text: str) -> str:
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


def _local(value: Local, scope: Scope) -> Text:
    held = scope.held.get(value.name)
    if isinstance(held, Partial):
        raise KernelError(f"{value.name} still holds lanes after its loop; combine them with a Reduce")
    if held is not None:
        return held
    if value.name in scope.indices:
        return _as_number(scope.indices[value.name], value.dtype)
    name = scope.table.name(value.name)
    return _as_number(name, value.dtype) if value.dtype[0] in "iu" else name


def _as_number(text: str, dtype: str) -> str:
    """A 64-bit integer as a number of a dtype."""
    return text if dtype == "i64" else f"as_{dtype}({text})"


def _index_value(index: Index, dtype: str, scope: Scope) -> Text:
    lanes = scope.lanes
    if lanes is None or not lanes.moves(index):
        text = scope.index(index)
        return _as_number(text if text.isidentifier() or text.isdigit() else f"({text})", dtype)
    texts = [_index_register(index, scope, lanes, register) for register in range(lanes.registers)]
    return tuple(texts) if dtype == "i64" else tuple(_cast_register(t, dtype, lanes) for t in texts)


def _index_register(index: Index, scope: Scope, lanes: Lanes, register: int) -> str:
    """An index expression in each lane of a register."""
    wide = f"i64x{lanes.count}"
    if lanes.index not in index_symbols(index):
        return f"splat_{wide}({scope.index(index, register)})"
    match index:
        case Affine():
            step = index.coefficient(lanes.index) * lanes.step
            along = f"iota_{wide}()" if step == 1 else f"iota_{wide}() * splat_{wide}({step})"
            return f"(splat_{wide}({scope.index(index, register)}) + {along})"
        case FloorDiv(of, by) | Mod(of, by):
            inner, divides = _index_register(of, scope, lanes, register), isinstance(index, FloorDiv)
            if by.bit_count() == 1:
                bits = by.bit_length() - 1
                return f"({inner} {f'>> splat_{wide}({bits})' if divides else f'& splat_{wide}({by - 1})'})"
            name = "floordiv" if divides else "modulo"
            return f"{name}({unwrapped(inner)}, splat_{wide}({by}))"
        case Sum(parts, rest):
            texts = [_index_register(part, scope, lanes, register) for part, _ in parts]
            texts = [
                t if k == 1 else f"{t} * splat_{wide}({k})" for t, (_, k) in zip(texts, parts, strict=True)
            ]
            texts += [_index_register(rest, scope, lanes, register)] if rest != Affine() else []
            return f"({' + '.join(texts)})"
        case _:
            raise AssertionError(f"emit: no rule for {type(index).__name__}")


def _load(load: Load, scope: Scope) -> Text:
    lanes = scope.lanes
    if load in scope.transposed:
        return scope.transposed[load]
    if lanes is not None and any(coefficient(s, lanes.index) is None for s in load.subscripts):
        return _gathered(load, scope, lanes)
    array, step = scope.function.array(load.array), lane_stride(load, scope)
    if lanes is not None and step == 0 and any(map(lanes.moves, load.subscripts)):
        rows = [element_address(load, scope, register) for register in range(lanes.registers)]
        kind = f"splat_{held_dtype(array.dtype)}x{lanes.count}"
        return tuple(f"{kind}(read_{array.dtype}_at({base}, {offset}))" for base, offset in rows)
    if lanes is None or step == 0:
        base, offset = element_address(load, scope)
        text, hoisted = f"read_{array.dtype}_at({base}, {offset})", scope.hoisted
        if (
            hoisted is None
            or load.array not in hoisted.readable
            or not all(map(hoisted.stays, load.subscripts))
        ):
            return text
        hoisted.loads.add(text)
        return hoisted.named(f"{load.array}_element", text)
    suffix = f"{'_as_f32' if array.dtype in HALVES else ''}x{lanes.count}{'_first' if lanes.live else ''}"
    live = f", {lanes.live}" if lanes.live else ""
    near = step == ELEMENT_BYTES[array.dtype]
    texts = []
    for register in range(lanes.registers):
        base, offset = element_address(load, scope, register)
        at = base if offset == "0" else f"{base} + {offset}"
        how = "load" if near else "gather"
        texts.append(f"{how}_{array.dtype}{suffix}({at}{'' if near else f', {step}'}{live})")
    return tuple(texts)


def _gathered(load: Load, scope: Scope, lanes: Lanes) -> tuple[str, ...]:
    """Registers whose lanes each compute their own address, because a subscript divides the index."""
    array, wide = scope.function.array(load.array), f"i64x{lanes.count}"
    fixed = tuple(Affine() if lanes.moves(subscript) else subscript for subscript in load.subscripts)
    base, offset = element_address(replace(load, subscripts=fixed), scope)
    first = base if offset == "0" else f"{base} + {offset}"
    half, suffix = ("_as_f32" if array.dtype in HALVES else ""), ("_first" if lanes.live else "")
    live = f", {lanes.live}" if lanes.live else ""
    moving = [(k, subscript) for k, subscript in enumerate(load.subscripts) if lanes.moves(subscript)]
    strides = [_byte_stride(array, dimension, scope) for dimension, _ in moving]
    texts = []
    for register in range(lanes.registers):
        moved = [
            f"{_index_register(subscript, scope, lanes, register)} * splat_{wide}({stride})"
            for (_, subscript), stride in zip(moving, strides, strict=True)
        ]
        texts.append(f"pick_{array.dtype}{half}x{lanes.count}{suffix}({first}, {' + '.join(moved)}{live})")
    return tuple(texts)


def _byte_stride(array: ArrayArg, dimension: int, scope: Scope) -> str:
    known = byte_stride(array, dimension)
    return str(known) if known is not None else scope.table.name(f"{array.name}.stride[{dimension}]")


def _operation(name: str, operands: tuple[Value, ...], dtype: str, scope: Scope) -> Text:
    texts = [value_text(operand, scope) for operand in operands]
    lanes = scope.lanes
    if name == "broadcast":
        return texts[0]
    if lanes is None or all(isinstance(text, str) for text in texts):
        return _scalar(name, [str(text) for text in texts], [o.dtype for o in operands], dtype)
    registers = [spread(text, o.dtype, lanes) for text, o in zip(texts, operands, strict=True)]
    return tuple(_vector(name, list(each), operands, dtype, lanes) for each in zip(*registers, strict=True))


def _scalar(name: str, texts: list[str], dtypes: list[str], dtype: str) -> str:
    """An operation on one element, in the dtype of the result."""
    plain = [unwrapped(text) for text in texts]
    match name:
        case "div" if dtype[0] in "iu":
            raise KernelError("expected floats for /, got integers; use //")
        case "cast":
            return f"as_{dtype}({plain[0]})"
        case "select":
            return f"select({', '.join(plain)})"
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
            return f"{name}_{dtype}({', '.join(plain)})"
        case _ if name in _CALLS or name in FUNCTIONS:
            call = f"{_called(name, dtype)}({', '.join(plain)})"
            return f"as_{dtype}({call})" if dtype in HALVES else call
        case _:
            raise KernelError(f"kernels do not support {name!r} of {', '.join(dtypes)}")
    return f"({out})" if dtype in ("i64", "f64", "f32") else f"as_{dtype}({out})"


def _vector(name: str, texts: list[str], operands: tuple[Value, ...], dtype: str, lanes: Lanes) -> str:
    """An operation on one register."""
    plain = ", ".join(unwrapped(text) for text in texts)
    match name:
        case "cast":
            return _cast_register(unwrapped(texts[0]), dtype, lanes, operands[0].dtype)
        case "select":
            return f"select({plain})"
        case _ if name in _COMPARE:
            return f"({texts[0]} {_COMPARE[name]} {texts[1]})"
        case "not":
            return f"(~{texts[0]})"
        case "neg":
            out = f"(-{texts[0]})"
        case "add" | "sub" | "mul" | "div" if lanes.fast and dtype in ("f32", "f64"):
            out = f"fast_{name}({plain})"
        case _ if name in _VECTOR_INFIX:
            out = f"({texts[0]} {_VECTOR_INFIX[name]} {texts[1]})"
        case _ if name in _CALLS or name in FUNCTIONS:
            out = f"{_called(name, dtype)}({plain})"
        case _:
            raise KernelError(f"kernels do not support {name!r} of {', '.join(o.dtype for o in operands)}")
    return f"round_to_{dtype}({unwrapped(out)})" if dtype in HALVES else out


def _called(name: str, dtype: str) -> str:
    """The routine of an operation; f16 has its own min and max, which order signed zeros differently."""
    routine = _CALLS.get(name, name)
    return f"{routine}_f16" if dtype == "f16" and name in ("min", "max") else routine


def _cast_register(text: str, dtype: str, lanes: Lanes, before: str = "i64") -> str:
    if (before, dtype) == ("f64", "f16"):
        # A plain conversion through float32 would round twice, as ml_dtypes does for bf16.
        return f"round_to_f16(round_to_odd_f32({text}))"
    if held_dtype(before) != held_dtype(dtype):
        text = f"cast_{held_dtype(dtype)}x{lanes.count}({text})"
    return f"round_to_{dtype}({text})" if dtype in HALVES and dtype != before else text


def _reduce(value: Reduce, scope: Scope) -> str:
    start = value_text(value.start, scope)
    vector = value.vector
    held = scope.held.get(vector.name) if isinstance(vector, Local) else None
    if not isinstance(start, str):
        raise KernelError("expected a number as the start of a reduction, got a super-vector")
    dtypes = [value.dtype, value.dtype]
    if isinstance(held, Partial):
        total = combined(value.combiner, list(held.registers))
        number = f"reduce_{value.combiner}({unwrapped(total)})"
        number = f"as_{value.dtype}({number})" if value.dtype in HALVES else number
        if held.rest:
            number = _scalar(value.combiner, [number, held.rest], dtypes, value.dtype)
    else:
        text = value_text(vector, scope)
        if not isinstance(text, str):
            raise KernelError("expected the accumulator of a loop in a reduction, got another super-vector")
        number = text
    return _scalar(value.combiner, [start, number], dtypes, value.dtype)


def combined(combiner: str, registers: list[str]) -> str:
    """Registers combined pairwise, so that the chain of dependent operations is short."""
    while len(registers) > 1:
        half = len(registers) // 2
        pairs = [_pair(combiner, registers[k], registers[k + half]) for k in range(half)]
        registers = [*pairs, *registers[2 * half :]]
    return registers[0]


def _pair(combiner: str, a: str, b: str) -> str:
    if combiner in _CALLS:
        return f"{_CALLS[combiner]}({unwrapped(a)}, {unwrapped(b)})"
    return f"({a} {_VECTOR_INFIX[combiner]} {b})"
