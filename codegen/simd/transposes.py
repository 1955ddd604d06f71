"""Register transposes: blocks of one line each way, 64 bytes of 64/width rows.

A block loads whole lines, exchanges their 16-byte lanes so that lane l of register r holds row r + n*l
(n = 16/width), and then unpacks within lanes log2(n) times; register k is then result row k, one full line.
In-lane unpacks are one shuffle a cycle everywhere; permutes across lanes are not. A line is loaded once: at
pitches that are powers of two all rows of a block share one set of the cache and push each other out.
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
    prefetch,
    statement,
    store,
    store_streaming,
    vector,
)
from codegen.simd.shuffles import shuffle, unpack

LINE_BYTES = 64
LANE_BYTES = 16
LANES = LINE_BYTES // LANE_BYTES
AHEAD_BYTES = 2 * LINE_BYTES
"""How far ahead along its rows a streaming block asks for the source."""


def exchange_lanes(builder: Any, lines: list[Any]) -> list[Any]:
    """Four lines to four: lane l of the q-th is lane q of the l-th."""
    words = [builder.bitcast(line, vector(64, 8)) for line in lines]

    def pick(a: Any, b: Any, lanes: tuple[int, int, int, int]) -> Any:
        return shuffle(builder, a, b, [2 * lane + half for lane in lanes for half in (0, 1)])

    low = pick(words[0], words[1], (0, 1, 4, 5)), pick(words[2], words[3], (0, 1, 4, 5))
    high = pick(words[0], words[1], (2, 3, 6, 7)), pick(words[2], words[3], (2, 3, 6, 7))
    pairs = ((*low, (0, 2, 4, 6)), (*low, (1, 3, 5, 7)), (*high, (0, 2, 4, 6)), (*high, (1, 3, 5, 7)))
    return [builder.bitcast(pick(a, b, lanes), vector(8, LINE_BYTES)) for a, b, lanes in pairs]


def transposed(builder: Any, lines: list[Any], width: int) -> list[Any]:
    """The result lines of a block, in order, from its source lines."""
    n = LANE_BYTES // width
    groups = [exchange_lanes(builder, [lines[r + n * lane] for lane in range(LANES)]) for r in range(n)]
    out: list[Any] = []
    for q in range(LANES):
        registers = [group[q] for group in groups]
        for _ in range(n.bit_length() - 1):
            registers = [
                unpack(builder, registers[k // 2], registers[k // 2 + n // 2], k & 1, width) for k in range(n)
            ]
        out += registers
    return out


def _block(width: int, *, stream: bool) -> Any:
    rows = LINE_BYTES // width

    def emit(builder: Any, dst: Any, src: Any, row_step: Any, column_step: Any) -> None:
        lines = []
        for r in range(rows):
            at = builder.add(src, builder.mul(row_step, ir.Constant(I64, r)))
            if stream:
                prefetch(builder, builder.add(at, ir.Constant(I64, AHEAD_BYTES)))
            lines.append(load(builder, at, vector(8, LINE_BYTES)))
        for c, line in enumerate(transposed(builder, lines, width)):
            at = builder.add(dst, builder.mul(column_step, ir.Constant(I64, c)))
            whole = builder.bitcast(line, vector(8, LINE_BYTES))
            (store_streaming if stream else store)(builder, whole, at)

    return statement(emit, 4, f"transpose_block_{width}_{'stream' if stream else 'plain'}")


def _element_by_element(move: Any, width: int) -> Any:
    """What no block covers: 64 bytes of each source row, 64 rows, so that lines stay in cache."""
    tile_columns = max(LINE_BYTES // width, 4)

    @njit(error_model="numpy")
    def transpose_elements(dst, src, rows, columns, row_step, column_step):
        for c0 in range(0, columns, tile_columns):
            c1 = min(c0 + tile_columns, columns)
            for r0 in range(0, rows, 64):
                r1 = min(r0 + 64, rows)
                for c in range(c0, c1):
                    out = dst + c * column_step
                    row = src + c * width
                    for r in range(r0, r1):
                        move(out + r * width, row + r * row_step)

    return transpose_elements


def _transpose(width: int, elements: Any) -> Any:
    block, side = _block(width, stream=False), LINE_BYTES // width

    @njit(error_model="numpy")
    def transpose(dst, src, rows, columns, row_step, column_step):
        whole_rows, whole_columns = rows // side * side, columns // side * side
        for r0 in range(0, whole_rows, 2 * side):
            r1 = min(r0 + 2 * side, whole_rows)
            for c in range(0, whole_columns, side):
                for r in range(r0, r1, side):
                    block(
                        dst + c * column_step + r * width,
                        src + r * row_step + c * width,
                        row_step,
                        column_step,
                    )
        # Last columns, then last rows: one call in the code, or it would be compiled twice.
        for part in range(2):
            r = whole_rows if part else 0
            c = 0 if part else whole_columns
            c1 = whole_columns if part else columns
            at = dst + c * column_step + r * width
            elements(at, src + r * row_step + c * width, rows - r, c1 - c, row_step, column_step)

    return transpose


def _stream_transpose(width: int, plain: Any) -> Any:
    block, side = _block(width, stream=True), LINE_BYTES // width

    @njit(error_model="numpy")
    def stream_transpose(dst, src, rows, columns, row_step, column_step):
        """Whole lines past the cache where result rows start on lines alike, all others the plain way."""
        head = min((-dst & 63) // width, rows)
        if (dst % width) | (column_step & 63):
            head = rows
        whole_rows, whole_columns = head + (rows - head) // side * side, columns // side * side
        for r0 in range(head, whole_rows, 2 * side):
            r1 = min(r0 + 2 * side, whole_rows)
            for c in range(0, whole_columns, side):
                for r in range(r0, r1, side):
                    block(
                        dst + c * column_step + r * width,
                        src + r * row_step + c * width,
                        row_step,
                        column_step,
                    )
        # First rows, last rows, last columns: one call in the code, or it would be compiled three times.
        for part in range(3):
            r = whole_rows if part == 1 else head if part == 2 else 0
            r1 = head if part == 0 else whole_rows if part == 2 else rows
            c = whole_columns if part == 2 else 0
            at = dst + c * column_step + r * width
            plain(at, src + r * row_step + c * width, r1 - r, columns - c, row_step, column_step)

    return stream_transpose


def _family() -> dict[str, Any]:
    """Every width, plain and streaming, by the name it has in kernels."""
    moves = {1: move_u8, 2: move_u16, 4: move_u32, 8: move_u64, 16: move_u128}
    out: dict[str, Any] = {}
    for width, move in moves.items():
        name = f"transpose_u{8 * width}"
        out[name] = _transpose(width, _element_by_element(move, width))
        out[f"stream_{name}"] = _stream_transpose(width, out[name])
    return out


TRANSPOSES = _family()
