"""Python blocks of pages: they run as written and give what their comments say."""

from __future__ import annotations

import ast
import builtins
import linecache
import re
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import pytest

import tilejit


def run_block(source: str, file: str, names: dict[str, Any]) -> tuple[int, int]:
    """Run a block and return how many values and errors in its comments were compared.

    `1 + 1  # 2` compares the value's text, `print(1 + 1)  # 2` the output. `f(x)  # LayoutError: …`
    expects an error of TileJIT or of Python with that text. Other comments, and what follows a semicolon, are
    prose.
    """
    values = errors = 0
    linecache.cache[file] = (
        len(source),
        None,
        source.splitlines(keepends=True),
        file,
    )  # kernels read their source
    for node in ast.parse(source).body:
        said = comment(source, node)
        if re.match(r"\w+Error: ", said):
            kind, _, text = said.partition(": ")
            with pytest.raises(getattr(tilejit, kind, None) or getattr(builtins, kind)) as caught:
                exec(compile(ast.Module([node], []), file, "exec"), names)
            assert text in str(caught.value)
            errors += 1
        elif _prints(node) and said:
            printed = StringIO()
            with redirect_stdout(printed):
                exec(compile(ast.Module([node], []), file, "exec"), names)
            assert said.partition(";")[0] == printed.getvalue().rstrip(), f"{said!r} is {printed.getvalue()}"
            values += 1
        elif isinstance(node, ast.Expr):
            value = eval(compile(ast.Expression(node.value), file, "eval"), names)
            if re.match(r"[-0-9'(\[]|True|False|None|\w+\[[\d,]*\]\{", said):
                shown = (str(value), str(value)[1:-1], repr(value))
                assert said.partition(";")[0] in shown, f"{said!r} is {value!r}"
                values += 1
        else:
            exec(compile(ast.Module([node], []), file, "exec"), names)
    return values, errors


def _prints(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and ast.unparse(node).startswith("print(")


def comment(source: str, node: ast.stmt) -> str:
    """The comment after a statement's last line."""
    return source.splitlines()[(node.end_lineno or 1) - 1].partition("  # ")[2]
