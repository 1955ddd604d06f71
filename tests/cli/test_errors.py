"""Errors that end a command without a message of their own."""

from __future__ import annotations

from typing import Any

import pytest

import tilejit
from tilejit.cli.errors import Commands, message


def lost() -> None:
    raise SystemError("returned NULL without setting an exception")


def wrapped() -> None:
    try:
        raise MemoryError
    except MemoryError as error:
        raise ValueError("no schema") from error


def met_on_the_way() -> None:
    try:
        raise MemoryError
    finally:
        raise AttributeError("__schema__")


def broken() -> None:
    raise AttributeError("a mistake of ours")


def run(monkeypatch: pytest.MonkeyPatch, way: Any) -> None:
    monkeypatch.setattr(Commands.__bases__[0], "main", lambda *_, **__: way())
    Commands(name="tilejit").main()


@pytest.mark.parametrize("way", [lost, wrapped, met_on_the_way])
def test_errors_caused_by_lack_of_memory(
    way: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        run(monkeypatch, way)
    assert end.value.code == 1
    assert capsys.readouterr().err == "tilejit: out of memory\n"


def test_internal_errors_show_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AttributeError, match="of ours"):
        run(monkeypatch, broken)


def test_a_caret_stays_below_its_column() -> None:
    text = "a dimension is missing\n  f32[3,\n        ^\n  write a whole number"
    assert message(text, 80) == text


def test_calls_become_commands() -> None:
    """Errors of the library suggest a call, those of commands the command that does the same."""
    with pytest.raises(tilejit.LayoutError, match=r"tilejit\.formats\(\) lists") as caught:
        tilejit.describe_format("nope")
    shown = " ".join(message(str(caught.value), 80).split())
    assert "which `tilejit formats` lists" in shown


def test_prose_is_wrapped_and_the_text_above_a_caret_is_cut() -> None:
    text = f"{'word ' * 20}\n  {'a' * 50}b{'c' * 50}\n  {' ' * 50}^\n  {'fix ' * 20}"
    lines = message(text, 40).splitlines()
    assert max(map(len, lines)) <= 40
    assert len(f"tilejit: {lines[0]}") <= 40
    caret = next(k for k, line in enumerate(lines) if line.strip() == "^")
    assert lines[caret - 1][lines[caret].index("^")] == "b"
    assert " ".join(" ".join(lines).split()).count("word") == 20


@pytest.mark.parametrize("columns", [1, 3, 10, 60, 200])
def test_no_message_is_lost_in_narrow_terminals(columns: int) -> None:
    assert "nothing" in message("\x1bnothing\n  a\u2028b\n ^\n\n", columns)
    assert message("", columns) == ""
