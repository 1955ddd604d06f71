"""Transfers: how the innermost loops of a box run, as the schedule selects it.

A transfer is not loops: `passes/lower_copies` has the loops of each kind. Sizes are numbers until
`parametrize` turns them into names, whose values the kernel receives at run time. Offsets are in bytes, or in
bits for elements of packed storage that move one by one.
"""

from __future__ import annotations

from dataclasses import field, fields
from hashlib import sha256
from typing import TypeAlias

from codegen.ir.instructions import instruction
from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Element
from codegen.schedule.offset_tables import GROUP_TABLES, LINE_TABLE, OFFSET_TABLES, OffsetTable, RowGroups
from codegen.schedule.schedule import PackedSide, RunSchedule, TileSchedule
from codegen.schedule.segments import SEGMENT_TABLES, Segments
from codegen.schedule.shuffles import PART_OFFSETS, PART_ORDERS, Shuffle
from codegen.schedule.transfer_loops import Loop, Size
from codegen.schedule.transposes import TransposeRuns, TransposeTiles
from codegen.support.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CopyRun:
    """Move `count` bytes that are contiguous on both sides; `stream` writes full lines past the cache."""

    count: Size
    stream: bool = False
    schedule: RunSchedule = field(default=RunSchedule())


@dataclass(frozen=True, slots=True)
class CopyChunks:
    """Write `count` contiguous chunks of `width` bytes, each from its own source offset.

    `offsets` holds them; `stream` writes full lines past the cache.
    """

    width: int
    count: Size
    offsets: OffsetTable
    stream: bool = False
    schedule: RunSchedule = field(default=RunSchedule())


@dataclass(frozen=True, slots=True)
class Reverse:
    """Reverse each of `count` runs of `length` elements of `width` bytes; runs are contiguous on both sides.

    The source offset is that of the first run's last element; `stream` writes full lines past the cache.
    """

    width: int
    length: Size
    count: Size = 1
    stream: bool = False


@dataclass(frozen=True, slots=True)
class FillRun:
    """Write the padding pattern over `count` contiguous bytes."""

    count: Size

    @property
    def stream(self) -> bool:
        """Padding is stored through the cache."""
        return False


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

    width: int
    rows: Size
    columns: Size
    row_step: Size
    column_step: Size
    side: PackedSide
    stream: bool = False
    lines: OffsetTable | None = None
    groups: RowGroups | None = None

    @property
    def is_one_block(self) -> bool:
        """Whether registers hold all deinterleaved rows, which fill lines one after the other.

        The lines are contiguous on both sides. Their sizes are literals of the kernel.

        for column in 4: for row in 16:  dst[16*column + row] = src[column + 4*row]      64 elements of a byte
        """
        if self.side != "src" or self.lines or self.groups:
            return False
        if not isinstance(self.rows, int) or not isinstance(self.columns, int):
            return False
        size = self.rows * self.width
        in_lines = self.column_step == size and self.columns * size % LINE_BYTES == 0
        return in_lines and (self.columns, self.rows) in instruction("interleaved").shapes[8 * self.width]

    @property
    def reads_in_order(self) -> bool:
        """Whether contiguous rows are deinterleaved with streaming stores, in blocks that are prefetched."""
        in_order = self.stream and self.side == "src" and not self.lines and not self.groups
        return in_order and not self.is_one_block


@dataclass(frozen=True, slots=True)
class Gather:
    """Gather the chunks of each destination segment in an L1 buffer; write full aligned lines past the cache.

    `segments` lists the chunks of each segment, including padding; it is None once sizes are arguments, which
    come as run-time tables. It covers all boxes of a copy, so that no line is written twice. The buffer has
    `buffer_bytes`.
    """

    buffer_bytes: Size
    segments: Segments | None
    stream: bool = True


@dataclass(frozen=True, slots=True)
class Elementwise:
    """Move `count` elements one by one, or fill them with the padding value; steps are in units of the box.

    `source` is None for a fill. With `convert`, the names of both element types, elements are converted; a
    "swap " prefix reverses their bytes first. `prefetch` makes it prefetch source lines ahead, at a distance
    that the call passes.
    """

    count: Size
    dst_step: Size
    src_step: Size
    target: Element
    source: Element | None
    convert: tuple[str, str] | None = None
    prefetch: bool = False

    @property
    def stream(self) -> bool:
        """Elements are stored through the cache."""
        return False


@dataclass(frozen=True, slots=True)
class PackBits:
    """Pack 8/bits one-byte elements into each of `count` bytes, low bits first; src_step in bytes.

    This repeats for `columns` columns, 1 byte apart in the source and `count` bytes apart in the destination.
    """

    bits: int
    count: Size
    src_step: Size
    columns: Size = 1
    stream: bool = False
    schedule: RunSchedule = field(default=RunSchedule())


@dataclass(frozen=True, slots=True)
class UnpackBits:
    """Unpack each of `count` bytes into 8/bits one-byte elements; dst_step in bytes.

    This repeats for `columns` columns, `count` bytes apart in the source and 1 byte apart in the destination.
    """

    bits: int
    count: Size
    dst_step: Size
    columns: Size = 1
    stream: bool = False
    schedule: RunSchedule = field(default=RunSchedule())


@dataclass(frozen=True, slots=True)
class RequestRun:
    """Request the lines of `count` contiguous bytes of the source, which a later copy reads."""

    count: Size

    @property
    def stream(self) -> bool:
        """Nothing is stored."""
        return False


Transfer: TypeAlias = (
    CopyRun
    | CopyChunks
    | RequestRun
    | Reverse
    | FillRun
    | Interleave
    | Shuffle
    | TransposeTiles
    | TransposeRuns
    | Gather
    | Elementwise
    | PackBits
    | UnpackBits
)


@dataclass(frozen=True, slots=True)
class TransferNest:
    """A box as a few loops around one transfer.

    loops      outermost first; threads share the iterations of the first one
    transfer   takes the other loops
    entries    entries of the tables of offsets around the loops; 0 without tables
    unit_bits  8 if offsets are in bytes, 1 if they are in bits
    """

    loops: tuple[Loop, ...]
    transfer: Transfer
    entries: Size = 0
    unit_bits: int = 8

    @property
    def fills(self) -> bool:
        """Whether the padding value is written, and no source is read."""
        inner = self.transfer
        return isinstance(inner, FillRun) or (isinstance(inner, Elementwise) and inner.source is None)

    @property
    def scratch_bytes(self) -> Size:
        """The size of the panel or the buffer in scratch, which a call lends to the kernel; 0 without one."""
        match self.transfer:
            case TransposeTiles() | TransposeRuns() as t:
                return t.panel_bytes
            case Gather(buffer_bytes=size):
                return size
        return 0

    def __str__(self) -> str:
        loops = [f"entry in table of {self.entries}:"] * bool(self.entries)
        inner = self.transfer
        own = inner.loops if isinstance(inner, TransposeTiles | TransposeRuns) else ()
        loops += [_loop_text(x) for x in (*self.loops, *own)]
        lines = [f"{'    ' * depth}for {loop}" for depth, loop in enumerate(loops)]
        return "\n".join([*lines, f"{'    ' * len(loops)}{described(inner)}", ""])


def _loop_text(loop: Loop) -> str:
    """A loop as text; the strides of loops over tiles depend on the tile, which the transfer has."""
    if loop.axis in ("rows", "columns", "layers"):
        return f"each tile of {loop.axis}:"
    return f"{loop.axis} in {loop.extent}, dst += {loop.dst}, src += {loop.src}:"


KINDS: dict[type[Transfer], tuple[str, str]] = {
    CopyChunks: ("chunks", "copy_chunks"),
    CopyRun: ("run", "copy_runs"),
    Elementwise: ("elements", "copy_elements"),
    FillRun: ("padding", "fill_runs"),
    Gather: ("gather", "gather"),
    Interleave: ("interleave", "interleave"),
    PackBits: ("pack bits", "pack_bits"),
    RequestRun: ("requests", "request_lines"),
    Reverse: ("reverse", "reverse_runs"),
    Shuffle: ("shuffle", "shuffle"),
    TransposeRuns: ("transpose of short rows", "transpose"),
    TransposeTiles: ("transpose", "transpose"),
    UnpackBits: ("unpack bits", "unpack_bits"),
}
"""The names of kinds of transfers in text, and the prefixes of their kernels' names."""


def kernel_kind(transfer: Transfer) -> str:
    """The prefix of a transfer's kernel names; interleaves include the side on which rows are packed."""
    if not isinstance(transfer, Interleave):
        return KINDS[type(transfer)][1]
    name = {"dst": "interleave", "src": "deinterleave", "": "transpose_small"}[transfer.side]
    if transfer.groups:
        return f"{name}_groups"
    return f"{name}_lines" if transfer.lines else name


def structure_digest(nest: TransferNest, arguments: tuple[str, ...]) -> str:
    """A digest of what makes a kernel: a nest whose sizes are names, and the names of its arguments."""
    return sha256(repr((nest, arguments)).encode()).hexdigest()


def kernel_name(nest: TransferNest, digest: str) -> str:
    """A descriptive name of the kernel of a nest with that `structure_digest`; it is unique."""
    return f"{kernel_kind(nest.transfer)}_{digest[:12]}"


def described(transfer: Transfer) -> str:
    """A transfer as text: "streamed run: count 512"; fields that are the default are left out."""
    shown = _given(transfer)
    schedule = shown.pop("schedule", None)
    shown.pop("loops", None)
    if isinstance(schedule, RunSchedule):
        shown |= _given(schedule)
    if isinstance(schedule, TileSchedule):
        shown |= {"order": schedule.order} if isinstance(transfer, TransposeTiles) else {}
        shown |= _given(schedule)
        shown["staged"] = shown.pop("stage", "") == "rows"
    how = [word for word, key in (("streamed ", "stream"), ("staged ", "staged")) if shown.pop(key, None)]
    kind, _ = KINDS[type(transfer)]
    listed = ", ".join(f"{name.replace('_', ' ')} {_shown(value)}" for name, value in shown.items())
    return f"{''.join(how)}{kind}: {listed}"


def _given(record: Transfer | TileSchedule | RunSchedule) -> dict[str, object]:
    """The fields that are not the default, by name."""
    values = ((f.name, getattr(record, f.name), f.default) for f in fields(record))
    return {name: value for name, value, default in values if value != default}


def _shown(value: object) -> str:
    """A field as text: loops by their axes, a tile as 96x64."""
    match value:
        case (int(), int()):
            return "x".join(map(str, value))
        case (str(source), str(target)):
            return f"{source} to {target}"
        case Element(name, _):
            return name
    return str(value)


ROW_TABLE, COLUMN_TABLE = "row_offsets", "column_offsets"
"""The arguments of a kernel for the offsets of joined rows and columns."""

RUN_OFFSETS, RUN_PANEL_OFFSETS = "run_offsets", "run_panel_offsets"
"""The arguments for the columns and runs of a panel of short result rows."""


def offset_tables(stmt: Transfer) -> dict[str, OffsetTable]:
    """The tables of offsets that a transfer reads, by the names of their arguments."""
    steps: dict[str, Size | OffsetTable | None] = {}
    match stmt:
        case CopyChunks():
            steps = {LINE_TABLE: stmt.offsets}
        case Interleave():
            steps = {LINE_TABLE: stmt.lines}
        case Shuffle():
            steps = {PART_OFFSETS: stmt.offsets, PART_ORDERS: stmt.orders}
        case TransposeTiles():
            steps = {ROW_TABLE: stmt.row_step, COLUMN_TABLE: stmt.column_step}
        case TransposeRuns():
            steps = {ROW_TABLE: stmt.row_step, COLUMN_TABLE: stmt.panel_step}
            steps |= {RUN_OFFSETS: stmt.run_offsets, RUN_PANEL_OFFSETS: stmt.run_panel_offsets}
    return {name: step for name, step in steps.items() if isinstance(step, OffsetTable)}


def group_table(stmt: Transfer) -> RowGroups | None:
    """The table of row groups that a transfer reads, or None."""
    return stmt.groups if isinstance(stmt, Interleave) else None


def table_arguments(nest: TransferNest) -> frozenset[str]:
    """The arguments of a nest's kernel that are addresses of tables of 64-bit integers."""
    names = {*offset_tables(nest.transfer)}
    names |= {*OFFSET_TABLES} if nest.entries else set()
    names |= {*GROUP_TABLES} if group_table(nest.transfer) else set()
    names |= {*SEGMENT_TABLES} if isinstance(nest.transfer, Gather) else set()
    return frozenset(names)
