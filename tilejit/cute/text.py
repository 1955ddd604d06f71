"""A strict reader of CuTe's text: layouts, swizzles, composed layouts, tilers, IntTuples and `_`.

thing  := simple ('o' (INT 'o')? thing)?
simple := 'Sw' '<' INT ',' INT ',' INT '>' | step | tiler | tuple (':' tuple)? | '[' thing ']'
step   := 'Dg' '<' INT ':' INT ( ('+' | '-' | '^') INT ':' INT | '=' tuple ) '>'
tiler  := '<' (simple (',' simple)*)? '>'
tuple  := INT | '_' | '(' (tuple (',' tuple)* ','?)? ')'
INT may begin with '_', which marks compile-time constants in CuTe: _4, _-1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from codegen import LayoutError, dataclass, lazy_pattern
from tilejit.cute.int_tuple import MAX_DEPTH, congruent
from tilejit.cute.underscore import _, has_underscore
from tilejit.support.tokens import Grammar, Reader, mistake, small_int

_SIGNS = frozenset(" \t\n\r\f\v0123456789_()<>[],:-Swo∘Dg+^=")
_PART = lazy_pattern(r"\s*(?:(?:Sw|Dg)\s*<|<|\()[(<\s]*[0-9]", re.ASCII)
_EXAMPLES = "(2,2):(2,4), Sw<3,4,3> o 0 o (8,8):(8,1) or <2:3,3:2>"
_CUTE = Grammar.of(
    "a CuTe layout",
    f"write e.g. {_EXAMPLES}",
    int="_?-?[0-9]+",
    name="Sw|S|Dg|o|∘|_",
    sign=r"[()<>\[\],:+^=-]",
)


def is_cute(text: str) -> bool:
    """Whether a text has the form of a CuTe layout: only CuTe's characters, and a colon.

    "(8,8):(8,1)", "Sw<3,4,3> o 0 o (8,8):(8,1)" -> True    "{1,0:T(8,128)}", "f32[2]", "tpu" -> False
    """
    return ":" in text and _SIGNS.issuperset(text)


def is_cute_part(text: str) -> bool:
    """Whether a text starts a CuTe shape, tiler or swizzle without strides, which is not a layout.

    "(8,8)", "Sw<3,4,3>" -> True    "(8,8):(8,1)", "()" -> False
    """
    return ":" not in text and _SIGNS.issuperset(text) and _PART().match(text) is not None


def is_only_cute(text: str) -> bool:
    """Whether a text has only the characters of CuTe's texts, whatever it describes.

    "(8,8)", "Sw<3,4,3> o (2" -> True    "tpu", "{1,0}" -> False
    """
    return _SIGNS.issuperset(text)


@dataclass(frozen=True, slots=True)
class Makers:
    """The constructors of the objects in a text; the reader does not know their classes."""

    layout: Callable[[Any, Any], Any]
    swizzle: Callable[[int, int, int], Any]
    step: Callable[[int, int, str, int, int, tuple[int, ...]], Any]
    composed: Callable[[Any, int, Any], Any]
    tiler: Callable[[list[Any]], Any]


class Thing(NamedTuple):
    """An object in a text and the value built from it; an IntTuple or a coordinate has the kind "tuple"."""

    kind: str
    value: Any


def read(text: str, makers: Makers) -> Thing:
    """Read the object that a text describes.

    "Sw<3,4,3>" -> Thing("Swizzle", Swizzle(3, 4, 3))

    Raises:
        LayoutError: the text has a mistake; the message shows where and what to write instead.
        TypeError: the text is not a str.
    """
    reader = _Reader(text, makers)
    out = reader.thing(0)
    reader.expect_end()
    return out


def read_layout(text: str, make: Callable[[Any, Any], Any]) -> Any:
    """Read a layout and nothing else; see `Layout.parse`."""
    kind, layout = read(text, Makers(make, _unmade, _unmade, _unmade, _unmade))
    if kind == "Layout":
        return layout
    if kind == "tuple":
        kind = "size" if isinstance(layout, int) else type(layout).__name__
    raise mistake(text, 0, f"expected a layout, got a {kind}", "write a shape and a stride, e.g. (2,2):(2,4)")


def _unmade(*_parts: Any) -> None:
    """Return nothing: if only a layout is expected, other kinds are rejected later."""


class _Reader(Reader):
    """A reader with a method for each rule of the grammar."""

    def __init__(self, text: str, makers: Makers) -> None:
        super().__init__(text, _CUTE)
        self.makers = makers

    def deeper(self, level: int) -> int:
        if level >= MAX_DEPTH:
            self.fail(f"the text nests more than {MAX_DEPTH} deep", "reduce the nesting")
        return level + 1

    def thing(self, level: int) -> Thing:
        start = self.now
        outer = self.simple(self.deeper(level))
        if not self.accept("o", "∘"):
            return outer
        offset = 0
        if self.now.kind == "int" and self.ahead.text in ("o", "∘"):
            offset = self.number()
            self.take()
        inner_at = self.now
        inner = self.thing(self.deeper(level))
        if outer.kind not in ("Swizzle", "DigitStep", "Layout", "ComposedLayout"):
            self.fail("only a swizzle or a layout can precede 'o'", f"write e.g. {_EXAMPLES}", start)
        if inner.kind not in ("Layout", "ComposedLayout"):
            self.fail("only a layout can follow 'o'", f"write e.g. {_EXAMPLES}", inner_at)
        return Thing("ComposedLayout", self.makers.composed(outer.value, offset, inner.value))

    def simple(self, level: int) -> Thing:
        if self.accept("Sw", "S"):
            return self.swizzle()
        if self.accept("Dg"):
            return self.step(level)
        if self.accept("<"):
            return self.tiler(self.deeper(level))
        if self.accept("["):
            inside = self.thing(self.deeper(level))
            self.expect("]", "after a composed layout")
            return inside
        start = self.now
        shape = self.int_tuple(level)
        if not self.accept(":"):
            return Thing("tuple", shape)
        stride_at = self.now
        stride = self.int_tuple(level)
        if has_underscore(shape) or has_underscore(stride):
            self.fail("a layout cannot contain _", "write a number; _ is for coordinates and tilers", start)
        if not congruent(shape, stride):
            self.fail("the stride does not nest like the shape", "write one stride for each size", stride_at)
        try:
            return Thing("Layout", self.makers.layout(shape, stride))
        except LayoutError as error:
            cause, _newline, fix = str(error).partition("\n")
            self.fail(cause, fix.strip(), start)

    def swizzle(self) -> Thing:
        start = self.now
        self.expect("<", "after Sw")
        numbers = [self.number()]
        while self.accept(","):
            numbers.append(self.number())
        self.expect(">", "after a swizzle's numbers")
        if len(numbers) != 3:
            self.fail(
                f"expected three numbers in a swizzle, got {len(numbers)}", "write e.g. Sw<3,4,3>", start
            )
        try:
            return Thing("Swizzle", self.makers.swizzle(*numbers))
        except LayoutError as error:
            cause, _newline, fix = str(error).partition("\n")
            self.fail(cause, fix.strip(), start)

    def step(self, level: int) -> Thing:
        start = self.now
        self.expect("<", "after Dg")
        size, stride = self.digit()
        operation, by, table = "", (1, 1), ()
        if self.accept("="):
            found = self.int_tuple(self.deeper(level))
            table = found if isinstance(found, tuple) else (found,)
        elif self.now.kind == "int" and self.now.text.startswith("-"):  # the sign of the operation
            below, by_stride = self.digit()
            operation, by = "-", (-below, by_stride)
        elif self.now.text in ("+", "-", "^"):
            operation, by = self.take().text, self.digit()
        else:
            self.fail(f"expected +, -, ^ or = after a digit: {self.found()}", "write e.g. Dg<8:1+4:8>")
        self.expect(">", "after a digit's step")
        try:
            return Thing("DigitStep", self.makers.step(size, stride, operation, *by, table))
        except (LayoutError, TypeError) as error:
            cause, _newline, fix = str(error).partition("\n")
            self.fail(cause, fix.strip() or "write one number for each position", start)

    def digit(self) -> tuple[int, int]:
        size = self.number()
        self.expect(":", "between the size and the stride of a digit")
        return size, self.number()

    def tiler(self, level: int) -> Thing:
        parts: list[Any] = []
        if self.accept(">"):
            return Thing("Tiler", self.makers.tiler([]))
        while True:
            at = self.now
            part = self.simple(level)
            if part.kind in ("Swizzle", "DigitStep", "ComposedLayout"):
                self.fail("a tiler can contain only layouts, sizes, tilers and _", "write e.g. <2:3,3:2>", at)
            parts.append(part.value)
            if not self.accept(","):
                break
        self.expect(">", "after a tiler")
        return Thing("Tiler", self.makers.tiler(parts))

    def int_tuple(self, level: int) -> Any:
        if self.accept("_"):
            return _
        if not self.accept("("):
            return self.number()
        parts: list[Any] = []
        while not self.accept(")"):
            parts.append(self.int_tuple(self.deeper(level)))
            if not self.accept(",") and self.now.text != ")":
                self.fail(f"')' is missing: {self.found()}", "put ')' here, or a comma between numbers")
        return tuple(parts)

    def number(self) -> int:
        if self.now.kind != "int":
            self.fail(f"a number is missing: {self.found()}", f"write e.g. {_EXAMPLES}")
        value = small_int(self.now.text.removeprefix("_"))
        if value is None:
            self.fail("a number exceeds 2^63-1", "write a smaller one")
        self.take()
        return value
