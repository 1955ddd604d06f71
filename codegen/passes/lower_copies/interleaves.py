"""Lower interleaves: a few rows that are packed together on one side, element by element."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import compare, let, loop, minus, plus, rest, times
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Call, If, Statement, View
from codegen.passes.lower_copies.joined_rows import deinterleave_groups, joined_rows
from codegen.passes.lower_copies.lowered import Lowered, Sides
from codegen.passes.lower_copies.packed_rows import PackedRows, rows_of
from codegen.passes.lower_copies.row_buffers import (
    ROW_PITCH,
    ROWS,
    Ahead,
    chunk_rows,
    drain_row,
    scratch_rows,
)
from codegen.passes.lower_copies.small_transposes import small_transpose
from codegen.schedule.limits import ROW_BUFFER_BYTES
from codegen.schedule.offset_tables import CHUNK_BYTES, LINE_TABLE, MOST_GROUPED
from codegen.schedule.transfers import Interleave


def reads_in_order(stmt: Interleave) -> bool:
    """Whether the transfer deinterleaves contiguous rows with streaming stores."""
    return stmt.stream and stmt.side == "src" and not stmt.lines and not stmt.groups


def lower_interleave(stmt: Interleave, sides: Sides) -> Lowered:
    """Interleave rows, or deinterleave them, by blocks in registers.

    before:  dst <- interleave src, 2 rows of columns u16, rows row_step apart
    after:   if columns >= 32:
               for column in 0..columns - 32 step 32:
                 block = src[2*column] [2, 32]
                 dst[4*column] = interleaved(block) [64]
               the last 32 columns
             elif columns >= 16: …
    """
    what = (
        f"dst[{{at}}, column, row] = src[{{at}}, row, column], row < {stmt.rows}, "
        f"column < {stmt.columns}, u{8 * stmt.width}"
    )
    if not stmt.side:
        return Lowered(small_transpose(stmt, sides), what, "Single elements, 64 rows by 64 bytes")
    rows = rows_of(stmt)
    how = f"Super-vectors of {rows.count}x{rows.line}, {'interleaved' if rows.packs else 'deinterleaved'}"
    if stmt.groups:
        body = deinterleave_groups(rows, sides.dst, sides.src)
        how += f" into scratch for all groups at once, lines streamed; packed lines at {LINE_TABLE}"
        return Lowered(body, what.replace("{at}", "{at}, group"), how, scratch_rows(MOST_GROUPED))
    how += ", streamed" if stmt.stream else ""
    if stmt.lines:
        body = joined_rows(rows, sides.dst, sides.src, stream=stmt.stream)
        return Lowered(body, what, f"{how}; packed lines at {LINE_TABLE}")
    if not stmt.stream:
        return Lowered(rows.blocks(sides.dst, sides.src), what, how)
    if rows.packs:
        return Lowered(_stream_interleave(rows, sides), what, how)
    return Lowered(_stream_deinterleave(rows, sides), what, how, scratch_rows(rows.count))


def _stream_interleave(rows: PackedRows, sides: Sides) -> tuple[Statement, ...]:
    """Stream if the packed side begins on a line."""
    dst, src = sides.dst, sides.src
    aligned = compare(rest(dst, LINE_BYTES), "eq", 0)
    return (If((aligned,), rows.streamed(dst, src), rows.blocks(dst, src)),)


def _stream_deinterleave(rows: PackedRows, sides: Sides) -> tuple[Statement, ...]:
    """Stream if all result rows begin on lines; else through scratch, unless rows are short."""
    dst, src = sides.dst, sides.src
    aligned = compare(rest(dst, LINE_BYTES), "eq", 0), compare(rest(rows.pitch, LINE_BYTES), "eq", 0)
    is_long = compare(rows.length, "ge", ROW_BUFFER_BYTES // rows.width)
    otherwise = If((is_long,), (_through_scratch(rows, dst, src),), rows.blocks(dst, src))
    body: tuple[Statement, ...] = (If(aligned, rows.streamed(dst, src), (otherwise,)),)
    if not sides.in_table:
        return body
    later = Call("prefetch_line", (plus(src, "prefetch_distance", "x"),))
    size = times(rows.length, rows.count * rows.width)
    return loop("x", 0, size, later, step=LINE_BYTES), *body


def _through_scratch(rows: PackedRows, dst: str, src: str) -> Statement:
    """Deinterleave chunks of all rows into scratch, then drain it row by row.

    for chunk in 0..rows step 128:
      chunk_rows = 128, or the rest of the rows, if there is less than a line more
      scratch_rows <- deinterleave src[4*chunk], chunk_rows rows of 2
      for column in 0..2: drain the row from scratch_rows[384*column]
    """
    size, packed = CHUNK_BYTES // rows.width, rows.count * rows.width
    drained = drain_row(
        "dst_row",
        "held",
        "chunk_bytes",
        compare("chunk", "eq", 0),
        compare(plus("chunk", "chunk_rows"), "eq", rows.length),
        Ahead("src_chunk", plus(times("chunk_rows", packed), times("column", CHUNK_BYTES))),
    )
    return loop(
        "chunk",
        0,
        minus(rows.length, rows.line - 1),
        *chunk_rows("chunk_rows", minus(rows.length, "chunk"), size, rows.line),
        let("chunk_bytes", times("chunk_rows", rows.width)),
        View("src_chunk", src, times("chunk", packed), opaque=True),
        *replace(rows, length="chunk_rows", pitch=ROW_PITCH).lines(ROWS, "src_chunk"),
        loop(
            "column",
            0,
            rows.count,
            View("dst_row", dst, plus(times("column", rows.pitch), times("chunk", rows.width)), opaque=True),
            View("held", ROWS, times("column", ROW_PITCH), opaque=True),
            *drained,
        ),
        step=size,
    )
