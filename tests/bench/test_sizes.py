"""`python -m bench sizes`: every named format at every size, and what the tables show of the rows."""

from __future__ import annotations

import io
from math import prod
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console

import tilejit as tj
from bench import catalog, chart_figures, sizes
from bench.__main__ import main
from bench.arrays import bits, filled, flat_bytes
from bench.formats import FORMATS, Format
from bench.jobs import UNTOUCHED
from bench.measure import PeerFigure, Row
from bench.narrow import expanded, squeezed
from bench.saved import runs_of
from bench.timing import Timing


def spelled(named: Format) -> str:
    return f"{named.name} {named.dtype}"


def test_every_named_format_is_measured() -> None:
    """Either its packing in the suite of all formats, or its rule in the suites of layouts."""
    measured = {case.name.removeprefix("pack ") for case in catalog.cases(True)}
    assert {*tj.formats()} - measured == {"tpu", "tpu-doc"}
    assert {"tpu", "tpu-doc"} & {named.name for named in FORMATS}


@pytest.mark.full
def test_every_buffer_of_a_pack_is_cleared_before_it_is_checked() -> None:
    (case,) = (case for case in catalog.cases(True) if case.name == "pack gptq-checkpoint")
    job = case.make(1)
    packed = job.ours()()
    flat_bytes(job.out)[:] = UNTOUCHED
    assert len(packed.buffers) == 4
    for buffer in packed.buffers.values():
        assert np.all(buffer.reshape(-1).view(np.uint8) == UNTOUCHED)


@pytest.mark.parametrize("named", FORMATS, ids=spelled)
@pytest.mark.parametrize("size", sizes.SIZES)
def test_arrays_have_about_the_size(named: Format, size: int) -> None:
    dims = sizes.scaled(named, size)
    assert size / 2 < prod(dims) * named.dtype.itemsize <= size
    assert len(dims) == len(named.shapes[0])


@pytest.mark.parametrize("named", FORMATS, ids=spelled)
@pytest.mark.parametrize("size", [1 << 10, 1 << 14])
def test_packing_fills_the_layout_and_unpacking_undoes_it(named: Format, size: int) -> None:
    dims = sizes.scaled(named, size)
    x = bits(filled(dims, named.dtype))
    recipe = named.recipe(dims)
    buffer = recipe.packer()(x)
    if named.width:
        buffer = squeezed(buffer, named.width)
    spec = tj.as_layout(named.layout, dtype=named.dtype, dims=dims)
    assert buffer.nbytes == spec.size_in_bytes
    loose = expanded(buffer, named.width) if named.width else buffer
    assert np.array_equal(recipe.unpacker()(loose.reshape(-1)), x)


def test_pairs_have_one_dtype_and_names_are_unique() -> None:
    assert all(FORMATS[k].dtype == FORMATS[n].dtype for k, n in sizes.PAIRS)
    names = [case.name for case in sizes.cases(quick=False)]
    assert len(names) == len({*names})


def row(case: str, us: float, recipe_us: float, memcpy_us: float = 1.0) -> Row:
    recipe = PeerFigure(Timing(recipe_us / 1e6, recipe_us / 1e6), memcpy_us / recipe_us, recipe_us / us)
    ours, copy = (Timing(time / 1e6, time / 1e6) for time in (us, memcpy_us))
    return Row("sizes", "pack, fresh", f"pack {case}, 4 KiB, fresh", 8192, 0.1, ours, copy, {"numpy": recipe})


def printed(*rows: Row) -> str:
    console = Console(file=io.StringIO(), width=200)
    for table in sizes.tables(rows):
        console.print(table)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(text, str)
    return text


def test_a_case_counts_as_slower_only_if_the_recipe_takes_long_enough() -> None:
    text = printed(row("slow", 10, 8), row("fast", 5, 10), row("near", 10, 9.6), row("short", 3, 2))
    _, _, rest = text.partition("slower than the recipe, where it takes 5 us or more: ")
    assert rest.startswith("1 of 3 cases")
    slower, _, short = rest.partition("where the recipe takes less than 5 us")
    assert "slow" in slower
    assert "near" not in slower
    assert "pack, fresh" in short
    assert {"3", "2", "0.67"} <= {*short.replace("│", " ").split()}  # us, above memcpy, x recipe


def test_no_slower_case_is_an_empty_table() -> None:
    assert "5 us or more: 0 of 1 cases" in printed(row("fast", 5, 10))
    assert "less than 5 us" not in printed(row("fast", 5, 10))


def test_the_chart_shows_means_and_slowest_formats() -> None:
    pytest.importorskip("matplotlib")
    rows = [
        {
            "table": "sizes",
            "group": group,
            "case": f"{group.partition(',')[0]} {dtype}[8,128] T(8,128), {size}, {memory}",
            "mb": 0.1,
            "gb_per_s": 1.0,
            "share": 0.5,
            "times": {"numpy": ratio},
        }
        for size in ("4 KiB", "1 MiB")
        for dtype, ratio in (("f32", 0.5), ("bf16", 8.0))
        for memory in ("out= given", "fresh")
        for group in (f"pack, {memory}", f"relayout, {memory}")
    ]
    run = {"command": "", "threads": 1, "rounds": 3, "rows": rows}
    runs = runs_of({"machine": {"name": "a machine"}, "date": "2026-11-24", "runs": [run]})
    cases = runs[0].table("sizes")
    assert chart_figures.by_size(cases, "pack, fresh", min) == [(4096, 0.5), (1 << 20, 0.5)]
    assert chart_figures.by_size(cases, "pack, fresh", max) == [(4096, 8.0), (1 << 20, 8.0)]
    words = "".join(ElementTree.fromstring(chart_figures.recipes(runs)).itertext())
    for text in ("4 KiB", "1 MiB", "relayout, new", "Slowest format", "a machine, 2026-11-24"):
        assert text in words
    assert "unpack" not in words


@pytest.mark.full
def test_a_run_prints_saves_and_draws_a_chart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("TILEJIT_THREADS", "1")  # as `main` does for its own process
    picture, results = tmp_path / "sizes.svg", tmp_path / "sizes.json"
    main("sizes", only="pack f32[8,128]", quick=True, cases=2, plot_file=picture, json_file=results)
    out = capsys.readouterr().out
    assert "ratios to the NumPy recipe and to memcpy" in out
    assert "4 KiB, out= given" in out
    assert ElementTree.fromstring(picture.read_text()).get("width") == "700"
    assert '"sizes"' in results.read_text()
