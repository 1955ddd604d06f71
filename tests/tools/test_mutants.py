"""The planted bugs still fit the sources, and the runner tells killed mutants from survivors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.mutants.__main__ import MUTANTS, exit_code
from tests.tools.mutants.compiler import COMPILER
from tests.tools.mutants.library import LIBRARY
from tests.tools.mutants.mutant import (
    Mutant,
    StaleMutantError,
    by_likelihood,
    locate,
    mutated,
    sources,
    sources_digest,
)
from tests.tools.mutants.trial import Outcome, Trial

ROOT = Path(__file__).resolve().parents[2]


def test_names_are_unique() -> None:
    assert len(COMPILER) + len(LIBRARY) == len(MUTANTS)


def test_every_snippet_occurs_once_and_its_replacement_compiles() -> None:
    texts = sources(ROOT)
    for mutant in MUTANTS.values():
        module = locate(mutant, texts)
        changed = mutated(mutant, texts[module])
        assert changed != texts[module]
        compile(changed, module.name, "exec")


def test_stale_snippets_are_named() -> None:
    texts = {Path("a.py"): "x = 1\n", Path("b.py"): "x = 1\ny = 2\n"}
    assert locate(Mutant("fresh", "", "y = 2", "y = 3"), texts) == Path("b.py")
    with pytest.raises(StaleMutantError, match=r"gone: .* once, but it occurs in no module"):
        locate(Mutant("gone", "", "z = 3", ""), texts)
    with pytest.raises(StaleMutantError, match=r"twice: .* a\.py \(1\), b\.py \(1\)"):
        locate(Mutant("twice", "", "x = 1", ""), texts)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two modules, and a test of one of them; its pytest starts without plugins, which is faster."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    root = tmp_path / "project"
    for folder in ("codegen", "tilejit", "tests"):
        (root / folder).mkdir(parents=True)
        (root / folder / "__init__.py").touch()  # otherwise an installed package of that name comes first
    (root / "codegen" / "double.py").write_text("def double(x):\n    return 2 * x\n")
    (root / "tilejit" / "unused.py").write_text("def half(x):\n    return x / 2\n")
    (root / "tests" / "test_double.py").write_text(
        "from codegen.double import double\n\ndef test_double():\n    assert double(3) == 6\n"
    )
    (root / "tests" / "test_other.py").write_text("def test_other():\n    pass\n")
    return root


def test_likely_test_files_come_first(project: Path) -> None:
    files = sorted((project / "tests").glob("test_*.py"))
    module = project / "codegen" / "double.py"
    by_import = by_likelihood(Mutant("m", "", "", ""), module, project, files)
    assert [[file.stem for file in part] for part in by_import] == [["test_double"], ["test_other"]]
    by_name = by_likelihood(Mutant("m", "", "", "", ("test_other",)), module, project, files)
    assert [[file.stem for file in part] for part in by_name] == [["test_other", "test_double"], []]


@pytest.mark.full
def test_outcomes(project: Path, tmp_path: Path) -> None:
    """Each mutant is removed again, so the second one is judged by itself."""
    trial = Trial(project, tmp_path / "store", 60)
    before = sources_digest(project)
    killed = trial.run(Mutant("three", "", "2 * x", "3 * x"))
    assert (killed.result, killed.by) == ("killed", "tests/test_double.py::test_double")
    assert trial.run(Mutant("unused", "", "x / 2", "x / 3")).result == "survived"
    assert trial.run(Mutant("gone", "", "5 * x", "")).result == "stale"
    assert sources_digest(project) == before


def test_a_mutant_without_likely_tests_is_untested(project: Path, tmp_path: Path) -> None:
    trial = Trial(project, tmp_path / "store", 60, likely=True)
    outcome = trial.run(Mutant("unused", "", "x / 2", "x / 3"))
    assert (outcome.result, outcome.is_killed) == ("untested", False)
    assert "run without --likely" in outcome.by
    assert exit_code([outcome] + [Outcome("killed")] * 39) == 1


@pytest.mark.full
def test_a_test_that_fails_anyway_proves_nothing(project: Path, tmp_path: Path) -> None:
    (project / "tests" / "test_double.py").write_text("def test_double():\n    assert False\n")
    outcome = Trial(project, tmp_path / "store", 60).run(Mutant("three", "", "2 * x", "3 * x"))
    assert outcome.result == "unproven"
    assert exit_code([outcome] + [Outcome("killed")] * 39) == 1


@pytest.mark.full
def test_a_crash_names_the_test(project: Path, tmp_path: Path) -> None:
    trial = Trial(project, tmp_path / "store", 60)
    outcome = trial.run(Mutant("crash", "", "return 2 * x", "import ctypes; return ctypes.string_at(0)"))
    assert (outcome.result, outcome.by) == ("killed", "tests/test_double.py::test_double")


@pytest.mark.full
def test_hanging_tests_are_ended(project: Path, tmp_path: Path) -> None:
    trial = Trial(project, tmp_path / "store", 20)
    outcome = trial.run(Mutant("forever", "", "return 2 * x", "while True: pass"))
    assert (outcome.result, outcome.is_killed) == ("timeout", True)


def test_two_of_forty_may_survive() -> None:
    killed, survived = Outcome("killed"), Outcome("survived")
    assert exit_code([killed] * 38 + [survived] * 2) == 0
    assert exit_code([killed] * 37 + [survived] * 3) == 1
    assert exit_code([killed] * 39 + [Outcome("stale")]) == 1
