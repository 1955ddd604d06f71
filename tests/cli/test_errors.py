"""What ends a command without an explanation of its own."""

from __future__ import annotations

from typing import Any

import pytest

from tilejit.cli.errors import OneLineErrors


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
    monkeypatch.setattr(OneLineErrors.__bases__[0], "main", lambda *_, **__: way())
    OneLineErrors(name="tilejit").main()


@pytest.mark.parametrize("way", [lost, wrapped, met_on_the_way])
def test_what_memory_that_ran_out_became(
    way: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        run(monkeypatch, way)
    assert end.value.code == 2
    assert capsys.readouterr().err == "tilejit: out of memory\n"


def test_mistakes_of_ours_are_shown_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AttributeError, match="of ours"):
        run(monkeypatch, broken)
