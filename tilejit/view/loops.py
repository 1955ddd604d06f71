"""The loops of a kernel as SVG: nested boxes, colored if they run as lanes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from codegen import compiler_lock
from tilejit.view.cells import CHARACTER
from tilejit.view.svg import svg_element

if TYPE_CHECKING:
    from codegen import Function, LoopReport, Statement

ROW, INDENT, MAX_TEXT, MAX_LOOPS = 24, 20, 100, 64


def loops_svg(function: Function, reports: Sequence[LoopReport]) -> str:
    """One <svg> element of the scalar loops, each marked with its schedule; "" if there are none.

    Args:
        function: the scalar kernel.
        reports: the reports on its loops, in source order.
    """
    nested = list(_nested(function.body, 0))[:MAX_LOOPS]
    if not nested:
        return ""
    texts = [str(report) for report in reports] + ["not reported"] * len(nested)
    shown = [text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…" for text in texts[: len(nested)]]
    lanes = [report.vectorized for report in reports] + [False] * len(nested)
    right = 24 + max(int(len(t) * CHARACTER) + d * INDENT for t, (d, _) in zip(shown, nested, strict=True))
    deepest = max(depth for depth, _ in nested)
    width = right + 6 * deepest + 8
    parts = []
    for k, ((depth, below), text) in enumerate(zip(nested, shown, strict=True)):
        x, y = 4 + depth * INDENT, 4 + k * ROW
        box = right + 6 * (deepest - depth) - x
        fill = 'fill="#2f8fe6" fill-opacity="0.3" stroke-width="2"' if lanes[k] else 'fill="none"'
        height = ROW * (min(below, len(nested) - k - 1) + 1) - 4
        parts.append(f'<rect x="{x}" y="{y}" width="{box}" height="{height}" {fill} stroke="currentColor"/>')
        parts.append(f'<text x="{x + 8}" y="{y + 15}">{escape(text)}</text>')
    return svg_element(width, 4 + ROW * len(nested), f"the loops of {function.name}", parts)


def _nested(body: Iterable[Statement], depth: int) -> Iterator[tuple[int, int]]:
    """The depth of each loop, and the number of loops inside it."""
    with compiler_lock:
        from codegen import For
    for statement in body:
        if isinstance(statement, For):
            inside = list(_nested(statement.body, depth + 1))
            yield depth, len(inside)
            yield from inside
