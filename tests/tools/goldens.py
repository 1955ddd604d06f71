"""Golden files that tests compare texts with; `--rewrite-goldens` writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.schedule.machine import STREAM_BYTES, Machine

GOLDEN = Path(__file__).resolve().parents[1] / "golden"

MACHINE = Machine("avx512", 64, 32, 12, 1 << 20, 32 << 20, stream_bytes=STREAM_BYTES)
"""The machine that golden files are scheduled for."""


def check_golden(path: Path, text: str, request: pytest.FixtureRequest) -> None:
    """Check that the text is that of the file."""
    if request.config.getoption("--rewrite-goldens"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        pytest.skip(f"{path.name} rewritten")
    assert path.exists(), f"{path.name} does not exist: check the output, then run pytest --rewrite-goldens"
    assert text == path.read_text(), "the compiler changed: check the diff, then run pytest --rewrite-goldens"
