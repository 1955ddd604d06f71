"""Files whose writing is interrupted and resumed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.cli.running import run
from tests.files.containers import model, save_model
from tests.tools.oracle import environment
from tilejit import TilejitError
from tilejit.files import pieces, resume, safetensors
from tilejit.files.conversion import plan_file_pack
from tilejit.files.resume import resuming

ORIGIN = {"tilejit": "1", "input_bytes": 5, "output": "ab"}
WHOLE = bytes(range(256)) * 8


def names(directory: Path) -> list[str]:
    return sorted(p.name for p in directory.iterdir())


def written(
    target: Path, stop: int, origin: dict[str, object] = ORIGIN, step: int = 100, whole: bytes = WHOLE
) -> list[str]:
    """Write up to some byte, where the process would end, and return what was printed."""
    said: list[str] = []

    class End(BaseException):
        pass

    try:
        with resuming(target, origin, said.append) as file:
            for at in range(file.done, len(whole), step):
                if at >= stop:
                    raise End
                file.write(whole[at : at + step])
    except End:
        pass
    return said


def test_writing_continues_after_the_bytes_on_disk(tmp_path: Path) -> None:
    target = tmp_path / "x"
    target.write_bytes(b"old")
    target.chmod(0o640)
    assert written(target, 1000) == []
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["x", "x.partial", "x.partial.journal"]
    assert written(target, 1500) == ["an earlier run wrote 1000 bytes; continuing from there"]
    assert written(target, 9999) == ["an earlier run wrote 1500 bytes; continuing from there"]
    assert target.read_bytes() == WHOLE
    assert names(tmp_path) == ["x"]
    assert target.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("key", "says"),
    [("tilejit", "another version"), ("input_bytes", "the input has changed"), ("output", "another layout")],
)
def test_a_file_from_another_origin_starts_over(tmp_path: Path, key: str, says: str) -> None:
    target = tmp_path / "x"
    written(target, 1000)
    (said,) = written(target, 9999, {**ORIGIN, key: "other"})
    assert says in said
    assert "starting over" in said
    assert target.read_bytes() == WHOLE
    assert names(tmp_path) == ["x"]


def test_a_journal_that_claims_too_many_bytes_is_not_trusted(tmp_path: Path) -> None:
    target = tmp_path / "x"
    written(target, 1000)
    os.truncate(tmp_path / "x.partial", 999)
    (said,) = written(target, 9999)
    assert "shorter" in said
    assert target.read_bytes() == WHOLE


@pytest.mark.parametrize(
    "first", [b"{", b"[" * 100_000, b"null", b"\xff", b"[]"], ids=lambda text: str(text[:4])
)
def test_a_damaged_journal_starts_over(tmp_path: Path, first: bytes) -> None:
    target = tmp_path / "x"
    written(target, 1000)
    (tmp_path / "x.partial.journal").write_bytes(first + b"\n1000\n")
    (said,) = written(target, 9999)
    assert said == "damaged journal of 'x.partial'; starting over"
    assert target.read_bytes() == WHOLE


def test_a_truncated_line_of_the_journal_claims_nothing_wrong(tmp_path: Path) -> None:
    target, journal = tmp_path / "x", tmp_path / "x.partial.journal"
    for cut in range(1, 6):
        written(target, 1000)
        journal.write_bytes(journal.read_bytes()[:-cut])
        written(target, 1200)
        written(target, 9999)
        assert target.read_bytes() == WHOLE
        target.unlink()


def test_unknown_files_are_left_alone(tmp_path: Path) -> None:
    target, partial = tmp_path / "x", tmp_path / "x.partial"
    partial.write_bytes(b"mine")
    with pytest.raises(TilejitError, match="without a journal"):
        written(target, 9999)
    assert partial.read_bytes() == b"mine"
    partial.unlink()
    assert not list(tmp_path.iterdir())
    (tmp_path / "other").write_bytes(b"other")
    partial.symlink_to("other")
    with pytest.raises(TilejitError, match="remove it"):
        written(target, 9999)
    assert (tmp_path / "other").read_bytes() == b"other"


def test_two_runs_at_once_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("fcntl", reason="this system has no such locks")
    target = tmp_path / "x"
    with resuming(target, ORIGIN) as file:
        with pytest.raises(TilejitError, match="another run"), resuming(target, ORIGIN):
            raise AssertionError("two at once")
        file.write(WHOLE)
    assert target.read_bytes() == WHOLE


def test_the_journal_lists_only_bytes_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each number in the journal follows an fsync of the file with that many bytes."""
    synced = 0
    real = os.fsync
    target = tmp_path / "x"
    partial, journal = tmp_path / "x.partial", tmp_path / "x.partial.journal"

    def fsync(handle: int) -> None:
        nonlocal synced
        real(handle)
        if partial.exists() and os.path.samestat(os.fstat(handle), partial.stat()):
            synced = partial.stat().st_size
        if journal.exists():
            claims = [int(line) for line in journal.read_text().split("\n")[1:] if line]
            assert all(claim <= synced for claim in claims)
            seen.extend(claims)

    seen: list[int] = []
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(resume, "SYNC_BYTES", 300)
    written(target, 9999)
    assert max(seen) >= len(WHOLE) - 300
    assert target.read_bytes() == WHOLE


SLOW = """
import os, sys, time
from tilejit.files import pieces
from tilejit.files import resume
from tilejit.files import stream
pieces.MOST_BYTES = resume.SYNC_BYTES = stream.CHUNK_BYTES = 4096
real = os.write
def write(handle, data):
    time.sleep(0.03)
    return real(handle, data)
os.write = write
note = resume.Unfinished.note
def noted(file):
    note(file)
    print("noted", flush=True)
resume.Unfinished.note = noted
from tilejit.cli import main
main()
"""


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "MOST_BYTES", 4096)


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("kind", [".npy", ".safetensors"])
def test_runs_that_are_killed_repeatedly(tmp_path: Path, seed: int, kind: str) -> None:
    """The destination stays as it was until it is complete, and then equals that of an undisturbed run."""
    rng = random.Random(f"{seed} {kind}")
    source, want, target = (tmp_path / f"{name}{kind}" for name in ("model", "want", "out"))
    if kind == ".npy":
        np.save(source, np.arange(60_000, dtype=np.float32).reshape(200, 300))
    else:
        save_model(source)
    assert run("pack", source, want, "--layout", "tpu").exit_code == 0
    target.write_bytes(b"old")
    command = [sys.executable, "-c", SLOW, "pack", source, target, "--layout", "tpu", "--resume"]
    claims = [0]
    for turn in range(5):
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
        ) as process:
            assert process.stdout is not None
            if turn:  # the first run may end before anything is written
                process.stdout.readline()
            if turn < 4:
                time.sleep(rng.uniform(0, 0.2))
                process.send_signal(signal.SIGKILL)
            assert process.wait(120) in ((0, -signal.SIGKILL) if turn < 4 else (0,))
        if target.read_bytes() != b"old":
            break
        journal, partial = (target.with_name(f"{target.name}.partial{end}") for end in (".journal", ""))
        if journal.exists():
            claim = max([0, *(int(n) for n in journal.read_text().split("\n")[1:-1] if n)])
            assert not claim or partial.read_bytes()[:claim] == want.read_bytes()[:claim]
            claims.append(claim)
    assert max(claims) > 0
    if list(tmp_path.glob("*.partial*")):  # the last run was killed between its last two steps
        subprocess.run(command, check=True, capture_output=True, env=environment())
    assert target.read_bytes() == want.read_bytes()
    assert claims == sorted(claims)
    assert not list(tmp_path.glob("*.partial*"))


@pytest.mark.usefixtures("_small")
def test_a_changed_input_is_reported_and_packed_again(tmp_path: Path) -> None:
    source, target, want = tmp_path / "x.npy", tmp_path / "y.npy", tmp_path / "want.npy"
    np.save(source, np.zeros((100, 300), np.float32))
    origin = plan_file_pack(source, "{1,0:T(8,128)}").origin()
    written(target, 1000, dict(origin))
    np.save(source, np.ones((100, 300), np.float32))
    result = run("pack", source, target, "--layout", "{1,0:T(8,128)}", "--resume", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["written_earlier"] is False
    assert "the input has changed since" in result.stderr
    run("pack", source, want, "--layout", "{1,0:T(8,128)}")
    assert target.read_bytes() == want.read_bytes()


@pytest.mark.parametrize("done", [0, 1, 4, 8])
def test_the_summary_counts_the_tensors_of_earlier_runs(tmp_path: Path, done: int) -> None:
    """Those that are complete. The current run finishes the one where the earlier run stopped."""
    source, target, want = (tmp_path / f"{name}.safetensors" for name in ("model", "out", "want"))
    save_model(source)
    run("pack", source, want, "--layout", "tpu")
    entries = [entry for entry in safetensors.read(want).entries if entry.nbytes]
    start = want.stat().st_size - entries[-1].end
    stop = start + (entries[done - 1].end if done else 0) + 1
    origin = dict(plan_file_pack(source, "tpu").origin())
    for as_json in (True, False):
        written(target, stop, origin, stop, want.read_bytes())
        result = run("pack", source, target, "--layout", "tpu", "--resume", *["--json"] * as_json)
        if as_json:
            rows = json.loads(result.stdout)
            earlier = {row["tensor"] for row in rows if row["written_earlier"]}
            assert earlier - {"empty"} == {entry.name for entry in entries[:done]}
        else:
            parts = f"; {len(earlier)} by an earlier run, {len(model()) - len(earlier)} now\n"
            assert result.stdout.endswith(parts if earlier else "KiB\n")
        assert target.read_bytes() == want.read_bytes()
    assert "earlier" not in run("pack", source, target, "--layout", "tpu", "--json").stdout
