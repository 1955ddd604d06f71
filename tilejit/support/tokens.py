"""Tokenize text, read tokens, and show mistakes with a caret."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from codegen import LayoutError, lazy_pattern, shown

MAX_TEXT = 64 * 1024
MAX_INT64 = 2**63 - 1


class Token(NamedTuple):
    """A piece of text and its position; kind is int, name, sign or end."""

    kind: str
    text: str
    at: int


class Grammar(NamedTuple):
    """The tokens of one kind of text.

    Attributes:
        what: the kind of text, for messages.
        fix: the fix for a character that does not start a token.
        pattern: a group for each kind of token; the group `skip` is ignored.
        comments: whether // and /* start a comment.
    """

    what: str
    fix: str
    pattern: Callable[[], re.Pattern[str]]
    comments: bool

    @staticmethod
    def of(what: str, fix: str, *, comments: bool = False, **kinds: str) -> Grammar:
        """The grammar of these kinds of tokens, tried in this order, with white space between them.

        Grammar.of("a sum", "remove it", int="[0-9]+", sign="[+]")
        """
        skip = r"\s+|//[^\n]*|/\*.*?\*/" if comments else r"\s+"
        groups = "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in {"skip": skip, **kinds}.items())
        return Grammar(what, fix, lazy_pattern(groups, re.ASCII | re.DOTALL), comments)


def tokenize(text: str, grammar: Grammar) -> list[Token]:
    """Split a text into tokens, followed by an end token.

    "f32[3]" -> f32, [, 3, ], end

    Raises:
        TypeError: the text is not a str.
        LayoutError: a character does not start a token, a comment is not closed, or the text exceeds 64 KiB.
    """
    if not isinstance(text, str):
        raise TypeError(f"{grammar.what}: expected a str, got {type(text).__name__}")
    if len(text) > MAX_TEXT:
        raise mistake(text, MAX_TEXT, "the text is longer than 64 KiB", "shorten the text")
    tokens: list[Token] = []
    at, next_token = 0, grammar.pattern().match
    while at < len(text):
        match = next_token(text, at)
        if match is None:
            if grammar.comments and text.startswith("/*", at):
                raise mistake(text, at, "the comment is not closed", "close it with */")
            raise mistake(text, at, f"{visible(text[at])!r} is not allowed in {grammar.what}", grammar.fix)
        kind = match.lastgroup or "skip"
        if kind != "skip":
            tokens.append(Token(kind, match.group(), at))
        at = match.end()
    tokens.append(Token("end", "", len(text)))
    return tokens


class Reader:
    """A position in the tokens of a text; parsers add a method for each rule of their grammar."""

    def __init__(self, text: str, grammar: Grammar) -> None:
        self.text = text
        self.tokens = tokenize(text, grammar)
        self.place = 0

    @property
    def now(self) -> Token:
        """The current token."""
        return self.tokens[self.place]

    @property
    def ahead(self) -> Token:
        """The token after it."""
        return self.tokens[min(self.place + 1, len(self.tokens) - 1)]

    def take(self) -> Token:
        """Return the current token and advance."""
        token = self.now
        self.place = min(self.place + 1, len(self.tokens) - 1)
        return token

    def accept(self, *texts: str) -> bool:
        """Whether the current token is one of these; if so, advance."""
        if self.now.text not in texts:
            return False
        self.take()
        return True

    def expect(self, sign: str, where: str) -> None:
        """Take a sign, or fail."""
        if not self.accept(sign):
            self.fail(f"{sign!r} is missing {where}: {self.found()}", f"put {sign!r} here")

    def expect_end(self) -> None:
        """Fail unless the text ends here."""
        if self.now.kind != "end":
            self.fail(f"the text continues after its end: {self.found()}", "remove the rest")

    def fail(self, cause: str, fix: str, token: Token | None = None) -> NoReturn:
        """Raise the error for a token, by default the current one."""
        raise mistake(self.text, (token or self.now).at, cause, fix)

    def found(self) -> str:
        """Describe the current token for a message."""
        token = self.now
        if token.kind == "end":
            return "the text ends"
        return f"found {token.text if len(token.text) <= 24 else token.text[:24] + '…'!r}"


def mistake(text: str, at: int, cause: str, fix: str) -> LayoutError:
    """Create the error that shows the text, a caret under position `at`, and the fix.

    minor_to_major names dimension 2, but the shape has dimensions 0 and 1
      f32[300,7]{2,0:T(8,128)}
                 ^
      name each of 0 and 1 once, e.g. {1,0}
    """
    begin = max(0, at - 60)
    end = min(len(text), at + 40)
    before = ("…" if begin else "") + "".join(map(visible, text[begin:at]))
    after = "".join(map(visible, text[at:end])) + ("…" if end < len(text) else "")
    return LayoutError(f"{cause}\n  {before}{after}\n  {' ' * len(before)}^\n  {fix}")


def small_int(digits: str) -> int | None:
    """The int for a literal, or None if it exceeds 64 bits, regardless of its number of digits."""
    sign, magnitude = (-1, digits[1:]) if digits.startswith("-") else (1, digits)
    magnitude = magnitude.lstrip("0") or "0"
    value = int(magnitude) if len(magnitude) <= 19 else MAX_INT64 + 1
    return None if value > MAX_INT64 else sign * value


def named(value: object) -> str:
    """Format a layout, shape or coordinate for a message, cut if it is long.

    ((2, 3), 4) -> "((2,3),4)"    (2**20000,) -> "a tuple of integers with thousands of digits"
    """
    if isinstance(value, int):
        return shown(value)
    try:
        text = str(value)
    except ValueError:  # the integers exceed Python's limit on digits
        return f"a {type(value).__name__} of integers with thousands of digits"
    if isinstance(value, tuple | list):
        text = text.replace(" ", "").replace(",)", ")")
    return text if len(text) <= 80 else text[:80] + "…"


def visible(character: str) -> str:
    """The character, replaced if it does not take exactly one column on a screen."""
    if character in "\t\r\n\v\f":
        return " "
    return character if character.isprintable() else "\ufffd"
