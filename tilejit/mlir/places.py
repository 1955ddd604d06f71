"""Positions in MLIR text, and the errors that point at them."""

from __future__ import annotations

from codegen import KernelError
from tilejit.support.tokens import visible


class Unsupported(Exception):
    """Why an operation is not supported, and the fix; its caller adds the position as a KernelError."""

    def __init__(self, cause: str, fix: str) -> None:
        super().__init__(cause)
        self.cause = cause
        self.fix = fix


def line_of(text: str, at: int) -> int:
    """The number of the line, from 1, at position `at`."""
    return text.count("\n", 0, max(at, 0)) + 1


def mistake(text: str, at: int, cause: str, fix: str) -> KernelError:
    """Create the error that shows a line of the text, a caret under position `at`, and the fix.

    func.call is not supported
      line 7: func.call @g() : () -> ()
              ^
      write affine.for, affine.load, …
    """
    at = min(max(at, 0), len(text))
    begin = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    line = text[begin : end if end >= 0 else len(text)]
    column = at - begin
    cut = max(0, column - 60)
    before = ("…" if cut else "") + "".join(map(visible, line[cut:column]))
    after = "".join(map(visible, line[column : column + 60])) + ("…" if len(line) > column + 60 else "")
    if not cut:
        before = before.lstrip()
    place = f"line {line_of(text, at)}: "
    return KernelError(f"{cause}\n  {place}{before}{after}\n  {' ' * (len(place) + len(before))}^\n  {fix}")
