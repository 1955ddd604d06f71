"""Build the site from the pages, which are complete without it, and add what only the site shows.

`<!-- site` comments hold Markdown for the site alone: explorers, and the directives of the API reference.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
from mkdocs.structure.files import File

import tilejit
from tilejit.layout.as_layout import as_layout
from tilejit.view.page import page as explorer
from tilejit.view.svg import LOOKS

sys.path.append(str(Path(__file__).parent))  # MkDocs loads this file by its path, not as part of a package
from generate import layout

DOCS = Path(__file__).parent
ROOT = DOCS.parent
EXPLORERS = {
    "tiles": "bf16[40,300]{1,0:T(8,128)(2,1)}",
    "faces": "bf16[64,64]{1,0:T(32,32)(16,16)}",
    "padded": "f32[3,5]{1,0:T(2,2)}",
    "cute": "((2,4),(2,4)):((1,8),(4,32))",
    "swizzle": "Sw<3,0,3> o 0 o (8,8):(8,1)",
}
OUTSIDE = {"bench/results.md": "bench/results.md", "CONTRIBUTING.md": "contributing.md"}
"""Pages outside docs/, and their places in the site."""
META = {
    "index.md": {"title": "Home", "hide": ["navigation", "toc"]},
    "reference/formats.md": {"hide": ["toc"]},
}
"""What MkDocs reads at the start of a page, where code hosts would show it."""
SITE = re.compile(r"^<!-- site\n(.*?)\n-->$", re.DOTALL | re.MULTILINE)
IMAGE = re.compile(
    r'<img alt="(?P<alt>[^"]*)" src="(?:\.\./)*pictures/(?P<name>[\w.-]+)\.svg" ?/?>',
)


def on_files(files: Any, config: Any) -> Any:
    """Add the explorers and the pages outside docs/."""
    layouts = {name: layout(text) for name, text in EXPLORERS.items()}
    layouts |= packed_weights()
    made = {
        **{f"explorer/{name}.html": explorer(own) for name, own in layouts.items()},
        **{name: (ROOT / path).read_text() for path, name in OUTSIDE.items()},
    }
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def packed_weights() -> dict[str, Any]:
    """The layouts of docs/howto/quantized.md. That of Q4_0 is the codes' in a buffer of records."""
    planes = {"codes": np.zeros((4, 64), np.uint8), "d": np.zeros((4, 2), np.float16)}
    reversed_pairs = "R (K p) -> R K -p, p=2"
    return {
        "awq": as_layout("awq-gemm", dtype="uint8", dims=(16, 64)),
        "gptq": as_layout("gptq", dtype="uint8", dims=(64, 16)),
        "marlin": as_layout("marlin-int4", dtype="uint8", dims=(32, 128)),
        "q4_0": tilejit.pack(planes, "ggml-q4_0").layouts["codes"],
        "scales": as_layout("nvfp4-scales", dtype="uint8", dims=(130, 8)),
        "nf4": as_layout(reversed_pairs, dtype="uint4", dims=(8, 32), element_size_in_bits=4),
    }


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Show what is for the site, link its summaries to its reference, and keep links within the site."""
    page.meta.update(META.get(page.file.src_uri, {}))
    markdown = SITE.sub(r"\1", markdown)
    markdown = re.sub(r"^\| `(tilejit\.[\w.]+)` \|", r"| [`\1`](#\1) |", markdown, flags=re.MULTILINE)
    for path, name in OUTSIDE.items():
        markdown = re.sub(rf"\(\.\./((?:\.\./)*){re.escape(path)}", rf"(\1{name}", markdown)
    return markdown


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Embed pictures in the page, so that they have its colors, light or dark."""
    return IMAGE.sub(_inline, html)


def _inline(image: re.Match[str]) -> str:
    """A picture in place of its image. Wide pictures scroll on narrow screens, also by keyboard."""
    drawn = (DOCS / "pictures" / f"{image['name']}.svg").read_text().replace(LOOKS, "")
    return (
        f'<span class="picture" role="group" aria-label="{image["alt"]}" tabindex="0" data-search-exclude>'
        f"{drawn}</span>"
    )
