"""Generate the parts of the site that nobody writes by hand.

These are pictures, layout explorers, the gallery, lists of modules and commands, and the saved benchmark
results.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File
from typer.main import get_command
from typer.testing import CliRunner

import tilejit
from tilejit.cli.commands import app
from tilejit.layout.cute_shape import CuteShape
from tilejit.view.page import CuteLayout, page
from tilejit.view.svg import svg

sys.path.append(str(Path(__file__).parent))  # MkDocs loads this file by its path, not as part of a package
import gallery
from diagrams import DIAGRAMS
from explained import explained
from loops_picture import picture as loops_picture

ROOT = Path(__file__).parents[1]

PICTURES = {
    "figure_1": "f32[3,5]{1,0:T(2,2)}",
    "figure_2": "bf16[4,8]{1,0:T(2,4)(2,1)}",
    "row_major": "f32[4,8]{1,0}",
    "column_major": "f32[4,8]{0,1}",
    "cute": "(4,8):(8,1)",
    "swizzled": "Sw<2,0,2> o 0 o (4,4):(4,1)",
    "faces": "f32[4,8]{1,0:T(4,4)(2,2)}",
    "channels": "f32[1,8,1,4]{3,2,1,0:T(4,1,1)}",
    "notation_merged": "f32[2,2,3]{2,1,0:T(*,2,2)}",
    "notation_tail": "f32[3,5]{1,0:L(8)}",
    "notation_bits": "s4[3,5]{1,0:E(4)}",
    "notation_unpacked": "s4[3,5]{1,0}",
}
LOOPS = "loops"
EXPLORERS = {
    "tiles": "bf16[40,300]{1,0:T(8,128)(2,1)}",
    "faces": "bf16[64,64]{1,0:T(32,32)(16,16)}",
    "padded": "f32[3,5]{1,0:T(2,2)}",
    "cute": "((2,4),(2,4)):((1,8),(4,32))",
    "swizzle": "Sw<3,0,3> o 0 o (8,8):(8,1)",
}
INTEROP = ("jax", "torch", "tenstorrent", "onednn", "zarr", "dask")
"""Modules of `tilejit.interop` in the order of the reference."""
RESULTS = ("bench/results.md",)


def on_files(files: Any, config: Any) -> Any:
    """Add the generated files as if they were in docs/."""
    made = {
        **{
            f"pictures/{name}.svg": drawn(name) for name in (*PICTURES, *DIAGRAMS, LOOPS, *gallery.pictures())
        },
        **{f"explorer/{name}.html": page(layout(text)) for name, text in EXPLORERS.items()},
        **{name: (ROOT / name).read_text() for name in RESULTS},
        "reference/interop.md": interop_page(),
    }
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def drawn(name: str) -> str:
    """The SVG of a picture, to embed in a page."""
    if name == LOOPS:
        return loops_picture()
    if name in DIAGRAMS:
        return DIAGRAMS[name]
    return svg(layout(PICTURES[name]) if name in PICTURES else gallery.picture(name), standalone=False)


def layout(text: str) -> tilejit.Shape | CuteShape | CuteLayout:
    """Read an XLA shape or a CuTe layout."""
    return tilejit.Shape.parse(text) if re.match(r"[a-z]\w*\[", text) else tilejit.cute.parse(text)


def interop_page() -> str:
    """The page of `tilejit.interop`, whose modules users import one by one."""
    options = "    options:\n      heading_level: 2\n      show_root_full_path: true\n      filters: public\n"
    lines = [
        "# tilejit.interop",
        "",
        "Each module connects another library. Import the module you need. If its library is missing, the",
        "error says what to install.",
        "",
        *(f"::: tilejit.interop.{name}\n{options}" for name in INTEROP),
    ]
    return "\n".join(lines)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Insert generated text, and link to the saved results, which are outside docs/, within the site."""
    name = page.file.src_uri
    if name == "reference/cli.md":
        return markdown.replace("@@COMMANDS@@", commands())
    if name == "reference/formats.md":
        return markdown.replace("@@GALLERY@@", gallery.gallery())
    if name == "benchmarks.md":
        return re.sub(r"\(\.\./(bench/[\w./]+)\)", r"(\1)", markdown)
    return re.sub(r"^@@EXPLAIN (\w+)@@$", lambda marker: explained(marker[1]), markdown, flags=re.MULTILINE)


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Embed pictures in the page, so that they have its colors, light or dark."""
    return re.sub(
        r'<img alt="(?P<alt>[^"]*)" src="(?:\.\./)*pictures/(?P<name>[\w.-]+)\.svg" ?/?>', _inline, html
    )


def _inline(image: re.Match[str]) -> str:
    """A picture in place of its image. Wide pictures scroll on narrow screens, also by keyboard."""
    return (
        f'<span class="picture" role="group" aria-label="{image["alt"]}" tabindex="0" data-search-exclude>'
        f"{drawn(image['name'])}</span>"
    )


def commands() -> str:
    """The `--help` text of each command, 80 columns wide."""
    out = []
    for words in ((), *_names(get_command(app))):
        text = CliRunner().invoke(app, [*words, "--help"], prog_name="tilejit", env={"COLUMNS": "80"}).stdout
        out.append(f"## {' '.join(('tilejit', *words))}\n\n```text\n{text.rstrip()}\n```\n")
    return "\n".join(out)


def _names(group: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        yield (*before, name)
        if hasattr(command, "commands"):
            yield from _names(command, (*before, name))
