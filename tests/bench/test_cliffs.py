"""`python -m bench cliffs`: the random cases, and what tables and charts show of the rows."""

from __future__ import annotations

import io
import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console

from bench import chart_figures, cliffs
from bench.markdown import report
from bench.measure import PeerFigure, Row
from bench.saved import Run, runs_of
from bench.timing import Timing

CASE = re.compile(r"u(8|16|32|64) \[([\d,]+)\] \(([\d,]+)\)")


def drawn() -> list[tuple[int, tuple[int, ...], tuple[int, ...]]]:
    """Bytes of an element, shape and order of each case, from its name."""
    found = []
    for case in cliffs.cases(quick=False):
        match = CASE.fullmatch(case.name)
        assert match
        shape, order = (tuple(map(int, match[k].split(","))) for k in (2, 3))
        found.append((int(match[1]) // 8, shape, order))
    return found


def test_the_random_cases_are_the_same_in_every_run() -> None:
    assert [c.name for c in cliffs.cases(False)] == [c.name for c in cliffs.cases(False)]
    assert len(cliffs.cases(False)) == 2000


def test_cases_are_permutations_of_the_documented_sizes() -> None:
    for itemsize, shape, order in drawn():
        assert 2 <= len(shape) <= 5
        assert sorted(order) == [*range(len(shape))]
        assert order != tuple(range(len(shape)))
        assert min(shape) >= 2
        assert 1 << 16 <= math.prod(shape) * itemsize <= 95_000_000


def test_a_case_copies_what_numpy_copies() -> None:
    job = cliffs.cases(quick=True)[0].make(1)
    job.peers["numpy"]()()
    assert np.array_equal(job.out.reshape(-1).view(np.uint8), job.expected)


def test_the_distribution_is_by_group() -> None:
    figures = [("from 4 MiB", k / 100, 0.5 if k <= 3 else 2.0) for k in range(1, 102)]
    small, large = cliffs.distribution([("below 4 MiB", 0.5, 1.0), *figures])[::-1]
    assert large[:2] == ["from 4 MiB", "101"]
    assert large[3:8] == ["0.01", "0.02", "0.06", "0.26", "0.51"]  # least, 1, 5, 25 and 50 %
    assert large[8:] == ["3", "0.50"]
    assert small == ["below 4 MiB", "1", *["0.50"] * 6, "0", "1.00"]


def row(name: str, share: float, ratio: float | None) -> Row:
    peers = {} if ratio is None else {"numpy": PeerFigure(Timing(1.0, 1.0), share, ratio)}
    return Row("cliffs", "below 4 MiB", name, 1 << 17, 0.1, Timing(1.0, 1.0), Timing(share, share), peers)


def printed(*rows: Row) -> str:
    out = io.StringIO()
    for table in cliffs.tables(rows):
        Console(file=out, width=240).print(table)
    return out.getvalue()


def test_the_worst_cases_are_listed_with_schedules() -> None:
    text = printed(row("u8 [256,256] (1,0)", 0.5, 0.9), row("u64 [91,90] (1,0)", 0.25, 3.0))
    shares, worst, slower = re.split("the worst|slower than NumPy: ", text)
    assert "below 4 MiB" in shares
    assert worst.index("u64 [91,90]") < worst.index("u8 [256,256]")
    assert worst.count("outer none | row = j | column = i") >= 2
    assert slower.startswith("1 of 2 cases")
    assert "u8 [256,256]" in slower
    assert "u64" not in slower


def test_cases_without_a_ratio_to_numpy_do_not_count_as_slower() -> None:
    assert "slower than NumPy: " not in printed(row("u8 [256,256] (1,0)", 0.5, None))
    assert printed() == ""


def saved() -> tuple[Run, ...]:
    """A run of a hundred cases."""
    rows = [
        {
            "table": "cliffs",
            "group": "from 4 MiB" if k % 2 else "below 4 MiB",
            "case": f"u8 [{k},9999] (1,0)",
            "mb": 1.0,
            "gb_per_s": 1.0,
            "share": k / 100,
            "times": {"numpy": k / 10},
        }
        for k in range(1, 101)
    ]
    run = {"command": "python -m bench cliffs", "threads": 1, "rounds": 3, "rows": rows}
    return runs_of({"machine": {"name": "a machine"}, "date": "2026-11-24", "runs": [run]})


def test_the_chart_has_two_distributions() -> None:
    pytest.importorskip("matplotlib")
    words = "".join(ElementTree.fromstring(chart_figures.cliffs(saved())).itertext())
    for text in ("Share of memcpy", "Times as fast as NumPy", "from 4 MiB (50 cases)", "75 %"):
        assert text in words


def test_saved_runs_show_the_distribution() -> None:
    assert "| from 4 MiB | 50 | 0.37 | 0.01 | 0.01 |" in report(saved())
