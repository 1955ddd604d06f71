"""The sets of tests that runs take."""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path
from subprocess import CompletedProcess, run
from sys import executable

import numpy as np
import pytest

from tests.tools.extent import EXTENT, covering, examples, in_pairs
from tests.tools.oracle import environment


def test_each_value_of_each_parameter_is_covered() -> None:
    cases = [{"a": a, "b": b, "c": c} for a, b, c in product(range(5), "xyz", (True, 1, 1.0))]
    chosen = [cases[position] for position in covering(cases)]
    assert len(chosen) == 5
    for name, values in (("a", range(5)), ("b", "xyz")):
        assert {case[name] for case in chosen} == set(values)
    assert {type(case["c"]) for case in chosen} == {bool, int, float}


def test_values_that_cannot_be_hashed_are_objects() -> None:
    one, two = np.zeros(3), np.zeros(3)
    cases = [{"x": x, "n": n} for x in (one, two) for n in (1, 2)]
    assert [cases[position] for position in covering(cases)] == [{"x": one, "n": 1}, {"x": two, "n": 2}]


def test_one_parameter_keeps_all_cases() -> None:
    assert covering([{"a": a} for a in range(7)]) == list(range(7))


def test_each_two_values_of_two_axes_meet() -> None:
    axes = (range(4), "xyz", (True, 1), ([], []))
    cases = in_pairs(*axes)
    assert len(cases) < 4 * 3 * 2
    for a, b in combinations(range(len(axes)), 2):
        met = {(type(case[b]), *map(str, (case[a], case[b]))) for case in cases}
        assert met == {(type(y), str(x), str(y)) for x in axes[a] for y in axes[b]}


def test_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for extent in ("plain", "full", "soak"):
        monkeypatch.setenv(EXTENT, extent)
        found.append(examples(3, full=20))
    assert found == [3, 20, 200]


FILE = """
import pytest

@pytest.mark.parametrize("a", range(4))
@pytest.mark.parametrize("b", range(3))
def test_product(a, b): ...

@pytest.mark.full
def test_long(): ...

def test_random(seed):
    print("drawn from", seed)
"""


def collected(path: Path, *options: str) -> CompletedProcess[str]:
    """What pytest runs of a file of its own, with the project's `conftest.py`."""
    root = Path(__file__).parents[2]
    (path / "test_own.py").write_text(FILE)
    command = [
        executable,
        "-m",
        "pytest",
        "-v",
        "-n",
        "0",
        "-s",
        "-p",
        "no:cacheprovider",
        "-c",
        str(root / "pyproject.toml"),
    ]
    command += ["-p", "tests.conftest", f"--rootdir={path}", *options, str(path)]
    changes = {EXTENT: ""}
    return run(command, cwd=root, env=environment(**changes), capture_output=True, text=True, check=False)


@pytest.mark.full
@pytest.mark.parametrize(
    ("options", "tests"),
    [((), 5), (("--full",), 14), (("-k", "long"), 1), (("-k", "product"), 12), (("--soak",), 1)],
)
def test_the_set_of_a_run(options: tuple[str, ...], tests: int, tmp_path: Path) -> None:
    done = collected(tmp_path, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == tests
    assert ("random seed " in done.stdout) == ("--soak" in options)


@pytest.mark.full
def test_a_soak_repeats_a_seed(tmp_path: Path) -> None:
    done = collected(tmp_path, "--soak", "--seed", "1234")
    assert "random seed 1234" in done.stdout
    assert "drawn from 1234" in done.stdout


@pytest.mark.full
def test_a_seed_without_a_soak_is_refused(tmp_path: Path) -> None:
    done = collected(tmp_path, "--seed", "1")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--seed belongs to --soak" in done.stderr
