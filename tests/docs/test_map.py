"""The map of the code in docs/design.md has every module; pages name only modules that exist."""

from __future__ import annotations

import re
from pathlib import Path

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


def named(module: str, name: str) -> bool:
    """Whether a name is that of a module or of a folder around it."""
    return module.startswith(name) if name.endswith("/") else f"/{module}".endswith(f"/{name}")


def test_every_module_or_its_folder_is_named() -> None:
    names = names_in(MAP)
    assert not [module for module in modules() if not any(named(module, name) for name in names)]


def test_every_name_exists() -> None:
    names = names_in(DESIGN + DEVELOPMENT)
    assert not [name for name in names if name.endswith("/") and not (ROOT / name).is_dir()]
    assert not [name for name in names if name.count("/") == 1 and name.endswith("/")], "these say nothing"
    files = [name for name in names if not name.endswith("/") and not (ROOT / name).is_file()]
    assert not [name for name in files if not any(named(module, name) for module in modules())]
