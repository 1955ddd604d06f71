"""The text of a function, and the error that points into it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from codegen.support.errors import KernelError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SourceText:
    """Lines of a file, those of one function, as far from the margin as they stand there.

    first   the number in the file of the first of them, from 1
    """

    file: str
    first: int
    lines: tuple[str, ...]

    def line(self, node: ast.AST) -> int:
        """The number in the file of the line that a node begins in."""
        return self.first + getattr(node, "lineno", 1) - 1

    def error(self, node: ast.AST, message: str) -> KernelError:
        """The error that shows a node's line with a caret under it.

        subscripts that depend on data are no index expressions
          kernels.py, line 12
            C[i] = A[B[i]]
                     ^
          …

        What stands behind the first line of `message` goes below the caret: what to write instead.
        """
        text = self.lines[getattr(node, "lineno", 1) - 1]
        return KernelError(pointed(message, self.file, self.line(node), text, getattr(node, "col_offset", 0)))

    def check(self, node: ast.AST, run: Callable[..., T], *arguments: object) -> T:
        """What `run` returns; a KernelError that knows no place gets this node's."""
        try:
            return run(*arguments)
        except KernelError as error:
            raise self.error(node, str(error)) from None


def pointed(message: str, file: str, line: int, text: str, column: int) -> str:
    """The message with a line of a file below its own first one, and a caret under a column.

    column   in bytes of UTF-8, as ast and the positions of code objects count
    """
    cause, *mend = message.split("\n")
    before = text.encode()[:column].decode(errors="replace")
    margin = len(text) - len(text.lstrip())
    caret = " " * max(0, len(before) - margin) + "^"
    lines = [cause, f"  {file}, line {line}", f"    {text.strip()}", f"    {caret}"]
    return "\n".join([*lines, *(f"  {each}" for each in mend)])


def source_of(function: Callable[..., object]) -> tuple[SourceText, ast.FunctionDef]:
    """A function's text and its tree.

    Raises:
        KernelError: it has no source (typed at a prompt, made by exec), or is a lambda or a coroutine.
        TypeError: it is no function of Python.
    """
    if inspect.isfunction(function) and hasattr(function, "__wrapped__"):
        raise KernelError(
            f"{function.__name__} is wrapped by another decorator, whose doing no kernel would do\n"
            "  put @tilejit.kernel below it, next to the function"
        )
    if not inspect.isfunction(function):
        raise TypeError(f"a kernel is made of a function of Python, not of a {type(function).__name__}")
    name = function.__name__
    try:
        if function.__code__.co_filename == "<string>":
            raise OSError("from Python 3.13 on, this is the text of python -c, not that of exec")
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError, SyntaxError, IndexError):
        raise KernelError(
            f"{name} has no source to read\n"
            "  functions typed at a prompt or made by exec have none; put it into a file or a notebook"
        ) from None
    # Lines of Python end where these do; str.splitlines would end one at a form feed in a comment, too.
    text = SourceText(function.__code__.co_filename, first, tuple(line.rstrip("\n") for line in lines))
    if name == "<lambda>":
        raise KernelError(
            f"a lambda is no kernel\n  {text.file}, line {first}\n  write it as a function: def …"
        )
    return text, _definition(name, text)


def _definition(name: str, text: SourceText) -> ast.FunctionDef:
    """The tree, its lines counted from that of `text`; inside of a class or a function it stands indented."""
    written = "\n".join(text.lines)
    body: list[ast.stmt] = []
    try:
        if written[:1] in (" ", "\t", "\f"):
            block = ast.parse(f"if True:\n{written}").body[0]
            assert isinstance(block, ast.If), "what was written"
            body = [ast.increment_lineno(statement, -1) for statement in block.body]
        else:
            body = ast.parse(written).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    if body and isinstance(body[0], ast.FunctionDef) and body[0].name == name:
        return body[0]
    raise KernelError(
        f"{name} cannot be read as a function\n  {text.file}, line {text.first}\n"
        "  a kernel is one function, def …, whose text stands in the file as it was loaded"
    )
