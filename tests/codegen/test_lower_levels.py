"""Tests of other files run again at the lower CPU levels, in one process each: it starts and types once."""

from __future__ import annotations

import os
from importlib import import_module
from subprocess import run
from sys import executable

import pytest

from tests.codegen.levels import AtLevels
from tests.oracle import environment

LOWER_LEVELS = ("avx2", "sse2")
FILES = (
    *("test_gathers", "test_lines", "test_minifloats", "test_places", "test_tables", "test_transposes"),
    *("test_vector_blocks", "test_vector_math", "test_vector_steps", "test_vectors"),
)
MODULES = (*(f"tests.codegen.{name}" for name in FILES), "tests.loops.test_streams", "tests.test_kernels")


@pytest.mark.timeout(1200)  # a tenth of all tests: minutes on a slow machine
@pytest.mark.parametrize("level", LOWER_LEVELS)
def test_lower_levels(level: str) -> None:
    """All of them pass, and none is left out; skipped where the CPU has no such level."""
    if os.environ.get("TILEJIT_CPU") == level:
        pytest.skip("this is that run")
    chosen: list[AtLevels] = [import_module(name).at_lower_levels() for name in MODULES]
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = run(
        [executable, "-m", "pytest", *options, *(f"{x.file}::{test}" for x in chosen for test in x.tests)],
        env=environment(TILEJIT_CPU=level, PYTEST_ADDOPTS=""),
        capture_output=True,
        text=True,
        check=False,
    )
    if "but this CPU has only" in done.stdout:
        pytest.skip(f"no {level} here")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"\n{sum(x.cases for x in chosen)} passed in" in done.stdout
