"""What MLIR's own pass prints, kept in tests/data: for texts that it vectorizes rightly, and wrongly."""

from __future__ import annotations

from pathlib import Path

PATH = Path(__file__).parents[1] / "data" / "mlir_opt_16.mlir"


def _texts() -> dict[str, str]:
    _, *parts = PATH.read_text().split("// -----\n")
    named = (part.removeprefix("// ").split("\n", 1) for part in parts)
    return {name: text for name, text in named}  # noqa: C416


OPT = _texts()
"""By the names of cases, and "loop: " with the names of loops."""
