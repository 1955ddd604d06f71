"""`python -m bench regret`: today's choices against records."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console

from bench import regret, saved
from bench.__main__ import start
from bench.corpus import Recorded
from bench.record import packed_texts
from bench.regret import Judged, cells, judge, tables
from codegen import machine


class Chosen:
    """Schedules of which one is chosen, or that of the machine's level."""

    def __init__(self, text: str = "") -> None:
        self.text = text

    def chosen(self) -> str:
        return self.text or machine().level


def line(name: str, size: int = 1 << 22, **shares: float | None) -> dict[str, Any]:
    return {"case": name, "kind": "k", "bytes": size, "memcpy_us": 1.0, "spread": 1.5, **packed_texts(shares)}


def test_regret_is_the_time_in_multiples_of_the_fastest() -> None:
    judged = judge(line("x", a=0.5, b=0.75, c=None), lambda: Chosen("a"))  # type: ignore[arg-type, return-value]
    assert (judged.chosen, judged.winner, judged.share, judged.best) == ("a", "b", 0.5, 0.75)
    assert judged.regret == 1.5
    assert judged.size == "1 to 16 MiB"


@pytest.mark.parametrize("text", ["c", "new"])
def test_a_choice_that_was_not_measured_is_reported(text: str) -> None:
    judged = judge(line("x", a=0.5, b=0.75, c=None), lambda: Chosen(text))  # type: ignore[arg-type, return-value]
    assert judged.share is None
    assert cells("k", [judged])[:3] == ["k", "1", "1"]
    out = io.StringIO()
    for table in tables([judged], worst=5):
        Console(file=out, width=240).print(table)
    assert "no record" in out.getvalue().split("the chosen schedule")[1]
    assert text in out.getvalue()


def case(name: str, share: float | None, best: float) -> Judged:
    return Judged(name, "k", "below 1 MiB", "chosen", "winner", share, best)


def test_rows_have_means_and_quantiles() -> None:
    judged = [case(str(k), 1.0, 1.0) for k in range(98)]
    judged += [case("slow", 0.5, 1.0), case("slower", 0.25, 1.0), case("unknown", None, 1.0)]
    assert cells("all", judged) == ["all", "101", "1", "1.02", "1.00", "1.00", "4.00", "0.98", "1.00"]


RECORDS = {
    "machine": {"name": "a machine"},
    "level": "sse2",
    "date": "2026-11-30",
    "schedules_for": {
        **{"level": "sse2", "register_bytes": 16, "registers": 16, "first_cache_ways": 8},
        **{"second_cache_bytes": 1 << 20, "last_cache_bytes": 1 << 25, "stream_bytes": 1 << 24},
    },
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Records of another machine. Of the two cases in the corpus, "case 5" is held out."""
    found = [Recorded("k", name, Chosen) for name in ("case 1", "case 5")]  # type: ignore[arg-type]
    monkeypatch.setattr(regret, "cases", lambda: found)
    lines = [  # only the first two have regret
        line("case 1", sse2=0.5, other=1.0),
        line("case 5", sse2=0.8, other=0.4),
        line("gone", sse2=0.8),
        {"case": "broken", "kind": "k", "problem": "WrongAnswer: other bytes"},
    ]
    path = tmp_path / "record-a.jsonl"
    path.write_text("".join(f"{json.dumps(x)}\n" for x in (RECORDS, *lines)))
    return path


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as raised:
        start(["regret", *arguments])
    assert not raised.value.code
    return capsys.readouterr().out


def test_choices_are_those_for_the_machine_of_the_records(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(capsys, str(file))
    assert "a machine, sse2, recorded 2026-11-30: 2 cases" in text
    assert [cell.strip() for cell in text.split("│ all")[1].splitlines()[0].split("│")[1:5]] == [
        *("2", "0", "1.41", "2.00")
    ]
    assert "failed: broken: WrongAnswer: other bytes" in text
    assert "no longer in the corpus: gone" in text
    assert "other work slowed memcpy down in 2 cases" in text
    assert text.index("case 1") < text.index("case 5")


def test_only_held_out_cases(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, str(file), "--held-out", "--only", "case")
    assert "1 held-out cases" in text
    assert "case 1" not in text


def test_a_folder_without_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "FOLDER", tmp_path)
    with pytest.raises(typer.BadParameter, match="run python -m bench record first"):
        regret.main()
