"""Interleaves of a few rows in registers, and their inverses: pure functions of LLVM values."""

from __future__ import annotations

from functools import partial
from typing import Any

from codegen.ir.blocks import INTERLEAVED_ROWS
from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.simd.register.intrinsics import Emit, routine
from codegen.simd.register.level_networks import by_level
from codegen.simd.register.memory import vector
from codegen.simd.register.networks import LANES, exchange_lanes, transposed_lines
from codegen.simd.register.shuffles import concatenated, cut, shuffle, unpack
from codegen.simd.register.values import Vector, from_lines, in_lines, lanes_as, lines_of, vector_type


def _interleaved(operand: Any) -> tuple[Any, Emit]:
    """interleaved(block): the rows of a block element by element, as one row, or as lines."""
    given = vector_type(operand, "interleaved")
    width = given.element_bytes
    kind = in_lines(given.dtype, given.rows * given.lanes)

    def emit(builder: Any, block: Any) -> Any:
        rows = [lanes_as(builder, part, 8 * width) for part in lines_of(builder, block)]
        return from_lines(builder, kind, zipped_lines(builder, rows, width))

    return kind(operand), emit


def _deinterleaved(count: int) -> Any:
    """deinterleaved_2(line): the rows that `interleaved` packed together, `count` of them."""
    name = f"deinterleaved_{count}"

    def rule(operand: Any) -> tuple[Any, Emit]:
        given = vector_type(operand, name)
        width = given.element_bytes
        kind = Vector(given.dtype, given.rows * given.lanes // count, count)

        def emit(builder: Any, packed: Any) -> Any:
            lines = [lanes_as(builder, part, 8 * width) for part in lines_of(builder, packed)]
            return from_lines(builder, kind, _unzipped(builder, lines, count, width))

        return kind(operand), emit

    return routine(name, 1, rule)


def _unzipped(builder: Any, lines: list[Any], count: int, width: int) -> list[Any]:
    """The rows that `zipped_lines` interleaved."""
    if count == 3:
        return unzip_three(builder, lines, width)
    if _is_square(lines, width):
        return transposed_lines(builder, lines, width)
    if len(lines) == count:
        return by_level(
            builder,
            lambda: _unzip_in_lanes(builder, lines, width),
            lambda: _unzip_lines(builder, lines, width),
        )
    return unzip_rows(builder, concatenated(builder, lines), count)


def _is_square(lines: list[Any], width: int) -> bool:
    """Whether the lines have as many elements as there are lines: eight of 8 bytes."""
    return len(lines) * width == LINE_BYTES and lines[0].type.count == len(lines)


def zip_rows(builder: Any, rows: list[Any]) -> Any:
    """Interleave rows into one vector: r0[0] r1[0] … r0[1] r1[1] …"""
    if len(rows) == 1:
        return rows[0]
    even, odd = zip_rows(builder, rows[0::2]), zip_rows(builder, rows[1::2])
    lanes = even.type.count
    return shuffle(builder, even, odd, [k // 2 + (k % 2) * lanes for k in range(2 * lanes)])


def _zip_lines(builder: Any, rows: list[Any]) -> list[Any]:
    """The interleaved rows as lines, two at a time: LLVM splits shuffles of more than two lines badly."""
    if len(rows) == 1:
        return rows
    even, odd = _zip_lines(builder, rows[0::2]), _zip_lines(builder, rows[1::2])
    n = rows[0].type.count
    masks = [[k // 2 + (k % 2) * n for k in range(half * n, (half + 1) * n)] for half in (0, 1)]
    return [shuffle(builder, *both, mask) for both in zip(even, odd, strict=True) for mask in masks]


def _unzip_lines(builder: Any, lines: list[Any], width: int) -> list[Any]:
    """The rows that `_zip_lines` interleaved. Bytes are first grouped by rows within each lane."""
    count, kind = len(lines), lines[0].type
    if width > 1:
        return _even_and_odd(builder, lines)
    group = LANE_BYTES // count
    mask = [
        lane + row + count * k
        for lane in range(0, LINE_BYTES, LANE_BYTES)
        for row in range(count)
        for k in range(group)
    ]
    groups = vector(8 * group, LINE_BYTES // group)
    grouped = [builder.bitcast(shuffle(builder, line, line, mask), groups) for line in lines]
    return [builder.bitcast(row, kind) for row in _even_and_odd(builder, grouped)]


def _even_and_odd(builder: Any, lines: list[Any]) -> list[Any]:
    """The rows that were interleaved in as many lines."""
    if len(lines) == 1:
        return lines
    lanes, pairs = lines[0].type.count, list(zip(lines[0::2], lines[1::2], strict=True))
    even, odd = (
        _even_and_odd(builder, [shuffle(builder, a, b, list(range(k, 2 * lanes, 2))) for a, b in pairs])
        for k in (0, 1)
    )
    return [line for both in zip(even, odd, strict=True) for line in both]


def _zip_in_lanes(builder: Any, rows: list[Any], width: int) -> list[Any]:
    """Interleave within lanes, then put the lanes in order: four rows of bytes in 28 shuffles of 32 bytes.

    Lane l of register r has the 16 bytes that are number r + count * l of the result.
    """

    def zipped(rows: list[Any]) -> list[Any]:
        if len(rows) == 1:
            return rows
        both = zip(zipped(rows[0::2]), zipped(rows[1::2]), strict=True)
        return [unpack(builder, even, odd, high, width) for even, odd in both for high in (0, 1)]

    kind, made = rows[0].type, zipped(rows)
    if len(made) == 2:
        lines = _lane_pairs(builder, made, ((0, 4, 1, 5), (2, 6, 3, 7)))
    else:
        fours = [exchange_lanes(builder, made[k : k + LANES]) for k in range(0, len(made), LANES)]
        lines = [line for each in zip(*fours, strict=True) for line in each]
    return [builder.bitcast(line, kind) for line in lines]


def _unzip_in_lanes(builder: Any, lines: list[Any], width: int) -> list[Any]:
    """The rows that `_zip_in_lanes` interleaved: as many more rounds of it as bring all bytes back."""
    count, kind = len(lines), lines[0].type
    if count == 2:
        made = _lane_pairs(builder, lines, ((0, 2, 4, 6), (1, 3, 5, 7)))
    else:
        fours = count // LANES
        made = [x for k in range(fours) for x in exchange_lanes(builder, lines[k::fours])]
    for _ in range((LANE_BYTES // width).bit_length() - 1):
        both = list(zip(made[: count // 2], made[count // 2 :], strict=True))
        made = [unpack(builder, a, b, high, width) for a, b in both for high in (0, 1)]
    return [builder.bitcast(row, kind) for row in made]


def _lane_pairs(builder: Any, two: list[Any], orders: tuple[tuple[int, ...], ...]) -> list[Any]:
    """Two lines with the lanes of two others, counted from the first lane of the first one."""
    a, b = (builder.bitcast(line, vector(64, 8)) for line in two)
    return [
        shuffle(builder, a, b, [2 * lane + half for lane in order for half in (0, 1)]) for order in orders
    ]


def zip_three(builder: Any, rows: list[Any], width: int) -> list[Any]:
    """Interleave three lines into three: r0[0] r1[0] r2[0] r0[1] …

    First within lanes: 16 bytes of each row become 48 bytes in order. Then the lanes are put in order.
    """
    n = LANE_BYTES // width
    triples = [
        _in_lanes(builder, rows, [((j * n + i) % 3, (j * n + i) // 3) for i in range(n)], width)
        for j in range(3)
    ]
    order = [(j, lane) for lane in range(LANES) for j in range(3)]
    return [_lanes_of(builder, triples, order[4 * k : 4 * k + 4]) for k in range(3)]


def unzip_three(builder: Any, lines: list[Any], width: int) -> list[Any]:
    """The rows that `zip_three` interleaved."""
    n = LANE_BYTES // width
    order = [(k, lane) for k in range(3) for lane in range(LANES)]
    triples = [_lanes_of(builder, lines, order[j::3]) for j in range(3)]
    return [
        _in_lanes(builder, triples, [((3 * i + r) // n, (3 * i + r) % n) for i in range(n)], width)
        for r in range(3)
    ]


def _in_lanes(builder: Any, three: list[Any], selection: list[tuple[int, int]], width: int) -> Any:
    """Items of three lines by (line, index within the lane), the same in each of the four lanes."""
    n, items = LANE_BYTES // width, vector(8 * width, LINE_BYTES // width)
    a, b, c = (builder.bitcast(line, items) for line in three)
    starts = range(0, items.count, n)
    two = [lane + index + (items.count if which == 1 else 0) for lane in starts for which, index in selection]
    all_ = [
        items.count + lane + index if which == 2 else lane + i
        for lane in starts
        for i, (which, index) in enumerate(selection)
    ]
    return shuffle(builder, shuffle(builder, a, b, two), c, all_)


def _lanes_of(builder: Any, three: list[Any], selection: list[tuple[int, int]]) -> Any:
    """A line of four lanes selected from three lines, by (line, lane)."""
    kind, words = three[0].type, vector(64, 8)
    a, b, c = (builder.bitcast(line, words) for line in three)
    two = [8 * (which == 1) + 2 * lane + half for which, lane in selection for half in (0, 1)]
    all_ = [
        8 + 2 * lane + half if which == 2 else 2 * i + half
        for i, (which, lane) in enumerate(selection)
        for half in (0, 1)
    ]
    return builder.bitcast(shuffle(builder, shuffle(builder, a, b, two), c, all_), kind)


def unzip_rows(builder: Any, zipped: Any, count: int) -> list[Any]:
    """The rows that `zip_rows` interleaved."""
    lanes = zipped.type.count // count
    return [shuffle(builder, zipped, zipped, [r + count * c for c in range(lanes)]) for r in range(count)]


def zipped_lines(builder: Any, rows: list[Any], width: int) -> list[Any]:
    """The interleaved rows as lines, or as one vector if they fill less than a line."""
    if len(rows) == 3:
        return zip_three(builder, rows, width)
    if _is_square(rows, width):
        return transposed_lines(builder, rows, width)
    lanes = LINE_BYTES // width
    if rows[0].type.count == lanes:
        in_lanes = partial(_zip_in_lanes, builder, rows, width)
        return in_lanes() if width == 1 else by_level(builder, in_lanes, lambda: _zip_lines(builder, rows))
    zipped = zip_rows(builder, rows)
    starts = range(0, zipped.type.count, lanes)
    return [cut(builder, zipped, k, min(lanes, zipped.type.count)) for k in starts]


INTERLEAVES = {
    "interleaved": routine("interleaved", 1, _interleaved),
    **{f"deinterleaved_{count}": _deinterleaved(count) for count in INTERLEAVED_ROWS},
}
"""The builders of these instructions by name."""
