"""Transposes of tiles by tables of row and column offsets, in register blocks of a line in each direction.

A block is 64/width source rows by 64/width columns ("line"), or by 16/width columns ("lane") where source
runs are shorter than a line. Row r of a tile begins at src + row_offsets[r], and column c of the result at
dst + column_offsets[c]. A last block that would cross an edge begins earlier and writes some elements again.
Tiles with fewer rows than a block are staged: see `staging`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args

from llvmlite import ir
from numba.core import cgutils

from codegen.ir.copies.tiles import Block
from codegen.ir.instructions import is_long_conversion
from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.simd.copy.casts import lane_conversion
from codegen.simd.register.decorator import for_kernels
from codegen.simd.register.memory import (
    I64,
    hidden,
    int64_at,
    load,
    move_u8,
    move_u16,
    move_u32,
    pointer,
    prefetch,
    statement,
    store,
    store_streaming,
    vector,
)
from codegen.simd.register.networks import LANES, join_lanes, transposed_lanes, transposed_lines
from codegen.simd.register.shuffles import shuffle

MOVES = {1: move_u8, 2: move_u16, 4: move_u32}
"""Bytes of an element that is shorter than half a lane -> the routine that moves one."""

BLOCKS: tuple[Block, ...] = get_args(Block)


@dataclass(frozen=True, slots=True)
class Moved:
    """How elements are moved: their bytes before and after, and how vectors of them are converted."""

    name: str
    source_width: int
    width: int
    convert: Callable[[Any, Any], Any] | None = None
    is_long: bool = False


@cache
def moved(name: str) -> Moved:
    """`u32` moves four bytes; `f32_to_bf16` and `swap_u32` convert. Routines are cached by the result."""
    if name.startswith("u") and "_" not in name:
        return Moved(name, int(name[1:]) // 8, int(name[1:]) // 8)
    is_long = "_to_" in name and is_long_conversion(*name.split("_to_"))
    return Moved(name, *lane_conversion(name), is_long=is_long)


def block_columns(width: int, block: Block) -> int:
    """Columns of one block, at most for "part" blocks; 1 for elements wider than a lane."""
    return LINE_BYTES // width if block in ("line", "band") else max(LANE_BYTES // width, 1)


def block_rows(width: int, block: Block) -> int:
    """Rows of one block."""
    return LANE_BYTES // width if block == "band" else LINE_BYTES // width


def _entry(builder: Any, table: Any, k: int) -> Any:
    address = builder.add(table, ir.Constant(I64, 8 * k))
    return builder.load(pointer(builder, address, I64))


def _load_row(builder: Any, address: Any, element: Moved, block: Block) -> Any:
    """A block's range of one source row, as bytes of the destination."""
    columns = block_columns(element.width, block)
    if element.convert is None:
        return load(builder, address, vector(8, columns * element.width))
    converted = element.convert(builder, load(builder, address, vector(8 * element.source_width, columns)))
    return builder.bitcast(converted, vector(8, columns * element.width))


def _load_rows(builder: Any, addresses: list[Any], element: Moved, block: Block) -> list[Any]:
    """A block's source rows, as bytes of the destination.

    Long conversions go to the stack one by one: LLVM would otherwise start all of them before finishing the
    first, and spill intermediate values. Both addresses are opaque, so that LLVM keeps the stores and loads.
    """
    if not element.is_long:
        return [_load_row(builder, address, element, block) for address in addresses]
    size = block_columns(element.width, block) * element.width
    stack = cgutils.alloca_once(builder, vector(8, len(addresses) * size))  # type: ignore[no-untyped-call]

    def slot(start: Any, k: int) -> Any:
        return pointer(builder, builder.add(start, ir.Constant(I64, k * size)), vector(8, size))

    start = hidden(builder, builder.ptrtoint(stack, I64))
    for k, address in enumerate(addresses):
        builder.store(_load_row(builder, address, element, block), slot(start, k)).align = 1
    start = hidden(builder, start)
    rows = [builder.load(slot(start, k)) for k in range(len(addresses))]
    for row in rows:
        row.align = 1
    return rows


def _result_lines(builder: Any, addresses: list[Any], element: Moved, block: Block) -> list[Any]:
    rows = _load_rows(builder, addresses, element, block)
    if block == "line" or element.width == LINE_BYTES:
        return transposed_lines(builder, rows, element.width)
    if element.width > LANE_BYTES:
        return [shuffle(builder, rows[0], rows[1], list(range(LINE_BYTES)))]
    n = LANE_BYTES // element.width
    joined = [join_lanes(builder, [rows[r + n * lane] for lane in range(LANES)]) for r in range(n)]
    return transposed_lanes(builder, joined, element.width)


def block(element: Moved, kind: Block, *, stream: bool) -> Any:
    """The routine that moves one block of a kind."""
    if kind == "part":
        return part(element, stream=stream)
    return band(element) if kind == "band" else whole_block(element, kind, stream=stream)


PREFETCH_DISTANCE = 2 * LINE_BYTES
"""Prefetch distance in the 64 rows of a block of bytes, which are more than the hardware prefetcher tracks.
It makes transposes from memory into cache 1.5 times as fast (Zen 5, 2026-11)."""


@cache
def whole_block(element: Moved, kind: Block, *, stream: bool) -> Any:
    """block(dst, src, row_offsets, column_offsets); if streaming, also (next_src, next_rows) to prefetch."""
    rows, columns = LINE_BYTES // element.width, block_columns(element.width, kind)
    per_store, wide = rows // columns, max(columns * element.source_width, LINE_BYTES)

    def emit(builder: Any, dst: Any, src: Any, row_table: Any, column_table: Any, *following: Any) -> None:
        addresses = [builder.add(src, _entry(builder, row_table, r)) for r in range(rows)]
        for c, line in enumerate(_result_lines(builder, addresses, element, kind)):
            at = builder.add(dst, _entry(builder, column_table, c))
            value = builder.bitcast(line, vector(8, LINE_BYTES))
            (store_streaming if stream else store)(builder, value, at)
            if following:  # Spread over the stores: a burst of prefetches would delay the loads after it.
                for r in range(c * per_store, (c + 1) * per_store):
                    row = builder.add(following[0], _entry(builder, following[1], r))
                    for k in range(0, wide, LINE_BYTES):
                        prefetch(builder, builder.add(row, ir.Constant(I64, k)))
            elif element.width == 1 and kind == "line":
                prefetch(builder, builder.add(addresses[c], ir.Constant(I64, PREFETCH_DISTANCE)))

    return statement(emit, 6 if stream else 4, f"{'stream' if stream else 'store'}_{kind}_{element.name}")


@cache
def part(element: Moved, *, stream: bool) -> Any:
    """part(dst, src, row_offsets, column_offsets, columns), where columns is less than a lane.

    Full lanes are read, including the bytes after the columns.
    """
    rows, most = LINE_BYTES // element.width, LANE_BYTES // element.width - 1

    def emit(
        builder: Any, dst: Any, src: Any, row_table: Any, column_table: Any, columns: Any, *following: Any
    ) -> None:
        addresses = [builder.add(src, _entry(builder, row_table, r)) for r in range(rows)]
        lines = _result_lines(builder, addresses, element, "lane")
        with ExitStack() as inside:
            for c in range(most):
                more = builder.icmp_signed(">", columns, ir.Constant(I64, c))
                inside.enter_context(builder.if_then(more, likely=True))
                at = builder.add(dst, _entry(builder, column_table, c))
                value = builder.bitcast(lines[c], vector(8, LINE_BYTES))
                (store_streaming if stream else store)(builder, value, at)

    return statement(emit, 5, f"{'stream' if stream else 'store'}_part_{element.name}")


@cache
def band(element: Moved) -> Any:
    """band(dst, src, row_offsets, column_offsets): 16 bytes of each result row."""
    rows, columns = block_rows(element.width, "band"), block_columns(element.width, "band")

    def emit(builder: Any, dst: Any, src: Any, row_table: Any, column_table: Any) -> None:
        addresses = [builder.add(src, _entry(builder, row_table, r)) for r in range(rows)]
        lines = _load_rows(builder, addresses, element, "band")
        done = transposed_lanes(builder, lines, element.width)
        done = [builder.bitcast(line, vector(8, LINE_BYTES)) for line in done]
        for c in range(columns):
            first = c // rows * LANE_BYTES
            line = done[c % rows]
            lane = shuffle(builder, line, line, list(range(first, first + LANE_BYTES)))
            store(builder, lane, builder.add(dst, _entry(builder, column_table, c)))

    return statement(emit, 4, f"store_band_{element.name}")


@cache
def by_elements(width: int) -> Any:
    """The last rows of a tile, where reading a full lane is not allowed."""
    move = MOVES[width]

    @for_kernels
    def transpose_elements(dst, src, row_offsets, first, rows, column_offsets, columns):
        for c in range(columns):
            out = dst + int64_at(column_offsets, c)
            for r in range(first, rows):
                move(out + r * width, src + int64_at(row_offsets, r) + c * width)

    return transpose_elements


@cache
def part_transpose(element: Moved, *, stream: bool) -> Any:
    """Tiles with fewer columns than a lane, stored directly or, if streaming, in full non-temporal lines."""
    width, move, rest = element.width, part(element, stream=stream), by_elements(element.width)
    rows_step = LINE_BYTES // width

    @for_kernels
    def parts(dst, src, row_offsets, rows, column_offsets, columns, open_rows):
        """A last block of rows begins earlier, unless only single elements may be read there."""
        last = open_rows - rows_step
        r = 0
        while r <= last:
            move(dst + r * width, src, row_offsets + 8 * r, column_offsets, columns)
            r += rows_step
            if r > last and open_rows == rows and r < rows:
                r = last
        if r < rows:
            rest(dst, src, row_offsets, r, rows, column_offsets, columns)

    @for_kernels
    def streamed(dst, src, row_offsets, rows, column_offsets, columns, open_rows, next_src, next_rows):
        """Without prefetches: short source rows are mostly adjacent, which the hardware detects."""
        parts(dst, src, row_offsets, rows, column_offsets, columns, open_rows)

    return streamed if stream else parts
