"""Run the command line, inside this process or in another."""

from __future__ import annotations

import shlex
import subprocess
import sys
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from typer import main, testing

from tests.tools.oracle import environment
from tilejit.cli import app
from tilejit.copies import warming

ROOT = Path(__file__).parents[2]
testing._get_command = cache(main.get_command)  # type: ignore[attr-defined]
"""typer's runner makes all commands again for every run, which takes longer than most tests."""
SHELL = ("<", ">", "|")
"""Characters that make a command need a shell."""
COMMAND = (sys.executable, "-c", "from tilejit.cli import main; main()")


def run(*arguments: object, columns: int = 80) -> Any:
    """Run a command here and return its result."""
    return testing.CliRunner().invoke(
        app, [str(a) for a in arguments], env={"COLUMNS": str(columns), "NO_COLOR": None}
    )


def fails(*arguments: object, code: int = 1) -> str:
    """The stderr of a command that must fail: one message, indented after its first line."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    first, *more = result.stderr.splitlines()
    assert first.startswith("tilejit: ")
    assert all(line.startswith("  ") for line in more)
    assert result.stderr.endswith("\n")
    return str(result.stderr)


def refuses(*arguments: object) -> str:
    """The stderr of a command whose command line is wrong."""
    return fails(*arguments, code=2)


def child(*arguments: object, **environment_variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a separate process and return its result."""
    command = [*COMMAND, *(str(a) for a in arguments)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=environment(**environment_variables),
        timeout=120,
        check=False,
    )


def in_shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a line in a shell and a folder, where `tilejit` is this tree's command, and return its result."""
    programs = folder / ".bin"
    programs.mkdir(exist_ok=True)
    script = programs / "tilejit"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
    script.chmod(0o755)
    return subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environment(PATH=f"{programs}:{environment().get('PATH', '')}"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def warm_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `cache warm` compile one copy for each item that it warms."""
    for name in ("_format_specs", "_transposes"):
        own: Any = getattr(warming, name)
        monkeypatch.setattr(warming, name, lambda *args, own=own: islice(own(*args), 1))
