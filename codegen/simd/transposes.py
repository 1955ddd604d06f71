"""Transposes of tiles by tables of row and column offsets, blocks of one line each way in registers.

A block is 64/width source rows by 64/width columns ("line"), or by 16/width columns ("lane") where source
runs are shorter than a line. Row r of a tile begins at src + row_offsets[r], column c of the result at
dst + column_offsets[c]; a last block that would reach over an edge begins earlier and writes some elements
again. Tiles with fewer rows than a block have are staged: see `staging`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit

from codegen.simd.memory import (
    I64,
    load,
    move_u8,
    move_u16,
    move_u32,
    move_u64,
    move_u128,
    pointer,
    prefetch,
    statement,
    store,
    store_streaming,
    vector,
)
from codegen.simd.networks import (
    LANE_BYTES,
    LANES,
    LINE_BYTES,
    join_lanes,
    transposed_lanes,
    transposed_lines,
)

MOVES = {1: move_u8, 2: move_u16, 4: move_u32, 8: move_u64, 16: move_u128}
"""Bytes of an element -> the routine that moves one."""

BLOCKS = ("line", "lane")


def _entry(builder: Any, table: Any, k: int) -> Any:
    place = builder.add(table, ir.Constant(I64, 8 * k))
    return builder.load(pointer(builder, place, I64))


def block_columns(width: int, block: str) -> int:
    """Columns that one block takes."""
    return (LINE_BYTES if block == "line" else LANE_BYTES) // width


def _result_lines(builder: Any, places: list[Any], width: int, block: str) -> list[Any]:
    if block == "line":
        return transposed_lines(builder, [load(builder, p, vector(8, LINE_BYTES)) for p in places], width)
    n = LANE_BYTES // width
    lanes = [load(builder, p, vector(8, LANE_BYTES)) for p in places]
    joined = [join_lanes(builder, [lanes[r + n * lane] for lane in range(LANES)]) for r in range(n)]
    return transposed_lanes(builder, joined, width)


def _block(width: int, block: str, *, stream: bool) -> Any:
    """block(dst, src, row_offsets, column_offsets); streaming ones take (next_src, next_rows) to prefetch."""
    rows = LINE_BYTES // width
    asks = rows // block_columns(width, block)

    def emit(builder: Any, dst: Any, src: Any, row_table: Any, column_table: Any, *following: Any) -> None:
        places = [builder.add(src, _entry(builder, row_table, r)) for r in range(rows)]
        for c, line in enumerate(_result_lines(builder, places, width, block)):
            at = builder.add(dst, _entry(builder, column_table, c))
            whole = builder.bitcast(line, vector(8, LINE_BYTES))
            (store_streaming if stream else store)(builder, whole, at)
            if following:  # One after each store: a burst of them would hold up the loads behind it.
                for r in range(c * asks, (c + 1) * asks):
                    prefetch(builder, builder.add(following[0], _entry(builder, following[1], r)))

    return statement(emit, 6 if stream else 4, f"transpose_{block}_{width}_{'stream' if stream else 'plain'}")


PLAIN_BLOCKS = {(w, b): _block(w, b, stream=False) for w in MOVES for b in BLOCKS}


def _small(width: int) -> Any:
    """Digits too short for any block: 64 bytes of each source row, 64 rows, so that lines stay in cache."""
    move, wide = MOVES[width], max(LINE_BYTES // width, 4)

    @njit(error_model="numpy")
    def transpose_small(dst, src, rows, columns, row_step, column_step):
        for c0 in range(0, columns, wide):
            for r0 in range(0, rows, 64):
                for c in range(c0, min(c0 + wide, columns)):
                    out, row = dst + c * column_step, src + c * width
                    for r in range(r0, min(r0 + 64, rows)):
                        move(out + r * width, row + r * row_step)

    return transpose_small


def _plain(width: int, kind: str) -> Any:
    block, rows_step, columns_step = (
        PLAIN_BLOCKS[width, kind],
        LINE_BYTES // width,
        block_columns(width, kind),
    )

    @njit(error_model="numpy")
    def transpose_by_rows(dst, src, row_offsets, rows, column_offsets, columns):
        """Blocks of bytes are so large that the lines of one are gone before the next, whatever the order."""
        r = 0
        while r < rows:
            r = min(r, rows - rows_step)
            c = 0
            while c < columns:
                c = min(c, columns - columns_step)
                block(dst + r * width, src + c * width, row_offsets + 8 * r, column_offsets + 8 * c)
                c += columns_step
            r += rows_step

    @njit(error_model="numpy")
    def transpose_diagonally(dst, src, row_offsets, rows, column_offsets, columns):
        """At many pitches the blocks of a row, and those of a column, share sets of the cache."""
        across = (columns + columns_step - 1) // columns_step
        for diagonal in range(across):
            k, r = diagonal, 0
            while r < rows:
                r = min(r, rows - rows_step)
                c = min(k * columns_step, columns - columns_step)
                block(dst + r * width, src + c * width, row_offsets + 8 * r, column_offsets + 8 * c)
                r += rows_step
                k = 0 if k + 1 == across else k + 1

    return transpose_by_rows if width == 1 else transpose_diagonally


def _stream(width: int, kind: str) -> Any:
    block, rows_step, columns_step = (
        _block(width, kind, stream=True),
        LINE_BYTES // width,
        block_columns(width, kind),
    )

    @njit(error_model="numpy")
    def stream_transpose(dst, src, row_offsets, rows, column_offsets, columns, next_src, next_rows):
        """Result columns begin on lines and rows are whole lines; asks for the next tile meanwhile."""
        c = 0
        while c < columns:
            c = min(c, columns - columns_step)
            for r in range(0, rows, rows_step):
                block(
                    dst + r * width,
                    src + c * width,
                    row_offsets + 8 * r,
                    column_offsets + 8 * c,
                    next_src + c * width,
                    next_rows + 8 * r,
                )
            c += columns_step

    return stream_transpose


def _family() -> dict[str, Any]:
    """Every width and block, plain and streaming, by the name it has in kernels."""
    out: dict[str, Any] = {}
    for width in MOVES:
        if 2 * width < LANE_BYTES:  # two wider elements fill a lane
            out[f"transpose_small_u{8 * width}"] = _small(width)
        for kind in BLOCKS:
            out[f"transpose_{kind}s_u{8 * width}"] = _plain(width, kind)
            out[f"stream_transpose_{kind}s_u{8 * width}"] = _stream(width, kind)
    return out


TRANSPOSES = _family()
