"""Read a schedule that a user wrote: calls of directives, in Python's syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields, replace
from types import MappingProxyType
from typing import Any, Literal, NoReturn, get_args, get_origin, get_type_hints

from codegen.schedule.directives import (
    KINDS,
    Assemble,
    Directive,
    Gather,
    Reorder,
    Table,
    Vectorize,
)
from codegen.support.errors import ScheduleError, pointed

DIRECTIVES: dict[str, Any] = {each.__name__: each for each in KINDS}
"""All directives, by name."""

HELD = (Assemble, Gather, Table)
"""Directives that hold what their text does not say."""

MOST_CHARACTERS = 1000
"""The longest text that is read."""

EXAMPLE = 'write Vectorize(i=16, j=16), Tail("j", "mask")'

NOTHING: Mapping[str, Directive] = MappingProxyType({})


def read_directives(text: str, known: Mapping[str, Directive] = NOTHING) -> tuple[Directive, ...]:
    """Read directives as they are printed.

    'Vectorize(i=16, j=16), Tail("j", "mask")' -> (Vectorize((("i", 16), ("j", 16))), Tail("j", "mask"))

    known  directives by their text, which hold more than it says

    Raises:
        ScheduleError: it is not a list of directives; the message has a caret under the mistake.
    """
    try:
        calls = _calls(text)
        same = {ast.unparse(ast.parse(each, mode="eval")): directive for each, directive in known.items()}
        return tuple(
            replace(same[call]) if (call := ast.unparse(each)) in same else _directive(text, each)
            for each in calls
        )
    except (RecursionError, MemoryError) as error:
        raise ScheduleError(_shown(text, 0, "expected directives, got deeply nested text")) from error


class RefusedError(ScheduleError):
    """A problem, and the directive that has it; None if a directive is missing."""

    def __init__(self, problem: str, directive: Directive | None) -> None:
        super().__init__(problem)
        self.directive = directive


def refuse(problem: str, directive: Directive | None = None) -> NoReturn:
    """Refuse a directive, or a schedule that lacks one; `pointing` says where."""
    raise RefusedError(problem, directive)


@contextmanager
def pointing(text: str, directives: Sequence[Directive], fix: str = EXAMPLE) -> Iterator[None]:
    """Put a caret under the directive of a text that is refused inside, or after the text if one is missing.

    directives  those of the text, in order; others may follow

    Raises:
        ScheduleError: a directive was refused.
    """
    try:
        yield
    except RefusedError as error:
        calls = zip(_calls(text), directives, strict=False)
        at = next((_place(text, call) for call, each in calls if each is error.directive), len(text))
        raise ScheduleError(_shown(text, at, str(error), fix)) from None


def check_calls(text: str) -> None:
    """Check that a text consists of calls of directives, whatever their arguments.

    Raises:
        ScheduleError: it does not.
    """
    for call in _calls(text):
        _kind(text, call)


def _calls(text: str) -> list[ast.expr]:
    """The expressions that commas separate."""
    if not text.strip() or len(text) > MOST_CHARACTERS:
        size = "none" if not text.strip() else f"{len(text)} characters"
        raise ScheduleError(f"schedule: expected directives, got {size}\n  {EXAMPLE}")
    if "\\" in text:  # Python would warn of escapes that it does not know
        raise ScheduleError(_shown(text, text.index("\\"), "expected names without backslashes"))
    try:
        parsed = ast.parse(f"[{text}\n]", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line, column = getattr(error, "lineno", None) or 1, getattr(error, "offset", None) or 1
        at = _starts(text)[line - 1] + column - 1 if line <= len(_starts(text)) else len(text)
        raise ScheduleError(_shown(text, at, "expected directives, separated by commas")) from error
    if not isinstance(parsed, ast.List):
        raise ScheduleError(_shown(text, 0, "expected directives, separated by commas"))
    return parsed.elts


def _starts(text: str) -> list[int]:
    """Where each line of a text begins; the first one follows a bracket when it is parsed."""
    ends = [match.end() for match in re.finditer(r"\r\n|\r|\n", text)]
    return [-1, *ends]


def _kind(text: str, call: ast.expr) -> Any:
    """The class of the directive that a call makes."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        _refuse(text, call, "expected the call of a directive")
    if call.func.id not in DIRECTIVES:
        _refuse(text, call, f"expected {', '.join(DIRECTIVES)}, got {call.func.id[:40]}")
    return DIRECTIVES[call.func.id]


def _directive(text: str, call: ast.expr) -> Directive:
    kind = _kind(text, call)
    assert isinstance(call, ast.Call), "a directive is a call"
    assert isinstance(call.func, ast.Name), "a directive has a name"
    if kind in HELD:
        _refuse(text, call, f"expected {call.func.id} as `explain` prints it, with what the copy has")
    given = {_name(text, x): _value(text, x.value) for x in call.keywords}
    if len(given) < len(call.keywords):
        _refuse(text, call, "a name is given twice")
    if kind is Vectorize:
        return _vectorize(text, call, given)
    positional = [_value(text, x) for x in call.args]
    positional = [tuple(positional)] if kind is Reorder and positional else positional
    names = [field.name for field in fields(kind)]
    values = {**dict(zip(names, positional, strict=False)), **given}
    needed = [field.name for field in fields(kind) if field.default is MISSING]
    if len(positional) > len(names) or len(values) < len(positional) + len(given) or {*values} - {*names}:
        _refuse(text, call, f"{call.func.id} takes {', '.join(names) or 'nothing'}")
    if missing := [name for name in needed if name not in values]:
        _refuse(text, call, f"{call.func.id} needs {missing[0]}")
    for name, hint in get_type_hints(kind).items():
        if name in values and not _fits(values[name], hint):
            _refuse(
                text, call, f"expected {_wanted(hint)} for {name} of {call.func.id}, got {values[name]!r:.40}"
            )
    made: Directive = kind(**values)
    return made


def _vectorize(text: str, call: ast.Call, given: dict[str, Any]) -> Vectorize:
    if call.args or not given:
        _refuse(text, call, "expected lanes for each loop, such as Vectorize(i=16, j=16)")
    for name, count in given.items():
        if type(count) is not int or count < 1:
            _refuse(text, call, f"expected a number of lanes for {name[:40]}, got {count!r:.40}")
    return Vectorize(tuple(given.items()))


def _fits(value: object, hint: Any) -> bool:
    """Whether a value or a tuple has the type of a field."""
    if get_origin(hint) is Literal:
        return any(value == each and type(value) is type(each) for each in get_args(hint))
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(_fits(each, get_args(hint)[0]) for each in value)
    if args := get_args(hint):
        return any(_fits(value, each) for each in args)
    return type(value) is hint


def _wanted(hint: Any) -> str:
    """What a field holds, for readers: int -> a number"""
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    if get_origin(hint) is tuple:
        return "a tuple"
    if args := get_args(hint):
        return " or ".join(map(_wanted, args))
    return {int: "a number", str: "text", bool: "True or False"}.get(hint, "nothing")


def _name(text: str, keyword: ast.keyword) -> str:
    if keyword.arg is None:
        _refuse(text, keyword.value, "expected a name")
    return keyword.arg


def _value(text: str, node: ast.expr) -> Any:
    """A number, text, a truth value, or a tuple of them."""
    match node:
        case ast.Constant(value=int() | str() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)) if type(value) is int:
            return -value
        case ast.Tuple(elts=parts):
            return tuple(_value(text, part) for part in parts)
    _refuse(text, node, "expected a number, text, True, False or a tuple of them")


def _refuse(text: str, node: ast.expr, problem: str) -> NoReturn:
    raise ScheduleError(_shown(text, _place(text, node), problem))


def _place(text: str, node: ast.expr) -> int:
    """Where a node begins in a text. Its column counts the bytes before it in its line."""
    start = _starts(text)[node.lineno - 1]
    before = f"[{text}"[start + 1 :].encode()[: node.col_offset]
    return start + len(before.decode())


def _shown(text: str, at: int, problem: str, fix: str = EXAMPLE) -> str:
    """The problem, the text on one line with a caret under it, and what to write."""
    line = re.sub(r"\s", " ", text)
    return f"schedule: {problem}\n{pointed(line, at)}\n  {fix}"
