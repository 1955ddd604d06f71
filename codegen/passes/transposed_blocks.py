"""Register blocks of a transpose: their loads, and the value to store."""

from __future__ import annotations

from codegen.ir.building import Term, index_of, loop, plus, times
from codegen.ir.index import Index
from codegen.ir.instructions import converts_blocks
from codegen.ir.nodes import Alloc, Let, Statement, Store, View
from codegen.ir.strided_box import Side
from codegen.ir.values import Entries, Load, Local, Op, Step
from codegen.passes.lane_orders import Lane, reordered
from codegen.passes.sides import converted
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.loops import Loop
from codegen.support.dataclasses import dataclass

CONVERTED = "converted"
"""Scratch that holds the rows of one block."""


@dataclass(frozen=True, slots=True)
class RegisterBlock:
    """What the blocks of a transpose share.

    Attributes:
        shape: rows and columns.
        rows: the loop over rows, which are apart in the source.
        source_width: bytes of an element of the source.
        width: bytes of an element of the destination.
        convert: as in `CopyNest`.
    """

    shape: tuple[int, int]
    rows: Loop
    source_width: int
    width: int
    convert: tuple[str, str] | None

    @property
    def through_scratch(self) -> bool:
        """Whether the rows of a block are converted one by one."""
        return self.convert is not None and not converts_blocks(*self.convert)


def block_of(t: CopyNest) -> RegisterBlock:
    """The blocks of a transpose."""
    assert t.source is not None, "a transpose reads its source"
    shape = t.lanes["row"], t.lanes["column"]
    return RegisterBlock(shape, t.axis("row"), t.source.bits // 8, t.target.bits // 8, t.convert)


def transposed_block(
    b: RegisterBlock, src: str, column: Term = "column"
) -> tuple[tuple[Statement, ...], Local | Op]:
    """The statements that assign the converted block at (row, column) to `block`, and its transpose.

    block = convert_f32_to_bf16(src[row, column] [16, 16])
    """
    before, block = _converted_block(b, src, index_of(column))
    (rows, columns), apart = b.shape, "pitch"
    lanes = Lane(rows, apart, b.width), Lane(columns, b.width, apart)
    value: Local | Op = Local("block", block.dtype, b.shape)
    for name, shape in reordered(lanes, b.width, b.width).instructions:
        value = Op(name, (value,), value.dtype, shape)
    return (*before, Let("block", block)), value


def read_block(b: RegisterBlock, src: str, row: Index, column: Index) -> Load:
    """The rows of a block from (row, column) on, as they are in the source."""
    at, step = row_at(b.rows, "src", row)
    where = plus(at, times(column, b.source_width))
    return Load(src, (where,), f"bits{8 * b.source_width}", b.shape, (0, 0), (step, b.source_width))


def _converted_block(b: RegisterBlock, src: str, column: Index) -> tuple[tuple[Statement, ...], Load | Op]:
    """The block, after statements that convert it.

    A conversion that cannot take blocks goes through scratch row by row: LLVM would start it in all rows
    before finishing it in the first, and spill intermediate values. Rows are read back at an opaque address,
    which keeps LLVM from removing their stores.

    for k in 0..16: converted[k] = convert_f32_to_f16(src[row + k, column] [16])
    block = converted [16, 16]
    """
    if not b.through_scratch:
        return (), converted(b.convert, read_block(b, src, index_of("row"), column))
    (rows, columns), row_bytes = b.shape, b.shape[1] * b.width
    at = element_row("src_row", src, b.rows, "src", plus("row", "k"))
    where, steps = (times(column, b.source_width),), (b.source_width,)
    value = converted(b.convert, Load("src_row", where, f"bits{8 * b.source_width}", (columns,), (0,), steps))
    store = Store(
        CONVERTED, (times("k", row_bytes),), Local("elements", value.dtype, value.shape), (0,), (b.width,)
    )
    again = View("converted_rows", CONVERTED, index_of(0), opaque=True)
    block = Load("converted_rows", (index_of(0),), value.dtype, b.shape, (0, 0), (row_bytes, b.width))
    return (loop("k", 0, rows, *at, Let("elements", value), store), again), block


def converted_rows(b: RegisterBlock) -> tuple[Alloc, ...]:
    """Scratch for the rows of a block, if conversions need it."""
    rows, columns = b.shape
    return (Alloc(CONVERTED, rows * columns * b.width),) if b.through_scratch else ()


def element_row(
    name: str, base: str, along: Loop, side: Side, index: Index, *, opaque: bool = False
) -> tuple[Statement, ...]:
    """The view of one row of either side."""
    if not along.table(side):
        return (View(name, base, times(index, along.stride(side)), opaque),)
    offset = f"{along.axis}_offset"
    return (Let(offset, Load(along.table_name, (index,), "i64")), View(name, base, index_of(offset), opaque))


def row_at(along: Loop, side: Side, index: Index) -> tuple[Index, Step]:
    """The offset of a row and the step to the next one; with a table, the step includes the offset."""
    if along.table(side):
        return index_of(0), Entries(along.table_name, index)
    return times(index, along.stride(side)), along.stride(side)
