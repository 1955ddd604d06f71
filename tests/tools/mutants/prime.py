"""Note the default thresholds in the store of a test run, so that no test measures this machine."""

from __future__ import annotations

import os
from pathlib import Path

from codegen.calibrate import remember
from codegen.cpu import LEVELS
from codegen.schedule import DEFAULT_THRESHOLDS
from codegen.store import Store
from tests.tools.numbas_ir import OWN_STORE


def main() -> None:
    """Note them for each CPU level."""
    store = Store(Path(os.environ[OWN_STORE]))
    for level in LEVELS:
        remember(store, DEFAULT_THRESHOLDS, level)


if __name__ == "__main__":
    main()
