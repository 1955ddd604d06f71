"""Running the command line, inside this process and outside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from tilejit.cli import app

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-c", "from tilejit.cli import main; main()")


def run(*arguments: object, columns: int = 80) -> Any:
    """The result of a command, run here."""
    return CliRunner().invoke(
        app, [str(a) for a in arguments], env={"COLUMNS": str(columns), "NO_COLOR": None}
    )


def fails(*arguments: object) -> str:
    """The one line on stderr of a command that must end with 2."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("tilejit: ")
    assert result.stderr.count("\n") == 1
    return str(result.stderr)


def environment(**more: str) -> dict[str, str]:
    """The environment of a child process that imports this tree."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **more}


def child(*arguments: object, **environment_variables: str) -> subprocess.CompletedProcess[str]:
    """The result of a command, run in a process of its own."""
    command = [*COMMAND, *(str(a) for a in arguments)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=environment(**environment_variables),
        timeout=120,
        check=False,
    )
