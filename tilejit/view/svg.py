"""The picture of a layout as SVG: array and memory side by side. Large ones show a tile or a corner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from math import prod

from tilejit.layout.cute_shape import Spec
from tilejit.support.units import counted
from tilejit.view.cells import CELL, CHARACTER, Cell, Cells, cells_of
from tilejit.view.coloring import SHADES, Coloring
from tilejit.view.page import CuteLayout, subject

MAX_TITLE = 96
LINE, GAP = 18, 32
NAME, NAME_CHARACTER = 10, 6.1
"""The size of the names of rows and columns, and the width of a character, in pixels."""
NARROW = 400
"""Boards of cells without text are stacked if they are wider than this, in pixels."""
FONT = "ui-monospace,DejaVu Sans Mono,Menlo,Consolas,monospace"
FILLS = ("#2f8fe6", "#f09a00", "#4db02a", "#e04fc4", "#16a3a3", "#bfa900", "#8a63e8", "#ee6347")
"""Drawn at 30%, so that text in the page's own color is readable on light and dark pages."""
LOOKS = (
    "<style>svg{color:#16181d;background:#fff}"
    "@media (prefers-color-scheme:dark){svg{color:#f0f2f6;background:#14161b}}</style>"
)
STOPS = ("#f5c800", "#3fb34f", "#2f8fe6", "#9a4fe0")
"""The gradient of memory order, drawn at 30% as tiles are."""
THICK = 'stroke-width="2" stroke-linecap="square"'
MIDDLE = 'stroke-opacity="0.7"'
THIN = 'stroke-opacity="0.2"'
LOW_MIDDLE = 'stroke-opacity="0.45"'
LOW_THIN = 'stroke-opacity="0.08"'


def _gradient() -> tuple[str, ...]:
    """A gradient of SHADES colors through all stops."""
    stops = [[int(stop[k : k + 2], 16) for k in (1, 3, 5)] for stop in STOPS]
    out = []
    for shade in range(SHADES):
        at, rest = divmod(shade * (len(stops) - 1), SHADES - 1)
        low, high = stops[at], stops[min(at + 1, len(stops) - 1)]
        mixed = (a + (b - a) * rest // (SHADES - 1) for a, b in zip(low, high, strict=True))
        out.append("#" + "".join(f"{channel:02x}" for channel in mixed))
    return tuple(out)


GRADIENT = _gradient()


def svg(
    layout: Spec | CuteLayout, *, standalone: bool = True, color: str | None = None, tips: bool = True
) -> str:
    """The picture of a layout as one <svg> element, in ASCII.

    >>> Path("layout.svg").write_text(svg(as_layout("f32[3,5]{1,0:T(2,2)}")))

    Cells of the array show slots; cells of memory show indices. Thick lines surround the outermost tiles, and
    thinner lines surround the tiles inside. Padding is hatched. If a tile has too many elements for text, the
    picture shows one complete tile in small cells. `standalone` pictures have their own background; others
    use the colors of the page.

    Args:
        layout: a Shape or a CuTe layout.
        standalone: whether the picture has a background.
        color: "tile", "order" (in memory, as a gradient), or "bank" or "row" of a swizzle. The default
            depends on the layout.
        tips: whether cells with text have tooltips; without, the picture has a fourth of the bytes.

    Raises:
        LayoutError: the size of the buffer is unknown, a CuTe layout has offsets below 0, the color is not
            one of these, or it is "bank" or "row" and the layout has no outermost swizzle.
        TypeError: the layout is neither a Shape nor a CuTe layout, or the color is not a str.
    """
    spec, title = subject(layout)
    coloring = Coloring.of(spec, color)
    facts = _facts(spec, alone=spec is not layout)
    if 0 in spec.dimensions:
        return document(title, [*facts, "no elements"], [], standalone)
    arrays, memory, notes = cells_of(spec, coloring)
    notes = [*facts, *notes, *([coloring.note] if coloring.note else [])]
    palette = GRADIENT if coloring.color == "order" else FILLS
    return document(title, notes, [arrays, memory], standalone, palette, tips=tips)


def _facts(spec: Spec, *, alone: bool) -> list[str]:
    slots = counted(spec.physical_size, "slot")
    if not alone:
        slots += f" of {counted(spec.bits, 'bit')}, {counted(spec.size_in_bytes, 'byte')}"
    return [f"{counted(prod(spec.dimensions), 'element')}, {slots}, {spec.padding_fraction:.1%} padding"]


def document(
    title: str,
    notes: Sequence[str],
    columns: Sequence[Sequence[Cells]],
    standalone: bool,
    palette: Sequence[str] = FILLS,
    *,
    tips: bool = True,
) -> str:
    """The picture: a title, columns of boards, and a line for each note."""
    if any(cells.low and cells.low[0] * cells.columns > NARROW for column in columns for cells in column):
        columns = [[cells for column in columns for cells in column]]
    parts: list[str] = []
    left, right, bottom = 8, 8, 2 * LINE
    for column in columns:
        top, widest = LINE + 14, 0
        before = max((_name_width(cells) for cells in column), default=0)
        for cells in column:
            parts += _board(cells, palette, left, top, before, tips=tips)
            width, height = _size(cells)
            top, widest = top + height + 10, max(widest, before + width, int(len(cells.heading) * CHARACTER))
        right = left + widest if column else right
        left, bottom = right + GAP, max(bottom, top)
    shown = title if len(title) <= MAX_TITLE else title[: MAX_TITLE - 1] + "…"
    lines = [_text(8, LINE, shown, 'font-weight="bold"')]
    lines += [_text(8, bottom + LINE * k + 8, note, 'fill-opacity="0.8"') for k, note in enumerate(notes)]
    longest = max(map(len, (shown, *notes)))
    width = max(right + 8, int(longest * (CHARACTER + 0.6)) + 16)
    height = bottom + LINE * len(notes) + 4
    looks = [LOOKS] if standalone else []
    return svg_element(width, height, title, [*looks, *lines, *parts])


def svg_element(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    """An <svg> of a size in pixels, in ASCII, with a title for screen readers."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" font-family="{FONT}" font-size="12" fill="currentColor">'
    )
    lines = [head, f"<title>{escape(title)}</title>", *parts, "</svg>"]
    return "\n".join(lines).encode("ascii", "xmlcharrefreplace").decode()


def _name_width(cells: Cells) -> int:
    """Pixels left of the cells, for the names of rows."""
    longest = max(map(len, cells.row_names), default=0)
    return int(longest * NAME_CHARACTER) + 6 if longest else 0


def _name_height(cells: Cells) -> int:
    """Pixels above the cells, for the names of columns."""
    return NAME + 4 if cells.column_names else 0


def _size(cells: Cells) -> tuple[int, int]:
    """The width of the cells and the height of a board in pixels, heading and names of columns included."""
    wide, high = cells.cell_size
    width = cells.columns * wide + (CELL if cells.more[0] else 0)
    return width, LINE + _name_height(cells) + len(cells.rows) * high + (LINE if cells.more[1] else 0)


def _board(
    cells: Cells, palette: Sequence[str], left: int, top: int, before: int, *, tips: bool
) -> list[str]:
    """A heading, the names of rows and columns, the cells, and the lines around them."""
    wide, high = cells.cell_size
    above = _name_height(cells)
    out = [_text(left, top + 12, cells.heading, 'fill-opacity="0.8"')]
    left, top = left + before, top + LINE + above
    out += _names(cells, left, top)
    if not tips:
        out += _without_tips(cells, palette, left, top)
    for r, row in enumerate(cells.rows if tips else ()):
        y = top + r * high
        if cells.low:
            out += _runs(row, palette, left, y, cells.low)
        else:
            out += [_cell(cell, palette, left + c * wide, y, wide) for c, cell in enumerate(row)]
    out += _lines(cells, left, top)
    if cells.more[0]:
        out.append(_text(left + cells.columns * wide + 6, top + len(cells.rows) * high // 2 + 4, "…"))
    if cells.more[1]:
        out.append(_text(left + cells.columns * wide // 2 - 4, top + len(cells.rows) * high + 14, "…"))
    return out


def _without_tips(cells: Cells, palette: Sequence[str], left: int, top: int) -> Iterator[str]:
    """The cells: wide strokes, one path for each color, and the texts of each row together."""
    wide, high = cells.cell_size
    strokes: dict[int, list[str]] = {}
    for r, row in enumerate(cells.rows):
        x, y = left, top + r * high
        for color, group in groupby(row, key=lambda cell: cell.color):
            width = wide * sum(1 for _ in group)
            if color is None:
                yield _hatched(x, y, width, high)
            else:
                strokes.setdefault(color, []).append(f"M{x} {y + high / 2:g}h{width}")
            x += width
    for color, path in strokes.items():
        look = f'stroke="{palette[color]}" stroke-opacity="0.3" stroke-width="{high}"'
        yield f'<path d="{"".join(path)}" {look}/>'
    for r, row in enumerate(cells.rows):
        texts = "".join(
            f'<tspan x="{left + c * wide + wide / 2:g}">{escape(cell.text)}</tspan>'
            for c, cell in enumerate(row)
            if cell.text and not cells.low
        )
        if texts:
            yield f'<text y="{top + r * high + 15}" text-anchor="middle">{texts}</text>'


def _names(cells: Cells, left: int, top: int) -> list[str]:
    """The names of the rows and columns that have room, evenly spaced."""
    wide, high = cells.cell_size
    look = f'font-size="{NAME}" fill-opacity="0.7"'
    longest = max(map(len, cells.column_names), default=0)
    step = _step(int(longest * NAME_CHARACTER) + 6, wide)
    across = [
        _text(left + c * wide + wide / 2, top - 4, name, f'{look} text-anchor="middle"')
        for c, name in enumerate(cells.column_names)
        if c % step == 0
    ]
    down = [
        _text(left - 4, top + r * high + high / 2 + 3.5, name, f'{look} text-anchor="end"')
        for r, name in enumerate(cells.row_names)
        if r % _step(NAME + 2, high) == 0
    ]
    return across + down


def _step(room: int, cell: int) -> int:
    """The smallest power of two of cells that have that room."""
    return 1 << max(0, (-(-room // cell) - 1).bit_length())


def _runs(
    row: Sequence[Cell], palette: Sequence[str], x: int, y: int, size: tuple[int, int]
) -> Iterator[str]:
    """The backgrounds of cells without text: one rectangle for adjacent cells of one color."""
    wide, high = size
    for color, group in groupby(row, key=lambda cell: cell.color):
        width = wide * sum(1 for _ in group)
        fill = (x, y, width, high)
        yield _hatched(*fill) if color is None else _background(*fill, palette[color])
        x += width


def _cell(cell: Cell, palette: Sequence[str], x: int, y: int, width: int) -> str:
    """A cell's background, text and tooltip."""
    tip = f"<title>{escape(cell.tip)}</title>"
    if cell.color is None:
        return f"<g>{tip}{_hatched(x, y, width, CELL)}</g>"
    text = f'<text x="{x + width / 2:g}" y="{y + 15}" text-anchor="middle">{escape(cell.text)}</text>'
    return f"<g>{tip}{_background(x, y, width, CELL, palette[cell.color])}{text}</g>"


def _background(x: int, y: int, width: int, height: int, fill: str) -> str:
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}" fill-opacity="0.3"/>'


def _hatched(x: int, y: int, width: int, height: int) -> str:
    """A hatched rectangle, drawn without a pattern, because the ids of patterns may clash on a page."""
    lines = "".join(
        f"M{x + max(0, k - height)} {y + min(k, height)}L{x + min(k, width)} {y + max(0, k - width)}"
        for k in range(6, width + height, 6)
    )
    box = f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill-opacity="0"/>'
    return f'{box}<path d="{lines}" stroke="currentColor" stroke-opacity="0.45"/>'


def _lines(cells: Cells, left: int, top: int) -> Iterator[str]:
    """Lines between cells, and stronger lines between tiles; those of the outermost level are strongest."""
    (wide, high), rows = cells.cell_size, cells.rows
    levels = max((len(cell.tiles) for row in rows for cell in row), default=0)
    paths: list[list[str]] = [[] for _ in range(levels + 2)]
    for r in range(len(rows) + 1):
        line = [_level(cells, r, c, r - 1, c) for c in range(cells.columns)]
        for level, start, count in _stretches(line):
            paths[level].append(f"M{left + start * wide} {top + r * high}h{count * wide}")
    for c in range(cells.columns + 1):
        line = [_level(cells, r, c, r, c - 1) for r in range(len(rows))]
        for level, start, count in _stretches(line):
            paths[level].append(f"M{left + c * wide} {top + start * high}v{count * high}")
    inner, cell_lines = (LOW_MIDDLE, LOW_THIN) if cells.low else (MIDDLE, THIN)
    looks = [THICK, *([inner] * (levels - 1))][:levels]
    for path, look in reversed(list(zip(paths, [THICK, *looks, cell_lines], strict=True))):
        if path:
            yield f'<path d="{"".join(path)}" stroke="currentColor" {look}/>'


def _level(cells: Cells, row: int, column: int, other_row: int, other_column: int) -> int | None:
    """The level that ends between two cells: 0 the picture, 1 the outermost tile, …; None for no end."""

    def at(r: int, c: int) -> Cell | None:
        return cells.rows[r][c] if 0 <= r < len(cells.rows) and 0 <= c < len(cells.rows[r]) else None

    one, two = at(row, column), at(other_row, other_column)
    if one is None or two is None:
        right, below = column >= cells.columns, row >= len(cells.rows)
        cut = not cells.low and ((right and cells.more[0]) or (below and cells.more[1]))
        return None if (one is None and two is None) or cut else 0
    pairs = zip(one.tiles, two.tiles, strict=True)
    return next((k for k, (a, b) in enumerate(pairs, 1) if a != b), len(one.tiles) + 1)


def _stretches(line: Sequence[int | None]) -> Iterator[tuple[int, int, int]]:
    """(level, start, count) for each run of one level."""
    start = 0
    for level, group in groupby(line):
        count = sum(1 for _ in group)
        if level is not None:
            yield level, start, count
        start += count


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}"{" " if more else ""}{more}>{escape(text)}</text>'
