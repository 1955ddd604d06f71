"""A schedule holds every decision about a nest, and nothing else. `choose.py` makes it; passes obey it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from codegen.ir.blocks import Block
from codegen.ir.strided_box import Side
from codegen.schedule.shuffles import ShuffleSchedule
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

Staging: TypeAlias = Literal["", "rows", "dense"]
"""The staging buffer of a tile: none, one that holds long result rows separately ("rows"), or one that holds
short result rows contiguously ("dense")."""

BlockOrder: TypeAlias = Literal["columns", "rows", "diagonals"]
"""The order of the blocks of a tile: down the columns first, along the rows first, or diagonally.

Diagonals change both rows and columns with each block."""

MOST_LOOPS = 6
"""The most outer loops of a nest. More digits become tables of offsets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSchedule:
    """How runs, chunks and packed bits are copied: what their directives say.

    prefetch_bytes   how far ahead lines of the source are requested by chunks, and by runs and packed bits
                     that are streamed; 0 for not at all. What is read next mostly follows in the source
    prefetch_chunks  the distance in chunks instead, where more of them are streamed: 0.5 to 2 KiB
    """

    prefetch_bytes: int = 256
    prefetch_chunks: int = 64

    def __str__(self) -> str:
        if self == RunSchedule():
            return ""
        if not self.prefetch_bytes:
            return "no prefetches"
        chunks = "" if self.prefetch_chunks == 64 else f" or {self.prefetch_chunks} chunks"
        return f"prefetches {self.prefetch_bytes} bytes{chunks} ahead"


@dataclass(frozen=True, slots=True)
class TransposeSchedule:
    """How a transposed copy runs; axes are listed most minor first.

    rows, columns         axes joined along the contiguous direction of the destination, and of the source
    tile                  rows and columns per tile
    block                 the shape of a register block
    layers, together      an axis, or "", along which `together` tiles share one buffer
    lines                 lines of each result row in the buffer, if long rows are staged
    requests              with streamed dense panels: lines of the next panel's source to prefetch per line
                          written
    loops                 the loops around blocks, outermost first: "rows" and "columns" for tiles of them,
                          "layers" for panels of several layers, and the other axes
    stage                 the buffer that tiles go through, if any
    stream                whether full lines are stored past the cache
    finds_lines           without a buffer: whether result rows may begin anywhere in a line, all alike
    order                 the order of the blocks of a tile; not used with dense panels
    prefetch_bytes        without a buffer: how far ahead each row of a block is requested; 0 for not at all
    separate              with dense panels: whether each column of a block has its own address, and not one
                          from the columns before it
    strips                rows and columns of the caller's super-vectors, whose blocks run together; None: no
                          size was given
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    tile: tuple[int, int]
    block: Block
    layers: str = ""
    together: int = 1
    lines: int = 1
    requests: int = 1
    loops: tuple[str, ...] = ()
    stage: Staging = ""
    stream: bool = False
    finds_lines: bool = False
    order: BlockOrder = "columns"
    prefetch_bytes: int = 0
    separate: bool = False
    strips: tuple[int, int] | None = None

    def around(self, tile: tuple[int, int]) -> tuple[int, int]:
        """Rows and columns of one iteration of the outer loops: of the larger of tiles and super-vectors.

        Super-vectors that are longer than tiles in either direction hold several of them.
        """
        strips = self.strips or tile
        return strips if any(strip > size for strip, size in zip(strips, tile, strict=True)) else tile

    def __str__(self) -> str:
        rows, columns = " ".join(self.rows), " ".join(self.columns)
        blocks = "short blocks" if self.block == "short" else f"blocks of {self.block} bytes"
        text = f"rows {rows} | columns {columns} | tiles {self.tile[0]}x{self.tile[1]} in {blocks}"
        text += f" | super-vectors {self.strips[0]}x{self.strips[1]}" if self.strips else ""
        text += f" | staged {self.stage}" if self.stage else ""
        text += f", {self.lines} lines each" if self.lines > 1 else ""
        text += f", {self.together} layers of {self.layers}" if self.layers else ""
        order = "" if self.stage == "dense" else f" | blocks by {self.order}"
        text += f" | loops {' '.join(self.loops)}{order}" if self.loops else ""
        text += f" | prefetches {self.prefetch_bytes} bytes ahead" if self.prefetch_bytes else ""
        begins = " from the first line of each row on" if self.finds_lines else ""
        return text + (f" | streaming stores{begins}" if self.stream else "")


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
    """How one nest runs.

    mode         what the inner loops do
    outer        the loops that remain loops, outermost first
    inner        the inner loops: () | (run,) | (columns, rows). A packed loop is last.
                 Short reversed runs have (elements, runs). An interleave appends the digits joined to its
                 long one. For chunks, all loops that the table covers.
    groups       more loops that an interleave takes, whose result rows share one buffer; None: no buffer
    interleave   the side ("dst" or "src") whose short digit is a literal, for that mode
    transpose    how a transposed copy is tiled and written, for that mode
    shuffle      how periods of the destination are assembled, for that mode
    runs         how lines of runs, chunks and packed bits are copied
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
    transpose: TransposeSchedule | None = None
    strip: int | None = None
    row: str = ""
    rows: int = 1
    groups: tuple[str, ...] | None = None
    prefetch: bool = False
    given: bool = False
    sized: GivenSize | None = None
    split: bool = False
    in_bytes: bool = False
    runs: RunSchedule = RunSchedule()
    shuffle: ShuffleSchedule | None = None

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
            return f"{self.mode} | {self.transpose} | others {order}{split}{rounded}"
        packed = f" | interleave {self.interleave}" if self.interleave else ""
        packed += f" | {self.shuffle}" if self.shuffle else ""
        packed += f" | groups {' '.join(self.groups) or 'none'}" if self.groups is not None else ""
        stream = " | streaming stores" if self.stream else ""
        strip = f" | strips of {self.strip}" if self.strip else ""
        strip += f" | strips of {self.rows} of {self.row}" if ROWS in self.outer else ""
        strip += " | prefetches" if self.prefetch else ""
        strip += f" | {self.runs}" if str(self.runs) else ""
        strip += " | bytes of elements" if self.in_bytes else ""
        shape = f"{self.mode} | outer {order} | inner {taken}{packed}"
        return f"{shape}{stream}{strip}{rounded}"


def long_loop(mode: Mode, inner: tuple[str, ...], interleave: PackedSide) -> str:
    """The inner loop that strips cut: the only one, or the columns of packed bits.

    For an interleave it is the long loop, or the last one joined to it.
    """
    first = mode in ("pack bits", "unpack bits") or (interleave == "dst" and len(inner) == 2)
    return inner[0] if first else inner[-1]
