"""`python -m bench cold_start`: the processes that it starts, and how it reports them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import chart_figures, cold_start, summary_tables
from bench.cold_start import FROM_IMPORT, NUMPY, STORED, TILEJIT
from bench.markdown import report
from bench.saved import Run, runs_of


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


@pytest.mark.full
def test_a_process_that_only_imports_numpy_does_nothing_else(tmp_path: Path) -> None:
    took = cold_start.process(tmp_path, "store", copies=False, numba=False)
    assert took[NUMPY][0] > 0
    assert took[FROM_IMPORT] == (0, 0)
    assert TILEJIT not in took
    with pytest.raises(RuntimeError, match="numba was not imported"):
        cold_start.process(tmp_path, "store", copies=False, numba=True)
