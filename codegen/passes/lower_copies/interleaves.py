"""Lower interleaves: a few rows that are packed together on one side, element by element."""

from __future__ import annotations

from codegen.passes.lower_copies.joined_rows import deinterleaved_groups, joined_rows
from codegen.passes.lower_copies.lowered import Lowered, Sides
from codegen.passes.lower_copies.packed_rows import rows_of
from codegen.passes.lower_copies.small_transposes import small_transpose
from codegen.schedule.offset_tables import LINE_TABLE
from codegen.schedule.transfers import Interleave


def lower_interleave(stmt: Interleave, sides: Sides) -> Lowered:
    """Interleave rows, or deinterleave them, by blocks in registers.

    before:  dst <- interleave src, 2 rows of columns u16, rows row_step apart
    after:   for column in 0..columns step 32:
               block = src[2*column] [2, 32]
               dst[4*column] = interleaved(block) [64]
             narrower: 16, 8 and single columns
    """
    what = (
        f"dst[{{at}}column, row] = src[{{at}}row, column], row < {stmt.rows}, "
        f"column < {stmt.columns}, u{8 * stmt.width}"
    )
    if not stmt.side:
        return Lowered(small_transpose(stmt, sides), what, "Single elements, 64 rows by 64 bytes")
    rows = rows_of(stmt)
    if stmt.is_one_block:
        block = rows.in_one_block(sides.dst, sides.src, stream=stmt.stream)
        return Lowered(block, what, f"A block of {stmt.columns}x{stmt.rows}")
    how = f"Super-vectors of {rows.count}x{rows.line}, {'interleaved' if rows.packs else 'deinterleaved'}"
    if stmt.groups:
        body = deinterleaved_groups(rows, sides.dst, sides.src)
        how += f" into scratch for all groups at once; packed lines at {LINE_TABLE}"
        return Lowered((body,), what.replace("{at}", "{at}group, "), how)
    if stmt.lines:
        joined = joined_rows(rows, sides.dst, sides.src, stream=stmt.stream)
        return Lowered((joined,), what, f"{how}; packed lines at {LINE_TABLE}")
    return Lowered((rows.loop(sides.dst, sides.src, stream=stmt.stream),), what, how)
