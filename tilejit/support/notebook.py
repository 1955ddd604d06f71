"""What notebooks show of layouts, arrays, copies and kernels; `tilejit.view` is loaded when one asks."""

from __future__ import annotations

from importlib import import_module
from typing import Any

PAGES = "tilejit.view.notebook"
"""The module, by its name: it draws what calls it, so it cannot be imported from there."""


def notebook_html(maker: str, *subject: Any) -> str | None:
    """HTML of a subject, made by a function of `PAGES`; None where there is none to show.

    notebook_html("layout_html", Shape.parse("f32[3,5]{1,0:T(2,2)}")) -> '<div style="..."><svg ...'
    """
    html: str | None = getattr(import_module(PAGES), maker)(*subject)
    return html
