"""Shuffle networks that transpose blocks of registers: pure functions of LLVM values, without memory access.

The networks of lines end with in-lane unpacks, which run at one per cycle on every CPU. Permutes across lanes
do not. `transposed_rows` takes blocks of any other shape.
"""

from __future__ import annotations

from typing import Any

from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.simd.register.memory import vector
from codegen.simd.register.shuffles import concatenated, cut, shuffle, unpack

LANES = LINE_BYTES // LANE_BYTES


def exchange_lanes(builder: Any, lines: list[Any]) -> list[Any]:
    """Transpose the lanes of four lines: lane l of result q is lane q of line l."""
    words = [builder.bitcast(line, vector(64, 8)) for line in lines]

    def select(a: Any, b: Any, lanes: tuple[int, int, int, int]) -> Any:
        return shuffle(builder, a, b, [2 * lane + half for lane in lanes for half in (0, 1)])

    low = select(words[0], words[1], (0, 1, 4, 5)), select(words[2], words[3], (0, 1, 4, 5))
    high = select(words[0], words[1], (2, 3, 6, 7)), select(words[2], words[3], (2, 3, 6, 7))
    pairs = ((*low, (0, 2, 4, 6)), (*low, (1, 3, 5, 7)), (*high, (0, 2, 4, 6)), (*high, (1, 3, 5, 7)))
    return [builder.bitcast(select(a, b, lanes), vector(8, LINE_BYTES)) for a, b, lanes in pairs]


def halves(builder: Any, a: Any, b: Any) -> list[Any]:
    """A line of the low halves of two lines, and one of their high halves."""
    half = LINE_BYTES // 2
    low = [*range(half), *range(LINE_BYTES, LINE_BYTES + half)]
    return [shuffle(builder, a, b, low), shuffle(builder, a, b, [k + half for k in low])]


def transposed_lanes(builder: Any, registers: list[Any], width: int) -> list[Any]:
    """16/width result lines from as many registers, where lane l of register r holds row r + (16/width) * l.

    Each round interleaves rows that are half as far apart. At the end k counts result rows.
    """
    n = LANE_BYTES // width
    for _ in range(n.bit_length() - 1):
        registers = [
            unpack(builder, registers[k // 2], registers[k // 2 + n // 2], k & 1, width) for k in range(n)
        ]
    return registers


def transposed_lines(builder: Any, lines: list[Any], width: int) -> list[Any]:
    """The 64/width result lines of a square block, in order, from its source lines.

    Each full line is loaded once: at power-of-two pitches all rows of a block map to the same cache set and
    evict each other.
    """
    if width == LINE_BYTES:
        return lines
    if width == 2 * LANE_BYTES:
        return halves(builder, lines[0], lines[1])
    n = LANE_BYTES // width
    groups = [exchange_lanes(builder, [lines[r + n * lane] for lane in range(LANES)]) for r in range(n)]
    return [
        line
        for q in range(LANES)
        for line in transposed_lanes(builder, [group[q] for group in groups], width)
    ]


def transposed_rows(builder: Any, rows: list[Any], columns: int) -> list[Any]:
    """The rows of the transpose of any block whose sides are powers of two, from its rows.

    A block that is not square is cut into squares, whose rows are joined where the result has long ones. An
    element may be several lanes of its row.
    """
    side, each = min(len(rows), columns), rows[0].type.count // columns
    squares = []
    for top in range(0, len(rows), side):
        for left in range(0, columns, side):
            square = [cut(builder, row, left * each, side * each) for row in rows[top : top + side]]
            squares.append(by_exchanges(builder, square, each))
    if columns > side:
        return [row for square in squares for row in square]
    return [concatenated(builder, [square[k] for square in squares]) for k in range(side)]


def by_exchanges(builder: Any, rows: list[Any], each: int = 1) -> list[Any]:
    """Transpose a square block of elements of `each` lanes by Eklundh's method.

    Rows half a block apart exchange half of their elements, then a quarter apart, etc.
    """
    side, distance = len(rows), len(rows) // 2
    rows = list(rows)
    while distance:
        upper = [k if not k & distance else side + k - distance for k in range(side)]
        lower = [k + distance if not k & distance else side + k for k in range(side)]
        masks = [[each * k + part for k in order for part in range(each)] for order in (upper, lower)]
        for r in range(side):
            if not r & distance:
                a, b = rows[r], rows[r + distance]
                rows[r], rows[r + distance] = (shuffle(builder, a, b, mask) for mask in masks)
        distance //= 2
    return rows
