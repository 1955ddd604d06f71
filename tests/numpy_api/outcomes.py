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
from tilejit.copies.plan import CopyPlan
from tilejit.copies.sizes import SIZES

found: dict[str, str] = {}
copies = [0]
"""How many copies kernels have made."""

if os.environ.get("ACCELERATE") == "1":
    _run = CopyPlan._run_again

    def _counted(plan: CopyPlan, dst: Any, src: Any) -> None:
        copies[0] += bool(plan.kernels)
        _run(plan, dst, src)

    CopyPlan._run_again = _counted  # type: ignore[method-assign]
    tilejit.accelerate(permanent=True, smallest=0)
    SIZES.small_run_bytes = SIZES.part_bytes = SIZES.interleaved_bytes = SIZES.few_indices = 0


def pytest_runtest_logreport(report: Any) -> None:
    """The worst of setup, call and teardown counts."""
    if report.when == "call" or report.outcome != "passed":
        found[report.nodeid] = f"{report.outcome}{' as expected' if hasattr(report, 'wasxfail') else ''}"


def pytest_sessionfinish() -> None:
    Path(os.environ["OUTCOMES"]).write_text(json.dumps({"tests": found, "copies": copies[0]}))
