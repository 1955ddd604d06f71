"""A lowered function as Python source that Numba compiles. This only prints: passes have made all decisions.

A kernel is `kernel(src, dst, sizes, begin, end)`: the addresses of its buffers, the address of its table of
64-bit arguments, and the range of its first parallel loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from codegen.emit.writer import Writer
from codegen.ir.element_types import bits_of
from codegen.ir.index import Affine, FloorDiv, Index, Least, Mod, Quotient, Sum, Times, index_symbols
from codegen.ir.instructions import instruction, is_instruction
from codegen.ir.nodes import (
    Alloc,
    Call,
    Carried,
    Compare,
    Each,
    Entries,
    For,
    Function,
    If,
    IndexValue,
    Let,
    Load,
    Local,
    Op,
    Prefetch,
    Statement,
    Step,
    Store,
    Value,
    View,
)

LINE_LENGTH = 110
INTEGERS = tuple(f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64))
RELATIONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


def source_of(function: Function) -> str:
    """The source of a lowered function.

    for x in 0..count step 64:  dst[x] = src[x] [64]
    ->  for x in range(0, count, 64):
            write_u8_64(dst + x, read_u8_64(src + x))
    """
    out = Writer()
    with out.block(f"def {function.name}(src, dst, sizes, begin, end):"):
        for line in _docstring(function.summary):
            out.line(line)
        for line in _arguments(function):
            out.line(line)
        _body(function.body, out)
        if _streams(function.body):
            out.line("stream_fence()")
    return out.text()


def _docstring(text: str) -> list[str]:
    lines = wrap(text, LINE_LENGTH - 10, break_long_words=False, break_on_hyphens=False)
    lines[0] = f'"""{lines[0]}'
    return [*lines[:-1], f'{lines[-1]}"""'] if len(lines) == 1 else [*lines, '"""']


def _arguments(function: Function) -> list[str]:
    """One statement that reads the table of arguments; those that the body does not use are called `_`."""
    used = set(_symbols(function.body))
    names = [a.name if a.name in used else "_" for a in function.arguments]
    if not used.intersection(names):
        return []
    line = f"{', '.join(names)}{',' if len(names) == 1 else ''} = arguments_{len(names)}(sizes)"
    if len(line) <= LINE_LENGTH - 4:
        return [line]
    inside = wrap(f"{', '.join(names)},", LINE_LENGTH - 8)
    return ["(", *(f"    {x}" for x in inside), f") = arguments_{len(names)}(sizes)"]


def _body(body: Sequence[Statement], out: Writer) -> None:
    for statement in body:
        _statement(statement, out)


def _statement(statement: Statement, out: Writer) -> None:
    match statement:
        case For():
            _loop(statement, out)
        case Let(name, value):
            out.line(f"{name} = {_value(value)}")
        case View(name, buffer, offset, opaque, in_bytes):
            address = _plus(buffer, offset)
            address = f"({address}) >> 3" if in_bytes else address
            out.line(f"{name} = opaque({address})" if opaque else f"{name} = {address}")
        case Alloc(name, size):
            out.line(f"{name} = scratch_{size}()")
        case Prefetch(load):
            out.line(_access("prefetch", load))
        case If():
            _if(statement, out, "if")
        case Store():
            _call(_store(statement), out)
        case Call(name, operands):
            texts = [x if isinstance(x, str) else _index(x) for x in operands]
            out.line(f"{instruction(name).name}({', '.join(texts)})")
        case _:
            raise AssertionError(f"emit: no rule for {type(statement).__name__}")


def _loop(loop: For, out: Writer) -> None:
    if len(loop.lower) > 1:
        raise AssertionError("emit: a lowered loop has one lower bound")
    lower, upper = _index(loop.lower[0]), _index(Least(loop.upper) if len(loop.upper) > 1 else loop.upper[0])
    for each in loop.carried:
        if not _is_own(each, each.start):
            out.line(f"{each.name} = {_value(each.start)}")
    ends = upper if lower == "0" and loop.step == 1 else f"{lower}, {upper}"
    step = f", {loop.step}" if loop.step != 1 else ""
    with out.block(f"for {loop.index} in range({ends}{step}):"):
        _body(loop.body, out)
        updated = [each for each in loop.carried if not _is_own(each, each.update)]
        if updated:
            names = ", ".join(each.name for each in updated)
            out.line(f"{names} = {', '.join(_value(each.update) for each in updated)}")


def _is_own(carried: Carried, value: Value) -> bool:
    """Whether a value is the local itself, which a loop around this one or inside it carries too."""
    return isinstance(value, Local) and value.name == carried.name


def _if(node: If, out: Writer, word: str) -> None:
    tests = " and ".join(_compare(test) for test in node.tests)
    with out.block(f"{word} {tests}:"):
        _body(node.body, out)
    match node.otherwise:
        case ():
            return
        case (If() as chained,):
            _if(chained, out, "elif")
        case _:
            with out.block("else:"):
                _body(node.otherwise, out)


def _compare(test: Compare) -> str:
    return f"{_index(test.left)} {RELATIONS[test.relation]} {_index(test.right)}"


def _call(text: str, out: Writer) -> None:
    """A call, with each argument on a line of its own where it is too long for one."""
    if 4 * out.depth + len(text) <= LINE_LENGTH:
        out.line(text)
        return
    name, inside = text.removesuffix(")").split("(", 1)
    level, arguments = 0, [""]
    for part in inside.split(", "):
        arguments[-1] += f", {part}" if level else part
        level += part.count("(") - part.count(")")
        arguments += [] if level else [""]
    with out.block(f"{name}("):
        for argument in arguments[:-1]:
            out.line(f"{argument},")
    out.line(")")


def _store(store: Store) -> str:
    value, kind = store.value, f"u{bits_of(store.value.dtype)}"
    address = _plus(store.array, store.subscripts[0])
    if not value.shape:
        return _store_element(store)
    verb = "stream" if store.streamed else "write"
    verb += "" if store.first is None else "_first"
    suffix, more = _rows(store.steps)
    few = [] if store.first is None else [_index(store.first)]
    arguments = ", ".join([address, *more, _value(value), *few])
    return f"{verb}_{kind}_{_shape(value.shape)}{suffix}({arguments})"


def _store_element(store: Store) -> str:
    """The store of a scalar.

    Numbers have their base and offset as arguments: LLVM vectorizes loops where it sees which addresses are
    contiguous. Moved-only elements have one address.
    """
    value, offset = store.value, store.subscripts[0]
    bits = bits_of(value.dtype)
    if value.dtype.startswith("bits"):
        address = _plus(store.array, offset)
        if isinstance(value, Load) and bits >= 8:
            return f"move_u{bits}({address}, {_plus(value.array, value.subscripts[0])})"
        return f"store_u{bits}({address}, {_value(value)})"
    to = f"{store.array}, {_index(offset)}"
    if isinstance(value, Load):
        return f"move_u{bits}_at({to}, {value.array}, {_index(value.subscripts[0])})"
    kind = value.dtype if value.dtype in ("f32", "f64") else f"u{bits}"
    return f"store_{kind}_at({to}, {_value(value)})"


def _load_element(load: Load) -> str:
    """The load of a scalar, in the form of `_store_element`; short floats are loaded as their bits."""
    array, offset, dtype = load.array, load.subscripts[0], load.dtype
    if dtype.startswith("bits"):
        return f"load_u{bits_of(dtype)}({_plus(array, offset)})"
    kind = dtype if dtype in (*INTEGERS, "f32", "f64") else f"u{bits_of(dtype)}"
    return f"load_{kind}_at({array}, {_index(offset)})"


def _cast(value: Op) -> str:
    """A conversion. Single integers have 64 bits until they are stored, which keeps their low bits."""
    operand = value.operands[0]
    resized = not value.shape and operand.dtype in INTEGERS and value.dtype in INTEGERS
    if resized or value.dtype.startswith("bits"):
        return _value(operand)
    return _operation(f"convert_{operand.dtype}_to_{value.dtype}", value.operands)


def _operation(name: str, operands: Sequence[Value]) -> str:
    """A call of an instruction that returns a super-vector, or an element."""
    instruction(name).check_operands(operands)
    return f"{name}({', '.join(map(_value, operands))})"


def _value(value: Value) -> str:
    match value:
        case IndexValue(index):
            return _index(index)
        case Local(name):
            return name
        case Load(array, (subscript,), "i64", ()):
            return f"int64_at({array}, {_index(subscript)})"
        case Load(shape=(_, *_)):
            return _access("read", value)
        case Load():
            return _load_element(value)
        case Op("cast"):
            return _cast(value)
        case Op(name, operands) if is_instruction(name):
            return _operation(name, operands)
        case Op("select", (Op(relation, (left, right)), then, otherwise)) if relation in RELATIONS:
            test = f"{_value(left)} {RELATIONS[relation]} {_value(right)}"
            return f"{_value(then)} if {test} else {_value(otherwise)}"
        case _:
            raise AssertionError(f"emit: no rule for {value}")


def _access(verb: str, load: Load) -> str:
    """The load of a super-vector, or a request for its lines."""
    suffix, more = _rows(load.steps)
    arguments = ", ".join([_plus(load.array, load.subscripts[0]), *more])
    return f"{verb}_u{bits_of(load.dtype)}_{_shape(load.shape)}{suffix}({arguments})"


def _shape(shape: tuple[int, ...]) -> str:
    """16x8 for rows at a pitch; 128 for one row."""
    return "x".join(map(str, shape))


def _rows(steps: Sequence[Step]) -> tuple[str, list[str]]:
    """The suffix and the argument for the distance between rows."""
    if len(steps) < 2:
        return "", []
    match steps[0]:
        case Entries(table, first, half):
            at = _scaled(8, first)
            return f"_at_{half}" if half else "_at", [table if at == "0" else f"{table} + {at}"]
        case Each(pitch):
            return "_each", [str(pitch)]
        case pitch:
            return "", [str(pitch)]


def _plus(name: str, offset: Index) -> str:
    text = _index(offset)
    if text == "0":
        return name
    return f"{name} - {text[1:]}" if text.startswith("-") else f"{name} + {text}"


def _index(index: Index) -> str:
    """An index expression in Python: 2 * i - j + 3."""
    match index:
        case Affine(constant, terms):
            return _sum(terms, constant)
        case FloorDiv(of, by):
            return f"{_factor(of)} // {by}"
        case Mod(of, by):
            # A mask also serves addresses, which may be negative as integers.
            return f"{_factor(of)} & {_mask(by - 1)}" if by.bit_count() == 1 else f"{_factor(of)} % {by}"
        case Quotient(of, by):
            return f"{_factor(of)} // {by}"
        case Times(of, by):
            return f"{_factor(of)} * {by}"
        case Least(several):
            return f"min({', '.join(map(_index, several))})"
        case Sum(parts, rest):
            return _sum([*(_term(part, k) for part, k in parts), *rest.terms], rest.constant)


def _mask(ones: int) -> str:
    return str(ones) if ones < 1 << 16 else f"0x{ones:X}"


def _term(part: Index, factor: int) -> tuple[str, int]:
    """The text of a part of a sum and its factor: (x & -64), 1 for x // 64 * 64."""
    if isinstance(part, FloorDiv) and part.by == factor and factor.bit_count() == 1:
        return f"({_factor(part.of)} & {-factor})", 1
    text = _index(part)
    plain = isinstance(part, Least) or (isinstance(part, Times) and factor == 1)
    return (text if plain else f"({text})"), factor


def _sum(terms: Sequence[tuple[str, int]], constant: int) -> str:
    """A sum of products in natural notation, positive terms first."""
    text = ""
    for name, factor in sorted(terms, key=lambda term: term[1] < 0):
        product = name if abs(factor) == 1 else f"{abs(factor)} * {name}"
        sign = "-" if factor < 0 else "+"
        text = f"{text} {sign} {product}" if text else product if factor > 0 else f"-{product}"
    if not text:
        return str(constant)
    return f"{text} {'-' if constant < 0 else '+'} {abs(constant)}" if constant else text


def _factor(index: Index) -> str:
    text = _index(index)
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def _scaled(factor: int, index: Index) -> str:
    text = _index(index)
    return str(factor * int(text)) if text.isdigit() else f"{factor} * {_factor(index)}"


def _symbols(body: Sequence[Statement]) -> Iterator[str]:
    """The symbols and tables that statements refer to."""
    for statement in body:
        match statement:
            case For():
                for index in (*statement.lower, *statement.upper):
                    yield from index_symbols(index)
                for each in statement.carried:
                    yield from _symbols_of(each.start)
                    yield from _symbols_of(each.update)
                yield from _symbols(statement.body)
            case Let(_, value):
                yield from _symbols_of(value)
            case View(_, buffer, offset):
                yield buffer
                yield from index_symbols(offset)
            case If(tests, then, otherwise):
                for test in tests:
                    yield from index_symbols(test.left) | index_symbols(test.right)
                yield from _symbols(then)
                yield from _symbols(otherwise)
            case Store(first=few):
                yield from index_symbols(few) if few else ()
                yield from _symbols_of_access(statement)
                yield from _symbols_of(statement.value)
            case Prefetch(load):
                yield from _symbols_of_access(load)
            case Call(_, operands):
                for operand in operands:
                    yield from {operand} if isinstance(operand, str) else index_symbols(operand)


def _symbols_of(value: Value) -> Iterator[str]:
    match value:
        case IndexValue(index):
            yield from index_symbols(index)
        case Local(name):
            yield name
        case Load():
            yield from _symbols_of_access(value)
        case Op(_, operands):
            for operand in operands:
                yield from _symbols_of(operand)


def _symbols_of_access(access: Load | Store) -> Iterator[str]:
    yield access.array
    for subscript in access.subscripts:
        yield from index_symbols(subscript)
    for step in access.steps:
        match step:
            case str() | Each(str()):
                yield step if isinstance(step, str) else str(step.step)
            case Entries(table, first):
                yield table
                yield from index_symbols(first)


def _streams(body: Sequence[Statement]) -> bool:
    """Whether a body stores lines past the cache, so that other threads must not read them before a fence."""
    for statement in body:
        match statement:
            case Store(streamed=True):
                return True
            case For(body=inside) if _streams(inside):
                return True
            case If(_, then, otherwise) if _streams(then) or _streams(otherwise):
                return True
    return False
