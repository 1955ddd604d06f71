"""What MLIR's own pass prints, kept in tests/data: for texts that it vectorizes rightly, and wrongly."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).parents[1] / "data"
VERSIONS = (16, 22)
"""Of MLIR. In 22, what pads reads is poison."""


def _texts(version: int) -> dict[str, str]:
    _, *parts = (DATA / f"mlir_opt_{version}.mlir").read_text().split("// -----\n")
    named = (part.removeprefix("// ").partition("\n") for part in parts)
    return {name: text for name, _, text in named}


OPT = {version: _texts(version) for version in VERSIONS}
"""By the names of cases, and "loop: " with the names of loops."""
