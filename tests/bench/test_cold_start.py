"""`python -m bench cold_start`: the processes that it starts, and how it reports them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from bench import chart_figures, cold_start, summary_tables
from bench.__main__ import main
from bench.cold_start import COPIES, EMPTY, FROM_IMPORT, NUMPY, STORED, TILEJIT, Milliseconds, Starts
from bench.markdown import report
from bench.saved import Run, load, runs_of


def pretended(folder: Path, store: str, *, copies: bool = True, numba: bool | None = None) -> Milliseconds:
    """50 ms for NumPy, and for each further step 1 ms with a filled store or 100 ms with an empty one."""
    took = 100.0 if store.startswith("empty") else 1.0
    steps = dict.fromkeys((TILEJIT, *COPIES), (took, took)) if copies else {}
    total = sum(wall for wall, _ in steps.values())
    return {NUMPY: (50.0, 50.0), **steps, FROM_IMPORT: (total, total)}


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """The store of each process, and whether it copied. No process is started."""
    found = []

    def process(folder: Path, store: str, **how: Any) -> Milliseconds:
        found.append((store, how.get("copies", True)))
        return pretended(folder, store, **how)

    monkeypatch.setattr(cold_start, "process", process)
    return found


def measured(rounds: int, empty: int) -> Starts:
    starts = Starts()
    cold_start.measure(starts, rounds, empty)
    return starts


def test_processes_take_turns_after_one_that_fills_the_store(started: list[tuple[str, bool]]) -> None:
    starts = measured(rounds=3, empty=2)
    numpy, copies = ("store", False), ("store", True)
    assert started == [
        copies,
        *(numpy, copies, ("empty0", True)),
        *(numpy, copies, ("empty1", True)),
        *(numpy, copies),
    ]
    assert (len(starts.alone), len(starts.stored), len(starts.compiled)) == (3, 3, 2)


@pytest.mark.usefixtures("started")
def test_medians_and_ratios_are_relative_to_numpys_import() -> None:
    starts = measured(rounds=3, empty=2)
    assert starts.medians() == {NUMPY: 50.0, TILEJIT: 1.0, STORED: 4.0, EMPTY: 400.0}
    out = io.StringIO()
    Console(file=out, width=100).print(cold_start.tables(starts))
    assert "first copies, kernels stored: 0.08 times as long as import numpy alone" in out.getvalue()
    assert "first copies, empty store: 8.00 times" in out.getvalue()
    assert set(measured(rounds=1, empty=0).medians()) == {NUMPY, TILEJIT, STORED}
    assert Starts().medians() == {}


@pytest.mark.usefixtures("started")
def test_a_run_prints_saves_and_draws_a_chart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("TILEJIT_THREADS", "1")  # as `main` does for its own process
    picture, results = tmp_path / "cold.svg", tmp_path / "saved" / "cold.json"
    results.parent.mkdir()
    main("cold_start", quick=True, plot_file=picture, json_file=results)
    assert "import numpy alone: medians of 3 processes, ms" in capsys.readouterr().out
    (run,) = load(results.parent)
    assert run.cold_start_ms == {NUMPY: 50.0, TILEJIT: 1.0, STORED: 4.0, EMPTY: 400.0}
    words = "".join(ElementTree.fromstring(picture.read_text()).itertext())
    for text in ("import numpy", EMPTY, "400.0 ms"):
        assert text in words


def runs(**milliseconds: float) -> tuple[Run, ...]:
    """A run that saved these figures, with spaces for underscores."""
    medians = {name.replace("_", " "): value for name, value in milliseconds.items()}
    run = {"command": "python -m bench cold_start", "threads": 1, "rounds": 3, "cold_start_ms": medians}
    return runs_of({"machine": {"name": "a machine"}, "date": "2026-11-24", "runs": [run]})


def test_tables_have_the_ratio_where_numpys_import_was_timed() -> None:
    old = runs(import_tilejit=5, **{STORED: 120})
    assert summary_tables.cold_start_table(old).splitlines()[-1] == "| a machine | 2026-11-24 | 5 | 120 |"
    new = runs(import_numpy=100, import_tilejit=5, **{STORED: 120})
    last = summary_tables.cold_start_table(new).splitlines()[-1]
    assert last == "| a machine | 2026-11-24 | 100 | 5 | 120 (1.20 × import numpy) |"
    assert "| first copies, kernels stored | 120 |" in report(new)


def test_the_chart_shows_a_run_that_timed_numpys_import() -> None:
    with pytest.raises(LookupError, match="import numpy"):
        chart_figures.cold_start(runs(import_tilejit=5))


def test_a_process_that_only_imports_numpy_does_nothing_else(tmp_path: Path) -> None:
    took = cold_start.process(tmp_path, "store", copies=False, numba=False)
    assert took[NUMPY][0] > 0
    assert took[FROM_IMPORT] == (0, 0)
    assert TILEJIT not in took
    with pytest.raises(RuntimeError, match="numba was not imported"):
        cold_start.process(tmp_path, "store", copies=False, numba=True)
