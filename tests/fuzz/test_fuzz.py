"""Hostile inputs, for each target its share, with the installed engine; the harness itself can fail.

By default, they get 1,000 inputs; with `--full` 17,000, and `python -m tests.fuzz all` gives them 100,000.

Each target runs in a separate process: it changes how Python collects garbage, and the command line changes
kernels.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from codegen.support.errors import LayoutError
from tests.fuzz.judge import COUNTED_SECONDS, MOST_BYTES, MOST_LINES, Judge
from tests.fuzz.kept import corpus_of, tokens_of
from tests.fuzz.targets import TARGETS, Run, Target
from tests.tools.extent import examples

ROOT = Path(__file__).parents[2]
INPUTS = 100_000


def child(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)


@pytest.mark.full
@pytest.mark.parametrize("name", TARGETS)
def test_hostile_input(name: str, seed: int) -> None:
    """Only TilejitError, and each input within 500,000 lines of Python and 64 MiB. The corpus comes first."""
    if name == "mlir":
        pytest.importorskip("tilejit.mlir", reason="the extra mlir is not installed", exc_type=ImportError)
    runs = examples(TARGETS[name].share // 100, full=TARGETS[name].share // 6)
    done = child("-m", "tests.fuzz", name, "--runs", str(runs), "--seed", str(seed))
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
    assert " 0 finds" in done.stdout


@pytest.mark.parametrize("name", TARGETS)
def test_corpora_and_dictionaries_are_small_and_unique(name: str) -> None:
    """They exist, are small enough to read, and have each input once."""
    corpus = corpus_of(name)
    assert len(corpus) > 5
    assert len(set(corpus)) == len(corpus)
    assert max(map(len, corpus)) <= TARGETS[name].length
    assert len(tokens_of(name)) > 5
    assert all(tokens_of(name))


def _judged(run: Run, slack: float = 1.0) -> Iterator[Judge]:
    try:
        yield Judge(Target("own", lambda: run, 100, 1), slack)
    finally:
        gc.unfreeze()
        gc.enable()


def judged(run: Run, data: bytes = b"x") -> str | None:
    for judge in _judged(run):
        return judge(data)
    raise AssertionError


@pytest.mark.full
def test_exceptions_are_judged() -> None:
    def refuse(data: bytes) -> None:
        raise LayoutError("no\n  yes")

    def fail(data: bytes) -> None:
        raise KeyError("odd")

    def promise(data: bytes) -> None:
        assert not data, "is empty"

    assert judged(lambda data: None) is None
    assert judged(refuse) is None
    assert "KeyError at test_fuzz.py" in (judged(fail) or "")
    assert "is empty" in (judged(promise) or "")


@pytest.mark.full
def test_work_is_judged() -> None:
    """By lines, not by time, so that the answer is the same on a slow machine."""

    def busy(data: bytes) -> None:
        lines = 0
        while lines < 4 * MOST_LINES:
            lines += 2

    def long(data: bytes) -> None:
        begin = time.thread_time()
        while time.thread_time() - begin < 2 * COUNTED_SECONDS:
            sum(range(100_000))

    assert (judged(busy) or "").startswith("slow: ")
    assert judged(long) is None, "time alone does not count"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="marks of memory are set back on Linux only")
def test_memory_is_judged() -> None:
    def large(data: bytes) -> None:
        bytearray(2 * MOST_BYTES)[::4096] = b"x" * (2 * MOST_BYTES // 4096)

    for judge in _judged(large, slack=1000):
        assert (judge(b"") or "").startswith("memory: 1")
        assert judge.traced_bytes(b"") > MOST_BYTES


OUTSIDE = """
import os, sys
from pathlib import Path
from tests.fuzz.command_line import CommandLine
from tests.tools.extent import examples
line, outside = CommandLine(), Path(sys.argv[1])
for target in (outside / "o.npy", Path("..") / outside.name / "o.npy"):
    line(f"pack\\nx.npy\\n{target}\\n--layout\\ntpu".encode())
    assert not target.exists()
link = Path(line.folder, "link.npy")
link.symlink_to(outside / "o.npy")
line(b"pack\\nx.npy\\nlink.npy\\n--layout\\ntpu")
assert not list(outside.iterdir())
for arguments in (b"pack\\nx.npy\\no.npy\\n--layout\\ntpu", b"show\\nf32[4]", b"cache\\nclear"):
    line(arguments)
assert sorted(p for p in os.listdir(line.folder) if "." in p and p != "link.npy") == sorted(line.files)
print(line.folder)
"""


@pytest.mark.full
def test_the_command_line_writes_only_to_its_folder(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    done = child("-c", OUTSIDE, str(outside))
    assert done.returncode == 0, done.stderr
    assert not Path(done.stdout.strip()).exists(), "its folder is removed at the end"
