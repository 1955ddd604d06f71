"""Transfers: how the innermost loops of a box run, as the schedule selects it.

A transfer is not loops: `passes/lower_copies` has the loops of each kind. Sizes are numbers until
`parametrize` turns them into names, whose values the kernel receives at run time. Offsets are in bytes, or in
bits for elements of packed storage that move one by one.
"""

from __future__ import annotations

from dataclasses import fields
from hashlib import sha256
from math import prod
from typing import TypeAlias, TypeVar

from codegen.ir.lines import LINE_BYTES
from codegen.ir.streams import Stream
from codegen.ir.strided_box import Element, Side
from codegen.schedule.directives import (
    Assemble,
    Directive,
    Groups,
    Reorder,
    Request,
    Stage,
    Table,
    Tail,
    Tile,
    Vectorize,
)
from codegen.schedule.offset_tables import (
    GROUP_TABLES,
    LINE_TABLE,
    OFFSET_TABLES,
    PART_TABLES,
    OffsetTable,
    RowGroups,
)
from codegen.schedule.panels import Panel
from codegen.schedule.segments import SEGMENT_TABLES, Segments
from codegen.schedule.transfer_loops import Loop, Size, int_size
from codegen.support.dataclasses import dataclass
from codegen.support.lookups import expect

D = TypeVar("D", bound=Directive)


@dataclass(frozen=True, slots=True)
class Moves:
    """Move elements, convert them, or write padding, along the innermost loops of a nest.

    for column in columns: for row in 2:  dst[4*column + 2*row] = src[2*column + row_src*row]    u16

    Codes of 1, 2 or 4 bits are packed into bytes, or unpacked, along the last loop, which has no stride on
    the packed side. In a nest that counts bits, they move one by one.

    loops       outermost first
    target      the elements that are written
    source      the elements that are read; None if the padding value is written
    convert     the names of both element types of a conversion, after "swap " if bytes are reversed first
    directives  how the loops run
    """

    loops: tuple[Loop, ...]
    target: Element
    source: Element | None
    convert: tuple[str, str] | None = None
    directives: tuple[Directive, ...] = ()

    def obeying(self, kind: type[D]) -> tuple[D, ...]:
        """The directives of a kind."""
        return tuple(x for x in self.directives if isinstance(x, kind))

    def axis(self, name: str) -> Loop:
        """The loop of an axis."""
        return expect((x for x in self.loops if x.axis == name), f"a loop over {name}", self.loops)

    @property
    def stream(self) -> bool:
        """Whether lines are stored past the cache."""
        return any(x.form != "aligned" for x in self.obeying(Stream))

    @property
    def staged(self) -> bool:
        """Whether tiles go through a panel."""
        return bool(self.obeying(Stage))

    @property
    def panel(self) -> Panel | None:
        """The panel of short result rows that tiles go through, if they do."""
        return next((x.panel for x in self.obeying(Stage)), None)

    @property
    def order(self) -> tuple[str, ...]:
        """The order of all loops, if they have been reordered."""
        return next((x.loops for x in self.obeying(Reorder)), ())

    @property
    def lanes(self) -> dict[str, int]:
        """The iterations of each loop that run at once."""
        return {axis: count for v in self.obeying(Vectorize) for axis, count in v.lanes}

    @property
    def around(self) -> tuple[Loop, ...]:
        """The loops around those that run as super-vectors, if loops have been reordered."""
        return tuple(x for x in self.loops if self.order and x.axis not in self.lanes)

    def tiles(self, axis: str) -> tuple[Tile, ...]:
        """The levels of blocks of an axis, the outermost first."""
        return tuple(x for x in self.obeying(Tile) if x.axis == axis)

    @property
    def outer_tiles(self) -> tuple[Tile, ...]:
        """The outermost level of each axis that has tiles."""
        return tuple(levels[0] for x in self.loops if (levels := self.tiles(x.axis)))

    @property
    def outer(self) -> tuple[str, ...]:
        """The loops over the outermost tiles and those around super-vectors, in order."""
        found = {x.axis for x in self.around if not self.tiles(x.axis)}
        found |= {tile.index for tile in self.outer_tiles}
        return tuple(name for name in self.order if name in found)

    @property
    def shared(self) -> str:
        """The loop that threads share, unless another one is around; "" if they share none."""
        return "".join([*self.order, *(x.axis for x in self.obeying(Assemble))][:1])

    @property
    def trips(self) -> int:
        """Iterations of the loop that threads share; sizes are numbers still."""
        panels = {tile.index: tile.count for tile in self.outer_tiles if tile.count}
        if self.shared in panels:
            return int_size(panels[self.shared])
        sizes = {tile.index: (tile.axis, int_size(tile.size)) for tile in self.outer_tiles}
        sizes |= {x.axis: (x.axis, x.rows * int_size(x.steps)) for x in self.obeying(Assemble)}
        axis, size = sizes.get(self.shared, (self.shared, 1))
        return -(-int_size(self.axis(axis).extent) // size)

    @property
    def panel_pitch(self) -> int:
        """Bytes from row to row of the panel: a line, then the tile's part of a result row."""
        return int_size(self.tiles("row")[0].size) * (self.target.bits // 8) + LINE_BYTES

    @property
    def panel_bytes(self) -> Size:
        """The size of the panel; 0 without one."""
        if self.panel:
            return self.panel.size_bytes
        if not self.staged:
            return 0
        columns = int_size(self.tiles("column")[0].size) if self.tiles("column") else self.lanes["column"]
        return columns * self.panel_pitch + LINE_BYTES

    @property
    def requests(self) -> bool:
        """Whether lines of the source are requested, and nothing is stored."""
        return bool(self.obeying(Request))

    @property
    def fills(self) -> bool:
        """Whether the padding value is written, and no source is read."""
        return self.source is None

    @property
    def copies(self) -> bool:
        """Whether elements of whole bytes are moved as they are."""
        return (
            self.convert is None and self.source is not None and min(self.source.bits, self.target.bits) >= 8
        )

    @property
    def goes_back(self) -> bool:
        """Whether the source is read backward along a loop."""
        return any(isinstance(x.src, int) and x.src < 0 for x in self.loops)

    @property
    def whole(self) -> frozenset[str]:
        """The axes of which super-vectors have all iterations, so that their extents are literals."""
        tails = {tail.axis for tail in self.obeying(Tail)}
        return frozenset(x.axis for x in self.loops if x.extent == self.lanes.get(x.axis)) - tails

    def packed(self, side: Side) -> tuple[str, ...]:
        """The axes whose elements follow each other on a side, most minor first.

        They end with the first axis whose extent is not a literal.
        """
        element = self.source if side == "src" else self.target
        if element is None:
            return ()
        # Codes in bytes follow each other along whole axes.
        found = [x.axis for x in self.loops if element.bits < 8 and x.axis in self.whole]
        step = element.bits * prod(int_size(x.extent) for x in self.loops if x.axis in found) // 8
        left = sorted((x for x in self.loops if x.axis not in found), key=lambda x: x.axis in self.whole)
        while following := next((x for x in left if x.stride(side) in (step, -step)), None):
            found.append(following.axis)
            left.remove(following)
            if following.axis not in self.whole:
                break
            step *= int_size(following.extent)
        return tuple(found)

    @property
    def reads_in_order(self) -> bool:
        """Whether super-vectors are read one after the other, to the end of the loop."""
        is_packed = len(self.packed("src")) == len(self.loops) and not self.obeying(Table)
        return is_packed and not self.goes_back and bool(self.obeying(Tail))


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


Transfer: TypeAlias = Moves | Gather


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
        return isinstance(self.transfer, Moves) and self.transfer.fills

    @property
    def scratch_bytes(self) -> Size:
        """The size of the panel or the buffer in scratch, which a call lends to the kernel; 0 without one."""
        match self.transfer:
            case Moves():
                return self.transfer.panel_bytes
            case Gather(buffer_bytes=size):
                return size
        return 0

    def __str__(self) -> str:
        loops = [f"entry in table of {self.entries}:"] * bool(self.entries)
        inner = self.transfer
        own = inner.loops if isinstance(inner, Moves) else ()
        loops += [_loop_text(x) for x in (*self.loops, *own)]
        lines = [f"{'    ' * depth}for {loop}" for depth, loop in enumerate(loops)]
        return "\n".join([*lines, f"{'    ' * len(loops)}{described(inner)}", ""])


def _loop_text(loop: Loop) -> str:
    """A loop as text."""
    sides = (f"{s} at {t}" if (t := loop.table(s)) else f"{s} += {loop.stride(s)}" for s in ("dst", "src"))
    return f"{loop.axis} in {loop.extent}, {', '.join(sides)}:"


KINDS: dict[type[Transfer], tuple[str, str]] = {
    Gather: ("gather", "gather"),
    Moves: ("elements", "copy"),
}
"""The names of kinds of transfers in text, and the prefixes of their kernels' names."""


def kernel_kind(transfer: Transfer) -> str:
    """The prefix of a transfer's kernel names."""
    match transfer:
        case Moves(source=None):
            return "fill"
        case Moves() if transfer.requests:
            return "request"
        case Moves() if transfer.order:
            return "transpose"
        case Moves() if transfer.obeying(Assemble):
            return "shuffle"
        case Moves(convert=(_, _)):
            return "convert"
    return KINDS[type(transfer)][1]


def structure_digest(nest: TransferNest, arguments: tuple[str, ...]) -> str:
    """A digest of what makes a kernel: a nest whose sizes are names, and the names of its arguments."""
    return sha256(repr((nest, arguments)).encode()).hexdigest()


def kernel_name(nest: TransferNest, digest: str) -> str:
    """A descriptive name of the kernel of a nest with that `structure_digest`; it is unique."""
    return f"{kernel_kind(nest.transfer)}_{digest[:12]}"


def described(transfer: Transfer) -> str:
    """A transfer as text: "streamed run: count 512"; fields that are the default are left out."""
    if isinstance(transfer, Moves):
        return _moves_text(transfer)
    values = ((f.name, getattr(transfer, f.name), f.default) for f in fields(transfer))
    shown = {name: value for name, value, default in values if value != default and name != "loops"}
    how = "streamed " if shown.pop("stream", None) else ""
    kind, _ = KINDS[type(transfer)]
    listed = ", ".join(f"{name.replace('_', ' ')} {_shown(value)}" for name, value in shown.items())
    return f"{how}{kind}: {listed}"


def _moves_text(moves: Moves) -> str:
    """bf16(f32 src): Vectorize(x=32), Tail("x", "shift", 8, 1)"""
    value = "padding"
    if moves.requests:
        return f"src: {', '.join(map(str, moves.directives))}"
    if moves.source:
        value = f"{moves.source.name} src"
        value = "{1}({0} src)".format(*moves.convert) if moves.convert else value
    return f"dst = {value}: {', '.join(map(str, moves.directives)) or 'element by element'}"


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


def offset_tables(stmt: Transfer) -> dict[str, OffsetTable]:
    """The tables of offsets that a transfer reads, by the names of their arguments."""
    steps: dict[str, Size | OffsetTable | None] = {}
    match stmt:
        case Moves():
            steps = {x.table_name: x.src_table or x.dst_table for x in stmt.loops}
            for table in stmt.obeying(Table):
                steps[LINE_TABLE] = table.offsets
            steps |= stmt.panel.tables if stmt.panel else {}
            for parts in stmt.obeying(Assemble):
                steps |= zip(PART_TABLES, parts.tables, strict=True)
    return {name: step for name, step in steps.items() if isinstance(step, OffsetTable)}


def group_table(stmt: Transfer) -> RowGroups | None:
    """The table of row groups that a transfer reads, or None."""
    return next((x.groups for x in stmt.obeying(Groups)), None) if isinstance(stmt, Moves) else None


def table_arguments(nest: TransferNest) -> frozenset[str]:
    """The arguments of a nest's kernel that are addresses of tables of 64-bit integers."""
    names = {*offset_tables(nest.transfer)}
    names |= {*OFFSET_TABLES} if nest.entries else set()
    names |= {*GROUP_TABLES} if group_table(nest.transfer) else set()
    names |= {*SEGMENT_TABLES} if isinstance(nest.transfer, Gather) else set()
    return frozenset(names)
