"""`-`: standard input and output as files."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load, save

import tilejit as tj
from tests.cli.running import COMMAND
from tests.tools.oracle import environment

X = np.arange(100 * 300, dtype=np.float32).reshape(100, 300)
LAYOUT = "{1,0:T(8,128)}"
SHAPE = "f32[100,300]" + LAYOUT


def npy(x: np.ndarray) -> bytes:  # type: ignore[type-arg]
    file = io.BytesIO()
    np.save(file, x)
    return file.getvalue()


@pytest.fixture(scope="module")
def packed() -> bytes:
    """The packed file of X."""
    return npy(tj.pack(X, LAYOUT).buffer)


def piped(*arguments: object, data: bytes = b"", **variables: str) -> tuple[int, bytes, str]:
    """The exit code, stdout and stderr of a command that reads a pipe."""
    command = [*COMMAND, *map(str, arguments)]
    done = subprocess.run(
        command, input=data, capture_output=True, env=environment(**variables), timeout=120, check=False
    )
    return done.returncode, done.stdout, done.stderr.decode()


@pytest.mark.full
def test_arrays_go_through_pipes(packed: bytes) -> None:
    undo = f"unpack it with: tilejit unpack - unpacked.npy --shape '{SHAPE}'"
    assert piped("pack", "-", "-", "--layout", LAYOUT, data=npy(X)) == (0, packed, f"{SHAPE}\n{undo}\n")
    assert piped("unpack", "-", "-", "-q", "--shape", SHAPE, data=packed) == (0, npy(X), "")
    other = npy(tj.pack(X, "{0,1}").buffer)
    arguments = "relayout", "-", "-", "-q", "--shape", SHAPE, "--layout", "{0,1}"
    assert piped(*arguments, data=packed) == (0, other, "")


@pytest.mark.full
def test_tensors_go_through_pipes(tmp_path: Path) -> None:
    code, made, said = piped("pack", "-", "-", "--layout", LAYOUT, data=save({"w": X}))
    assert code == 0
    assert said.startswith("packed 1 of 1 tensors")
    (tmp_path / "p.safetensors").write_bytes(made)
    code, back, said = piped("unpack", tmp_path / "p.safetensors", "-", "--json")
    assert code == 0
    assert '"tensor": "w"' in said
    assert np.array_equal(load(back)["w"], X)


@pytest.mark.full
def test_a_redirected_file_is_not_copied(tmp_path: Path, packed: bytes) -> None:
    """It is read in place, even if no folder can hold a copy."""
    (tmp_path / "x.npy").write_bytes(npy(X))
    with open(tmp_path / "x.npy", "rb") as file:
        done = subprocess.run(
            [*COMMAND, "pack", "-", "-", "-q", "--layout", LAYOUT],
            stdin=file,
            capture_output=True,
            env=environment(TMPDIR=str(tmp_path / "none")),
            check=False,
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, packed, b"")
    assert os.listdir(tmp_path) == ["x.npy"]


def test_buffered_pipes_leave_no_files(tmp_path: Path) -> None:
    assert piped("pack", "-", "-", "-q", "--layout", LAYOUT, data=npy(X), TMPDIR=str(tmp_path))[0] == 0
    assert os.listdir(tmp_path) == []


@pytest.mark.full
@pytest.mark.parametrize(
    ("data", "arguments", "ends", "said"),
    [
        (b"", ("-", "-"), 1, "standard input is empty"),
        (b"hello, world", ("-", "-"), 1, "neither a .npy nor a .safetensors"),
        (npy(X)[:-5], ("-", "-"), 1, "'standard input' is not a .npy file"),
        (npy(X), ("-", "y.safetensors"), 2, "IN is a .npy file and OUT is a .safetensors file"),
        (npy(X), ("-", "-", "--resume"), 2, "--resume is for files"),
        (npy(X), (".", "-"), 2, "IN is a directory"),
        (npy(X), ("-", "-", "--tensor", "w"), 2, "--tensor is for .safetensors"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_errors_name_what_cannot_be_piped(
    data: bytes,
    arguments: tuple[str, ...],
    ends: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, error = piped("pack", *arguments, "--layout", LAYOUT, data=data)
    assert (code, out) == (ends, b"")
    assert said in error
    assert error.startswith("tilejit: ")
    assert os.listdir(tmp_path) == []


@pytest.mark.full
def test_a_dry_run_to_standard_output_prints_the_report() -> None:
    code, out, error = piped("pack", "-", "-", "--dry-run", "--layout", LAYOUT, data=npy(X))
    assert (code, error) == (0, "")
    assert b"nothing was written" in out


@pytest.mark.full
def test_quiet_commands_print_nothing(tmp_path: Path, packed: bytes) -> None:
    assert piped("pack", "-", tmp_path / "y.npy", "-q", "--layout", LAYOUT, data=npy(X)) == (0, b"", "")
    assert (tmp_path / "y.npy").read_bytes() == packed


@pytest.mark.full
def test_a_reader_that_closes_the_pipe_causes_no_error(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(npy(np.zeros((1 << 10, 1 << 10), np.float32)))
    command = [*COMMAND, "pack", str(tmp_path / "x.npy"), "-", "-q", "--layout", LAYOUT]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 1


@pytest.mark.full
def test_vectorize_reads_standard_input() -> None:
    direct = piped("show", "f32[3,5]{1,0:T(2,2)}")
    assert direct[0] == 0
    assert piped("show", "-", data=b"f32[3,5]{1,0:T(2,2)}\n") == direct
    code, page, error = piped("view", "-", "-o", "-", data=b"(4,8):(8,1)\n")
    assert (code, error) == (0, "")
    assert page.startswith(b"<!")
    assert piped("show", "-", data=b"f" * (2 << 20))[0] == 1


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="files have no limits there")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "command", [("pack", "x.npy", "-", "--layout", LAYOUT), ("view", "f32[8,8]", "-o", "-")]
)
def test_a_partial_output_is_an_error(tmp_path: Path, unbuffered: str, command: tuple[str, ...]) -> None:
    """On a full disk, a write stores as much as fits and reports it only by a number."""
    import resource

    def little_room() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

    (tmp_path / "x.npy").write_bytes(npy(X))
    with open(tmp_path / "out", "wb") as out:
        done = subprocess.run(
            [*COMMAND, *command],
            cwd=tmp_path,
            stdout=out,
            stderr=subprocess.PIPE,
            env=environment(PYTHONUNBUFFERED=unbuffered, TILEJIT_NO_CACHE="1"),
            preexec_fn=little_room,
            timeout=120,
            check=False,
        )
    assert done.returncode == 1
    assert b"standard output" in done.stderr
    assert (tmp_path / "out").stat().st_size <= 50_000
