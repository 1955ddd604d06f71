"""Choose which loops of a box are the inner ones, and what they do."""

from __future__ import annotations

from codegen.ir.instructions import is_instruction, takes
from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Axis, Side, StridedBox
from codegen.schedule.choose_directives import (
    InnerLoops,
    chunks,
    code_columns,
    codes,
    elements,
    fill,
    packed_rows,
    reversal,
    run,
    short_reversals,
    small_blocks,
)
from codegen.schedule.choose_interleave import joined_axes
from codegen.schedule.schedule import PackedSide

SHORT_CHUNKS = 8
"""A loop longer than this does not need a table."""

MOST_CHUNKS = 1 << 10
"""Maximum number of chunks in one table: 8 KiB."""

CHUNKED_BYTES = 1 << 17
"""Boxes smaller than this are not worth a table of chunks and a kernel that reads it."""


def inner_loops(box: StridedBox, *, past_cache: bool, on_lines: bool = True) -> InnerLoops | None:
    """The inner loops that move the widest registers; None if registers transpose blocks.

    `on_lines` says whether the destination begins a line.
    """
    if box.unit_bits == 1:
        return _packed_loops(box)
    width, row, column = box.width, box.contiguous("dst"), box.contiguous("src")
    if box.converts:
        return elements(box) if row is None or column is None or row is column else None
    if box.source is None:
        return fill(box, row) if row else elements(box)
    is_reversed = row is not None and row.src == -width
    if row is None or column is None or is_reversed:
        axes = _chunk_axes(box, row) if row else ()
        if row and is_reversed and not axes and takes("reversed_elements", 8 * width):
            return _reversed_runs(box, row)
        return chunks(box, axes) if axes else elements(box)
    if row is column:
        return run(box, row)
    return _packed_rows(box, row, column, past_cache=past_cache, on_lines=on_lines)


def _packed_rows(
    box: StridedBox, row: Axis, column: Axis, *, past_cache: bool, on_lines: bool
) -> InnerLoops | None:
    """Rows that registers interleave, because one side packs a few of them together; None for others."""
    packed: PackedSide = ""
    if takes(f"deinterleaved_{row.extent}", 8 * box.width) and column.dst == row.extent * box.width:
        packed = "dst"
    elif takes(f"deinterleaved_{column.extent}", 8 * box.width) and row.src == column.extent * box.width:
        packed = "src"
    if not packed:
        return None
    long, short = (column, row) if packed == "dst" else (row, column)
    joined = joined_axes(box, long, short, packed, past_cache=past_cache, on_lines=on_lines)
    return packed_rows(box, column, row, packed, joined)


def _reversed_runs(box: StridedBox, row: Axis) -> InnerLoops:
    """The reversed loop and, if its runs are short, the loop along which they are contiguous."""
    size, groups = row.extent * box.width, list[Axis]()
    if takes(f"reversed_groups_{row.extent}", 8 * box.width):
        groups = [x for x in box.axes if x.src == x.dst == size]
    return short_reversals(box, row, groups[0]) if groups else reversal(box, row)


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


def _packed_loops(box: StridedBox) -> InnerLoops:
    """Bytes of packed elements if all other strides are multiples of a byte; else single elements."""
    dst_bits, row = box.target.bits, box.contiguous("dst")
    if box.entries or box.converts:
        return elements(box)
    if box.source is None:
        return fill(box, row) if row and _whole_bytes(box, "dst", row, dst_bits) else elements(box)
    src_bits, column = box.source.bits, box.contiguous("src")
    if dst_bits < 8 <= src_bits and row and _whole_bytes(box, "dst", row, dst_bits):
        return _codes(box, row, dst_bits)
    if src_bits < 8 <= dst_bits and column and _whole_bytes(box, "src", column, src_bits):
        return _codes(box, column, src_bits)
    return elements(box)


def _codes(box: StridedBox, packed: Axis, bits: int) -> InnerLoops:
    """Packed codes, or columns of them that are contiguous on both sides if elements are not."""
    step, size = packed.src if box.target.bits < 8 else packed.dst, packed.extent * bits
    if step != 8 and is_instruction(f"unpacked_{bits}_into_{packed.extent}_rows"):
        steps = (8, size) if box.target.bits == bits else (size, 8)
        for x in box.axes:
            if (x.src, x.dst) == steps:
                return code_columns(box, packed, x)
    return codes(box, packed)


def _whole_bytes(box: StridedBox, side: Side, unit: Axis, bits: int) -> bool:
    start = box.dst if side == "dst" else box.src
    if start % 8 or unit.extent * bits % 8:
        return False
    return all(axis.stride(side) % 8 == 0 for axis in box.axes if axis is not unit)


def short_loops(box: StridedBox) -> InnerLoops:
    """The inner loops of a transpose whose digits are too short to fill a register."""
    row, column = box.contiguous("dst"), box.contiguous("src")
    if box.converts or row is None or column is None:
        return elements(box)
    return small_blocks(box, column.name, row.name)
