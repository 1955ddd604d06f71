"""A schedule holds every decision about a nest, and nothing else. `choose.py` makes it; passes obey it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Literal, TypeAlias

from codegen.ir.strided_box import Side
from codegen.schedule.directives import KINDS, Assemble, Directed, Directive, Tile
from codegen.schedule.loops import int_size
from codegen.support.dataclasses import dataclass

VectorSize: TypeAlias = int | tuple[int, int]
"""A virtual vector size: elements, or rows and columns of a super-vector."""

PackedSide: TypeAlias = Side | Literal[""]
"""The side on which an interleave packs short rows together; "" if neither."""

MOST_LOOPS = 6
"""The most outer loops of a nest. More digits become tables of offsets."""


@dataclass(frozen=True, slots=True)
class Cut:
    """An axis that is split into blocks of that extent; `outer` names the axis over the blocks."""

    axis: str
    block: int
    outer: str


@dataclass(frozen=True, slots=True)
class Joined:
    """An inner loop of a nest, and the axes of the box that it joins, most minor first; none if it runs once.

    table     whether a table holds its offsets in the source, even if one stride would do
    in_bytes  whether it counts the bytes of elements, which follow each other
    """

    name: str
    axes: tuple[str, ...]
    table: bool = False
    in_bytes: bool = False

    def text(self, extents: Mapping[str, int]) -> str:
        """The axes, with their extents as far as they are known: row = i (128) subtile_i (8)."""
        sized = (f"{x} ({extents[x]})" if x in extents else x for x in self.axes)
        return f"{self.name} = {'bytes of ' * self.in_bytes}{' '.join(sized) if self.axes else 'one element'}"

    def __str__(self) -> str:
        return self.text({})


class Looped(Directed):
    """Queries on inner loops and their directives."""

    __slots__ = ()

    loops: tuple[Joined, ...]

    def joined(self, name: str) -> tuple[str, ...]:
        """The axes that the loop of a name joins; none without one."""
        return next((x.axes for x in self.loops if x.name == name), ())

    @property
    def inner(self) -> tuple[str, ...]:
        """The axes that all inner loops join."""
        return tuple(axis for x in self.loops for axis in x.axes)

    @property
    def packed(self) -> PackedSide:
        """The side on which short rows are packed together, if registers interleave them; else ""."""
        if self.transposes or not self.lanes or not self.joined("row"):
            return ""
        return "dst" if self.loops[0].name == "column" else "src"

    @property
    def joins_rows(self) -> bool:
        """Whether these rows join several axes: a table holds where their packed lines begin."""
        return bool(self.packed) and len(self.loops[0].axes) > 1

    @property
    def moves_bytes(self) -> bool:
        """Whether a loop runs over bytes that follow each other, a line at a time."""
        return bool(self.lanes) and any(x.in_bytes for x in self.loops)


@dataclass(frozen=True, slots=True)
class Schedule(Looped):
    """How one nest runs. Its text leaves out the directives, which the text of the nest has.

    outer       the axes of the box that remain loops, outermost first
    loops       the inner loops, outermost first
    directives  how the loops run; `make_nest` fills their tables
    cuts        the axes that are split first
    sized       what became of the caller's size of super-vectors; "" without one
    in_bytes    whether the bytes of elements are an axis, the most minor of the box
    given       whether a user wrote the directives, so that the other decisions do not count
    """

    outer: tuple[str, ...]
    loops: tuple[Joined, ...] = ()
    directives: tuple[Directive, ...] = ()
    cuts: tuple[Cut, ...] = ()
    sized: str = ""
    in_bytes: bool = False
    given: bool = False

    @property
    def rows(self) -> tuple[str, ...]:
        """The axes that rows join, along the contiguous direction of a transpose's destination."""
        return self.joined("row")

    @property
    def columns(self) -> tuple[str, ...]:
        """The axes that columns join, along the contiguous direction of its source."""
        return self.joined("column")

    @property
    def layers(self) -> tuple[str, ...]:
        """The axis of which its staged tiles have several iterations, if there is one."""
        return self.joined("layer")

    @property
    def moves_elements(self) -> bool:
        """Whether elements move one by one, in the order of the box or in small blocks."""
        return bool(self.loops) and not self.lanes and not self.obeying(Assemble)

    @property
    def together(self) -> int:
        """Layers per tile."""
        return next((int_size(x.size) for x in self.tiles("layer")), 1)

    def changed(self, *directives: Directive, without: tuple[type[Directive], ...] = ()) -> Schedule:
        """The same with directives instead of all others of their kinds, and of the kinds in `without`.

        They are listed in the order of their kinds.
        """
        kinds = {*map(type, directives), *without}
        kept = (x for x in self.directives if type(x) not in kinds)
        listed = sorted((*kept, *directives), key=lambda x: KINDS.index(type(x)))
        return replace(self, directives=tuple(listed))

    def counts(self, extents: Mapping[str, int]) -> tuple[int, int]:
        """The numbers of joined rows and of joined columns."""
        return prod(extents[x] for x in self.rows), prod(extents[x] for x in self.columns)

    def tile(self, extents: Mapping[str, int], *, strips: bool = False) -> tuple[int, int]:
        """Rows and columns of a tile; with `strips`, of the caller's super-vectors.

        An axis without tiles counts whole. Tiles and super-vectors of the same size share one level.
        """
        levels = sorted(self.obeying(Tile), key=lambda x: (x.level == "strip") == strips)
        sizes = {x.axis: int_size(x.size) for x in levels}
        rows, columns = self.counts(extents)
        return sizes.get("row", rows), columns if self.short else sizes.get("column", columns)

    def __str__(self) -> str:
        if self.given:
            return "the given schedule"
        parts = [f"outer {' '.join(self.outer) or 'none'}", *map(str, self.loops)]
        parts += ["bytes of elements"] * self.in_bytes
        return " | ".join([*parts, *filter(None, [self.sized])])
