"""The map of the code in docs/design.md has every module; pages name only modules that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DESIGN = (ROOT / "docs" / "design.md").read_text()
DEVELOPMENT = (ROOT / "docs" / "howto" / "development.md").read_text()
MAP = DESIGN[DESIGN.index("## Map of the code") :]


def modules() -> list[str]:
    paths = [p.relative_to(ROOT) for name in ("tilejit", "codegen") for p in (ROOT / name).rglob("*.py")]
    return sorted(str(p) for p in paths if p.name != "__init__.py")


def names_in(text: str) -> list[str]:
    """Files, as complete paths or by their ends, and folders with a trailing slash."""
    return sorted({name for name in re.findall(r"`([^`\s]+)`", text) if name.endswith((".py", "/"))})


@pytest.mark.parametrize("module", modules())
def test_every_module_or_its_folder_is_named(module: str) -> None:
    assert any(
        module.startswith(name) if name.endswith("/") else f"/{module}".endswith(f"/{name}")
        for name in names_in(MAP)
    )


@pytest.mark.parametrize("name", names_in(DESIGN + DEVELOPMENT))
def test_every_name_exists(name: str) -> None:
    if name.endswith("/"):
        assert (ROOT / name).is_dir()
        assert name.count("/") > 1, "a complete top-level package says nothing"
    else:
        assert (ROOT / name).is_file() or any(f"/{module}".endswith(f"/{name}") for module in modules())
