"""README.md: its Python runs as it stands and gives what its comments say; its map names every module."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.tools.blocks import run_block

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
MAP = TEXT[TEXT.index("| stage | file |") : TEXT.index("`codegen` knows no XLA")]


def test_the_blocks_run_in_order() -> None:
    """Values and errors stand in comments; other comments are prose."""
    names: dict[str, Any] = {}
    values = errors = 0
    for k, source in enumerate(BLOCKS):
        extras = re.findall(r"(?:import |interop[. ](?:import )?)(zarr|dask|jax|torch)", source)
        if not all(map(find_spec, extras)):
            continue
        more = run_block(source, f"<README.md, block {k}>", names)
        values, errors = values + more[0], errors + more[1]
    assert len(BLOCKS) == 6
    assert (values, errors) == (7, 1)


def modules() -> list[str]:
    paths = [p.relative_to(ROOT) for name in ("tilejit", "codegen") for p in (ROOT / name).rglob("*.py")]
    return sorted(str(p) for p in paths if p.name != "__init__.py")


def names_of_the_map() -> list[str]:
    """Files, whole or by their ends, and folders with a slash behind."""
    return [name for name in re.findall(r"`([^`\s]+)`", MAP) if name.endswith((".py", "/"))]


@pytest.mark.parametrize("module", modules())
def test_every_module_is_named_or_its_folder_is(module: str) -> None:
    assert any(
        module.startswith(name) if name.endswith("/") else f"/{module}".endswith(f"/{name}")
        for name in names_of_the_map()
    )


@pytest.mark.parametrize("name", names_of_the_map())
def test_what_the_map_names_is_there(name: str) -> None:
    assert "/" in name or name.endswith(".py")
    if name.endswith("/"):
        assert (ROOT / name).is_dir()
        assert name.count("/") > 1, "a whole package says nothing"
    else:
        assert any(f"/{module}".endswith(f"/{name}") for module in modules())
