"""Print a lowered function as Python source for Numba; passes have made all decisions.

A kernel is `kernel(operands, scratch, sizes, begin, end)`: a table of addresses, scratch of this thread, a
table of 64-bit arguments, and the range of its parallel loop. `abi.py` prints the lines that read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from codegen.analysis.strides import held_dtype
from codegen.emit.abi import argument_lines, kernel_head, operand_lines
from codegen.emit.indices import address_text, index_text
from codegen.emit.values import Values, values_of
from codegen.emit.writer import Writer
from codegen.ir.access_families import PREFETCH
from codegen.ir.families import FAMILIES
from codegen.ir.index import Greatest, Index, Least
from codegen.ir.instructions import instruction
from codegen.ir.names import LINE_LENGTH, names_of
from codegen.ir.nodes import Alloc, Call, Compare, For, Function, If, Let, Prefetch, Statement, Store, View
from codegen.ir.routines import name_of
from codegen.ir.values import Local, Value
from codegen.support.dataclasses import dataclass


def source_of(function: Function) -> str:
    """The source of a lowered function.

    for x in 0..count step 64:  dst[x] = src[x] [64]
    ->  for x in range(0, count, 64):
            store_u8x64(dst + x, load_u8x64(src + x))
    """
    return f"{kernel_head(function.name)}\n{body_of(function)}"


def body_of(function: Function) -> str:
    """The lines of a lowered function after its first one."""
    out = Writer(depth=1)
    for line in (*_docstring(function.summary), *_tables(function)):
        out.line(line)
    _Printer(values_of(function)).body(function.body, out)
    return out.text()


def _docstring(text: str) -> list[str]:
    lines = wrap(text, LINE_LENGTH - 10, break_long_words=False, break_on_hyphens=False)
    lines[0] = f'"""{lines[0]}'
    return [*lines[:-1], f'{lines[-1]}"""'] if len(lines) == 1 else [*lines, '"""']


def _tables(function: Function) -> list[str]:
    """The statements that read the tables of operands and arguments; each float is read on its own."""
    used = set(names_of(function.body))
    integers = [a.name if a.dtype[0] in "iu" else "_" for a in function.arguments]
    floats = [
        f"{a.name} = {name_of('read', held_dtype(a.dtype), place='at')}(sizes, {8 * k})"
        for k, a in enumerate(function.arguments)
        if a.dtype[0] not in "iu"
    ]
    return [*operand_lines(function.operands, used), *argument_lines(integers, used), *floats]


@dataclass(frozen=True, slots=True)
class _Printer:
    values: Values

    def body(self, body: Sequence[Statement], out: Writer) -> None:
        for statement in body:
            self.statement(statement, out)

    def statement(self, statement: Statement, out: Writer) -> None:
        match statement:
            case For():
                self.loop(statement, out)
            case Let(name, value):
                _assign(name, self.values.text(value), out)
            case View(name, buffer, offset, opaque, unit_bits, lines=""):
                address = address_text(buffer, offset)
                if unit_bits:  # of a buffer that counts bits, or bytes
                    address = f"({address}) {'>>' if unit_bits == 8 else '<<'} 3"
                out.line(f"{name} = opaque({address})" if opaque else f"{name} = {address}")
            case Alloc(name, _, "scratch"):
                out.line(f"{name} = scratch")
            case Alloc(name, int(size)):
                out.line(f"{name} = {name_of('stack', shape=(size,))}()")
            case Prefetch(load):
                _call(*self.values.access_call(PREFETCH.name, load), out)
            case If():
                self.condition(statement, out, "if")
            case Store():
                _call(*self.values.store(statement), out)
            case Call(name, operands):
                texts = [x if isinstance(x, str) else index_text(x) for x in operands]
                _call(instruction(name).name, texts, out)
            case _:
                raise AssertionError(f"emit: no rule for {type(statement).__name__}")

    def loop(self, loop: For, out: Writer) -> None:
        near, far = (Greatest, Least) if loop.step > 0 else (Least, Greatest)
        lower, upper = _bound(loop.lower, near), _bound(loop.upper, far)
        for each in loop.carried:
            self.assign([(each.name, each.start)], out)
        ends = upper if lower == "0" and loop.step == 1 else f"{lower}, {upper}"
        step = f", {loop.step}" if loop.step != 1 else ""
        with out.block(f"for {loop.index} in range({ends}{step}):"):
            self.body(loop.body, out)
            updated = self.assign([(each.name, each.update) for each in loop.carried], out)
            if not updated and not loop.body:
                out.line("pass")

    def assign(self, pairs: Sequence[tuple[str, Value]], out: Writer) -> bool:
        """Print an assignment to the names whose values change; return whether there are any."""
        changed = [(n, v) for n, v in pairs if not (isinstance(v, Local) and v.name == n)]
        if changed:
            values = ", ".join(self.values.text(v) for _, v in changed)
            _assign(", ".join(n for n, _ in changed), values, out)
        return bool(changed)

    def condition(self, node: If, out: Writer, word: str) -> None:
        with out.block(f"{word} {' and '.join(map(self.test, node.tests))}:"):
            self.body(node.body, out)
            if not node.body:
                out.line("pass")
        match node.otherwise:
            case ():
                return
            case (If() as chained,):
                self.condition(chained, out, "elif")
            case _:
                with out.block("else:"):
                    self.body(node.otherwise, out)

    def test(self, test: Compare | Value) -> str:
        if isinstance(test, Compare):
            return f"{index_text(test.left)} {FAMILIES[test.relation].routine} {index_text(test.right)}"
        return self.values.text(test)


def _bound(bounds: tuple[Index, ...], which: type[Least | Greatest]) -> str:
    return index_text(bounds[0] if len(bounds) == 1 else which(bounds))


def _call(name: str, arguments: Sequence[str], out: Writer) -> None:
    """A call; if it is too long for one line, each argument is on its own line."""
    text = f"{name}({', '.join(arguments)})"
    if 4 * out.depth + len(text) <= LINE_LENGTH:
        out.line(text)
        return
    with out.block(f"{name}("):
        for argument in arguments:
            _wrapped(f"{argument},", out)
    out.line(")")


def _assign(names: str, text: str, out: Writer) -> None:
    """An assignment, in parentheses if it is too long for one line."""
    line = f"{names} = {text}"
    if 4 * out.depth + len(line) <= LINE_LENGTH:
        out.line(line)
        return
    with out.block(f"{names} = ("):
        _wrapped(text, out)
    out.line(")")


def _wrapped(text: str, out: Writer) -> None:
    """Text inside parentheses, which may continue on the next line, one level deeper."""
    width, deeper = LINE_LENGTH - 4 * out.depth, " " * 4
    for line in wrap(text, width, subsequent_indent=deeper, break_long_words=False, break_on_hyphens=False):
        out.line(line)
