"""The reference: every public name has a place, and examples become code."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import tilejit

DOCS = Path(__file__).parents[2] / "docs"


def of_docs(name: str) -> ModuleType:
    """A module of docs/, which is not a package."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


rewritten = of_docs("docstring_text").rewritten


def test_every_public_name_has_a_place() -> None:
    page = (DOCS / "reference" / "tilejit.md").read_text()
    named = re.findall(r"^::: tilejit\.(\w+)$", page, re.MULTILINE)
    assert sorted(named) == sorted({*tilejit.__all__} - {"cute"})
    assert named[:3] == ["pack", "unpack", "relayout"]


def test_examples_become_code() -> None:
    text = "Add.\n\n>>> add(1, 2)\n3\n\n(4,8):(8,1) -> 32    empty -> 0\n\nMore.\n# not a heading"
    fence = "```"
    assert rewritten(text) == (
        f"Add.\n\n{fence}pycon\n>>> add(1, 2)\n3\n{fence}\n\n"
        f"{fence}text\n(4,8):(8,1) -> 32    empty -> 0\n{fence}\n\nMore.\n\\# not a heading"
    )


def test_sections_are_kept() -> None:
    text = "Do.\n\nArgs:\n    x: one -> two.\n    y: three.\n\nRaises:\n    LayoutError: no."
    assert rewritten(text) == text
    assert rewritten("Attributes:\n    x: # in text.\n    y: * in text.") == (
        "Attributes:\n    x: \\# in text.\n    y: \\* in text."
    )


def test_the_picture_of_a_layout_is_up_to_date() -> None:
    """`python docs/layout_picture.py` draws it."""
    drawn = of_docs("layout_picture").picture()
    assert (DOCS / "images" / "layout.svg").read_text() == drawn
    cells = re.findall(r">(\d,\d)</text>", drawn)
    assert cells[:15] == [f"{i},{j}" for i in range(3) for j in range(5)]
    assert " ".join(cells[15:]) == "0,0 0,1 1,0 1,1 0,2 0,3 1,2 1,3 0,4 1,4 2,0 2,1 2,2 2,3 2,4"
