"""A function's source text, and errors that point into it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import TypeVar

from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SourceText:
    """The lines of one function, with their original indentation.

    first   the line number of the first one in the file, from 1
    """

    file: str
    first: int
    lines: tuple[str, ...]

    def line(self, node: ast.AST) -> int:
        """The line number in the file where a node begins."""
        return self.first + getattr(node, "lineno", 1) - 1

    def error(self, node: ast.AST, message: str) -> KernelError:
        """An error that shows a node's line with a caret under it.

        a subscript that depends on data is not an index expression
          kernels.py, line 12
            C[i] = A[B[i]]
                     ^
          …

        The first line of `message` is the cause. The others say what to write instead and go below the caret.
        """
        text = self.lines[getattr(node, "lineno", 1) - 1]
        return KernelError(pointed(message, self.file, self.line(node), text, getattr(node, "col_offset", 0)))

    def check(self, node: ast.AST, run: Callable[..., T], *arguments: object) -> T:
        """Return `run(*arguments)`; a KernelError from it gets this node's location."""
        try:
            return run(*arguments)
        except KernelError as error:
            raise self.error(node, str(error)) from None


def pointed(message: str, file: str, line: int, text: str, column: int) -> str:
    """The message with a source line, and a caret under a column, inserted after its first line.

    column   in bytes of UTF-8, as in ast and in the positions of code objects
    """
    cause, *fix = message.split("\n")
    before = text.encode()[:column].decode(errors="replace")
    margin = len(text) - len(text.lstrip())
    caret = " " * max(0, len(before) - margin) + "^"
    lines = [cause, f"  {file}, line {line}", f"    {text.strip()}", f"    {caret}"]
    return "\n".join([*lines, *(f"  {each}" for each in fix)])


def source_of(function: Callable[..., object]) -> tuple[SourceText, ast.FunctionDef]:
    """A function's source text and its syntax tree.

    Raises:
        KernelError: it has no source (typed at a prompt or made by exec), or is a lambda or a coroutine.
        TypeError: it is not a Python function.
    """
    if inspect.isfunction(function) and hasattr(function, "__wrapped__"):
        raise KernelError(
            f"{function.__name__} is wrapped by another decorator, which a kernel would skip\n"
            "  put @tilejit.kernel below it, next to the function"
        )
    if not inspect.isfunction(function):
        raise TypeError(f"expected a Python function to compile, got {type(function).__name__}")
    name = function.__name__
    try:
        if function.__code__.co_filename == "<string>":
            raise OSError("from Python 3.13 on, this is the text of python -c, not that of exec")
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError, SyntaxError, IndexError):
        raise KernelError(
            f"{name} has no source to read\n"
            "  functions typed at a prompt or made by exec have none; put it in a file or a notebook"
        ) from None
    # getsourcelines splits lines as Python does. str.splitlines would also split at a form feed in a comment.
    text = SourceText(function.__code__.co_filename, first, tuple(line.rstrip("\n") for line in lines))
    if name == "<lambda>":
        raise KernelError(
            f"a lambda cannot be a kernel\n  {text.file}, line {first}\n  write it as a function: def …"
        )
    return text, _definition(name, text)


def _definition(name: str, text: SourceText) -> ast.FunctionDef:
    """The syntax tree, lines numbered as in `text`; inside a class or a function the text is indented."""
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
        "  a kernel is one function, def …; its source file must be unchanged since it was loaded"
    )
