"""The positions of the functions in a text, found without parsing them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from codegen import dataclass

TOKENS = re.compile(
    r'//[^\n]*+|"(?:[^"\\\n]|\\.)*+"'
    r"|(?P<function>(?<![\w.$@%#!-])(?:func\.)?func(?=\s))"
    r"|(?P<alias>^[ \t]*+[#!][\w.$-]++[ \t]*+=)"
    r"|(?P<module>^[ \t]*+(?:builtin\.)?module\b)"
    r"|(?P<brace>[{}])",
    re.MULTILINE,
)
"""Comments, strings, and the tokens that start or end a function."""

NAME = re.compile(r'@(?:"((?:[^"\\\n]|\\.)*+)"|([\w.$-]++))')


@dataclass(frozen=True, slots=True)
class FunctionSpan:
    """One function of a text: its name without MLIR's `@`, and its span."""

    name: str
    begin: int
    end: int


def function_spans(text: str) -> tuple[FunctionSpan, ...]:
    r"""The functions of a text, in order, each up to the next one, even if braces are missing.

    "func.func @f() { return }\nfunc.func private @g()" -> f, 0 to 25, and g, 25 to 48
    """
    return tuple(_function(text, begin, end) for kind, begin, end in _items(text) if kind == "function")


def aliases(text: str) -> str:
    """The definitions of aliases, such as `#map = affine_map<(d0) -> (d0)>`, one per line."""
    return "".join(text[begin:end].strip() + "\n" for kind, begin, end in _items(text) if kind == "alias")


def blanked(text: str, spans: Sequence[FunctionSpan]) -> str:
    """The text with blanks in place of its functions, so that everything else keeps its position."""
    out, at = [], 0
    for span in spans:
        out += [text[at : span.begin], re.sub(r"[^\n]", " ", text[span.begin : span.end])]
        at = span.end
    return "".join([*out, text[at:]])


def _items(text: str) -> list[tuple[str, int, int]]:
    """Kind, start and end of functions and of alias definitions."""
    found: list[tuple[str, int, int]] = []
    depth = base = 0
    open_at: tuple[str, int] | None = None
    for token in TOKENS.finditer(text):
        ends = token["function"] or ((token["alias"] or token["module"]) and depth <= base)
        if token["brace"] == "{":
            depth += 1
        elif token["brace"] == "}":
            depth -= 1
            ends = depth < base
        if not ends:
            continue
        if open_at is not None:
            found.append((*open_at, token.start()))
        kind = "function" if token["function"] else "alias" if token["alias"] else ""
        open_at = (kind, token.start()) if kind else None
        base = depth
    if open_at is not None:
        found.append((*open_at, len(text)))
    return found


def _function(text: str, begin: int, end: int) -> FunctionSpan:
    name = NAME.search(text, begin, end)
    return FunctionSpan((name[1] or name[2] or "") if name else "", begin, end)
