"""The sweep of super-vectors: checked answers, one row per size, "auto" compared to the best, and a chart."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console

from bench import sweep, sweep_tables
from bench.measure import Method, Row
from bench.report import run_json
from bench.saved import runs_of
from bench.sweep import AUTO, Arrays, best_of, measure, shown, workloads
from bench.timing import Timing
from tests.bench.test_charts import DATE, MACHINE

METHOD = Method(rounds=1, threads=1, peers=(), peer_seconds=0.0)
SMALL = replace(workloads(quick=True)[0], sizes=(AUTO, 64, "2*hw"))


@pytest.mark.full
def test_every_workload_is_right_at_every_size() -> None:
    """On small arrays, which the rows of a workload share."""
    for workload in workloads(quick=True):
        few = replace(workload, sizes=(AUTO, 64, *workload.sizes[-4:-3]))
        assert [row.problem for row in measure(few, METHOD)] == [""] * len(few.sizes)


@pytest.mark.full
def test_a_wrong_answer_discards_only_its_own_size() -> None:
    right = SMALL.make(1)

    def make(_: int) -> Arrays:
        return replace(right, call_for=lambda size: (lambda: None) if size == 64 else right.call_for(size))

    rows = measure(replace(SMALL, make=make), METHOD)
    assert {row.case: bool(row.problem) for row in rows} == {
        AUTO: False,
        "64": True,
        shown("2*hw", np.float32): False,
    }


def test_sizes_in_terms_of_the_machine_show_their_elements() -> None:
    assert shown((32, 256), "f4") == "32x256"
    assert shown("2*hw", "f4") in ("2*hw = 32", "2*hw = 16", "2*hw = 8")


def rows(**rates: float) -> list[Row]:
    timings = {case.lstrip("_"): Timing(1 / rate, 1 / rate) for case, rate in rates.items()}
    return [Row(sweep.SUITE, "copy", case, 10**9, 0.0, t, t) for case, t in timings.items()]


@pytest.mark.parametrize(("best", "share", "count"), [(10.0, "0.80", 0), (8.0, "1.00", 1)])
def test_the_table_compares_auto_to_the_best(best: float, share: str, count: int) -> None:
    found = rows(auto=8.0, _64=best, _32x64=2.0)
    ((_, _, fastest, auto),) = best_of(found)
    assert (fastest.rate, auto and auto.case) == (best, AUTO)
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    for part in sweep_tables.tables(found):
        console.print(part)
    text = console.export_text()
    assert share in text
    assert f"in {count} of 1 workloads" in text


def test_the_chart_has_a_panel_for_each_workload() -> None:
    pytest.importorskip("matplotlib")
    found = rows(auto=8.0, _64=10.0, _256=4.0, _32x64=2.0)
    run = run_json(found, [], command="python -m bench sweep", threads=1, rounds=1)
    text = sweep_tables.chart(runs_of({"machine": MACHINE, "date": DATE, "runs": [run]}))
    ElementTree.fromstring(text)
    assert "copy" in text
    assert "two dimensions" in text
