"""The tokens of a layout text, and the message with a caret under the place of a mistake."""

from __future__ import annotations

import re
from typing import NamedTuple

from codegen import LayoutError, shown

MAX_TEXT = 64 * 1024
MAX_INT64 = 2**63 - 1
_TOKEN = re.compile(
    r"(?P<skip>[ \t\r\n\v\f]+|//[^\n]*|/\*.*?\*/)"
    r"|(?P<int>-?[0-9]+)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<sign><=|[\[\](){},:*?#+~])",
    re.DOTALL,
)


class Token(NamedTuple):
    """A piece of text and where it begins; kind is int, name, sign or end."""

    kind: str
    text: str
    at: int


def tokenize(text: str) -> list[Token]:
    """Cut a text into tokens, white space and comments left out, an end token last.

    "f32[3]" -> f32, [, 3, ], end

    Raises:
        TypeError: not a str.
        LayoutError: a character that no layout text has, a comment without end, more than 64 KiB.
    """
    if not isinstance(text, str):
        raise TypeError(f"a layout text is a str, not {type(text).__name__}")
    if len(text) > MAX_TEXT:
        raise mistake(
            text, MAX_TEXT, "the text is longer than 64 KiB", "no layout needs that; look what was passed"
        )
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            if text.startswith("/*", at):
                raise mistake(text, at, "the comment is not closed", "close it with */")
            raise mistake(text, at, f"{_visible(text[at])!r} means nothing in a layout text", "take it out")
        kind = match.lastgroup or "skip"
        if kind != "skip":
            tokens.append(Token(kind, match.group(), at))
        at = match.end()
    tokens.append(Token("end", "", len(text)))
    return tokens


def mistake(text: str, at: int, cause: str, mend: str) -> LayoutError:
    """The error that shows the text, a caret under position `at`, and what to write instead.

    minor_to_major names dimension 2, but the shape has dimensions 0 and 1
      f32[300,7]{2,0:T(8,128)}
                 ^
      name each of 0 and 1 once, e.g. {1,0}
    """
    begin = max(0, at - 60)
    end = min(len(text), at + 40)
    before = ("…" if begin else "") + "".join(map(_visible, text[begin:at]))
    after = "".join(map(_visible, text[at:end])) + ("…" if end < len(text) else "")
    return LayoutError(f"{cause}\n  {before}{after}\n  {' ' * len(before)}^\n  {mend}")


def small_int(digits: str) -> int | None:
    """The int that a literal spells, or None where it passes 64 bits, however many digits it has."""
    sign, magnitude = (-1, digits[1:]) if digits.startswith("-") else (1, digits)
    magnitude = magnitude.lstrip("0") or "0"
    value = int(magnitude) if len(magnitude) <= 19 else MAX_INT64 + 1
    return None if value > MAX_INT64 else sign * value


def named(value: object) -> str:
    """A layout, shape or coordinate for a message: its text, cut where it would fill the screen.

    ((2, 3), 4) -> "((2,3),4)"    (2**20000,) -> "a tuple of numbers of thousands of digits"
    """
    if isinstance(value, int):
        return shown(value)
    try:
        text = str(value)
    except ValueError:  # Python prints no integer past its limit of digits
        return f"a {type(value).__name__} of numbers of thousands of digits"
    if isinstance(value, tuple | list):
        text = text.replace(" ", "").replace(",)", ")")
    return text if len(text) <= 80 else text[:80] + "…"


def _visible(character: str) -> str:
    """A character that takes one column on a screen."""
    if character in "\t\r\n\v\f":
        return " "
    return character if character.isprintable() else "\ufffd"
