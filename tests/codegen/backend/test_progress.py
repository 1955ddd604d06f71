"""The message while kernels are compiled: one line on a terminal, nothing elsewhere."""

from __future__ import annotations

import os
from pathlib import Path
from subprocess import run
from sys import executable

import pytest

from codegen.backend.progress import message
from codegen.backend.store import KernelStore
from tests.tools.oracle import environment, run_python

SLOW = """
import time
from codegen.backend.progress import TOLD_AFTER_SECONDS, compiling

with compiling():
    time.sleep(TOLD_AFTER_SECONDS + 1)
with compiling():
    pass
"""


@pytest.mark.full
def test_a_terminal_gets_one_message() -> None:
    pty = pytest.importorskip("pty", reason="no terminals here")
    reader, writer = pty.openpty()
    run([executable, "-c", SLOW], stderr=writer, env=environment(), check=True)
    assert os.read(reader, 1 << 14).decode().count("compiling") == 1
    os.close(reader)
    os.close(writer)


@pytest.mark.full
def test_files_get_no_message() -> None:
    child = run_python(SLOW)
    assert (child.returncode, child.stderr) == (0, "")


REPLACED = """
import sys
from codegen.backend.progress import compiling

class OnlyWrites:
    # A replacement of standard error, as loggers and graphical programs install.
    def write(self, text):
        return len(text)

for stream in (None, OnlyWrites(), open("/dev/null", "w")):
    sys.stderr = stream
    with compiling():
        pass
stream.close()
with compiling():
    print("fine")
"""


def test_any_standard_error_will_do() -> None:
    assert run_python(REPLACED).stdout == "fine\n"


def test_the_message_names_the_directory_or_the_reason(tmp_path: Path) -> None:
    assert str(tmp_path) in message(KernelStore(tmp_path))
    assert "TILEJIT_NO_CACHE is set" in message(KernelStore(None, "TILEJIT_NO_CACHE is set"))
