"""Links and pictures of all pages, read as plain files: every target is a file that git has."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").rglob("*.md")])
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
"""Among them is text for the site alone, whose links MkDocs checks."""
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
TARGET = re.compile(r"""\]\(([^)\s]+)\)|\b(?:src|href)="([^"]+)\"|^\[[^\]]+\]: (\S+)$""", re.MULTILINE)
ONLY_MKDOCS = re.compile(r"^---$\n|@@|^::: |--8<--|\{ ?[.#:][\w-]|<iframe|^:   ", re.MULTILINE)
"""Markup that code hosts show as text."""


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def plain(path: Path) -> str:
    return CODE.sub("", COMMENT.sub("", path.read_text()))


def targets(path: Path) -> list[Path]:
    """The files that a page links to or shows."""
    found = ["".join(match.groups("")) for match in TARGET.finditer(plain(path))]
    local = [target.partition("#")[0] for target in found if not re.match(r"[a-z]+:", target)]
    return [(path.parent / target).resolve() for target in local if target]


def tracked() -> set[Path]:
    """The files of the commit, or of the sdist."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        return {path for path in ROOT.rglob("*") if path.is_file()}
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return {ROOT / name for name in listed.stdout.split("\0") if name}


def test_every_link_leads_to_a_file() -> None:
    files = tracked()
    broken = [
        f"{name_of(path)}: {target}" for path in PAGES for target in targets(path) if target not in files
    ]
    assert not broken


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_pages_read_well_without_mkdocs(path: Path) -> None:
    assert not ONLY_MKDOCS.findall(plain(path))


def test_links_are_found() -> None:
    found = {name_of(target) for target in targets(ROOT / "README.md")}
    assert {"docs/index.md", "docs/images/layout.svg", "CHANGELOG.md"} <= found
    assert len([target for path in PAGES for target in targets(path)]) > 150
