"""Texts on file that tests compare with; `--rewrite-goldens` writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def check_golden(path: Path, text: str, request: pytest.FixtureRequest) -> None:
    """The text is that of the file."""
    if request.config.getoption("--rewrite-goldens"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        pytest.skip(f"{path.name} written anew")
    assert path.exists(), f"{path.name} is not there: look at the output, then pytest --rewrite-goldens"
    assert text == path.read_text(), "the compiler changed: look at the diff, then pytest --rewrite-goldens"
