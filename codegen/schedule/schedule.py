"""A schedule holds every decision about a nest, and nothing else. `choose.py` makes it; passes obey it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Literal, TypeAlias

from codegen.ir.strided_box import Side
from codegen.schedule.directives import KINDS, Directed, Directive, Tile
from codegen.schedule.loops import int_size
from codegen.schedule.shuffles import Shuffle
from codegen.support.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TileSize:
    """The tile of a transpose that is a stage of another copy."""

    rows: int
    columns: int


VectorSize: TypeAlias = int | tuple[int, int] | TileSize
"""A virtual vector size: elements, or rows and columns of a super-vector; or the size of tiles."""

Mode: TypeAlias = Literal[
    "run",
    "chunks",
    "reverse",
    "request",
    "fill",
    "interleave",
    "shuffle",
    "transpose",
    "gather",
    "elements",
    "pack bits",
    "unpack bits",
]

PackedSide: TypeAlias = Side | Literal[""]
"""The side on which an interleave packs short rows together; "" if neither."""

MOST_LOOPS = 6
"""The most outer loops of a nest. More digits become tables of offsets."""

PREFETCH_BYTES, PREFETCH_CHUNKS = 256, 64
"""How far ahead lines of the source are requested: what is read next mostly follows there. In chunks where
more of them are streamed: 0.5 to 2 KiB."""


@dataclass(frozen=True, slots=True)
class Transpose(Directed):
    """How a transposed copy runs: the axes that its loops join, most minor first, and its directives.

    rows, columns  axes joined along the contiguous direction of the destination, and of the source
    layers         an axis, or "", of which panels have several iterations
    directives     how the loops over rows, columns and layers run, in the order of their kinds
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    directives: tuple[Directive, ...]
    layers: str = ""

    @property
    def axes(self) -> tuple[str, ...]:
        """All axes that its loops join."""
        return (*self.rows, *self.columns, *([self.layers] if self.layers else []))

    @property
    def together(self) -> int:
        """Layers per panel."""
        return next((int_size(x.size) for x in self.tiles("layer")), 1)

    def changed(self, *directives: Directive, without: tuple[type[Directive], ...] = ()) -> Transpose:
        """The same with directives instead of all others of their kinds, and of the kinds in `without`."""
        kinds = {*map(type, directives), *without}
        kept = (x for x in self.directives if type(x) not in kinds)
        listed = sorted((*kept, *directives), key=lambda x: KINDS.index(type(x)))
        return replace(self, directives=tuple(listed))

    def counts(self, extents: Mapping[str, int]) -> tuple[int, int]:
        """The numbers of joined rows and of joined columns."""
        return prod(extents[x] for x in self.rows), prod(extents[x] for x in self.columns)

    def tile(self, extents: Mapping[str, int], *, strips: bool = False) -> tuple[int, int]:
        """Rows and columns of a tile or panel; with `strips`, of the caller's super-vectors.

        An axis without tiles counts whole. Tiles and super-vectors of the same size share one level.
        """
        levels = sorted(self.obeying(Tile), key=lambda x: (x.level == "strip") == strips)
        sizes = {x.axis: int_size(x.size) for x in levels}
        rows, columns = self.counts(extents)
        return sizes.get("row", rows), columns if self.short else sizes.get("column", columns)

    def __str__(self) -> str:
        layers = f" | layers {self.layers}" if self.layers else ""
        return f"rows {' '.join(self.rows)} | columns {' '.join(self.columns)}{layers}"


STRIP = "strip"
"""The axis that counts the strips of one inner loop, if the caller gave no size."""

COLUMNS = "column_strip"
"""The axis that counts strips of the inner loops: the columns of the caller's super-vectors."""

ROWS = "row_strip"
"""The axis that counts strips of an outer loop, of whose iterations super-vectors have several."""


LOOPS_END = "its loops have no more"
"""Why super-vectors are smaller than requested where all iterations of their loops are in one."""


@dataclass(frozen=True, slots=True)
class GivenSize:
    """The caller's virtual_vector_size, and what it became.

    given   elements of the copy; until a schedule is picked, elements of the box; None: the compiler's own
    size    elements of a super-vector, or its rows and columns, in elements of the box
    merged  elements of the copy in one of the box
    limit   why super-vectors are smaller than requested; "" if they are not
    """

    given: int | tuple[int, int] | None
    size: int | tuple[int, int]
    merged: int = 1
    limit: str = ""

    @property
    def became(self) -> int | tuple[int, int]:
        """The size in elements of the copy."""
        match self.size:
            case (rows, columns):
                return rows, columns * self.merged
            case size:
                return size * self.merged

    def __str__(self) -> str:
        if self.given is None:
            return ""
        same = "" if self.became == self.given else f" became {_shown(self.became)}"
        limit = f" ({self.limit})" if self.limit else ""
        return f"virtual_vector_size {_shown(self.given)}{same}{limit}"


def _shown(size: int | tuple[int, int]) -> str:
    return "x".join(map(str, size)) if isinstance(size, tuple) else str(size)


@dataclass(frozen=True, slots=True)
class Schedule:
    """How one nest runs. Its text leaves out the directives, which the text of the nest has.

    mode         what the inner loops do
    outer        the loops that remain loops, outermost first
    inner        the inner loops: () | (run,) | (columns, rows). A packed loop is last.
                 Short reversed runs have (elements, runs). An interleave appends the digits joined to its
                 long one. For chunks, all loops that the table covers.
    groups       more loops that an interleave takes, whose result rows share one buffer; None: no buffer
    interleave   the side ("dst" or "src") whose short digit is a literal, for that mode
    transpose    the loops and directives of a transposed copy, for that mode
    shuffle      how periods of the destination are assembled, for that mode
    prefetch_bytes, prefetch_chunks
                 how far ahead lines of the source are requested by chunks, and by runs and packed bits that
                 are streamed; 0 for not at all
    sized        the size of super-vectors if the caller gave it, which is a literal of the kernel then
    split        whether long digits are split, and each part has a schedule of its own
    in_bytes     whether the bytes of elements are a loop, the most minor of the box
    stream       full aligned lines are stored past the cache
    strip        iterations of the loop `stripped` at a time, counted by `strip_axis`; None: all
    row, rows    the outermost loop of which super-vectors have up to `rows` iterations, counted by axis ROWS
                 unless they have all; "" for none
    prefetch     whether single elements prefetch source lines, at a distance that the call passes
    given        whether a user wrote the directives, so that the other decisions do not count
    """

    mode: Mode
    outer: tuple[str, ...]
    inner: tuple[str, ...]
    interleave: PackedSide = ""
    stream: bool = False
    transpose: Transpose | None = None
    strip: int | None = None
    row: str = ""
    rows: int = 1
    groups: tuple[str, ...] | None = None
    prefetch: bool = False
    given: bool = False
    sized: GivenSize | None = None
    split: bool = False
    in_bytes: bool = False
    prefetch_bytes: int = PREFETCH_BYTES
    prefetch_chunks: int = PREFETCH_CHUNKS
    shuffle: Shuffle | None = None

    @property
    def stripped(self) -> str:
        """The loop whose iterations `strip` counts: the last group, or else `long_loop`."""
        return self.groups[-1] if self.groups else long_loop(self.mode, self.inner, self.interleave)

    @property
    def strip_axis(self) -> str:
        """The axis that counts strips of the loop `stripped`."""
        return COLUMNS if self.sized and not self.groups else STRIP

    def __str__(self) -> str:
        if self.given:
            return "the given schedule"
        order = " ".join(self.outer) or "none"
        taken = " ".join(self.inner) or "none"
        rounded = f" | {self.sized}" if self.sized and str(self.sized) else ""
        if self.transpose:
            split = " | long digits split" if self.split else ""
            return f"{self.mode} | outer {order} | {self.transpose}{split}{rounded}"
        packed = f" | interleave {self.interleave}" if self.interleave else ""
        packed += f" | groups {' '.join(self.groups) or 'none'}" if self.groups is not None else ""
        stream = " | streaming stores" if self.stream else ""
        strip = f" | strips of {self.strip}" if self.strip else ""
        strip += f" | strips of {self.rows} of {self.row}" if ROWS in self.outer else ""
        strip += " | prefetches" if self.prefetch else ""
        strip += " | bytes of elements" if self.in_bytes else ""
        shape = f"{self.mode} | outer {order} | inner {taken}{packed}"
        return f"{shape}{stream}{strip}{rounded}"


def long_loop(mode: Mode, inner: tuple[str, ...], interleave: PackedSide) -> str:
    """The inner loop that strips cut: the only one, or the columns of packed bits.

    For an interleave it is the long loop, or the last one joined to it.
    """
    first = mode in ("pack bits", "unpack bits") or (interleave == "dst" and len(inner) == 2)
    return inner[0] if first else inner[-1]
