"""The IR of copies on one page: sizes, references, expressions, statements, the nest.

    for i in 125: for j in 128:                     For, For
        dst[4096*i + 4*j] = src[1200*i + 4*j]       Store(Ref, Load(Ref))

Offsets are in the unit of the buffer (bytes, or bits for a packed side). A size is an int, or a `Param`: a
name whose value the kernel receives at run time. The statements after `Store` are transfers, with which
super-vectorization replaces the innermost loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from codegen.ir.copies.segments import Segments
from codegen.ir.copies.tiles import Block, BlockOrder, PackedLines, RowGroups, Stage, TileGrid
from codegen.ir.lines import LINE_BYTES

Side: TypeAlias = Literal["dst", "src"]
PackedSide: TypeAlias = Side | Literal[""]
"""The side on which an interleave packs short rows together; "" if neither."""


@dataclass(frozen=True, slots=True)
class Param:
    """A size that is known when the kernel runs."""

    name: str


Size: TypeAlias = int | Param


@dataclass(frozen=True, slots=True)
class Element:
    """The element type of a buffer: a type name ("u16", "bf16", "s4") and the bits per element in storage."""

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
    """An offset in a buffer: const + sum of stride * axis + sum of table[axis]."""

    buffer: str
    const: Size
    terms: tuple[tuple[str, Size], ...]
    tables: tuple[tuple[str, str], ...] = ()

    def stride(self, axis: str) -> Size:
        """The stride of an axis; 0 if the axis does not occur."""
        return dict(self.terms).get(axis, 0)


@dataclass(frozen=True, slots=True)
class Load:
    """The bits of the element at an offset."""

    ref: Ref


@dataclass(frozen=True, slots=True)
class Fill:
    """The padding value, a run-time argument of the kernel."""


@dataclass(frozen=True, slots=True)
class Convert:
    """A value of element type `source` converted to `target`; a "swap " prefix reverses the bytes first."""

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
    """Move `count` bytes that are contiguous on both sides; `stream` writes full lines past the cache."""

    dst: Ref
    src: Ref
    count: Size
    stream: bool = False


@dataclass(frozen=True, slots=True)
class CopyChunks:
    """Write `count` contiguous chunks of `width` bytes, each from its own source offset.

    `places` holds these offsets; `stream` writes full lines past the cache.
    """

    dst: Ref
    src: Ref
    width: int
    count: Size
    places: PackedLines
    stream: bool = False


@dataclass(frozen=True, slots=True)
class Reverse:
    """Reverse each of `count` runs of `length` elements of `width` bytes; runs are contiguous on both sides.

    `src` is the offset of the first run's last element; `stream` writes full lines past the cache.
    """

    dst: Ref
    src: Ref
    width: int
    length: Size
    count: Size = 1
    stream: bool = False


@dataclass(frozen=True, slots=True)
class FillRun:
    """Write the padding pattern over `count` contiguous bytes."""

    dst: Ref
    count: Size


@dataclass(frozen=True, slots=True)
class Interleave:
    """Move rows x columns elements of `width` bytes between a packed side and one with separate rows.

    On the packed side, a short digit is followed by the other digit without a gap: side "dst" interleaves 2,
    3, 4 or 8 rows, side "src" deinterleaves as many columns. Side "" is any other pair of digits, too short
    for registers.

    `column_step` is the destination's stride along columns, `row_step` the source's along rows, in bytes.
    `lines` holds the offset of each line of the packed side if its long digit is joined from several.
    `groups` holds the offsets on both sides of groups that side "src" deinterleaves at the same time.
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
    """Move a box whose sides are contiguous along different digits, tile by tile, in register blocks.

    `grid` describes rows, columns and tiles; it is None once sizes are arguments, which come as run-time
    tables. A panel is transposed into a buffer in cache first: see `Stage`, and `Block` for the shape of a
    block. `stream` writes full aligned lines past the cache. `convert` names
    the conversion of each element: "f32_to_bf16", "swap_u32", or "".
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
class TileLoop:
    """A loop around the blocks of a transpose: over tiles of "rows" or "columns", or over another digit.

    The extent and the strides, in bytes, are those of another digit.
    """

    axis: str
    extent: Size = 1
    src: Size = 0
    dst: Size = 0


@dataclass(frozen=True, slots=True)
class LaneReads:
    """Which blocks may read a full lane of each row, although rows are shorter.

    A lane that begins at the end of the source reads beyond it. While the source offset of the other digits
    is less than `open_offset`, every block may. Otherwise, all may but those that begin at a row from
    `closed_start` on and before `closed_stop`.
    """

    closed_start: Size
    closed_stop: Size
    open_offset: Size


@dataclass(frozen=True, slots=True)
class TransposeTiles:
    """Transpose rows x columns elements of `width` bytes, tile by tile, in register blocks.

    Element (r, c) is read at row_step * r + source_width * c and stored at column_step * c + width * r, in
    bytes. A step is a table of offsets instead where several digits are joined. `order` is the order of the
    blocks in a tile: "rows" moves along a row of blocks first, "diagonals" also changes rows with each block.

    If `staged`, a tile goes through a panel in cache, from which full lines are stored wherever result rows
    begin. The innermost loop is then the one over tiles of rows.

    With `convert`, the source and the target as in `Convert`, each element is converted. Otherwise both
    widths are the same.

    With `lanes`, there are fewer columns than a block has: blocks read lanes, of which `columns` are stored.
    Blocks that may not are moved element by element.
    """

    dst: Ref
    src: Ref
    source_width: int
    width: int
    rows: Size
    columns: Size
    row_step: Size | PackedLines
    column_step: Size | PackedLines
    loops: tuple[TileLoop, ...]
    tile: tuple[int, int]
    block: tuple[int, int]
    order: BlockOrder
    stream: bool = False
    prefetch_bytes: int = 0
    staged: bool = False
    lanes: LaneReads | None = None
    convert: tuple[str, str] | None = None

    @property
    def panel_pitch(self) -> int:
        """Bytes from row to row of the panel: a line, then the tile's part of a result row."""
        return self.tile[0] * self.width + LINE_BYTES

    @property
    def panel_bytes(self) -> int:
        """The size of the panel; 0 without one."""
        return self.tile[1] * self.panel_pitch + LINE_BYTES if self.staged else 0

    @property
    def trips(self) -> int:
        """Iterations of the first loop; sizes are numbers still."""
        first = self.loops[0]
        sizes = {"rows": (self.rows, self.tile[0]), "columns": (self.columns, self.tile[1])}
        count, step = sizes.get(first.axis, (first.extent, 1))
        if not isinstance(count, int):
            raise AssertionError(f"expected a number of {first.axis}, got {count}")
        return -(-count // step)


@dataclass(frozen=True, slots=True)
class Gather:
    """Gather the chunks of each destination segment in an L1 buffer; write full aligned lines past the cache.

    `segments` lists the chunks of each segment, including padding; it is None once sizes are arguments, which
    come as run-time tables. It covers all boxes of a copy, so that no line is written twice.
    """

    dst: Ref
    src: Ref
    segments: Segments | None
    stream: bool = True


@dataclass(frozen=True, slots=True)
class Elementwise:
    """Store `value` for each of `count` elements, strides in buffer units; a 1-D loop that LLVM vectorizes.

    `prefetch` makes it prefetch source lines ahead, at a distance that the call passes.
    """

    dst: Ref
    value: Expr
    count: Size
    dst_step: Size
    src_step: Size
    dst_element: Element
    src_element: Element
    prefetch: bool = field(default=False, repr=False)  # not in kernel names: their arguments distinguish it


@dataclass(frozen=True, slots=True)
class PackBits:
    """Pack 8/bits one-byte elements into each of `count` bytes, low bits first; src_step in bytes.

    This repeats for `columns` columns, 1 byte apart in the source and `count` bytes apart in the destination.
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
    """Unpack each of `count` bytes into 8/bits one-byte elements; dst_step in bytes.

    This repeats for `columns` columns, `count` bytes apart in the source and 1 byte apart in the destination.
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
    """Run the body for axis = 0 … extent-1; strides are in the offsets, not in the axis."""

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
    | TransposeTiles
    | Gather
    | Elementwise
    | PackBits
    | UnpackBits
)
Stmt: TypeAlias = For | ForEach | Transfer


@dataclass(frozen=True, slots=True)
class LoopNest:
    """A perfect loop nest over buffers: one box of a copy.

    `digits` are the box's digits before any pass, for the verifier to check the passes against.
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
        """The loop over offset tables, or None."""
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
    """The body of a nest from its parts: the table loop outermost, then the loops in order."""
    body: Stmt = inner
    for loop in reversed(loops):
        body = For(loop.axis, loop.extent, body)
    return ForEach(table.axis, table.count, body) if table else body


def refs(stmt: Transfer) -> tuple[Ref | None, Ref]:
    """(source, destination) of a statement; a fill has no source."""
    match stmt:
        case Store(ref, value) | Elementwise(ref, value):
            return (None if isinstance(value, Fill) else _load(value).ref), ref
        case FillRun(dst):
            return None, dst
        case CopyRun(dst, src) | CopyChunks(dst, src) | Reverse(dst, src) | Interleave(dst, src):
            return src, dst
        case Transpose(dst, src) | TransposeTiles(dst, src) | Gather(dst, src):
            return src, dst
        case PackBits(dst, src) | UnpackBits(dst, src):
            return src, dst


ROW_TABLE, COLUMN_TABLE = "row_offsets", "column_offsets"
"""The arguments of a kernel for the offsets of joined rows and columns."""


def joined_tables(stmt: Transfer) -> dict[str, PackedLines]:
    """The tables of joined rows and columns that a transpose reads, by argument name."""
    if not isinstance(stmt, TransposeTiles):
        return {}
    steps = {ROW_TABLE: stmt.row_step, COLUMN_TABLE: stmt.column_step}
    return {name: step for name, step in steps.items() if isinstance(step, PackedLines)}


def line_table(stmt: Transfer) -> PackedLines | None:
    """The table of offsets that a transfer reads, or None."""
    match stmt:
        case CopyChunks():
            return stmt.places
        case Interleave():
            return stmt.lines
    return None


def group_table(stmt: Transfer) -> RowGroups | None:
    """The table of row groups that a transfer reads, or None."""
    return stmt.groups if isinstance(stmt, Interleave) else None


def _load(value: Expr) -> Load:
    if isinstance(value, Convert):
        return value.value
    if isinstance(value, Load):
        return value
    raise AssertionError("a fill has no load")
