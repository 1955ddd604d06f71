"""The loop-nest IR, on one page: sizes, references, expressions, statements, the nest.

    for i in 125: for j in 128:                     For, For
        dst[4096*i + 4*j] = src[1200*i + 4*j]       Store(Ref, Load(Ref))

Offsets are counted in the unit of the buffer (bytes, or bits for a packed side). A size is an int, or a
`Param`: a name whose value the kernel receives at run time. Statements below `Store` are transfers: what
super-vectorization puts in the place of the innermost loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from codegen.ir.copies.segments import Segments
from codegen.ir.copies.tiles import Block, PackedLines, RowGroups, Stage, TileGrid

Side: TypeAlias = Literal["dst", "src"]
PackedSide: TypeAlias = Side | Literal[""]
"""The side on which an interleave has short rows packed together; "" where neither has."""


@dataclass(frozen=True, slots=True)
class Param:
    """A size that is known when the kernel runs."""

    name: str


Size: TypeAlias = int | Param


@dataclass(frozen=True, slots=True)
class Element:
    """What a buffer holds: a type name ("u16", "bf16", "s4") and the bits one element takes there."""

    name: str
    bits: int


@dataclass(frozen=True, slots=True)
class Buffer:
    """Storage that a nest reads or writes: its name, its elements, its offset unit in bits (8 or 1)."""

    name: str
    element: Element
    unit_bits: int


@dataclass(frozen=True, slots=True)
class Ref:
    """A place in a buffer: const + sum of stride * axis + sum of table[axis]."""

    buffer: str
    const: Size
    terms: tuple[tuple[str, Size], ...]
    tables: tuple[tuple[str, str], ...] = ()

    def stride(self, axis: str) -> Size:
        """The stride of an axis; 0 where the axis does not occur."""
        return dict(self.terms).get(axis, 0)


@dataclass(frozen=True, slots=True)
class Load:
    """The element at a place, as the bits it has."""

    ref: Ref


@dataclass(frozen=True, slots=True)
class Fill:
    """The padding value, a run-time argument of the kernel."""


@dataclass(frozen=True, slots=True)
class Convert:
    """A value of element type `source` as one of `target`; "swap" in front reverses the bytes first."""

    value: Load
    source: str
    target: str


Expr: TypeAlias = Load | Fill | Convert


@dataclass(frozen=True, slots=True)
class Store:
    """Write one element."""

    ref: Ref
    value: Expr


@dataclass(frozen=True, slots=True)
class CopyRun:
    """Move `count` bytes that lie side by side on both sides; `stream` sends whole lines past the cache."""

    dst: Ref
    src: Ref
    count: Size
    stream: bool = False


@dataclass(frozen=True, slots=True)
class CopyChunks:
    """Write `count` pieces of `width` bytes side by side, each from its place in the source.

    `places` says where they are; `stream` sends whole lines past the cache.
    """

    dst: Ref
    src: Ref
    width: int
    count: Size
    places: PackedLines
    stream: bool = False


@dataclass(frozen=True, slots=True)
class Reverse:
    """Move `count` runs of `length` elements of `width` bytes, side by side on both sides, each run reversed.

    `src` is the place of the first run's last element; `stream` sends whole lines past the cache.
    """

    dst: Ref
    src: Ref
    width: int
    length: Size
    count: Size = 1
    stream: bool = False


@dataclass(frozen=True, slots=True)
class FillRun:
    """Write the padding pattern over `count` bytes side by side."""

    dst: Ref
    count: Size


@dataclass(frozen=True, slots=True)
class Interleave:
    """Move rows x columns elements of `width` bytes where one side is a short digit that its other digit
    follows without a hole: side "dst" packs 2, 3, 4 or 8 rows together, side "src" takes as many columns
    apart. Side "" is any other pair of digits, too short for registers.

    `column_step` is the destination's stride along columns, `row_step` the source's along rows, in bytes.
    `lines` says where each line of the packed side starts, where its long digit is joined from several;
    `groups` where more of both begin that side "src" takes apart at the same time.
    """

    dst: Ref
    src: Ref
    width: int
    rows: Size
    columns: Size
    row_step: Size
    column_step: Size
    side: PackedSide
    stream: bool = False
    lines: PackedLines | None = None
    groups: RowGroups | None = None


@dataclass(frozen=True, slots=True)
class Transpose:
    """Move a box whose sides are contiguous along different digits, tile by tile, blocks in registers.

    `grid` says which rows, columns and tiles; None once sizes are arguments, when tables at run time say it.
    Blocks are stored at their places, or a panel is transposed into a buffer in cache first: see `Stage`, and
    `Block` for what moves at one time. `stream` sends whole aligned lines past the cache. `convert` is what
    becomes of an element on its way: "f32_to_bf16", "swap_u32", or "".
    """

    dst: Ref
    src: Ref
    width: int
    grid: TileGrid | None
    stage: Stage = ""
    stream: bool = False
    block: Block = "line"
    convert: str = ""


@dataclass(frozen=True, slots=True)
class Gather:
    """Put each segment of the destination together from pieces, in a buffer in the first cache, and send its
    whole aligned lines past the cache.

    `segments` says which pieces make which segment, padding among them; None once sizes are arguments, when
    tables at run time say it. It takes in all boxes of a copy, so that no line is written twice.
    """

    dst: Ref
    src: Ref
    segments: Segments | None
    stream: bool = True


@dataclass(frozen=True, slots=True)
class Elementwise:
    """Move `count` elements one by one, strides in units, through `value`; 1-D, the vectorizer's own.

    `prefetch`: with the lines that it reads it prefetches later ones, at a distance that the call states.
    """

    dst: Ref
    value: Expr
    count: Size
    dst_step: Size
    src_step: Size
    dst_element: Element
    src_element: Element
    prefetch: bool = field(default=False, repr=False)  # not in names of kernels: their arguments tell


@dataclass(frozen=True, slots=True)
class PackBits:
    """Join 8/bits elements of a byte each to one byte, low bits first, `count` bytes; src_step in bytes.

    That for each of `columns` columns, a byte apart in the source and `count` bytes in the destination.
    """

    dst: Ref
    src: Ref
    bits: int
    count: Size
    src_step: Size
    columns: Size = 1
    stream: bool = False


@dataclass(frozen=True, slots=True)
class UnpackBits:
    """Take `count` bytes apart into 8/bits elements of a byte each; dst_step in bytes.

    That for each of `columns` columns, `count` bytes apart in the source and a byte in the destination.
    """

    dst: Ref
    src: Ref
    bits: int
    count: Size
    dst_step: Size
    columns: Size = 1
    stream: bool = False


@dataclass(frozen=True, slots=True)
class For:
    """Run the body for axis = 0 … extent-1; axes count, offsets carry the strides."""

    axis: str
    extent: Size
    body: Stmt


@dataclass(frozen=True, slots=True)
class ForEach:
    """Run the body once for each entry of the offset tables, which are run-time data."""

    axis: str
    count: Size
    body: Stmt


Transfer: TypeAlias = (
    Store
    | CopyRun
    | CopyChunks
    | Reverse
    | FillRun
    | Interleave
    | Transpose
    | Gather
    | Elementwise
    | PackBits
    | UnpackBits
)
Stmt: TypeAlias = For | ForEach | Transfer


@dataclass(frozen=True, slots=True)
class LoopNest:
    """A perfect nest over buffers: one box of a copy. `loops` and `body` take it apart.

    `digits` are the box's digits before any pass, so that the verifier can judge what passes made of them.
    """

    buffers: tuple[Buffer, ...]
    body: Stmt
    digits: tuple[tuple[int, int, int], ...] = ()

    def buffer(self, name: str) -> Buffer:
        """The buffer of that name."""
        return next(b for b in self.buffers if b.name == name)

    @property
    def loops(self) -> tuple[For, ...]:
        """The counted loops, outermost first."""
        return tuple(s for s in _chain(self.body) if isinstance(s, For))

    @property
    def table_loop(self) -> ForEach | None:
        """The loop over offset tables, where there is one."""
        return next((s for s in _chain(self.body) if isinstance(s, ForEach)), None)

    @property
    def innermost(self) -> Transfer:
        """The statement inside all loops."""
        stmt: Stmt = self.body
        while isinstance(stmt, For | ForEach):
            stmt = stmt.body
        return stmt


def _chain(stmt: Stmt) -> Iterator[Stmt]:
    yield stmt
    while isinstance(stmt, For | ForEach):
        stmt = stmt.body
        yield stmt


def wrap(loops: tuple[For, ...], table: ForEach | None, inner: Transfer) -> Stmt:
    """The nest's body again from its parts: the table loop outermost, then the loops in order."""
    body: Stmt = inner
    for loop in reversed(loops):
        body = For(loop.axis, loop.extent, body)
    return ForEach(table.axis, table.count, body) if table else body


def refs(stmt: Transfer) -> tuple[Ref | None, Ref]:
    """(source, destination) of a statement; no source where it fills."""
    match stmt:
        case Store(ref, value) | Elementwise(ref, value):
            return (None if isinstance(value, Fill) else _load(value).ref), ref
        case FillRun(dst):
            return None, dst
        case CopyRun(dst, src) | CopyChunks(dst, src) | Reverse(dst, src) | Interleave(dst, src):
            return src, dst
        case Transpose(dst, src) | Gather(dst, src):
            return src, dst
        case PackBits(dst, src) | UnpackBits(dst, src):
            return src, dst


def line_table(stmt: Transfer) -> PackedLines | None:
    """The table of places that a transfer reads, where it reads one."""
    match stmt:
        case CopyChunks():
            return stmt.places
        case Interleave():
            return stmt.lines
    return None


def group_table(stmt: Transfer) -> RowGroups | None:
    """The table of groups of rows that a transfer reads, where it reads one."""
    return stmt.groups if isinstance(stmt, Interleave) else None


def _load(value: Expr) -> Load:
    if isinstance(value, Convert):
        return value.value
    if isinstance(value, Load):
        return value
    raise AssertionError("a fill has no load")
