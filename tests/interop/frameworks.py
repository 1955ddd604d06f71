"""Import other libraries for tests if they are installed; otherwise skip the tests and name the library.

TILEJIT_REQUIRE_FRAMEWORKS=1 makes a missing one an error. TILEJIT_CI_FRAMEWORKS=1 .ci/run sets it.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import pytest


def required() -> bool:
    return os.environ.get("TILEJIT_REQUIRE_FRAMEWORKS", "") not in ("", "0")


def framework(name: str) -> Any:
    """The module, if it is installed; otherwise the tests of the file are skipped."""
    if required():
        return import_module(name)
    return pytest.importorskip(name, reason=f"{name} is not installed")
