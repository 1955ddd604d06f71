"""Tests of other files run again at the lower CPU levels, in one process each: it starts and types once."""

from __future__ import annotations

import os
from importlib import import_module
from subprocess import run
from sys import executable

import pytest

from codegen.cpu import host_levels
from tests.codegen.levels import AtLevels
from tests.tools.oracle import environment

_OWN = os.environ.get("TILEJIT_CPU", "").lower() or next(iter(host_levels()), "")
LOWER_LEVELS = tuple(level for level in ("avx2", "sse2") if level in host_levels() and level != _OWN)
"""Those that this CPU has, but for the level that this very run has the same tests at."""

FILES = (
    *("test_gathers", "test_lines", "test_minifloats", "test_places", "test_tables", "test_transposes"),
    *("test_vector_blocks", "test_vector_math", "test_vector_steps", "test_vectors"),
)
MODULES = (*(f"tests.codegen.{name}" for name in FILES), "tests.loops.test_streams", "tests.test_kernels")


@pytest.mark.timeout(1200)  # a tenth of all tests: minutes on a slow machine
@pytest.mark.parametrize("level", LOWER_LEVELS)
def test_lower_levels(level: str) -> None:
    """All of them pass, and none is left out."""
    chosen: list[AtLevels] = [import_module(name).at_lower_levels() for name in MODULES]
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = run(
        [executable, "-m", "pytest", *options, *(f"{x.file}::{test}" for x in chosen for test in x.tests)],
        env=environment(TILEJIT_CPU=level, PYTEST_ADDOPTS=""),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"\n{sum(x.cases for x in chosen)} passed in" in done.stdout
