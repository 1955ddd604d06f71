"""Colors, widths and progress bars, in pseudo-terminals."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pty", reason="this system has no pseudo-terminals")

from tests.cli.running import child, run
from tests.cli.terminals import shown
from tilejit.cli.output import colored

SHAPE = "f32[3,5]{1,0:T(2,2)}"
SLOW = """
import time
from tilejit.cli.progress import progress, steps
with progress(100 << 20, "model.safetensors", quiet={quiet}) as advance:
    for _ in range({turns}):
        time.sleep(0.1)
        advance(1 << 20)
with steps("tpu", quiet={quiet}) as on_step:
    for k in range({turns}):
        time.sleep(0.1)
        on_step(k, 50, "3 compiled, f32[8,128]")
"""


class Stream:
    def __init__(self, terminal: bool) -> None:
        self.isatty = lambda: terminal


@pytest.mark.parametrize(
    ("variables", "in_terminal", "in_file"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
    ],
    ids=str,
)
def test_which_streams_get_colors(
    variables: dict[str, str], in_terminal: bool, in_file: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", "linux")
    assert colored(Stream(True)) == in_terminal
    assert colored(Stream(False)) == in_file
    assert not colored(None) or in_file


@pytest.mark.full
@pytest.mark.parametrize("arguments", [("show", SHAPE), ("show", "-x"), ("pack", "--help")], ids=str)
def test_a_terminal_gets_colors_unless_it_refuses_them(arguments: tuple[str, ...]) -> None:
    color = "\x1b["
    assert color in shown(arguments).screen
    assert color not in shown(arguments, NO_COLOR="1").screen
    assert color not in shown(arguments, TERM="dumb").screen
    plain, forced = child(*arguments, FORCE_COLOR=""), child(*arguments, FORCE_COLOR="1", LANG="C.UTF-8")
    assert color not in plain.stdout + plain.stderr
    assert color in forced.stdout + forced.stderr


@pytest.mark.full
def test_errors_are_colored_according_to_stderr() -> None:
    assert "\x1b[1;31mtilejit:\x1b[0m " in shown(("show", "f32["), only_stderr=True).screen
    assert "\x1b[" not in shown(("show", SHAPE), only_stderr=True).stdout.decode()


COMMANDS = [
    *[(), ("demo",), ("pack",), ("unpack",), ("relayout",), ("show",), ("view",), ("explain",), ("formats",)],
    *[
        ("vectorize",),
        ("cache",),
        ("cache", "info"),
        ("cache", "clear"),
        ("cache", "warm"),
        ("cache", "verify"),
    ],
]


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_fits_the_terminal(command: tuple[str, ...], columns: int) -> None:
    lines = run(*command, "--help", columns=columns).stdout.splitlines()
    long = [line for line in lines if len(line) > min(columns, 80)]
    # A shape, or an option and its value, stay on one line.
    assert all(columns < 80 and len(line.strip(" \\").split()) <= 2 for line in long), long
    assert "Usage:" in lines[0]


@pytest.mark.full
@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize(
    "arguments",
    [
        ("show", SHAPE),
        ("show", "bf16[100,300]{1,0:T(8,128)(2,1)}"),
        ("formats",),
        ("formats", "tenstorrent"),
        ("cache", "info"),
        ("--help",),
    ],
    ids=str,
)
def test_output_fits_the_terminal(arguments: tuple[str, ...], columns: int) -> None:
    result = shown(arguments, columns=columns, TILEJIT_NO_CACHE="1")
    assert result.code == 0
    assert max(map(len, result.text.splitlines())) <= columns


@pytest.mark.parametrize("columns", [40, 80])
def test_progress_bars_appear_late_with_rate_and_time_left(columns: int) -> None:
    command = (sys.executable, "-c", SLOW.format(quiet=False, turns=14))
    result = shown((), columns=columns, command=command, only_stderr=True)
    assert result.code == 0
    assert result.stdout == b""
    for word in ("MB/s", "0:", "%", "/50"):
        assert word in result.text
    for word in ("model.safetensors", "3 compiled"):
        assert (word in result.text) == (columns == 80)
    lines = result.text.replace("\r", "\n").splitlines()
    assert max(map(len, lines)) <= columns


@pytest.mark.full
def test_the_demos_bar_does_not_move_while_it_times() -> None:
    """It appears while kernels compile, is drawn once per step from then on, and is removed at the end."""
    result = shown(("demo", "--mib", "1"), only_stderr=True, TILEJIT_NO_CACHE="1")
    assert result.code == 0
    assert b"same bytes as by NumPy" in result.stdout
    drawn = [int(step) for step in re.findall(r"(\d+)/11", result.text)]
    timed = drawn[drawn.index(3) :]  # nothing is compiled from the first round on
    assert timed == [*range(3, 11), 10]  # the last one when it is removed
    result = shown(("demo", "--mib", "1", "--json"), only_stderr=True)
    assert (result.code, "/11" in result.text) == (0, False)


@pytest.mark.parametrize(
    ("how", "turns", "variables"),
    [
        ("soon done", 2, {}),
        ("quiet", 8, {}),
        ("dumb", 8, {"TERM": "dumb"}),
    ],
)
def test_no_progress_bar_without_a_terminal_or_with_quiet(
    how: str, turns: int, variables: dict[str, str]
) -> None:
    command = (sys.executable, "-c", SLOW.format(quiet=how == "quiet", turns=turns))
    result = shown((), command=command, **variables)
    assert (result.code, result.screen) == (0, "")


@pytest.mark.full
def test_a_terminal_is_refused_as_a_binary_stream(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((8, 128), np.float32))
    result = shown(("pack", "x.npy", "-", "--layout", "tpu"), cwd=tmp_path)
    assert result.code == 1
    assert "standard output is a terminal" in result.text
    result = shown(("pack", "-", "y.npy", "--layout", "tpu"), cwd=tmp_path)
    assert result.code == 1
    assert "standard input is a terminal" in result.text
    assert "standard input is a terminal" in shown(("show", "-")).text
