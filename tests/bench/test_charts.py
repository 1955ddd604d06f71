"""Saved results: reading returns what was written, and the documentation shows what they hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench import chart_figures, charts, selection
from bench.markdown import report
from bench.saved import fits, latest, load, mean_of, save

ROOT = Path(__file__).parents[2]
MACHINE = {"name": "AMD EPYC (Zen 4)", "cpu": "2 x AMD EPYC", "caches": "L1 32 KiB"}
DATE = "2026-11-22"


def row(table: str, group: str, case: str, share: float = 0.5, **times: float) -> dict[str, Any]:
    return {
        "table": table,
        "group": group,
        "case": case,
        "mb": 128,
        "gb_per_s": 20.0,
        "share": share,
        "times": times,
    }


def run(*rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"command": "python -m bench", "threads": 1, "rounds": 3, "rows": list(rows), **more}


RIVALS = {"numpy": 4.0, "torch": 2.0, "jax": 8.0}
SMALL = run(
    *(
        row(table, group, f"{table} {group}", **RIVALS)
        for table, group, *_ in selection.SUMMARY
        if group != "all"
    ),
    row("permutations", "2-D", "1,0", 0.25, **RIVALS),
    row("permutations", "others", "2,1,0", 1.0, **RIVALS),
    row("packs", "pack", "pack", **RIVALS),
    *(row("fresh outputs", m, f"u32 64x64 flat, {m}", numpy=2.0) for m in ("out= given", "fresh")),
    *(
        {**row("sizes", f"pack, {memory}", f"pack {dtype}[8,128] {tiles}, {mb}", numpy=0.5), "mb": mb}
        for dtype, tiles in (("f32", "T(8,128)"), ("bf16", "T(8,128)(2,1)"))
        for memory in ("out= given", "fresh")
        for mb in (0.008, 8.0)
    ),
    *(row("dropin", size, f"transpose {size}", numpy=3.0) for size in ("1 KiB", "1 MiB", "1 MiB plans")),
    *(row("relayout", group, group) for group in ("even shapes", "swizzled")),
    expressions=[
        {"case": "a+b", "dtype": "float32", "elements": n, "us": 1.0, "times": dict.fromkeys(names, 2.0)}
        for n in (1000, 100000)
        for names in (("numpy", "numexpr", "torch", "jax", "numba"),)
    ],
    two_threads=[{"case": "u32 64x64", "gain": 1.5, "memcpy_gain": 1.25}],
    vector_sizes={"float32": [["8", 60.0], ["(8, 128)", 70.0]], "float64": [["8", 50.0], ["(8, 128)", 55.0]]},
    cold_start_ms={"import tilejit": 4.2},
)


def saved(folder: Path, *runs: dict[str, Any], date: str = DATE) -> Path:
    path = folder / f"zen4-{date}.json"
    for each in runs:
        save(path, MACHINE, date, each)
    return path


def test_a_saved_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = saved(tmp_path, run(row("casts", "flat", "f32 to bf16", 0.123456, numpy=2.0)))
    assert json.loads(path.read_text())["machine"] == MACHINE
    (found,) = load(tmp_path)
    (figure,) = found.table("casts")
    assert (found.machine, found.date, found.threads) == (MACHINE["name"], DATE, 1)
    assert (figure.case, figure.share, figure.times) == ("f32 to bf16", 0.1235, {"numpy": 2.0})
    assert figure.share_of("numpy") == 0.1235 / 2


def test_a_file_holds_only_runs_of_one_machine_and_day(tmp_path: Path) -> None:
    path = saved(tmp_path, run(row("casts", "flat", "old")), run(row("casts", "flat", "new")))
    assert [r.figures[0].case for r in load(tmp_path)] == ["old", "new"]
    assert fits(path, MACHINE, DATE)
    assert fits(tmp_path / "other.json", MACHINE, DATE)
    assert not fits(path, MACHINE, "2026-11-23")
    assert not fits(path, {**MACHINE, "name": "another"}, DATE)


def test_the_newest_run_with_a_table_counts(tmp_path: Path) -> None:
    saved(tmp_path, run(row("casts", "flat", "newer")), date="2026-11-23")
    saved(tmp_path, run(row("casts", "flat", "older")), run(row("packs", "pack", "x")))
    runs = load(tmp_path)
    assert latest(runs, "casts").figures[0].case == "newer"
    assert latest(runs, "packs", "Zen 4").date == DATE
    with pytest.raises(LookupError, match="'packs' on Zen 5"):
        latest(runs, "packs", "Zen 5")


def test_captions_name_machines_in_order_and_many_days_by_the_first_and_the_last(tmp_path: Path) -> None:
    for day in ("24", "22", "23"):
        saved(tmp_path, run(row("casts", "flat", "a")), date=f"2026-11-{day}")
    zen3 = {**MACHINE, "name": "AMD EPYC (Zen 3)"}
    for day in ("21", "22"):
        save(tmp_path / f"zen3-{day}.json", zen3, f"2026-11-{day}", run(row("casts", "flat", "a")))
    assert selection.where(reversed(load(tmp_path))) == (
        "AMD EPYC (Zen 3), 2026-11-21 and 2026-11-22; AMD EPYC (Zen 4), 2026-11-22 to 2026-11-24"
    )


def test_means_are_geometric_and_saved_ones_win(tmp_path: Path) -> None:
    rows = [row("casts", "flat", "a", 0.25, numpy=2.0), row("casts", "flat", "b", 1.0, numpy=8.0)]
    group = {
        "table": "casts",
        "group": "flat",
        "cases": 2,
        "share": 0.51,
        "least": 0.25,
        "times": {"numpy": 4.1},
    }
    saved(tmp_path, run(*rows), run(*rows, groups=[group]))
    plain, with_means = load(tmp_path)
    mean = mean_of(plain.figures, "flat")
    assert plain.mean("casts", "flat") == mean
    assert (mean.cases, mean.share, mean.least, mean.times) == (2, 0.5, 0.25, {"numpy": 4.0})
    assert with_means.mean("casts", "flat").share == 0.51
    assert with_means.mean("casts", "all").share == 0.5


def test_filling_markers_again_replaces_the_text(tmp_path: Path) -> None:
    saved(tmp_path, SMALL)
    runs = load(tmp_path)
    page = "before\n<!-- chart: bench-fresh --><!-- end -->\n<!-- table: threads --><!-- end -->\nafter\n"
    once = charts.filled(page, runs)
    assert charts.filled(once, runs) == once
    assert "](images/bench-fresh.svg)" in once
    assert "*AMD EPYC (Zen 4), 2026-11-22. One thread." in once
    assert "| u32 64x64 | 1.50 | 1.25 |" in once
    assert once.startswith("before\n")
    assert once.endswith("\nafter\n")
    with pytest.raises(KeyError):
        charts.filled("<!-- chart: nothing --><!-- end -->", runs)


@pytest.mark.full
@pytest.mark.parametrize("chart", charts.CHARTS, ids=lambda chart: chart.name)
def test_a_chart_of_small_results(chart: charts.Chart, tmp_path: Path) -> None:
    """A chart is the same bytes each time, is well-formed, and contains no date."""
    pytest.importorskip("matplotlib")
    saved(tmp_path, SMALL)
    runs = load(tmp_path)
    drawn = chart.draw(runs)
    assert drawn == chart.draw(runs)
    root = ElementTree.fromstring(drawn)
    assert root.get("width") == "700"
    words = "".join(root.itertext())
    assert len(words.split()) > 5
    assert "<script" not in drawn
    assert "dc:date" not in drawn
    assert "2026-11-22" in chart.caption(runs)


def test_bars_show_the_figures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    saved(tmp_path, SMALL)
    words = "".join(ElementTree.fromstring(chart_figures.speed(load(tmp_path))).itertext()).split()
    assert words.count("GB/s") > 5
    assert {"20.0", "5.0", "10.0", "2.5"} <= {*words}  # TileJIT, NumPy, torch, jax


def test_the_page_and_the_report_match_the_saved_results() -> None:
    """`python -m bench.charts` writes both. The text of the charts depends on matplotlib's version."""
    runs = load()
    assert charts.PAGE.read_text() == charts.filled(charts.PAGE.read_text(), runs)
    assert charts.RESULTS.read_text() == report(runs)
    for chart in charts.CHARTS:
        assert (charts.IMAGES / f"{chart.name}.svg").exists()
        assert f"<!-- chart: {chart.name} -->" in charts.PAGE.read_text()
    for name in charts.TABLES:
        assert f"<!-- table: {name} -->" in charts.PAGE.read_text()
