"""Write the parts of the pages that nobody writes by hand: `python docs/generate.py`.

These are the pictures in docs/pictures, and the text between `<!-- generated: NAME -->` and `<!-- end -->`.
They are committed, so that the pages are complete without MkDocs. `tests/docs/test_generated.py` compares
them with this module.
"""

from __future__ import annotations

import ast
import inspect
import pydoc
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

import tilejit
from tilejit.cli.commands import app
from tilejit.layout.cute_shape import CuteShape
from tilejit.view.page import CuteLayout
from tilejit.view.svg import LOOKS, svg

sys.path.append(str(Path(__file__).parent))  # the modules of docs/ are not a package
import gallery
from diagrams import DIAGRAMS
from explained import explained
from loops_picture import picture as loops_picture

DOCS = Path(__file__).parent
ROOT = DOCS.parent
LAYOUTS = {
    "figure_1": "f32[3,5]{1,0:T(2,2)}",
    "figure_2": "bf16[4,8]{1,0:T(2,4)(2,1)}",
    "row_major": "f32[4,8]{1,0}",
    "column_major": "f32[4,8]{0,1}",
    "swizzled": "Sw<2,0,2> o 0 o (4,4):(4,1)",
    "faces": "f32[4,8]{1,0:T(4,4)(2,2)}",
    "channels": "f32[1,8,1,4]{3,2,1,0:T(4,1,1)}",
    "notation_merged": "f32[2,2,3]{2,1,0:T(*,2,2)}",
    "notation_tail": "f32[3,5]{1,0:L(8)}",
    "notation_bits": "s4[3,5]{1,0:E(4)}",
    "notation_unpacked": "s4[3,5]{1,0}",
}
"""The layouts that pages show as `![text](../pictures/NAME.svg)`."""
REGION = re.compile(
    r"^(?P<start><!-- generated: (?P<name>[\w ]+) -->\n\n)(?P<text>.*?)(?P<end>^<!-- end -->$)",
    re.DOTALL | re.MULTILINE,
)
DIRECTIVE = re.compile(r"^::: (\S+)$", re.MULTILINE)


def generated() -> dict[Path, str]:
    """All generated files and their texts."""
    return {**pictures(), **pages()}


def pictures() -> dict[Path, str]:
    """The SVG files. Each has its own background, light or dark, which the site replaces by the page's."""
    drawn = {name: svg(layout(text), standalone=False) for name, text in LAYOUTS.items()}
    drawn |= DIAGRAMS | {"loops": loops_picture()}
    drawn |= gallery.pictures()
    return {
        DOCS / "pictures" / f"{name}.svg": text.replace("</title>\n", f"</title>\n{LOOKS}\n", 1) + "\n"
        for name, text in drawn.items()
    }


def layout(text: str) -> tilejit.Shape | CuteShape | CuteLayout:
    """Read an XLA shape or a CuTe layout."""
    return tilejit.Shape.parse(text) if re.match(r"[a-z]\w*\[", text) else tilejit.cute.parse(text)


def pages() -> dict[Path, str]:
    """The pages with generated regions, which keep the text around them."""
    texts = {path: path.read_text() for path in sorted(DOCS.rglob("*.md"))}
    return {path: REGION.sub(_filled, text) for path, text in texts.items() if REGION.search(text)}


def _filled(region: re.Match[str]) -> str:
    kind, *arguments = region["name"].split()
    match kind:
        case "commands":
            text = commands()
        case "formats":
            text = gallery.gallery()
        case "stage":
            text = explained(*arguments)
        case "summary":
            text = summary(region.string[region.end() :])
        case _:
            raise AssertionError(f"unknown region: {region['name']}")
    return f"{region['start']}{text.rstrip()}\n\n{region['end']}"


def commands() -> str:
    """The `--help` text of each command, 80 columns wide."""
    out = []
    for words in ((), *_command_names(get_command(app))):
        text = (
            CliRunner()
            .invoke(app, [*words, "--help"], prog_name="tilejit", env={"COLUMNS": "80", "NO_COLOR": "1"})
            .stdout
        )
        out.append(f"## {' '.join(('tilejit', *words))}\n\n```text\n{text.rstrip()}\n```\n")
    return "\n".join(out)


def _command_names(group: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        yield (*before, name)
        if hasattr(command, "commands"):
            yield from _command_names(command, (*before, name))


def summary(after: str) -> str:
    """The names that the directives of the next `<!-- site` block document, each with its first line."""
    directives = after.partition("<!-- site\n")[2].partition("\n-->")[0]
    rows = [row for name in DIRECTIVE.findall(directives) for row in _summarized(name)]
    return "\n".join(["| name | purpose |", "|---|---|", *(f"| `{name}` | {text} |" for name, text in rows)])


def _summarized(name: str) -> Iterator[tuple[str, str]]:
    """A name and its first line, or those of the public members of a module."""
    if name.startswith("tilejit.interop."):
        yield from ((f"{name}.{member}", line) for member, line in _of_source(name).items())
        return
    found: Any = pydoc.locate(name)
    if not inspect.ismodule(found):
        yield name, _first_line(inspect.getdoc(found))
        return
    for member in found.__all__:
        value = getattr(found, member)
        about = inspect.getdoc(value) if inspect.isclass(value) or inspect.isroutine(value) else None
        if about:  # neither a constant nor an alias of types
            yield f"{name}.{member}", _first_line(about)


def _of_source(module: str) -> dict[str, str]:
    """The public classes and functions of a module, or of the modules of a package, with their first lines.

    They can't be imported without the library that the module connects.
    """
    path = ROOT / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    body = ast.parse(file.read_text()).body
    exported = [
        ast.literal_eval(node.value)
        for node in body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    found: dict[str, str] = {}
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            found[node.name] = _first_line(ast.get_docstring(node))
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(f"{module}."):
            lines = _of_source(node.module)
            found |= {alias.name: lines[alias.name] for alias in node.names}
    return {name: line for name, line in found.items() if not exported or name in exported[0]}


def _first_line(docstring: str | None) -> str:
    assert docstring
    return docstring.splitlines()[0].replace("|", "\\|")


if __name__ == "__main__":
    for path, text in generated().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
