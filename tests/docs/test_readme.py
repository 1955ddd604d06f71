"""README.md: its Python runs as one file and prints what its comments say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.oracle import environment

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
MOST_LINES = 150


@pytest.mark.full
def test_the_blocks_run_as_one_file(tmp_path: Path) -> None:
    """`tests/docs` runs them block by block, together with the commands."""
    file = tmp_path / "readme.py"
    file.write_text("\n".join(BLOCKS))
    done = subprocess.run(
        [sys.executable, file.name],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = re.findall(r"^print\(.*\)  # (.*)$", file.read_text(), re.MULTILINE)
    assert done.stdout.splitlines() == said
    assert len(said) == 6


def test_it_stays_short() -> None:
    assert len(TEXT.splitlines()) <= MOST_LINES


def test_the_changelog_describes_a_first_release() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    assert "0.1.0 - unreleased" not in text or len(text.splitlines()) <= 90


def test_it_names_both_commands() -> None:
    assert "pip install . && tilejit demo\n" in TEXT
    assert "pip install '.[test]' && pytest\n" in TEXT
