"""Tests run again in a process of a lower CPU level."""

from __future__ import annotations

import os
from collections.abc import Sequence
from subprocess import run
from sys import executable

import pytest

from tests.oracle import environment

LOWER_LEVELS = ("avx2", "sse2")


def run_at(level: str, file: str, tests: Sequence[str], cases: int = 0) -> None:
    """Those tests of a file, `cases` of them if not one a name; skipped where the CPU has no such level."""
    if os.environ.get("TILEJIT_CPU") == level:
        pytest.skip("this is that run")
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = run(
        [executable, "-m", "pytest", *options, *(f"{file}::{test}" for test in tests)],
        env=environment(TILEJIT_CPU=level, PYTEST_ADDOPTS=""),
        capture_output=True,
        text=True,
        check=False,
    )
    if "but this CPU has only" in done.stdout:
        pytest.skip(f"no {level} here")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"\n{cases or len(tests)} passed in" in done.stdout
