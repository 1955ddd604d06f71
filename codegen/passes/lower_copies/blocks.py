"""Register blocks of a transpose: their loads, and the value to store."""

from __future__ import annotations

from codegen.ir.building import Term, index_of, loop, plus, times
from codegen.ir.element_types import dtype_of
from codegen.ir.index import Index
from codegen.ir.instructions import converts_blocks
from codegen.ir.nodes import Alloc, Let, Statement, Store, View
from codegen.ir.values import Entries, Load, Local, Op, Step
from codegen.passes.lane_orders import Lane, reordered
from codegen.passes.lower_copies.lowered import converted
from codegen.schedule.offset_tables import OffsetTable
from codegen.schedule.transfer_loops import Size
from codegen.schedule.transfers import ROW_TABLE
from codegen.schedule.transposes import Transpose

CONVERTED = "converted"
"""Scratch that holds the rows of one block."""


def transposed_block(t: Transpose, src: str, j: Term = "j") -> tuple[tuple[Statement, ...], Local | Op]:
    """The statements that assign the converted block at (i, j) to `block`, and its transpose.

    block = convert_f32_to_bf16(src[i, j] [16, 16])
    """
    before, block = _converted_block(t, src, index_of(j))
    (rows, columns), apart = t.block, "pitch"
    lanes = Lane(rows, apart, t.width), Lane(columns, t.width, apart)
    value: Local | Op = Local("block", block.dtype, t.block)
    for name, shape in reordered(lanes, t.width, t.width).instructions:
        value = Op(name, (value,), value.dtype, shape)
    return (*before, Let("block", block)), value


def read_block(t: Transpose, src: str, i: Index, j: Index) -> Load:
    """The rows of a block from (i, j) on, as they are in the source."""
    at, step = row_at(t.row_step, ROW_TABLE, i)
    where = plus(at, times(j, t.source_width))
    return Load(src, (where,), f"bits{8 * t.source_width}", t.block, (0, 0), (step, t.source_width))


def _converted_block(t: Transpose, src: str, j: Index) -> tuple[tuple[Statement, ...], Load | Op]:
    """The block, after statements that convert it.

    A conversion that cannot take blocks goes through scratch row by row: LLVM would start it in all rows
    before finishing it in the first, and spill intermediate values. Rows are read back at an opaque address,
    which keeps LLVM from removing their stores.

    for row in 0..16: converted[row] = convert_f32_to_f16(src[i + row, j] [16])
    block = converted [16, 16]
    """
    if not goes_through_scratch(t):
        return (), converted(t.convert, read_block(t, src, index_of("i"), j))
    (rows, columns), row_bytes = t.block, t.block[1] * t.width
    at = element_row("src_row", src, t.row_step, ROW_TABLE, plus("i", "row"))
    where, steps = (times(j, t.source_width),), (t.source_width,)
    value = converted(t.convert, Load("src_row", where, f"bits{8 * t.source_width}", (columns,), (0,), steps))
    store = Store(
        CONVERTED, (times("row", row_bytes),), Local("elements", value.dtype, value.shape), (0,), (t.width,)
    )
    again = View("converted_rows", CONVERTED, index_of(0), opaque=True)
    block = Load("converted_rows", (index_of(0),), value.dtype, t.block, (0, 0), (row_bytes, t.width))
    return (loop("row", 0, rows, *at, Let("elements", value), store), again), block


def converted_rows(t: Transpose) -> tuple[Alloc, ...]:
    """Scratch for the rows of a block, if conversions need it."""
    rows, columns = t.block
    return (Alloc(CONVERTED, rows * columns * t.width),) if goes_through_scratch(t) else ()


def goes_through_scratch(t: Transpose) -> bool:
    """Whether the rows of a block are converted one by one."""
    return t.convert is not None and not converts_blocks(*t.convert)


def element_text(t: Transpose, at: str) -> str:
    """The value of an element and the range of its indices, for readers: bf16(f32 src[i, j]), …"""
    element, sizes = f"src[{at}i, j]", "i < rows, j < columns"
    if t.convert is None:
        return f"{element}, {sizes}, u{8 * t.width}"
    source, target = t.convert
    if source.startswith("swap "):
        return f"swap_{8 * t.width}({element}), {sizes}"
    return f"{dtype_of(target)}({dtype_of(source)} {element}), {sizes}"


def element_row(
    name: str, base: str, step: Size | OffsetTable, table: str, index: Index, *, opaque: bool = False
) -> tuple[Statement, ...]:
    """The view of one row of either side."""
    if not isinstance(step, OffsetTable):
        return (View(name, base, times(index, step), opaque),)
    offset = table.removesuffix("s")
    return (Let(offset, Load(table, (index,), "i64")), View(name, base, index_of(offset), opaque))


def row_at(step: Size | OffsetTable, table: str, index: Index) -> tuple[Index, Step]:
    """The offset of a row and the step to the next one; with a table, the step includes the offset."""
    if isinstance(step, OffsetTable):
        return index_of(0), Entries(table, index)
    return times(index, step), step
