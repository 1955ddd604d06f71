"""The text of a pattern.

pattern := item* "->" target* size*
item    := NAME | "1" | "..." | "(" (NAME | "1")* ")"        one for each dimension of the array
NAME    := letters, digits and _, not starting with a digit; not a keyword of the calls (`format.py`)
target  := place | "1" | "..." | "(" target* ")"             the memory order, the most major first
place   := NAME | "-" NAME | NAME ("+" | "-" | "^") NAME     reversed; moved by the index of another axis
size    := "," NAME "=" (INT | "(" INT ("," INT)* ")")       a number, or the position of each index

An infix sign stands between names without a blank: a-b, while "a -b" are two axes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from codegen import LayoutError, cached, lazy_pattern
from tilejit.catalog.format import reserved_mistake
from tilejit.catalog.packing import SAME_ORDER
from tilejit.layout.formats.pattern import Group, Pattern, PermutedAxis, Size, checked_table, cut
from tilejit.support.tokens import Grammar, Reader, Token, small_int

_PATTERN = Grammar.of(
    "a pattern",
    'write e.g. "(m mi) n -> m n mi, mi=8"',
    name="[A-Za-z_][A-Za-z0-9_]*",
    int="[0-9]+",
    sign=r"->|\.\.\.|[(),=^+-]",
)
# An unclosed comment extends to the end. Searching for its end from each /* would take quadratic time.
_COMMENT = lazy_pattern(r"/\*.*?(?:\*/|\Z)|//[^\n]*", re.DOTALL)
MAX_AXES = 1024
OPERATIONS = ("+", "-", "^")
"""The signs between an axis and the one whose index moves it."""
ROW_MAJOR = ("C", "c")
"""NumPy's name of the row-major order, which commands and rules accept as a layout."""


def is_pattern(text: str) -> bool:
    """Whether a text is meant as a pattern: it has an arrow, which XLA's texts have only in comments.

    "a b -> b a" -> True    "f32[2] // a -> b" -> False
    """
    return "->" in text and "->" in _COMMENT().sub("", text)


def spelled_out(text: str) -> str:
    """Replace C by a pattern that keeps the order, which `as_layout` reads.

    "C" -> "... -> ..."    "tpu" -> "tpu"
    """
    return SAME_ORDER if text.strip() in ROW_MAJOR else text


def parse_pattern(text: str) -> Pattern:
    """Read a pattern.

    "(m mi) n -> m n mi, mi=8" -> groups (m mi), (n); order m n mi; sizes mi=8

    Raises:
        LayoutError: the text has a mistake; the message shows where and what to write instead.
        TypeError: the text is not a str.
    """
    if not isinstance(text, str):
        raise TypeError(f"expected a pattern as a str, got {type(text).__name__}")
    return _parse(str(text))


@cached(1024)
def _parse(text: str) -> Pattern:
    return _Reader(text, _PATTERN).pattern()


class _Reader(Reader):
    """A reader with a method for each rule of the grammar."""

    def pattern(self) -> Pattern:
        groups = self.left()
        axes = {axis.text: axis for group in groups for axis in group.axes}
        spread = next((group for group in groups if group.ellipsis), None)
        order, permuted = self.right(set(axes) | ({"..."} if spread else set()))
        missing = next((axis for axis in axes.values() if axis.text not in order), None)
        if missing or (spread and "..." not in order):
            lost = missing or Token("sign", "...", spread.at if spread else 0)
            self.fail(
                f"{cut(lost.text)} is missing right of ->",
                "name it there; every axis needs a place in memory",
                lost,
            )
        sizes = self.sizes(axes)
        return Pattern(self.text, tuple(groups), tuple(order), tuple(sizes.items()), self.sorted(permuted))

    def left(self) -> list[Group]:
        groups: list[Group] = []
        seen: set[str] = set()
        while not self.accept("->"):
            start = self.now
            if start.text in OPERATIONS:
                self.fail(f"{start.text} is left of ->", "write it right of ->, in the memory order")
            if len(groups) == MAX_AXES:
                self.fail(f"the pattern has more than {MAX_AXES} dimensions", "use fewer")
            if self.accept("..."):
                if any(group.ellipsis for group in groups):
                    self.fail("... occurs twice", "keep one", start)
                groups.append(Group((), start.at, ellipsis=True))
            elif self.accept("("):
                axes: list[Token] = []
                while not self.accept(")"):
                    axes += self.axis(seen, "')' is missing", "close the parenthesis")
                groups.append(Group(tuple(axes), start.at))
            else:
                groups.append(Group(tuple(self.axis(seen, "'->' is missing", "write -> here")), start.at))
        return groups

    def axis(self, seen: set[str], cause: str, fix: str) -> list[Token]:
        """Read a new name, or a unit, which has no name."""
        token = self.now
        if token.kind == "int":
            self.unit()
            return []
        if token.kind != "name":
            if token.text == "..." and cause.startswith("')'"):
                self.fail(
                    "... is inside a parenthesis",
                    "write it outside; each dimension it stands for is separate",
                )
            if token.text == "(" and cause.startswith("')'"):
                self.fail("a parenthesis is inside another one", "write one for each dimension")
            self.fail(f"{cause}: {self.found()}", fix)
        if token.text in seen:
            self.fail(f"{cut(token.text)} occurs twice left of ->", "give each axis its own name")
        wrong = reserved_mistake(token.text, "an axis")
        if wrong:
            self.fail(*wrong)
        if len(seen) == MAX_AXES:
            self.fail(f"the pattern has more than {MAX_AXES} axes", "use fewer")
        seen.add(token.text)
        return [self.take()]

    def unit(self) -> None:
        if small_int(self.now.text) != 1:
            self.fail("a number other than 1 is not an axis", "give it a name, and its size as mi=8")
        self.take()

    def right(self, known: set[str]) -> tuple[list[str], dict[str, PermutedAxis]]:
        order: dict[str, None] = {}
        permuted: dict[str, PermutedAxis] = {}
        opened: list[Token] = []
        while self.now.kind != "end" and self.now.text != ",":
            token = self.now
            if token.kind == "int":
                self.unit()
            elif self.accept("("):
                opened.append(token)
            elif token.text == ")" and opened:
                self.take()
                opened.pop()
            elif token.kind == "name" or token.text in ("...", "-"):
                found = self.permuted(known)
                if found.axis.text in order:
                    self.fail(f"{cut(found.axis.text)} occurs twice right of ->", "keep one", found.axis)
                order[found.axis.text] = None
                if found.operation:
                    permuted[found.axis.text] = found
            else:
                self.fail(f"{cut(token.text)!r} is not allowed here", "write the axes in memory order")
        if opened:
            self.fail("')' is missing", "close the parenthesis", opened[-1])
        return list(order), permuted

    def permuted(self, known: set[str]) -> PermutedAxis:
        """Read an axis right of the arrow, reversed or with the axis that moves it."""
        if self.now.text == "-":
            return self.reversed(known)
        axis = self.known_axis(known, "", "") if self.now.kind == "name" else self.take()
        if axis.text not in known:
            self.fail(f"{axis.text} does not occur left of ->", "name it there, or remove it", axis)
        sign = self.operation(axis)
        if sign is None:
            return PermutedAxis(axis, "")
        self.take()
        if axis.text == "...":
            self.fail("... cannot be moved: it stands for several axes", "name the axis", sign)
        by = self.known_axis(
            known, f"{sign.text} is not before an axis", f"write e.g. {cut(axis.text)}{sign.text}i"
        )
        if by.text == axis.text:
            self.fail(f"{cut(by.text)} moves itself", f"name another axis after {sign.text}", by)
        return PermutedAxis(axis, sign.text, by)

    def reversed(self, known: set[str]) -> PermutedAxis:
        """Read -p."""
        sign, fix = self.take(), "write -p to reverse the axis p, and a-b to subtract b from a"
        axis = self.known_axis(known, "- is not before an axis", fix)
        if axis.at > sign.at + 1:
            self.fail("- stands alone", fix, sign)
        if self.operation(axis):
            self.fail(f"{cut(axis.text)} is reversed and moved", "keep one of the two signs", sign)
        return PermutedAxis(axis, "-")

    def operation(self, axis: Token) -> Token | None:
        """The sign that directly follows an axis, if one does."""
        sign = self.now
        joins = sign.text in OPERATIONS and sign.at == axis.at + len(axis.text)
        return sign if joins else None

    def known_axis(self, known: set[str], cause: str, fix: str) -> Token:
        """Take the name of an axis of the left side."""
        if self.now.kind != "name":
            self.fail(f"{cause}: {self.found()}", fix)
        if self.now.text not in known:
            self.fail(f"{cut(self.now.text)} does not occur left of ->", "name it there, or remove it")
        return self.take()

    def sorted(self, permuted: Mapping[str, PermutedAxis]) -> tuple[PermutedAxis, ...]:
        """The permuted axes, each before those that it reads, so that it reads indices as they are."""
        left, out = dict(permuted), list[PermutedAxis]()
        for axis in permuted.values():
            if axis.by and (read := permuted.get(axis.by.text)) and read.by is None:
                self.fail(
                    f"{cut(axis.by.text)} is reversed, and moves {cut(axis.axis.text)}",
                    "reverse neither, or keep only one of the signs",
                    axis.by,
                )
        while left:
            read_later = {axis.by.text for axis in left.values() if axis.by}
            free = next((name for name in left if name not in read_later), None)
            if free is None:
                name, axis = next(iter(left.items()))
                assert axis.by
                self.fail(
                    f"{cut(name)} is moved by {cut(axis.by.text)}, whose position depends on {cut(name)}",
                    f"remove one {axis.operation}",
                    axis.by,
                )
            out.append(left.pop(free))
        return tuple(out)

    def sizes(self, axes: Mapping[str, Token]) -> dict[str, Size]:
        sizes: dict[str, Size] = {}
        while self.accept(","):
            token = self.now
            if token.kind != "name" or token.text not in axes:
                self.fail(f"expected an axis of the pattern and its size: {self.found()}", "write e.g. mi=8")
            if token.text in sizes:
                self.fail(f"the size of {cut(token.text)} is given twice", "write it once")
            self.take()
            if not self.accept("="):
                self.fail(f"'=' is missing after {cut(token.text)}: {self.found()}", "write e.g. mi=8")
            if self.now.text == "(":
                sizes[token.text] = self.table(token.text)
                continue
            value = small_int(self.now.text) if self.now.kind == "int" else None
            if not value:
                self.fail(f"a size is missing: {self.found()}", "write a number from 1 to 2^63-1")
            sizes[token.text] = value
            self.take()
        if self.now.kind != "end":
            self.fail(
                f"the text continues after a size: {self.found()}", "put a comma here, or remove the rest"
            )
        return sizes

    def table(self, name: str) -> tuple[int, ...]:
        start = self.take()
        positions: list[int] = []
        while not self.accept(")"):
            value = small_int(self.now.text) if self.now.kind == "int" else None
            if value is None:
                self.fail(
                    f"a position is missing: {self.found()}", "write numbers from 0 on, as in (0,2,1,3)"
                )
            positions.append(value)
            self.take()
            if not self.accept(",") and self.now.text != ")":
                self.fail(f"')' is missing: {self.found()}", "put ')' here, or a comma between positions")
        try:
            return checked_table(name, positions)
        except LayoutError as error:
            cause, _newline, fix = str(error).partition("\n")
            self.fail(cause, fix.strip(), start)
