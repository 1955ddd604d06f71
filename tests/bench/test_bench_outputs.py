"""The output of `python -m bench`; files that it cannot write are refused before it measures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import typer

from bench.__main__ import main
from bench.measure import PeerFigure, Row
from bench.report import noise_note
from bench.timing import Timing


@pytest.mark.parametrize("option", ["json_file", "markdown_file", "plot_file"])
def test_a_directory_as_an_output_file_is_refused(option: str, tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match="is a directory"):
        main("copies", quick=True, **{option: tmp_path})  # type: ignore[arg-type]


def test_unknown_suites_and_peers_are_refused() -> None:
    with pytest.raises(typer.BadParameter, match="unknown suite nothing"):
        main("copies,nothing", quick=True)
    with pytest.raises(typer.BadParameter, match=r"unknown suite packs; did you mean pack\?"):
        main("packs", quick=True)
    with pytest.raises(typer.BadParameter, match="unknown peer wrong"):
        main("copies", quick=True, against="wrong,")


def row(table: str, group: str, case: str, seconds: float = 1e-3) -> Row:
    numpy = PeerFigure(Timing(4 * seconds, 4 * seconds), 0.25, 4.0)
    return Row(
        table, group, case, 8_000_000, 0.1, Timing(seconds, seconds), Timing(2e-3, 2e-3), {"numpy": numpy}
    )


ROWS = [
    row("packs", "pack", "pack tpu"),
    row("casts", "flat", "f32 to bf16"),
    row("packs", "unpack", "unpack tpu"),
]


@pytest.mark.parametrize(
    ("noisy", "quiet", "note"),
    [
        (0, 3, ""),
        (1, 10, ""),
        (1, 1, "memcpy varied by more than 25% in 1 of 2 cases; rerun on an idle machine"),
        (0, 0, ""),
    ],
)
def test_a_note_tells_that_other_work_slowed_memcpy_down(noisy: int, quiet: int, note: str) -> None:
    each = row("packs", "pack", "pack tpu")
    slowed = replace(each, memcpy=Timing(2e-3, 3e-3))
    failed = replace(slowed, problem="WrongAnswer: the answer differs from NumPy's")
    assert noise_note([each] * quiet + [slowed] * noisy + [failed]) == note


@pytest.mark.full
def test_bars_have_names_and_a_legend() -> None:
    pytest.importorskip("matplotlib")
    from bench.plot import MOST_CASES, chart

    text = chart(ROWS, "a machine")
    for word in ("TileJIT", "NumPy", "memcpy", "a machine", "pack tpu", "f32 to bf16", "packs", "8.0", "2.0"):
        assert f">{word}" in text
    assert "torch" not in text
    long = chart([row("packs", "pack", "unpack nested f32[512,4096] T(32,32)(16,16)")], "a machine")
    assert ">unpack nested f32[512,4096]<" in long
    assert ">T(32,32)(16,16)<" in long
    many = [row("packs", f"group {k % 3}", f"case {k}", (1 + k) * 1e-4) for k in range(MOST_CASES + 1)]
    text = chart(many, "a machine")
    assert ">group 2<" in text
    assert ">case 2<" not in text
    assert "geometric means" in text
