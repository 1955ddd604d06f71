"""Generated parts of pages: they are up to date, and show all formats, names and stages of a copy."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import tilejit as tj
from codegen.support import settings
from tests.docs.test_reference import DOCS, of_docs
from tilejit.layout.formats import registry

gallery = of_docs("gallery")
explained = of_docs("explained")
generate = of_docs("generate")


@pytest.fixture
def registered() -> Iterator[str]:
    """A format that a user registers."""
    tj.register_format("gallery-panels", lambda dtype, dims, *, rows=4: f"{{0,1:T({rows},1)}}", "Panels")
    yield "gallery-panels"
    del registry._FORMATS["gallery-panels"]


@pytest.mark.full
def test_generated_files_are_up_to_date() -> None:
    """`python docs/generate.py` writes them."""
    made = generate.generated()
    stale = [path.name for path, text in made.items() if not path.exists() or path.read_text() != text]
    assert not stale
    assert set((DOCS / "pictures").iterdir()) == {path for path in made if path.suffix == ".svg"}


def test_every_picture_is_shown() -> None:
    text = "".join(page.read_text() for page in DOCS.rglob("*.md"))
    assert not [path.name for path in (DOCS / "pictures").iterdir() if f"pictures/{path.name})" not in text]


def test_summaries_have_every_name_of_a_module() -> None:
    page = (DOCS / "reference" / "cute.md").read_text()
    named = set(re.findall(r"^\| `tilejit\.cute\.(\w+)` \| \S", page, re.MULTILINE))
    assert set(tj.cute.__all__) - named == {"IntTuple", "_"}  # an alias of types, and a constant
    interop = (DOCS / "reference" / "interop.md").read_text()
    assert "| `tilejit.interop.jax.pack` | Pack a jax array into a layout. |" in interop


def test_every_format_has_a_section() -> None:
    text = gallery.gallery()
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == list(tj.formats())
    for name in tj.formats():
        assert f"(#{name.lower()})" in text
        assert f"pictures/format-{name}.svg)" in text
        about = tj.describe_format(name)
        for fact in (about.formula.partition("; ")[0], about.source):
            assert fact in text


def test_a_new_format_appears_automatically(registered: str) -> None:
    text = gallery.gallery()
    assert f"## {registered}\n" in text
    assert "Panels." in text
    assert f"format-{registered}.svg" not in text, "a registered function has no example to draw"


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(gallery.names()))
def test_the_padding_is_what_pack_writes(name: str) -> None:
    spec = gallery.padded_example(name)
    assert spec is not None
    t = tj.pack(np.ones(spec.dimensions, spec.dtype), spec)
    slots = [k for k in range(spec.physical_size) if tj.multi_index(spec, k) is None]
    assert slots
    value = gallery.padding_value(spec)
    assert {float(t.buffer[k]) for k in slots} == {value}
    assert f"| Padding | {value:g}" in gallery.section(name, "pictures")


def test_the_picture_of_loops_shows_the_kernel_of_its_page() -> None:
    page = (DOCS / "howto" / "kernels.md").read_text()
    loops = of_docs("loops_picture")
    body = inspect.getsource(loops.blend).partition('"""The function of the page."""\n')[2]
    assert body.strip() in page
    assert "virtual_vector_size=256" in page
    assert "loop j: vectorized by 256" in loops.picture()


def test_the_kernel_contains_the_lines_that_the_tutorial_explains() -> None:
    page = (DOCS / "tutorial" / "generated_code.md").read_text()
    assert set(re.findall(r"^<!-- generated: stage (\w+) -->$", page, re.MULTILINE)) == set(
        explained.LANGUAGES
    )
    lines = re.findall(r"^\| `(.*?)` \|", page.partition("| source | meaning |")[2], re.MULTILINE)
    assert len(lines) > 10
    kernel = " ".join(explained.stage_text("kernel").split())
    for line in lines:
        assert re.search(re.escape(line).replace("…", r"\w+"), kernel), line
    assert explained.LAYOUT in page


def test_every_environment_variable_is_documented() -> None:
    source = Path(settings.__file__).read_text()
    known = set(re.findall(r'"(TILEJIT_[A-Z_]+)"', source))
    assert len(known) == len(fields(settings.Settings))
    page = (DOCS / "reference" / "environment.md").read_text()
    assert set(re.findall(r"^\| `(TILEJIT_[A-Z_]+)` \|", page, re.MULTILINE)) == known
