"""`pytest bench` has every case that `python -m bench` has, by names that `-k` finds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import cold_start, test_bench
from bench.suites import NAMES, SUITES, Choice
from tests.tools.oracle import environment

ROOT = Path(__file__).parents[2]
WORDS = (
    *(
        "pack",
        "unpack",
        "relayout",
        "transpose",
        "permut",
        "cast",
        "gather",
        "scatter",
        "take",
        "concatenate",
    ),
    *("kernel", "stencil", "reduction", "elementwise", "sizes", "cliffs", "sweep", "virtual_vector_size"),
)
"""What somebody may write behind `-k`."""


def test_every_case_of_every_suite() -> None:
    """And in its order; a cold start is a test of its own."""
    names = tuple(name for name in NAMES if name in SUITES)
    expected = Choice(names, "", True, None, 1, 0.0).cases()
    found = [case for suite, case in test_bench.CASES if suite in SUITES]
    assert [(case.table, case.group, case.name) for case in found] == [
        (case.table, case.group, case.name) for case in expected
    ]
    assert {suite for suite, _ in test_bench.CASES} | {cold_start.SUITE} >= set(NAMES)


@pytest.mark.parametrize("word", WORDS)
def test_words_select_cases(word: str) -> None:
    assert any(word in name for name in test_bench.NAMES)


def test_cold_starts_have_a_test_each() -> None:
    assert set(test_bench.STARTS) == {
        f"{cold_start.NUMPY} alone",
        cold_start.STORED,
        cold_start.EMPTY,
    }


@pytest.mark.share(3)
@pytest.mark.parametrize(
    "words", ["kernel and triad and s32", "elementwise and dot", "sweep and 64 and f32", "pad and 1"]
)
def test_a_selection_runs(words: str, tmp_path: Path) -> None:
    """Checked and timed: TileJIT's way, and memcpy's."""
    pytest.importorskip("pytest_benchmark", reason="pytest-benchmark is not installed")
    saved = tmp_path / "run.json"
    command = [sys.executable, "-m", "pytest", "bench", "--benchmark-only", f"--benchmark-json={saved}"]
    done = subprocess.run(
        [*command, "-q", "-p", "no:cacheprovider", "-k", f"({words}) and (tilejit or memcpy)"],
        cwd=ROOT,
        env=environment(PYTEST_ADDOPTS=""),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    figures = json.loads(saved.read_text())["benchmarks"]
    assert figures
    assert all(figure["extra_info"]["moved_bytes"] > 0 for figure in figures)
    assert {figure["params"]["way"] for figure in figures} == {"tilejit", "memcpy"}
