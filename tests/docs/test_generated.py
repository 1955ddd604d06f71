"""Generated parts of pages: they are up to date, and show all formats, names and stages of a copy."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.support import settings
from tests.catalog.cases import mix
from tests.docs.test_reference import DOCS, of_docs
from tilejit.catalog.families import families
from tilejit.view.byte_map import byte_lines

gallery = of_docs("gallery")
explained = of_docs("explained")
generate = of_docs("generate")


@pytest.fixture(scope="module")
def text() -> str:
    """The gallery on its page, which another test compares with what is generated."""
    page: str = (DOCS / "reference" / "formats.md").read_text()
    return page.partition("<!-- generated: formats -->\n\n")[2].partition("\n\n<!-- end -->")[0]


@pytest.fixture
def registered() -> Iterator[str]:
    """A format that a user registers."""
    tj.register_format("gallery-panels", lambda dtype, dims, *, rows=4: f"{{0,1:T({rows},1)}}", "Panels")
    yield "gallery-panels"
    tj.unregister_format("gallery-panels")


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


def test_every_format_has_a_section_in_its_family(text: str) -> None:
    parts = re.split(r"^(##|###) (.*)$", text, flags=re.MULTILINE)
    headings = list(zip(parts[1::3], parts[2::3], parts[3::3], strict=True))
    own = [family.title for family in families()]
    assert [title for level, title, _ in headings if level == "##"] == own
    assert [name for level, name, _ in headings if level == "###"] == list(tj.formats())
    for name, section in ((name, section) for level, name, section in headings if level == "###"):
        assert f"(#{name.lower()})" in text
        assert f"pictures/{gallery.picture_name(name)}.svg)" in section
        about = tj.describe_format(name)
        assert about.source in section
        assert about.verified in section
        assert "| Example | " in section


def test_links_to_families_are_anchors(text: str) -> None:
    for family in families():
        slug = re.sub(r"[^a-z0-9_ -]", "", family.title.lower()).replace(" ", "-")
        assert f"[{family.title}](#{slug})" in text


@pytest.mark.full
@pytest.mark.parametrize("name", ["ggml-q4_0", "gptq-checkpoint", "bitsandbytes-nf4", "tenstorrent-bfp8_b"])
def test_formats_of_planes_have_a_table_of_bytes(name: str) -> None:
    section = gallery.section(name, "pictures")
    for buffer, rows in byte_lines(name).items():
        assert f"| bytes of {buffer} | " in section
        assert f"| {rows[0].range} | {rows[0].text} |" in section
    assert ("| CuTe |" in section) is False
    assert ("rounded together" in section) == name.startswith("tenstorrent-bfp")


def test_the_example_of_a_format_is_what_its_words_hold() -> None:
    """AWQ: a word has the columns 0 2 4 6 1 3 5 7 of eight."""
    codes = mix((4, 16), 16).reshape(4, 2, 8)[..., [0, 2, 4, 6, 1, 3, 5, 7]]
    words = (codes << np.arange(0, 32, 4)).sum(-1).astype("<u4")
    assert f"| Example | uint8[4,16]: `{words.tobytes()[:16].hex(' ')}` |" in gallery.section("awq-gemm", "")
    assert np.array_equal(gallery.mix((3, 5), 9, 2), mix((3, 5), 9, 2))


def test_equal_formats_name_each_other() -> None:
    assert "Same bytes as | [`marlin-fp4`](#marlin-fp4)" in gallery.section("marlin-int4", "")
    assert "Same bytes as | [`marlin-int4`](#marlin-int4)" in gallery.section("marlin-fp4", "")
    assert gallery.picture_name("marlin-fp4") == "format-marlin-int4"


@pytest.mark.full
def test_a_new_format_appears_automatically(registered: str) -> None:
    text = gallery.gallery()
    assert f"## {gallery.OTHERS}\n\n### {registered}\n" in text
    assert "Panels." in text
    assert f"format-{registered}.svg" not in text, "a registered function has no example to draw"


PADDED = [name for name in gallery.names() if gallery.padded_example(name) is not None]


@pytest.mark.full
@pytest.mark.parametrize("name", PADDED)
def test_the_padding_is_what_pack_writes(name: str) -> None:
    spec = gallery.padded_example(name)
    t = tj.pack(np.ones(spec.dimensions, spec.dtype), spec)
    slots = [k for k in range(spec.physical_size) if tj.multi_index(spec, k) is None]
    assert slots
    value = gallery.padding_value(spec)
    assert {float(v) for v in slots_in(t, slots)} == {value}
    assert f"| Padding | {value:g}" in gallery.section(name, "pictures")


def slots_in(t: tj.TiledArray, slots: list[int]) -> Any:
    """The elements of some slots."""
    if not t.layout.packed:
        return t.buffer[slots]
    bits = t.layout.bits
    each = t.buffer[:, None] >> np.arange(0, 8, bits, dtype=np.uint8) & np.uint8((1 << bits) - 1)
    return each.reshape(-1)[slots]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("ggml-q4_0", "none"), ("gptq-checkpoint", "none"), ("hexagon-q4_0-tiled", "8"), ("xnnpack-gemm", "0")],
)
def test_the_padding_of_planes(name: str, wanted: str) -> None:
    assert f"| Padding | {wanted} |" in gallery.section(name, "pictures")


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
