"""A pytest plugin that writes each test's outcome to a file, with NumPy's routines replaced on request.

OUTCOMES names the file. ACCELERATE=1 replaces NumPy's copy routines with TileJIT's, which use kernels for
arrays of every size.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import tilejit
from tests.tools.sizes import kernels_for_all_sizes

found: dict[str, str] = {}
if os.environ.get("ACCELERATE") == "1":
    tilejit.accelerate(permanent=True)
    kernels_for_all_sizes().__enter__()


def pytest_runtest_logreport(report: Any) -> None:
    """The worst of setup, call and teardown counts."""
    if report.when == "call" or report.outcome != "passed":
        found[report.nodeid] = f"{report.outcome}{' as expected' if hasattr(report, 'wasxfail') else ''}"


def pytest_sessionfinish() -> None:
    Path(os.environ["OUTCOMES"]).write_text(json.dumps(found))
