"""The bytes of a format of planes as SVG: strips of bytes, whose bits have the color of their plane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from itertools import groupby
from typing import Any, NamedTuple

from codegen import dataclass
from tilejit.support.units import counted
from tilejit.view.bit_owners import COMPUTED, CONSTANT, ByteOwners, Run, owners
from tilejit.view.byte_map import ROUNDED, Line, index_of, lines_of, shortened
from tilejit.view.cells import CHARACTER
from tilejit.view.svg import FILLS, LINE, LOOKS, NAME, NAME_CHARACTER, svg_element

MOST_BYTES, FIRST_BYTES, LAST_BYTES = 16, 10, 2
"""The longest line of which all bytes are drawn; else its first and last ones."""
MOST_ROWS = 8
"""The most rows of a buffer."""
LETTER = 14
"""The height of a run of bits with text, in pixels."""
BETWEEN, GAP = 8, 20
"""Pixels between rows, and in place of bytes that are left out."""
ANY = "*"
"""The text of bits that are computed from several values."""


class Block(NamedTuple):
    """Bytes first to last that are drawn as one: those of an element, or a single byte; None for a gap."""

    first: int
    last: int
    runs: tuple[Run, ...] | None


@dataclass(frozen=True, slots=True)
class Row:
    """A row of bytes: their numbers in words, and the blocks from left to right."""

    range: str
    blocks: tuple[Block, ...]

    @property
    def bit(self) -> int:
        """The height of a bit in pixels."""
        return -(-LETTER // _least_run(block.runs or () for block in self.blocks)) + 1


def byte_svg(
    text: str, dims: tuple[int, ...] | None = None, *, standalone: bool = True, **parameters: Any
) -> str:
    """The bytes of a format as one <svg> element, in ASCII.

    >>> Path("q4_0.svg").write_text(byte_svg("ggml-q4_0"))

    A column is a byte, bit 7 on top. Bits of one element have one box with the element's index, without
    leading dimensions of size 1.

    Args:
        text: the name of a format of planes.
        dims: the dimensions of its main plane; None takes one record, or the format's example.
        standalone: whether the picture has a background; others use the colors of the page.
        parameters: the parameters of the format.
    """
    found = owners(text, dims, **parameters)
    rows = {key: rows_of(found, key) for key in found.buffers}
    left = 8 + max(_width(row.range, NAME_CHARACTER) for own in rows.values() for row in own) + 6
    cell = max(
        (_least_cell(block, found) for own in rows.values() for row in own for block in row.blocks), default=0
    )
    title = f"{text} of {list(found.dims)}".replace(", ", ",")
    parts, y, right = [_text(8, LINE, title, 'font-weight="bold"')], LINE + 10, 0
    for key, own in rows.items():
        size = counted(len(found.buffers[key]), "byte")
        y += LINE
        parts.append(_text(8, y, f"{key}, {size}" if len(rows) > 1 else size, 'fill-opacity="0.8"'))
        y += BETWEEN
        for row in own:
            drawn, wide = _row(row, found, left, y, cell)
            parts += drawn
            y += (8 * row.bit if row.blocks else LINE) + BETWEEN
            right = max(right, wide)
    notes = [*_notes(found), "bit 7 of each byte on top"]
    parts += _legend(found, y + 6)
    y += 6 + LINE
    parts += [_text(8, y + LINE * k + 12, note, 'fill-opacity="0.8"') for k, note in enumerate(notes)]
    widest = max(_width(line, CHARACTER + 0.6) for line in (title, *notes, _legend_text(found)))
    looks = [LOOKS] if standalone else []
    return svg_element(max(right, widest + 8) + 8, y + LINE * len(notes) + 8, title, [*looks, *parts])


def rows_of(found: ByteOwners, buffer: str) -> list[Row]:
    """The rows of a buffer: lines that follow one rule, several short ones together."""
    rows: list[Row] = []
    short: list[Line] = []
    for line in shortened(lines_of(found, buffer)):
        if short and not _fits(short, line, found.buffers[buffer]):
            rows.append(_joined(short, found.buffers[buffer]))
            short = []
        if not line.shown:
            rows.append(Row(line.range, ()))
        elif line.last - line.first < MOST_BYTES:
            short.append(line)
        else:
            rows.append(_long(line, found.buffers[buffer]))
    if short:
        rows.append(_joined(short, found.buffers[buffer]))
    return rows if len(rows) <= MOST_ROWS else [*rows[: MOST_ROWS - 1], Row(_rest(rows), ())]


def _fits(lines: list[Line], more: Line, rows: list[tuple[Run, ...]]) -> bool:
    """Whether a line is drawn beside others: there is room, and planes or heights of runs are the same."""
    if not more.shown or more.last - lines[0].first >= MOST_BYTES:
        return False
    first, last = rows[lines[0].first : lines[-1].last + 1], rows[more.first : more.last + 1]
    return _planes_of(first) == _planes_of(last) or _least_run(first) == _least_run(last)


def _planes_of(rows: list[tuple[Run, ...]]) -> set[str]:
    return {run.plane for runs in rows for run in runs if run.plane}


def _least_run(rows: Iterable[tuple[Run, ...]]) -> int:
    return min((run.high - run.low + 1 for runs in rows for run in runs), default=8)


def _rest(rows: list[Row]) -> str:
    first, last = rows[MOST_ROWS - 1].range.partition(" to ")[0], rows[-1].range.rpartition(" to ")[2]
    return f"{first} to {last}"


def _joined(lines: list[Line], rows: list[tuple[Run, ...]]) -> Row:
    whole = Line(lines[0].first, lines[-1].last, "")
    return Row(whole.range, tuple(_blocks(rows, whole.first, whole.last)))


def _long(line: Line, rows: list[tuple[Run, ...]]) -> Row:
    blocks = [*_blocks(rows, line.first, line.last)]
    first, last = FIRST_BYTES // _cells(blocks[0]), LAST_BYTES // _cells(blocks[0])
    if len(blocks) <= first + last + 1:
        return Row(line.range, tuple(blocks))
    return Row(line.range, (*blocks[:first], Block(0, 0, None), *blocks[-last:]))


def _blocks(rows: list[tuple[Run, ...]], first: int, last: int) -> Iterator[Block]:
    """Bytes of one element together, each other byte alone."""

    def key(number: int) -> tuple[Run, ...] | int:
        return rows[number] if _whole(rows[number]) else number

    for _, group in groupby(range(first, last + 1), key=key):
        own = [*group]
        yield Block(own[0], own[-1], rows[own[0]])


def _whole(runs: tuple[Run, ...]) -> bool:
    return len(runs) == 1 and runs[0].element >= 0


def _label(run: Run, found: ByteOwners) -> str:
    """The index of an element without leading dimensions of size 1."""
    if run.element < 0:
        return ANY if run.element == COMPUTED else ""
    shape, index = found.shapes[run.plane], index_of(run, found.shapes)
    kept = next((k for k, size in enumerate(shape) if size > 1), len(shape) - 1)
    return ",".join(map(str, index[kept:]))


def _least_cell(block: Block, found: ByteOwners) -> int:
    """The least width of a byte in which the texts of a block have room."""
    longest = max((len(_label(run, found)) for run in block.runs or ()), default=0)
    return -(-(int(longest * NAME_CHARACTER) + 6) // _cells(block))


def _cells(block: Block) -> int:
    """The width of a block, in bytes of which each has its own runs."""
    return min(2, block.last - block.first + 1)


def _row(row: Row, found: ByteOwners, left: int, y: int, cell: int) -> tuple[list[str], int]:
    """The SVG of a row, and its right end: a path of boxes for each plane, the lines, and the texts."""
    high = 8 * row.bit
    name = f'font-size="{NAME}" fill-opacity="0.7" text-anchor="end"'
    if not row.blocks:
        return [_text(left - 6, y + 10, row.range, name), _text(left, y + 10, "...")], left
    out = [_text(left - 6, y + high / 2 + 3.5, row.range, name)]
    boxes: dict[str, list[str]] = {}
    texts: list[str] = []
    planes, x = [*found.shapes], left
    for block in row.blocks:
        if block.runs is None:
            texts.append(f'<tspan x="{x + GAP / 2:g}" y="{y + high / 2:g}">...</tspan>')
            x += GAP
            continue
        width = cell * _cells(block)
        for run in block.runs:
            top, height = y + (7 - run.high) * row.bit, (run.high - run.low + 1) * row.bit
            look = (
                f'fill="{FILLS[planes.index(run.plane) % len(FILLS)]}"'
                if run.plane
                else 'fill="currentColor"'
            )
            look += (
                ' fill-opacity="0.3"'
                if run.plane
                else f' fill-opacity="{0.15 if run.element == COMPUTED else 0}"'
            )
            boxes.setdefault(look, []).append(f"M{x} {top}h{width}v{height}h-{width}z")
            label = _label(run, found)
            if label:
                texts.append(f'<tspan x="{x + width / 2:g}" y="{top + height / 2 + 3.5:g}">{label}</tspan>')
            elif run.element == CONSTANT:
                boxes.setdefault('stroke-opacity="0.45"', []).append(f"M{x} {top + height}L{x + width} {top}")
        x += width
    out += [f'<path d="{"".join(path)}" {look} stroke="currentColor"/>' for look, path in boxes.items()]
    out.append(f'<text font-size="{NAME}" text-anchor="middle">{"".join(texts)}</text>')
    return out, x


def _legend_text(found: ByteOwners) -> str:
    return "".join(f"   {text}" for text in _planes(found))


def _planes(found: ByteOwners) -> list[str]:
    return [f"{name} [{','.join(map(str, shape))}]" for name, shape in found.shapes.items()]


def _legend(found: ByteOwners, y: int) -> Iterator[str]:
    """The color and the dimensions of each plane."""
    x = 8.0
    for k, text in enumerate(_planes(found)):
        look = f'fill="{FILLS[k % len(FILLS)]}" fill-opacity="0.3" stroke="currentColor"'
        yield f'<rect x="{x:g}" y="{y}" width="12" height="12" {look}/>'
        yield _text(x + 18, y + 10, text)
        x += 18 + _width(text, CHARACTER) + 16


def _notes(found: ByteOwners) -> Iterator[str]:
    kinds = {run.element for rows in found.buffers.values() for row in rows for run in row}
    if COMPUTED in kinds:
        yield f"{ANY} computed from several values"
    if found.rounds:
        yield ROUNDED


def _width(text: str, character: float) -> int:
    return int(len(text) * character)


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}"{" " if more else ""}{more}>{escape(text)}</text>'
