"""Notebook output of layouts, arrays, copies and kernels; `tilejit.view` is loaded when needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

PAGES = "tilejit.view.notebook"
"""Imported by name, because it imports the classes that it draws, so they cannot import it."""


def notebook_html(maker: str, *subject: Any) -> str | None:
    """HTML of a subject from a function of `PAGES`; None if there is none to show.

    notebook_html("layout_html", Shape.parse("f32[3,5]{1,0:T(2,2)}")) -> '<div style="..."><svg ...'
    """
    html: str | None = getattr(import_module(PAGES), maker)(*subject)
    return html
