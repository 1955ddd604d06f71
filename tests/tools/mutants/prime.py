"""Prepare the store of a test run: it keeps kernels of earlier runs, but not what those runs measured.

Tests expect that no schedule is tuned yet, and that no threshold is measured on this machine.
"""

from __future__ import annotations

import os
from pathlib import Path

from codegen.calibrate import remember
from codegen.cpu import LEVELS
from codegen.schedule import DEFAULT_THRESHOLDS
from codegen.store import Store
from tests.tools.numbas_ir import OWN_STORE


def main() -> None:
    """Forget all notes, then note the default thresholds of each CPU level."""
    store = Store(Path(os.environ[OWN_STORE]))
    for note in store.notes():
        note.unlink(missing_ok=True)
    for level in LEVELS:
        remember(store, DEFAULT_THRESHOLDS, level)


if __name__ == "__main__":
    main()
