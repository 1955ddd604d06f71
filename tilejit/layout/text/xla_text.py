"""A strict reader of XLA's text of shapes and layouts; a LayoutError shows a mistake with a caret and a fix.

shape  := dtype '[' dims ']' layout? | '(' (shape (',' shape)*)? ')' | 'b(' shape ')'
dim    := INT | '<=' INT | '?'
layout := '{' (INT (',' INT)*)? (':' D? T? L? #? *? E? S? SC? P? M?)? '}'

In tiles, XLA's documentation also spells `*` as the operator U+2217 and as -1; both are read as `*`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from codegen import LayoutError, cached
from tilejit.layout.checks import memory_space_fault, order_fault, order_fix, tile_fault
from tilejit.layout.dtypes import PRIMITIVE_TYPES, nearest_dtype
from tilejit.layout.fields import MAX_DEPTH, UNBOUNDED, Makers, SplitConfig
from tilejit.layout.text.xla_print import PADDING_WORDS
from tilejit.layout.tiling import MAX_TILES, MERGE
from tilejit.support.tokens import Grammar, Reader, Token, mistake, small_int

Item = TypeVar("Item")
_PARTS = "D T L # * E S SC P M"
XLA = Grammar.of(
    "a layout text",
    "remove it",
    comments=True,
    int="-?[0-9]+",
    name="[A-Za-z_][A-Za-z0-9_]*",
    sign=r"<=|[\[\](){},:*\u2217?#+~]",
)
"""The tokens of shapes and layouts."""

_STARS = ("*", "\u2217", "-1")
"""The spellings of a dimension that a tile merges."""


def read_shape(text: str, makers: Makers) -> Any:
    """Read a shape, a tuple or a buffer; see `Shape.parse`."""
    if not isinstance(text, str):
        raise TypeError(f"expected the text of a shape as a str, got {type(text).__name__}")
    return _read_shape(str(text), makers)


@cached(256)
def _read_shape(text: str, makers: Makers) -> Any:
    try:
        reader = _Reader(text, makers)
        shape = reader.shape(0)
        reader.expect_end()
    except LayoutError as error:
        at = min((text.find(words) for words in PADDING_WORDS if words in text), default=None)
        if at is None:
            raise
        raise mistake(
            text,
            at,
            "padding in words cannot be read",
            "create the shape with tilejit.make_shape(..., padded_dimensions=..., padding_value=...)",
        ) from error
    return shape


def read_layout(text: str, rank: int | None, makers: Makers) -> Any:
    """Read a layout alone, such as "{1,0:T(8,128)}"; see `Layout.parse`."""
    if not isinstance(text, str):
        raise TypeError(f"expected the text of a layout as a str, got {type(text).__name__}")
    return _read_layout(str(text), rank, makers)


@cached(256)
def _read_layout(text: str, rank: int | None, makers: Makers) -> Any:
    reader = _Reader(text, makers)
    if reader.now.text != "{":
        reader.fail("expected a layout to begin with {", "write e.g. {1,0:T(8,128)}")
    layout = reader.layout(rank, 0)
    reader.expect_end()
    return layout


class _Reader(Reader):
    """A reader with a method for each rule of the grammar."""

    def __init__(self, text: str, makers: Makers) -> None:
        super().__init__(text, XLA)
        self.make = makers

    def expect(self, sign: str, where: str) -> None:
        if not self.accept(sign):
            more = ", or a comma between numbers" if sign in ")]" else ""
            self.fail(f"{sign!r} is missing {where}: {self.found()}", f"put {sign!r} here{more}")

    def expect_end(self) -> None:
        if self.now.text == "{" and self.ahead.text == "}":
            self.fail("the layout is empty", "omit {}, or name the dimensions, e.g. {1,0}")
        if self.now.text == "{":
            self.fail(
                "a layout is not allowed here",
                "begin it with a dimension or a colon, e.g. {1,0} or {:T(256)}",
            )
        super().expect_end()

    def number(self, what: str, least: int = 0, fix: str = "") -> int:
        token = self.now
        if token.kind != "int":
            self.fail(f"{what} is missing: {self.found()}", "write a whole number")
        value = small_int(token.text)
        fix = fix or f"write {least} or more"
        if token.text.startswith("-") and (value is None or value < least):
            self.fail(f"{what} is negative", fix)
        if value is None:
            self.fail(f"{what} exceeds 2^63-1", "write a smaller number")
        if value < least:
            self.fail(f"{what} is {value}", fix)
        self.take()
        return value

    def list_of(self, item: Callable[[], Item]) -> list[Item]:
        """Read one or more items separated by commas."""
        items = [item()]
        while self.accept(","):
            items.append(item())
        return items

    def in_parentheses(self, item: Callable[[], Item], what: str) -> Item:
        self.expect("(", f"before {what}")
        value = item()
        self.expect(")", f"after {what}")
        return value

    # --- shapes ---

    def shape(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            self.fail(f"shapes nest more than {MAX_DEPTH} deep", "reduce the nesting")
        if self.accept("("):
            return self.tuple_members(depth)
        if self.now.kind == "name" and self.now.text == "b" and self.ahead.text == "(":
            return self.buffer(depth)
        return self.array(depth)

    def tuple_members(self, depth: int) -> Any:
        if self.accept(")"):
            return self.make.tuple_shape(())
        members = self.list_of(lambda: self.shape(depth + 1))
        self.expect(")", "after a tuple's shapes")
        return self.make.tuple_shape(tuple(members))

    def buffer(self, depth: int) -> Any:
        self.take()
        self.expect("(", "after b")
        start = self.now
        shape = self.shape(depth + 1)
        if not isinstance(shape, self.make.shape) or not shape.element.is_array_element:
            self.fail("a buffer holds an array", "write e.g. b(f32[2])", start)
        self.expect(")", "after a buffer's shape")
        return self.make.buffer(shape)

    def array(self, depth: int) -> Any:
        start = self.now
        name = self.element_name()
        if self.now.text != "[":
            self.fail(
                f"'[' is missing after {name}: {self.found()}",
                f"write the dimensions, e.g. {name}[2,3]; {name}[] is a scalar",
            )
        self.take()
        dims = [] if self.now.text == "]" else self.list_of(self.dimension)
        self.expect("]", "after the dimensions")
        sizes = tuple(size for size, _ in dims)
        if not PRIMITIVE_TYPES[name].is_array_element and (sizes or self.layout_follows()):
            self.fail(f"{name} takes no dimensions and no layout", f"write {name}[]", start)
        layout = None
        if PRIMITIVE_TYPES[name].is_array_element:
            layout = self.layout(len(sizes), depth) if self.layout_follows() else self.row_major(len(sizes))
        flags = tuple(dynamic for _, dynamic in dims)
        return self.build(start, lambda: self.make.shape(name, sizes, layout, flags))

    def element_name(self) -> str:
        """Read a dtype in lower or upper case, and return it in lower case."""
        token = self.now
        if token.kind != "name":
            braces = "write a complete shape such as f32[2,3]{1,0}, or a layout in braces, such as {1,0}"
            shape = "write a shape such as f32[2,3], a tuple (…) or a buffer b(…)"
            self.fail(f"a dtype is missing: {self.found()}", braces if token.kind == "int" else shape)
        name = token.text.lower() if token.text.isupper() else token.text
        if name not in PRIMITIVE_TYPES:
            fix = "write a buffer as b(f32[2])" if token.text == "B" else nearest_dtype(token.text)
            self.fail("unknown dtype", fix)
        self.take()
        return name

    def dimension(self) -> tuple[int, bool]:
        """Read a size and whether it is dynamic."""
        if self.accept("?"):
            return UNBOUNDED, True
        dynamic = self.accept("<=")
        return self.number("a dimension"), dynamic

    def build(self, start: Token, make: Callable[[], Item]) -> Item:
        """Call `make`; if it raises, add the text with a caret at its start."""
        try:
            return make()
        except LayoutError as error:
            cause, _, fix = str(error).partition("\n")
            self.fail(cause, fix.strip() or "change it", start)

    # --- layouts ---

    def layout_follows(self) -> bool:
        return self.now.text == "{" and (self.ahead.kind == "int" or self.ahead.text == ":")

    def layout(self, rank: int | None, depth: int) -> Any:
        start = self.now
        self.expect("{", "before a layout")
        order = self.minor_to_major(rank)
        fields: dict[str, Any] = {}
        if self.accept(":"):
            fields = self.properties(len(order), depth)
        if self.now.text != "}":
            self.fail(
                f"'}}' is missing after the layout: {self.found()}",
                f"close the layout; its parts must be in the order {_PARTS}",
            )
        self.take()
        return self.build(start, lambda: self.make.layout(order, **fields))

    def minor_to_major(self, rank: int | None) -> tuple[int, ...]:
        places: list[Token] = []

        def dimension() -> int:
            places.append(self.now)
            return self.number("a dimension of minor_to_major", least=-(2**63))

        order = self.list_of(dimension) if self.now.text not in (":", "}") else []
        rank = len(order) if rank is None else rank
        fault = order_fault(order, rank)
        if fault:
            place, cause = fault
            self.fail(cause, order_fix(rank), places[place] if place < len(places) else self.now)
        return tuple(order)

    def properties(self, rank: int, depth: int) -> dict[str, Any]:
        """Read the parts after the colon, each at most once and in XLA's order."""
        readers: tuple[tuple[str, str, Callable[[], Any]], ...] = (
            ("D", "", lambda: self.level_types(rank)),
            ("T", "tiles", self.tiles),
            (
                "L",
                "tail_padding_alignment_in_elements",
                lambda: self.in_parentheses(lambda: self.number("L", 1), "L's number"),
            ),
            ("#", "index_type", self.integer_type),
            ("*", "pointer_type", self.integer_type),
            (
                "E",
                "element_size_in_bits",
                lambda: self.in_parentheses(lambda: self.number("E"), "E's number"),
            ),
            ("S", "memory_space", lambda: self.in_parentheses(self.memory_space, "S's number")),
            ("SC", "split_configs", lambda: self.split_configs(rank)),
            (
                "P",
                "physical_shape",
                lambda: self.in_parentheses(lambda: self.physical_shape(depth), "P's shape"),
            ),
            (
                "M",
                "dynamic_shape_metadata_prefix_bytes",
                lambda: self.in_parentheses(lambda: self.number("M"), "M's number"),
            ),
        )
        fields: dict[str, Any] = {}
        for letter, name, read in readers:
            if self.now.text == letter:
                self.take()
                fields[name] = read()
        fields.pop("", None)
        return fields

    def tiles(self) -> tuple[tuple[int, ...], ...]:
        if self.now.text != "(":
            self.fail(f"T has no tile: {self.found()}", "write e.g. T(8,128)")
        tiles: list[tuple[int, ...]] = []
        while self.now.text == "(":
            if len(tiles) == MAX_TILES:
                self.fail(f"the layout has more than {MAX_TILES} tiles", f"use at most {MAX_TILES}")
            tiles.append(self.tile())
        return tuple(tiles)

    def tile(self) -> tuple[int, ...]:
        start = self.take()
        places: list[Token] = []

        def size() -> int:
            places.append(self.now)
            if self.accept(*_STARS):
                return MERGE
            return self.number("a tile size", 1, "write a size of 1 or more, or * to merge the dimension")

        if self.now.text == ")":
            self.fail("a tile has no sizes", "write at least one, e.g. T(8,128)", start)
        sizes = tuple(self.list_of(size))
        fault = tile_fault(sizes)
        if fault:
            self.fail(fault[1], fault[2], places[fault[0]])
        self.expect(")", "after a tile")
        return sizes

    def level_types(self, rank: int) -> None:
        """Read D(D,C+,…), check its form and drop it, because every dimension here is dense."""
        start = self.now

        def level() -> str:
            if self.now.kind != "name" or self.now.text not in ("D", "C", "S", "H"):
                self.fail(
                    f"a dim level type is missing: {self.found()}", "write one of D, C, S, H, e.g. D(D,D)"
                )
            name = self.take().text
            while self.now.text in ("+", "~"):
                self.take()
            return name

        levels = self.in_parentheses(lambda: self.list_of(level), "the dim level types")
        if len(levels) != rank:
            self.fail(
                f"{len(levels)} dim level types for {rank} dimensions",
                "write one for each, or omit D",
                start,
            )

    def integer_type(self) -> str:
        def name() -> str:
            start = self.now
            found = self.element_name()
            if PRIMITIVE_TYPES[found].kind not in ("signed", "unsigned"):
                self.fail(f"{found} is not an integer type", "write one such as u32", start)
            return found

        return self.in_parentheses(name, "the type")

    def split_configs(self, rank: int) -> tuple[SplitConfig, ...]:
        def one() -> SplitConfig:
            token = self.now
            dim = self.number("a split dimension")
            if dim >= rank:
                self.fail(f"the split config names dimension {dim}", order_fix(rank), token)
            if dim in seen:
                self.fail(
                    f"the split config names dimension {dim} twice", "give its indices in one place", token
                )
            seen.add(dim)
            self.expect(":", "after a split dimension")
            return dim, tuple(self.list_of(lambda: self.number("a split index")))

        seen: set[int] = set()
        configs = [self.in_parentheses(one, "a split")]
        while self.now.text == "(":
            configs.append(self.in_parentheses(one, "a split"))
        return tuple(configs)

    def memory_space(self) -> int:
        start = self.now
        space = self.number("S")
        fault = memory_space_fault(space)
        if fault:
            self.fail(*fault, start)
        return space

    def physical_shape(self, depth: int) -> Any:
        start = self.now
        shape = self.shape(depth + 1)
        if not isinstance(shape, self.make.shape) or not shape.element.is_array_element:
            self.fail("a physical shape must be that of an array", "write e.g. P(s32[10,20]{1,0})", start)
        return shape

    def row_major(self, rank: int) -> Any:
        return self.make.layout(tuple(reversed(range(rank))))
