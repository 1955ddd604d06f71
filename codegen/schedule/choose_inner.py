"""Choose which loops of a box are the inner ones, and what they do."""

from __future__ import annotations

from typing import TypeAlias

from codegen.ir.instructions import is_instruction, takes
from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Axis, Side, StridedBox
from codegen.schedule.choose_interleave import joined_axes
from codegen.schedule.schedule import Mode, PackedSide

Selection: TypeAlias = tuple[Mode, tuple[str, ...], PackedSide]
"""The mode, inner loops and interleave side of a schedule."""

SHORT_CHUNKS = 8
"""A loop longer than this does not need a table."""

MOST_CHUNKS = 1 << 10
"""Maximum number of chunks in one table: 8 KiB."""

CHUNKED_BYTES = 1 << 17
"""Boxes smaller than this are not worth a table of chunks and a kernel that reads it."""


def inner_loops(box: StridedBox, *, past_cache: bool) -> Selection:
    """The inner loops that move the widest registers."""
    if box.unit_bits == 1:
        return _packed_loops(box)
    width, row, column = box.width, box.contiguous("dst"), box.contiguous("src")
    if box.converts:
        if row is None or column is None or row is column:
            return "elements", _minor_axis(box), ""
        return "transpose", (column.name, row.name), ""
    if box.source is None:
        return ("fill", (row.name,), "") if row else ("elements", _minor_axis(box), "")
    is_reversed = row is not None and row.src == -width
    if row is None or column is None or is_reversed:
        chunks = _chunk_axes(box, row) if row else ()
        if row and is_reversed and not chunks and takes("reversed_elements", 8 * width):
            return "reverse", _reversed_runs(box, row, width), ""
        return ("chunks", chunks, "") if chunks else ("elements", _minor_axis(box), "")
    if row is column:
        return "run", (row.name,), ""
    rows, columns = row.extent, column.extent
    interleave: PackedSide = ""
    if takes(f"deinterleaved_{rows}", 8 * width) and column.dst == rows * width:
        interleave = "dst"
    elif takes(f"deinterleaved_{columns}", 8 * width) and row.src == columns * width:
        interleave = "src"
    long, short = (column, row) if interleave == "dst" else (row, column)
    joined = joined_axes(box, long, short, interleave, past_cache=past_cache) if interleave else ()
    return "interleave" if interleave else "transpose", (column.name, row.name, *joined), interleave


def _reversed_runs(box: StridedBox, row: Axis, width: int) -> tuple[str, ...]:
    """The reversed loop and, if its runs are short, the loop along which they are contiguous."""
    size = row.extent * width
    if not takes(f"reversed_groups_{row.extent}", 8 * width):
        return (row.name,)
    groups = (x.name for x in box.axes if x.src == x.dst == size)
    return (row.name, *groups)[:2]


def _chunk_axes(box: StridedBox, row: Axis) -> tuple[str, ...]:
    """Loops that are contiguous in the destination, the first one short; none if they do not fill a line."""
    width = box.width
    if box.size_bytes < CHUNKED_BYTES or not takes("joined", 8 * width):
        return ()
    if box.entries or row.extent > SHORT_CHUNKS:
        return ()
    taken, count = [row], row.extent
    while following := next((x for x in box.axes if x.dst == count * width), None):
        if count * following.extent > MOST_CHUNKS:
            break
        taken.append(following)
        count *= following.extent
    return tuple(x.name for x in taken) if count * width >= LINE_BYTES else ()


def _packed_loops(box: StridedBox) -> Selection:
    """Bytes of packed elements if all other strides are multiples of a byte; else single elements."""
    dst_bits, row, no_table = box.target.bits, box.contiguous("dst"), not box.entries
    if box.source is None:
        if no_table and row and _whole_bytes(box, "dst", row, dst_bits):
            return "fill", (row.name,), ""
        return "elements", _minor_axis(box), ""
    if box.converts:
        return "elements", _minor_axis(box), ""
    src_bits = box.source.bits
    if no_table and dst_bits < 8 <= src_bits and row and _whole_bytes(box, "dst", row, dst_bits):
        return "pack bits", (*_columns(box, row, dst_bits), row.name), ""
    column = box.contiguous("src")
    if no_table and src_bits < 8 <= dst_bits and column and _whole_bytes(box, "src", column, src_bits):
        return "unpack bits", (*_columns(box, column, src_bits), column.name), ""
    return "elements", _minor_axis(box), ""


def _columns(box: StridedBox, packed: Axis, bits: int) -> tuple[str, ...]:
    """The loop over columns of `packed` that are contiguous on both sides; none if elements also are."""
    is_column = is_instruction(f"unpacked_{bits}_into_{packed.extent}_rows")
    if _byte_side_stride(box, packed.name) == 8 or not is_column:
        return ()
    column = packed.extent * bits
    steps = (8, column) if box.target.bits == bits else (column, 8)
    return tuple(x.name for x in box.axes if (x.src, x.dst) == steps)[:1]


def _whole_bytes(box: StridedBox, side: Side, unit: Axis, bits: int) -> bool:
    start = box.dst if side == "dst" else box.src
    if start % 8 or unit.extent * bits % 8:
        return False
    return all(axis.stride(side) % 8 == 0 for axis in box.axes if axis is not unit)


def _minor_axis(box: StridedBox) -> tuple[str, ...]:
    return (box.axes[-1].name,) if box.axes else ()


def short_loops(box: StridedBox, inner: tuple[str, ...]) -> Selection:
    """The inner loops of a transpose whose digits are too short to fill a register."""
    if box.converts:
        return "elements", _minor_axis(box), ""
    return "interleave", inner, ""


def streams_lines(box: StridedBox, mode: Mode, inner: tuple[str, ...], interleave: PackedSide) -> bool:
    """Whether the inner loops write full lines; packing strided elements does not."""
    if mode in ("pack bits", "unpack bits"):
        return len(inner) == 2 or _byte_side_stride(box, inner[0]) == 8
    return mode in ("run", "chunks") or (mode == "reverse" and len(inner) == 1) or interleave != ""


def _byte_side_stride(box: StridedBox, axis: str) -> int:
    """The stride, in bits, of the side with one byte per element."""
    if box.target.bits < 8:
        return box.axis(axis).src
    return box.axis(axis).dst
