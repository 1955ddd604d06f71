"""Formats that installed packages define in the entry-point group `tilejit.formats`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = """
def panels(dtype, dims, *, rows=6):
    "Panels of a few rows."
    return f"{{1,0:T({rows},1)}}"
"""


def package(folder: Path, name: str, entries: str) -> None:
    """A package with entry points, as pip installs it."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[tilejit.formats]\n{entries}\n")
    (folder / f"{name}.py").write_text(MODULE)


def tilejit(folder: Path, *arguments: str) -> tuple[int, str]:
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-m", "tilejit", *arguments],
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.full
def test_a_package_adds_a_format(tmp_path: Path) -> None:
    package(tmp_path, "own_panels", "panels = own_panels:panels\nbroken = own_panels:nothing")
    code, text = tilejit(tmp_path, "formats")
    assert code == 0, text
    assert "Formats of other packages: broken, panels" in text
    code, text = tilejit(tmp_path, "show", "f32[8,2]", "--layout", "panels", "rows=4")
    assert code == 0, text
    assert "{1,0:T(4,1)}" in text
    code, text = tilejit(tmp_path, "formats", "broken", "--dims", "4,4")
    assert code == 2
    assert "'broken' cannot be loaded from own_panels:nothing: AttributeError" in text


@pytest.mark.full
def test_broken_packages_do_not_break_commands(tmp_path: Path) -> None:
    entries = "text = own_panels:__name__\nleaves = leaving:panels"
    package(tmp_path, "own_panels", entries)
    (tmp_path / "leaving.py").write_text("raise SystemExit(7)\n")
    (tmp_path / "x.bin").write_bytes(bytes(64))
    code, text = tilejit(tmp_path, "identify", str(tmp_path / "x.bin"), "--dims", "4,16")
    assert code == 0, text
    assert "'leaves' cannot be loaded from leaving:panels: SystemExit: 7" in text
    assert "'text' cannot be loaded from own_panels:__name__: TypeError" in text
    code, text = tilejit(tmp_path, "formats", "--json")
    assert code == 0, text
    assert "'text' cannot be loaded from own_panels:__name__" in text
    code, text = tilejit(tmp_path, "formats", "leaves", "--dims", "4,4")
    assert code == 2, text


def test_an_installed_format_is_described_without_dimensions(tmp_path: Path) -> None:
    package(tmp_path, "own_panels", "panels = own_panels:panels")
    code, text = tilejit(tmp_path, "formats", "panels")
    assert code == 0, text
    assert "Panels of a few rows." in text
    assert "pass its dimensions, e.g. --dims 33,300" in text


def test_two_packages_with_one_name_are_refused(tmp_path: Path) -> None:
    package(tmp_path, "own_panels", "panels = own_panels:panels")
    package(tmp_path, "other_panels", "panels = other_panels:panels")
    code, text = tilejit(tmp_path, "formats", "panels", "--dims", "4,4")
    assert code == 2
    assert "other_panels:panels and own_panels:panels" in text
