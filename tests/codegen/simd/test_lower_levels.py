"""Tests of other files run again at lower CPU levels, in one process for each level."""

from __future__ import annotations

from importlib import import_module
from subprocess import run
from sys import executable

import pytest

from tests.codegen.simd.levels import AtLevels
from tests.tools.extent import lower_levels
from tests.tools.oracle import environment

FILES = (
    *("test_layouts", "test_minifloats", "test_transposes"),
    *("test_vector_transposes", "test_vector_math", "test_strided", "test_vectors"),
)
MODULES = (
    *(f"tests.codegen.simd.{name}" for name in FILES),
    *(
        "tests.codegen.emit.test_streams",
        "tests.kernels.test_indexed",
        "tests.kernels.test_kernels",
        "tests.kernels.test_scans",
    ),
)


@pytest.mark.full
@pytest.mark.timeout(1200)  # minutes on a slow machine
@pytest.mark.parametrize("level", lower_levels())
def test_lower_levels(level: str) -> None:
    """All of them pass, and none is skipped."""
    chosen: list[AtLevels] = [import_module(name).at_lower_levels(level) for name in MODULES]
    options = ["-q", "-x", "-p", "no:cacheprovider", "-n", "0"]
    done = run(
        [executable, "-m", "pytest", *options, *(f"{x.file}::{test}" for x in chosen for test in x.tests)],
        env=environment(TILEJIT_CPU=level, PYTEST_ADDOPTS=""),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"\n{sum(x.cases for x in chosen)} passed in" in done.stdout
