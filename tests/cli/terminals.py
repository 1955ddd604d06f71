"""Run the command line in a pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.cli.running import COMMAND
from tests.tools.oracle import environment

_MOVES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
PLAIN = {"NO_COLOR": "", "FORCE_COLOR": "", "COLUMNS": "", "TERM": "xterm-256color", "LANG": "C.UTF-8"}


@dataclass(frozen=True)
class Shown:
    """How a command ended, what it wrote to the terminal, and what it wrote elsewhere."""

    code: int
    screen: str
    stdout: bytes

    @property
    def text(self) -> str:
        """The screen without colors and cursor moves."""
        return _MOVES.sub("", self.screen).replace("\r\n", "\n")


def shown(
    arguments: Sequence[object],
    *,
    columns: int = 80,
    stdin: bytes | None = None,
    only_stderr: bool = False,
    cwd: Any = None,
    command: Sequence[str] = COMMAND,
    **more: str,
) -> Shown:
    """Run a command and return what it shows.

    stdin is the terminal unless bytes are given. stdout is the terminal unless `only_stderr`.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    variables = environment(**{**PLAIN, **more})
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        if not variables[name]:
            del variables[name]
    process = subprocess.Popen(
        [*command, *map(str, arguments)],
        stdin=theirs if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE if only_stderr else theirs,
        stderr=theirs,
        env=variables,
        cwd=cwd,
    )
    os.close(theirs)
    if process.stdin:
        process.stdin.write(stdin or b"")
        process.stdin.close()
    out = process.stdout.read() if process.stdout else b""
    screen = bytearray()
    while True:
        try:
            data = os.read(ours, 1 << 16)
        except OSError:  # how Linux reports that nobody has the other end open any more
            break
        if not data:
            break
        screen += data
    os.close(ours)
    return Shown(process.wait(120), screen.decode(errors="replace"), out)
