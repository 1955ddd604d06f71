"""The ASCII grid of a layout, as CuTe's print_layout draws it."""

from __future__ import annotations

from typing import Any

from codegen import LayoutError
from tilejit.cute.layout import Layout
from tilejit.cute.swizzle import ComposedLayout
from tilejit.support.tokens import named

MAX_ROWS = 64
MAX_COLUMNS = 64


def format_layout(
    layout: Layout | ComposedLayout, *, max_rows: int = MAX_ROWS, max_columns: int = MAX_COLUMNS
) -> str:
    """Format the text of a layout and a grid of its offsets, the first mode down and the second across.

    >>> print(format_layout(parse("(2,3):(3,1)")))
    (2,3):(3,1)
          0   1   2
        +---+---+---+
     0  | 0 | 1 | 2 |
        +---+---+---+
     1  | 3 | 4 | 5 |
        +---+---+---+

    A nested mode is counted colexicographically. A layout of one mode is a row.

    Args:
        layout: a Layout or a ComposedLayout of at most two modes.
        max_rows: the most rows to print. If rows or columns are omitted, a last line gives their numbers.
        max_columns: the most columns to print.

    Returns:
        Several lines of text.

    Raises:
        LayoutError: the layout has more than two modes.
        TypeError: the argument is not a layout.

    Source: CuTe's print_layout.
    """
    if not isinstance(layout, Layout | ComposedLayout):
        raise TypeError(f"expected a layout, got {type(layout).__name__}")
    if layout.rank > 2:
        raise LayoutError(
            f"{named(layout)} has {layout.rank} modes, but a grid has two\n  group or select modes first"
        )
    rows, columns = _sizes(layout)
    shown_rows, shown_columns = min(rows, max_rows), min(columns, max_columns)
    cells = [[str(_at(layout, i, j)) for j in range(shown_columns)] for i in range(shown_rows)]
    heads = [str(j) for j in range(shown_columns)]
    width = max((len(text) for line in [heads, *cells] for text in line), default=1)
    label = len(str(max(shown_rows - 1, 0)))
    edge = " " * (label + 3) + ("+" + "-" * (width + 2)) * shown_columns + "+"
    lines = [
        str(layout),
        (" " * (label + 3) + "".join(f"  {head:>{width}} " for head in heads)).rstrip(),
        edge,
    ]
    for number, line in enumerate(cells):
        lines += [f" {number:>{label}}  " + "".join(f"| {cell:>{width}} " for cell in line) + "|", edge]
    if (shown_rows, shown_columns) != (rows, columns):
        lines.append(f"the first {shown_rows} x {shown_columns} of {rows} x {columns}")
    return "\n".join(lines)


def print_layout(layout: Layout | ComposedLayout, **limits: Any) -> None:
    """Print a layout with a grid of its offsets, as `format_layout` formats it.

    >>> print_layout(parse("(1,2):(2,1)"))
    (1,2):(2,1)
          0   1
        +---+---+
     0  | 0 | 1 |
        +---+---+

    Args:
        layout: a Layout or a ComposedLayout of at most two modes.
        limits: `max_rows` and `max_columns`, as in `format_layout`.

    Raises:
        LayoutError: the layout has more than two modes.
        TypeError: the argument is not a layout.

    Source: CuTe's print_layout.
    """
    print(format_layout(layout, **limits))


def _sizes(layout: Layout | ComposedLayout) -> tuple[int, int]:
    if layout.rank == 2:
        first, second = (Layout(part).size for part in layout.shape)  # type: ignore[union-attr]
        return first, second
    return 1, layout.size


def _at(layout: Layout | ComposedLayout, row: int, column: int) -> Any:
    return layout(row, column) if layout.rank == 2 else layout(column)
