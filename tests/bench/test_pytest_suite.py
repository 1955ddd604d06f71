"""`pytest bench` has every case of `python -m bench`, with names that `-k` finds."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tilejit
from bench import cold_start, test_bench
from bench.suites import NAMES, SUITES, Choice
from bench.synonyms import SYNONYMS, words_for
from tests.tools.oracle import environment

ROOT = Path(__file__).parents[2]


def test_every_case_of_every_suite() -> None:
    """They are in its order. A cold start is a separate test."""
    names = tuple(name for name in NAMES if name in SUITES)
    expected = Choice(names, "", True, None, 1, 0.0).cases()
    found = [case for suite, case in test_bench.CASES if suite in SUITES]
    assert [(case.table, case.group, case.name) for case in found] == [
        (case.table, case.group, case.name) for case in expected
    ]
    assert {suite for suite, _ in test_bench.CASES} | {cold_start.SUITE} >= set(NAMES)


def test_synonyms_belong_to_words_in_names() -> None:
    assert words_for("casts: flat: f32 to bf16") == {
        *("convert", "conversion", "astype"),
        *("float32", "single", "bfloat16"),
    }
    assert words_for("a32 f320 unpacks") == set()
    names = {word for name in test_bench.NAMES for word in re.findall(r"[a-z0-9][a-z0-9-]*", name.lower())}
    assert SYNONYMS.keys() <= names


SELECTIONS = (
    "kernel and axpy and int32",
    "elementwise and dot",
    "sweep and 4x64 and f32",
    "dropin and pad and 1",
)


@pytest.mark.full
def test_selections_run(tmp_path: Path) -> None:
    """TileJIT and memcpy are checked and timed. One process runs all selections."""
    pytest.importorskip("pytest_benchmark", reason="pytest-benchmark is not installed")
    saved, chosen = tmp_path / "run.json", " or ".join(SELECTIONS)
    command = [sys.executable, "-m", "pytest", "bench", "--benchmark-only", f"--benchmark-json={saved}"]
    done = subprocess.run(
        [*command, "-q", "-p", "no:cacheprovider", "-k", f"({chosen}) and (tilejit or memcpy)"],
        cwd=ROOT,
        env=environment(PYTEST_ADDOPTS="", PYTEST_XDIST_WORKER=""),  # workers have no figures
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    figures = json.loads(saved.read_text())["benchmarks"]
    for words in SELECTIONS:
        assert any(_has(figure["name"], words.split(" and ")) for figure in figures), words
    assert all(figure["extra_info"]["moved_bytes"] > 0 for figure in figures)
    assert {figure["params"]["method"] for figure in figures} == {"tilejit", "memcpy"}
    saved_info = json.loads(saved.read_text())["machine_info"]["tilejit"]
    assert saved_info["version"] == tilejit.__version__
    assert {"cpu", "numpy"} <= saved_info.keys()


def _has(name: str, words: list[str]) -> bool:
    return all(word in name.lower() or word in words_for(name) for word in words)
