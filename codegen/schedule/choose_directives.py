"""Choose the inner loops of copies that transpose nothing, and how they run."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from codegen.ir.element_types import INTEGER_TYPES
from codegen.ir.instructions import instruction
from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.ir.packed_bits import COLUMNS
from codegen.ir.streams import Stream
from codegen.ir.strided_box import Axis, StridedBox
from codegen.schedule.choose_interleave import least_block
from codegen.schedule.directives import (
    REST,
    CopyBlock,
    Directive,
    Prefetch,
    Request,
    Stage,
    Table,
    Tail,
    Tile,
    Vectorize,
)
from codegen.schedule.limits import (
    PACKED_SHORT_BYTES,
    REVERSAL_STREAMED_BYTES,
    RUN_LONG_BYTES,
    RUN_SHORT_BYTES,
    SMALL_LEAST_COLUMNS,
    SMALL_ROWS,
)
from codegen.schedule.offset_tables import ENTRIES_ARGUMENT, OffsetTable
from codegen.schedule.schedule import Cut, Joined, Looped, PackedSide
from codegen.support.dataclasses import dataclass

WORD_BYTES = 8
"""Packed bytes of the super-vectors after the last full line."""

LEAST_CONVERTED, MOST_CONVERTED = 16, 32
"""Elements that are converted together: a line or more on one side."""

PREFETCH_BYTES, PREFETCH_CHUNKS = 256, 64
"""How far ahead lines of the source are requested: what is read next mostly follows there. In chunks where
more of them are streamed: 0.5 to 2 KiB."""

PACKED_PREFETCH_BYTES = 1024
"""Prefetch distance in the source of streamed packed bits."""

PREFETCH_COLUMNS = 256
"""The same for packed columns, in columns."""

ROW_BUFFER_BYTES = 512
"""Rows shorter than this lose more at both ends than full lines gain."""

ROW_PART_BYTES = 256
"""Bytes of each result row in scratch at one time."""

LINES = Vectorize((("x", LINE_BYTES),))
"""Lines of bytes."""


@dataclass(frozen=True, slots=True)
class InnerLoops(Looped):
    """Inner loops, before the loops around them are ordered, and cut into strips.

    loops, directives  as in a schedule
    streams    how lines are stored past the cache, and their own requests; () if the loops do not write full
               lines
    long       the axis that strips cut, if there is one
    unit       strips have a multiple of so many of its iterations
    cuts       as in a schedule: packed elements are cut into bytes
    in_parts   directives instead, if rows that are streamed begin inside lines: they go through scratch
    """

    loops: tuple[Joined, ...]
    directives: tuple[Directive, ...] = ()
    streams: tuple[Directive, ...] = ()
    long: str | None = None
    unit: int = 1
    cuts: tuple[Cut, ...] = ()
    in_parts: tuple[Directive, ...] = ()

    def directed(self, *, stream: bool, in_strips: bool = False) -> tuple[Directive, ...]:
        """The directives; a loop that streams lines copies no blocks, and has requests of its own.

        Strips are too short for blocks.
        """
        if not stream:
            return tuple(x for x in self.directives if not (in_strips and isinstance(x, CopyBlock)))
        kept = (x for x in self.directives if not isinstance(x, (CopyBlock, Prefetch)))
        return *kept, *self.streams


def chunks(box: StridedBox, axes: tuple[str, ...]) -> InnerLoops:
    """Chunks of a line that follow each other in the destination; a table holds their source offsets."""
    return replace(chunk_loops(box.width), loops=(Joined("x", axes, table=True),), long=axes[-1])


def chunk_loops(width: int) -> InnerLoops:
    """The directives of chunks of so many bytes, whose loop a table has."""
    lines = Vectorize((("x", LINE_BYTES // width),)), Tail("x", "narrow", sizes=(1,))
    near, far = Prefetch("x", PREFETCH_BYTES), Prefetch("x", PREFETCH_BYTES, chunks=PREFETCH_CHUNKS)
    return InnerLoops((), (*lines, near), (Stream("full"), far))


def run(box: StridedBox, axis: Axis) -> InnerLoops:
    """The bytes of elements that are contiguous on both sides, a line at a time.

    Runs of full lines are often adjacent; others need a size worth their ends. Runs at table entries have one
    form, in which later entries are prefetched.
    """
    streams: tuple[Directive, ...] = (Stream("headed"),)
    if not box.entries:
        streams = Stream("full"), Stream("headed", RUN_SHORT_BYTES), Prefetch("x", PREFETCH_BYTES)
    how = LINES, Tail("x", "shift", sizes=(REST,)), CopyBlock(RUN_LONG_BYTES)
    return InnerLoops((Joined("x", (axis.name,), in_bytes=True),), how, streams, axis.name)


def later_entries(box: StridedBox, schedule: Looped) -> tuple[Directive, ...]:
    """The requests for later entries of the tables around a box, if lines are streamed."""
    return (Prefetch("entry", ENTRIES_ARGUMENT),) if box.entries and schedule.stream else ()


def requests(axis: str) -> InnerLoops:
    """The lines of bytes that are contiguous in the source, which a later copy reads."""
    return InnerLoops((Joined("x", (axis,), in_bytes=True),), (Request(), LINES))


def fill(box: StridedBox, axis: Axis) -> InnerLoops:
    """A multiple of the repeated element, a line at a time; a line in the middle of it would be wrong."""
    unit = 8 // min(8, box.target.bits)
    how = LINES, Tail("x", "narrow", sizes=(REST,))
    return InnerLoops((Joined("x", (axis.name,), in_bytes=True),), how, (), axis.name, unit)


def reversal(box: StridedBox, axis: Axis) -> InnerLoops:
    """A run that is read backward."""
    line, lane = LINE_BYTES // box.width, LANE_BYTES // box.width
    lines = Vectorize((("x", line),)), Tail("x", "shift", sizes=(lane, 1) if lane > 1 else (1,))
    streams = (Stream("headed", REVERSAL_STREAMED_BYTES // box.width),)
    return InnerLoops((Joined("x", (axis.name,)),), lines, streams, axis.name)


def short_reversals(box: StridedBox, axis: Axis, groups: Axis) -> InnerLoops:
    """Short runs that are read backward, and follow each other: as many as fill a lane.

    A super-vector that ends with a part of a run is stored completely. The next one overwrites that part.
    """
    lane = LANE_BYTES // box.width
    lanes = Vectorize((("group", lane // axis.extent), ("x", axis.extent)))
    tails = [Tail("group", "narrow", sizes=(1,))] * (lane > axis.extent)
    loops = Joined("group", (groups.name,)), Joined("x", (axis.name,))
    return InnerLoops(loops, (lanes, *tails), (), groups.name)


def packed_rows(
    box: StridedBox, column: Axis, row: Axis, packed: PackedSide, joined: tuple[str, ...]
) -> InnerLoops:
    """A few rows that are packed together on one side: blocks of a line of each, then narrower ones.

    Parts of deinterleaved rows that do not begin lines go through scratch. If all rows fit in a block, they
    fill lines one after the other.

    joined  digits that follow the long one. The packed side, where they leave gaps between lines, has a table
            of the lines' offsets then; each row has a line or more
    """
    names = ("column", "row") if packed == "dst" else ("row", "column")
    long, short = (column, row) if packed == "dst" else (row, column)
    loops = Joined(names[0], (long.name, *joined)), Joined(names[1], (short.name,))
    last = joined[-1] if joined else long.name
    if joined:
        lanes = Vectorize(((names[0], LINE_BYTES // box.width), (names[1], short.extent)))
        table = Table("dst" if packed == "dst" else "src", OffsetTable())
        streams = (Stream("full" if packed == "dst" else "begun"),)
        parts = _in_parts(box, loops, lanes, table) if packed == "src" else ()
        unit = least_block(short.extent, box.width)
        clamped = lanes, Tail(names[0], "clamp"), table
        return InnerLoops(loops, clamped, streams, last, unit, in_parts=parts)
    count, size = short.extent, long.extent * box.width
    shapes = instruction("interleaved").shapes[8 * box.width]
    in_lines = packed == "src" and column.dst == size and count * size % LINE_BYTES == 0
    unit = least_block(count, box.width)
    if in_lines and (count, long.extent) in shapes:
        whole = Vectorize(((names[0], long.extent), (names[1], count)))
        return InnerLoops(loops, (whole,), (Stream("full"),), last, long.extent)
    line, *narrower = (columns for rows, columns in shapes if rows == count)
    lanes = Vectorize(((names[0], line), (names[1], count)))
    parts = _in_parts(box, loops, lanes, Prefetch("tile", 1)) if packed == "src" else ()
    how = lanes, Tail(names[0], "shift", (*narrower, 1))
    return InnerLoops(loops, how, (Stream("begun"),), last, unit, in_parts=parts)


def _in_parts(
    box: StridedBox, loops: tuple[Joined, ...], lanes: Vectorize, other: Directive
) -> tuple[Directive, ...]:
    """The directives of rows whose parts go through scratch, unless they are short; and another one."""
    row, width = loops[0], box.target.bits // 8
    if prod(box.axis(name).extent for name in row.axes) * width < ROW_BUFFER_BYTES:
        return ()
    tile = Tile(row.name, ROW_PART_BYTES // width)
    return tile, Stage(), Stream("headed"), lanes, Tail(row.name, "clamp"), other


def small_blocks(box: StridedBox, column: str, row: str) -> InnerLoops:
    """Digits that are too short for registers, in blocks of 64 bytes of 64 source rows that stay in cache."""
    wide = max(LINE_BYTES // box.width, SMALL_LEAST_COLUMNS)
    loops = Joined("column", (column,)), Joined("row", (row,))
    return InnerLoops(loops, (Tile("column", wide), Tile("row", SMALL_ROWS)), (), row)


def elements(box: StridedBox) -> InnerLoops:
    """Single elements; super-vectors of them if they are contiguous and need more than resizing."""
    axes, how = box.axes[-1:], tuple[Directive, ...]()
    if _converts_in_registers(box, axes):
        narrowest = min(box.width, box.source_width)
        lanes = min(max(LINE_BYTES // narrowest, LEAST_CONVERTED), MOST_CONVERTED)
        how = Vectorize((("x", lanes),)), Tail("x", "shift", sizes=(8, 1))
    names = tuple(x.name for x in axes)
    return InnerLoops((Joined("x", names),), how, (), next(iter(names), None))


def _converts_in_registers(box: StridedBox, axes: tuple[Axis, ...]) -> bool:
    """Whether elements are contiguous on both sides and converted; LLVM vectorizes integers by itself."""
    if box.swap or box.conversion is None or {*box.conversion} <= {*INTEGER_TYPES} or box.unit_bits == 1:
        return False
    return [(x.src, x.dst) for x in axes] == [(box.source_width, box.width)]


def codes(box: StridedBox, packed: Axis) -> InnerLoops:
    """Codes of a few bits in bytes, contiguous or some bytes apart: the codes of a byte are a loop."""
    packs, bits = box.target.bits < 8, min(box.source_width, box.width)
    group, bytes_of = 8 // bits, f"byte_of_{packed.name}"
    loops = Joined("x", (bytes_of,)), Joined("code", (packed.name,))
    cuts = (Cut(packed.name, group, bytes_of),)
    if packed.stride("src" if packs else "dst") != 8:
        apart = (Vectorize((("x", 1), ("code", group))),)
        return InnerLoops(loops, apart, (), packed.name, group, cuts)
    line = LINE_BYTES if packs else LINE_BYTES // group
    sizes = (WORD_BYTES, REST) if line > WORD_BYTES else (REST,)
    lines = Vectorize((("x", line), ("code", group))), Tail("x", "shift", sizes)
    headed = Stream("headed", PACKED_SHORT_BYTES // (1 if packs else group))
    return InnerLoops(loops, lines, (headed, Prefetch("x", PACKED_PREFETCH_BYTES)), packed.name, group, cuts)


def code_columns(box: StridedBox, packed: Axis, column: Axis) -> InnerLoops:
    """The same in columns that follow each other on both sides."""
    packs, (_, few, many) = box.target.bits < 8, COLUMNS
    distance = PREFETCH_COLUMNS * (1 if packs else packed.extent * min(box.source_width, box.width) // 8)
    lanes = Vectorize((("x", many), ("code", packed.extent)))
    loops = Joined("x", (column.name,)), Joined("code", (packed.name,))
    parts = () if packs else _in_parts(box, loops, lanes, Prefetch("tile", 1))
    how = lanes, Tail("x", "clamp", sizes=(few, 1))
    streams = Stream("begun"), Prefetch("x", distance)
    return InnerLoops(loops, how, streams, column.name, few, in_parts=parts)
