"""Read MLIR text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from textwrap import dedent
from typing import TypeAlias

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from codegen import Function, KernelError, cached, dataclass
from tilejit.mlir.functions import read_function
from tilejit.mlir.places import mistake
from tilejit.mlir.program import Program
from tilejit.mlir.spans import FunctionSpan, blanked, function_spans
from tilejit.mlir.xdsl_text import operations


@dataclass(frozen=True, slots=True)
class Unread:
    """A function that stays unchanged.

    source  the function's text
    cause   why it cannot be read, with its line and a caret; "" for a declaration, which has no body
    """

    name: str
    source: str
    cause: str


Member: TypeAlias = Program | Unread


@dataclass(frozen=True, slots=True)
class Module:
    """The functions of an MLIR text, by name.

    >>> text = "func.func @same(%x: f32) -> f32 { return %x : f32 }"
    >>> mlir.parse(text)["same"].name
    'same'

    `parse` creates it. Indexing raises KernelError for a function that kernels cannot express; the other
    functions are not affected.

    Attributes:
        text: the text.
        members: its functions in order, including those that could not be read.
    """

    text: str
    members: tuple[Member, ...]

    @property
    def programs(self) -> tuple[Program, ...]:
        """The functions that could be read."""
        return tuple(member for member in self.members if isinstance(member, Program))

    @property
    def functions(self) -> tuple[Function, ...]:
        """The kernels; arrays that the text allocates follow its declared arguments."""
        return tuple(p.function for p in self.programs)

    @property
    def refused(self) -> dict[str, str]:
        """Why each of the other functions could not be read, by its name."""
        return {m.name: m.cause for m in self.members if isinstance(m, Unread) and m.cause}

    def __getitem__(self, name: str) -> Program:
        """Look up a function by its name, with or without MLIR's `@`.

        Raises:
            KernelError: the function does not exist, or could not be read; the message shows the line.
            TypeError: the name is not a str.
        """
        if not isinstance(name, str):
            raise TypeError(f"expected the name of a function, got {type(name).__name__}")
        for member in self.members:
            if member.name == name.removeprefix("@"):
                if isinstance(member, Program):
                    return member
                raise KernelError(
                    member.cause or f"@{name[:80]} has no body\n  write one, or name another function"
                )
        names = ", ".join(p.name for p in self.programs)
        raise KernelError(
            f"the text has no function {name[:80]!r}\n  name one of {names or 'the functions with a body'}"
        )


@cached(64)
def parse(text: str) -> Module:
    """Read the functions of an MLIR text.

    >>> text = "func.func @same(%x: f32) -> f32 { return %x : f32 }"
    >>> [program.name for program in mlir.parse(text).programs]
    ['same']

    Args:
        text: the MLIR text.

    Returns:
        A Module. Functions that cannot be read are in its `refused`.

    Raises:
        KernelError: the text is not MLIR, or kernels cannot express any of its functions; the message shows
            the line with a caret.
        TypeError: the text is not a str.
    """
    if not isinstance(text, str):
        raise TypeError(f"expected MLIR text as a str, got {type(text).__name__}")
    spans = function_spans(text)
    try:
        members = _members(text, text, spans)
    except KernelError:
        if len(spans) < 2:
            raise
        # xdsl stops at the first mistake, so read each function separately.
        rest = blanked(text, spans)
        members = [member for span in spans for member in _read_alone(text, span, rest)]
    causes = [member.cause for member in members if isinstance(member, Unread) and member.cause]
    if causes and not any(isinstance(member, Program) for member in members):
        raise KernelError(causes[0])
    return Module(text, tuple(members))


def _read_alone(text: str, span: FunctionSpan, rest: str) -> list[Member]:
    """Read one function of a text; `rest` is the text with blanks in place of all functions."""
    read = rest[: span.begin] + text[span.begin : span.end] + rest[span.end :]
    try:
        return _members(read, text, (span,))
    except KernelError as error:
        return [_unread(text, span, str(error))]


def _members(read: str, text: str, spans: Sequence[FunctionSpan]) -> list[Member]:
    """The functions in `read`, which is `text` with blanks in place of the other functions.

    Raises:
        KernelError: the text is not MLIR, or has operations outside functions.
    """
    tops, places = operations(read)
    members: list[Member] = []
    for op in tops:
        if not isinstance(op, FuncOp):
            raise mistake(
                text, places.get(op, 0), f"{op.name} is not supported outside functions", "remove it"
            )
        members.append(_member(op, text, places, spans))
    return members


def _member(op: FuncOp, text: str, places: Mapping[Operation, int], spans: Sequence[FunctionSpan]) -> Member:
    span = next((s for s in spans if s.begin <= places.get(op, 0) < s.end), None)
    if not op.body.blocks:
        return _unread(text, span, "") if span else Unread(op.sym_name.data, "", "")
    try:
        program = read_function(op, text, places)
    except KernelError as error:
        if span is None:
            raise
        return _unread(text, span, str(error))
    if not program.lanes:
        return program
    return replace(program, source=_source(text, span) if span else text)


def _unread(text: str, span: FunctionSpan, cause: str) -> Unread:
    return Unread(span.name, _source(text, span), cause)


def _source(text: str, span: FunctionSpan) -> str:
    """The text of a function, without its indentation in a module."""
    begin = text.rfind("\n", 0, span.begin) + 1
    blank = not text[begin : span.begin].strip()
    source = dedent(text[begin if blank else span.begin : span.end])
    return source.strip() + "\n"
