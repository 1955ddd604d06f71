"""The output of MLIR's own pass, kept in tests/data: for texts that it vectorizes correctly, and wrongly."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).parents[1] / "data"
VERSIONS = (16, 22)
"""The versions of MLIR. In 22, the padding of reads is poison."""


def _texts(version: int) -> dict[str, str]:
    _, *parts = (DATA / f"mlir_opt_{version}.mlir").read_text().split("// -----\n")
    named = (part.removeprefix("// ").partition("\n") for part in parts)
    return {name: text for name, _, text in named}


OPT = {version: _texts(version) for version in VERSIONS}
"""Texts by the name of their case, or by "loop: " and the name of their loop."""
