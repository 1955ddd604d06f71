"""The picture of a layout as SVG: array and memory side by side; of a large one a corner."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import islice
from math import prod

from codegen import LayoutError, dataclass
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.indexing import multi_index
from tilejit.view.boards import (
    Tiling,
    board_extents,
    corner,
    other_extents,
    prefixes,
    slice_name,
)
from tilejit.view.page import CuteLayout, row_length, subject

MAX_ROWS, MAX_COLUMNS, MAX_SLICES = 16, 32, 2
MAX_WIDTH = 620
"""Of an array or of memory, in pixels."""
MAX_LOOKED_UP = 1 << 16
"""Elements of CuTe layouts whose slots may have to be looked up in a table."""
MAX_TITLE = 96
CELL, LINE, GAP, CHARACTER = 22, 18, 32, 7.25
FONT = "ui-monospace,DejaVu Sans Mono,Menlo,Consolas,monospace"
FILLS = ("#2f8fe6", "#f09a00", "#4db02a", "#e04fc4", "#16a3a3", "#bfa900", "#8a63e8", "#ee6347")
"""Drawn at 30%, so that text in the page's own color is read on light and on dark pages."""
LOOKS = (
    "<style>svg{color:#16181d;background:#fff}"
    "@media (prefers-color-scheme:dark){svg{color:#f0f2f6;background:#14161b}}</style>"
)


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands in a cell, the tile it belongs to, and its tooltip; padding has no tile."""

    text: str
    tile: int | None
    tip: str


@dataclass(frozen=True, slots=True)
class Cells:
    """Rows of cells with a heading; `more` says what is left out to the right and below."""

    heading: str
    rows: tuple[tuple[Cell, ...], ...]
    more: tuple[bool, bool]

    @property
    def cell_width(self) -> int:
        """In pixels, of the longest text."""
        longest = max((len(cell.text) for row in self.rows for cell in row), default=1)
        return max(CELL, int(longest * CHARACTER) + 8)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels, heading included."""
        columns = max(map(len, self.rows), default=0)
        width = columns * self.cell_width + (CELL if self.more[0] else 0)
        height = LINE + len(self.rows) * CELL + (LINE if self.more[1] else 0)
        return max(width, int(len(self.heading) * CHARACTER)), height


def svg(layout: Spec | CuteLayout, *, standalone: bool = True) -> str:
    """The picture of a layout as one <svg> element, in ASCII.

    >>> Path("layout.svg").write_text(svg(as_layout("f32[3,5]{1,0:T(2,2)}")))

    Cells of the array show slots, cells of memory the index they hold; tiles have colors and edges, padding
    is hatched. `standalone` pictures have a background of their own, others go with the page around them.

    Raises:
        LayoutError: the buffer has no size known here, or a CuTe layout has offsets below 0.
        TypeError: neither a Shape nor a CuTe layout.
    """
    spec, title = subject(layout)
    facts = _facts(spec, alone=spec is not layout)
    if 0 in spec.dimensions:
        return document(title, [*facts, "no elements"], [], [], standalone)
    tiling = _tiling(spec)
    arrays, notes = _arrays(spec, tiling)
    memory = _memory(spec, tiling)
    return document(title, [*facts, *notes], arrays, [memory] if memory else [], standalone, tiling)


def _facts(spec: Spec, *, alone: bool) -> list[str]:
    slots = f"{spec.physical_size} slots"
    if not alone:
        slots += f" of {spec.bits} bits, {spec.size_in_bytes} bytes"
    return [f"{prod(spec.dimensions)} elements, {slots}, {spec.padding_fraction:.1%} padding"]


def _tiling(spec: Spec) -> Tiling:
    try:
        return Tiling.by_digits(spec)
    except LayoutError:  # modes of stride 0 may have more tiles than there are numbers
        return Tiling(spec, 1, ())


def _arrays(spec: Spec, tiling: Tiling) -> tuple[list[Cells], list[str]]:
    """The first slices of the array, and what is said of the rest."""
    others, notes, out = other_extents(spec), [], []
    rows, columns = board_extents(spec)
    for prefix in islice(prefixes(others), MAX_SLICES):
        shown = min(rows, MAX_ROWS), min(columns, MAX_COLUMNS)
        slots = corner(spec, prefix, *shown)
        width = max(CELL, int(len(str(int(slots.max()))) * CHARACTER) + 8)
        fit = max(1, min(shown[1], MAX_WIDTH // width))
        slots = slots[:, :fit]
        tiles = tiling.numbers(corner(tiling.alone, prefix, shown[0], fit))
        name = slice_name(spec, prefix) if others else ""
        cells = tuple(
            tuple(Cell(str(slot), tile, f"slot {slot}") for slot, tile in zip(*pair, strict=True))
            for pair in zip(slots.tolist(), tiles.tolist(), strict=True)
        )
        out.append(Cells(f"array {name}".strip(), cells, (fit < columns, shown[0] < rows)))
    shown_rows, shown_columns = len(out[0].rows), len(out[0].rows[0])
    if out[0].more != (False, False):
        notes.append(f"the first {shown_rows} x {shown_columns} of {rows} x {columns}")
    left = prod(others) - MAX_SLICES
    if left > 0:
        notes.append(f"{left} more slice{'s' * (left > 1)}")
    return out, notes


def _memory(spec: Spec, tiling: Tiling) -> Cells | None:
    """The first rows of the buffer; None where it takes a large table to tell what they hold."""
    if isinstance(spec, CuteShape) and prod(spec.dimensions) > MAX_LOOKED_UP:
        return None
    line, size = row_length(spec), spec.physical_size
    longest = len(",".join(str(n - 1) for n in spec.dimensions))
    fit = max(1, min(line, MAX_COLUMNS, MAX_WIDTH // max(CELL, int(longest * CHARACTER) + 8)))
    rows = [
        tuple(_slot(spec, tiling, slot) for slot in range(start, min(start + fit, size)))
        for start in range(0, min(size, MAX_ROWS * line), line)
    ]
    more = fit < line, MAX_ROWS * line < size
    heading = f"memory, rows of {line} slots" if size > line else "memory"
    return Cells(heading, tuple(rows), more)


def _slot(spec: Spec, tiling: Tiling, slot: int) -> Cell:
    index = multi_index(spec, slot)
    if index is None:
        return Cell("", None, f"slot {slot}: padding")
    text = ",".join(map(str, index))
    return Cell(text or "()", tiling.number(index), f"slot {slot}: [{', '.join(map(str, index))}]")


def document(
    title: str,
    notes: Sequence[str],
    arrays: Sequence[Cells],
    memory: Sequence[Cells],
    standalone: bool,
    tiling: Tiling | None = None,
) -> str:
    """The picture: a title, columns of boards, and a line for each note; tiling: the colors of tiles."""
    parts: list[str] = []
    left, bottom = 8, 2 * LINE
    for column in (arrays, memory):
        top, widest = LINE + 14, 0
        for cells in column:
            assert tiling is not None
            parts += _board(cells, tiling, left, top)
            width, height = cells.size
            top, widest = top + height + 10, max(widest, width)
        left, bottom = left + (widest + GAP if column else 0), max(bottom, top)
    shown = title if len(title) <= MAX_TITLE else title[: MAX_TITLE - 1] + "…"
    lines = [_text(8, LINE, shown, 'font-weight="bold"')]
    lines += [_text(8, bottom + LINE * k + 8, note, 'fill-opacity="0.8"') for k, note in enumerate(notes)]
    longest = max(map(len, (shown, *notes)))
    width = max(left - GAP + 8, int(longest * (CHARACTER + 0.6)) + 16)
    height = bottom + LINE * len(notes) + 4
    looks = [LOOKS] if standalone else []
    return svg_element(width, height, title, [*looks, *lines, *parts])


def svg_element(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    """An <svg> of a size in pixels, whose title readers of the screen read out; in ASCII."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" font-family="{FONT}" font-size="12" fill="currentColor">'
    )
    lines = [head, f"<title>{escape(title)}</title>", *parts, "</svg>"]
    return "\n".join(lines).encode("ascii", "xmlcharrefreplace").decode()


def _board(cells: Cells, tiling: Tiling, left: int, top: int) -> list[str]:
    width = cells.cell_width
    out = [_text(left, top + 12, cells.heading, 'fill-opacity="0.8"')]
    top += LINE
    for r, row in enumerate(cells.rows):
        for c, cell in enumerate(row):
            out.append(_cell(cell, tiling, left + c * width, top + r * CELL, width))
    out.append(_edges(cells, left, top, width))
    if cells.more[0]:
        right = left + max(map(len, cells.rows)) * width + 6
        out += [_text(right, top + r * CELL + 15, "…") for r in range(len(cells.rows))]
    if cells.more[1]:
        out.append(_text(left + width // 2 - 4, top + len(cells.rows) * CELL + 14, "…"))
    return out


def _cell(cell: Cell, tiling: Tiling, x: int, y: int, width: int) -> str:
    """A cell's ground, text and tooltip; padding is hatched with lines of its own, since ids may clash."""
    tip = f"<title>{escape(cell.tip)}</title>"
    box = f'<rect x="{x}" y="{y}" width="{width}" height="{CELL}"'
    if cell.tile is None:
        lines = "".join(
            f"M{x + max(0, k - CELL)} {y + min(k, CELL)}L{x + min(k, width)} {y + max(0, k - width)}"
            for k in range(6, width + CELL, 6)
        )
        path = f'<path d="{lines}" stroke="currentColor" stroke-opacity="0.45"/>'
        return f'<g>{tip}{box} fill-opacity="0"/>{path}</g>'
    fill = FILLS[tiling.color(cell.tile)]
    text = f'<text x="{x + width / 2:g}" y="{y + 15}" text-anchor="middle">{escape(cell.text)}</text>'
    return f'<g>{tip}{box} fill="{fill}" fill-opacity="0.3"/>{text}</g>'


def _edges(cells: Cells, left: int, top: int, width: int) -> str:
    """Lines around all cells, and where one tile, or padding, meets another."""
    thin: list[str] = []
    thick: list[str] = []
    for r, row in enumerate(cells.rows):
        for c, cell in enumerate(row):
            x, y = left + c * width, top + r * CELL
            before = row[c - 1].tile if c else -1
            above = cells.rows[r - 1][c].tile if r else -1
            (thin if before == cell.tile else thick).append(f"M{x} {y}v{CELL}")
            (thin if above == cell.tile else thick).append(f"M{x} {y}h{width}")
            if c == len(row) - 1 and not cells.more[0]:
                thick.append(f"M{x + width} {y}v{CELL}")
            if (r == len(cells.rows) - 1 or c >= len(cells.rows[r + 1])) and not cells.more[1]:
                thick.append(f"M{x} {y + CELL}h{width}")
    return (
        f'<path d="{"".join(thin)}" stroke="currentColor" stroke-opacity="0.2"/>'
        f'<path d="{"".join(thick)}" stroke="currentColor" stroke-width="1.5" stroke-linecap="square"/>'
    )


def _text(x: int, y: int, text: str, more: str = "") -> str:
    return f'<text x="{x}" y="{y}"{" " if more else ""}{more}>{escape(text)}</text>'
