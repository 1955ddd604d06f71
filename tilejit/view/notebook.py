"""Render shapes, layouts, tiled arrays and kernels for notebooks, as HTML with SVG pictures."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

from codegen import TilejitError
from tilejit.layout.cute_shape import Spec
from tilejit.view.loops import loops_svg
from tilejit.view.page import CuteLayout
from tilejit.view.svg import svg

if TYPE_CHECKING:
    from tilejit.kernels.kernel import Kernel

STYLE = "overflow-x:auto;max-width:100%"
OPEN = ' open=""'


def layout_html(layout: Spec | CuteLayout, heading: str = "", color: str | None = None) -> str | None:
    """The picture of a layout; None if there is none, so that a notebook prints the text.

    layout_html(Shape.parse("f32[3,5]{1,0:T(2,2)}")) -> '<div style="..."><svg ...'
    """
    try:
        picture = svg(layout, standalone=False, color=color)
    except TilejitError:
        return None
    head = f"<div><code>{escape(heading)}</code></div>" if heading else ""
    return f'<div style="{STYLE}">{head}{picture}</div>'


def texts_html(heading: str, texts: Iterable[tuple[str, str]]) -> str:
    """Texts of a kernel, each under a heading that opens it; the first is open.

    texts_html("add", [("report", "loop i: ...")]) -> '<div ...><details open=""><summary>report</summary>...'
    """
    parts = [
        f"<details{'' if k else OPEN}><summary>{escape(name)}</summary>"
        f'<pre style="{STYLE}">{escape(text)}</pre></details>'
        for k, (name, text) in enumerate(texts)
        if text
    ]
    return f'<div style="{STYLE}"><div><code>{escape(heading)}</code></div>{"".join(parts)}</div>'


def kernel_html(kernel: Kernel[..., Any]) -> str:
    """A kernel of loops: the loops as SVG, and the generated code under headings.

    Before the first call or `specialize`, the result only names the function.
    """
    name = repr(kernel)
    try:
        program = kernel.program
    except TilejitError:
        return texts_html(name, [("not specialized yet", "call it, or .specialize(*arguments) first")])
    picture = loops_svg(program.function, program.vectorized.loops)
    texts = [
        ("report", kernel.report()),
        ("loops", kernel.nest),
        ("in super-vectors", kernel.vectorized),
        ("source", kernel.source),
    ]
    return f'<div style="{STYLE}">{picture}{texts_html(name, texts)}</div>'
