"""`tilejit check`: reports, JSON and exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.cli.running import child, refuses, run
from tests.files.containers import save_model
from tests.files.test_windows import LIMITED
from tests.tools.oracle import environment


@pytest.fixture
def array(tmp_path: Path) -> Path:
    """A packed array with 6 x 84 padding columns and rows around 2 x 44 elements."""
    np.save(tmp_path / "x.npy", np.ones((2, 44), np.float32))
    path = tmp_path / "packed.npy"
    assert run("pack", tmp_path / "x.npy", path, "--layout", "{1,0:T(8,128)}").exit_code == 0
    return path


def damage(path: Path, *slots: int) -> None:
    buffer = np.load(path, mmap_mode="r+")
    buffer[list(slots)] = 9
    buffer.flush()


def test_files_without_problems(array: Path) -> None:
    model, packed = save_model(array.with_name("m.safetensors")), array.with_name("p.safetensors")
    assert run("pack", model, packed, "--layout", "tpu").exit_code == 0
    done = run("check", array, packed)
    assert (done.exit_code, done.stderr) == (0, "")
    first, second = done.stdout.splitlines()
    assert first == f"{array}: ok, 1 tensor, 1 packed, 936 padding slots"
    assert second.startswith(f"{packed}: ok, 10 tensors, 10 packed, ")
    assert run("check", array, packed, "-q").output == ""
    found = json.loads(run("check", array, "--json").stdout)
    one = {"file": str(array), "tensors": 1, "packed": 1, "padding_slots": 936, "problems": []}
    assert found == {"ok": True, "files": [one]}


def test_padding_that_differs(array: Path) -> None:
    damage(array, 129, 172, 200)  # (1, 1) is an element; (1, 44) and (1, 72) are padding
    done = run("check", array, array.with_name("x.npy"))
    assert done.exit_code == 1
    byte = 128 + 4 * 172
    what = f"2 of 936 padding slots are not 0; the first is slot 172, byte {byte} of the file"
    fix = "another program wrote to the buffer, or the file is damaged: pack its source again"
    assert done.stdout.splitlines() == [
        f"{array}: {what}",
        "  in the array padded to [8, 128], it is element [1, 44]",
        f"  {fix}",
        f"{array.with_name('x.npy')}: ok, 1 tensor, 0 packed, 0 padding slots",
        "1 problem",
    ]
    assert np.fromfile(array, np.float32, offset=byte)[0] == 9
    found = json.loads(run("check", array, "--json").stdout)
    assert found["ok"] is False
    (problem,) = found["files"][0]["problems"]
    padding = {"slots": 936, "differing": 2, "first_slot": 172, "first_byte": byte, "first_index": [1, 44]}
    assert problem == {"tensor": None, "problem": what, "fix": fix, "padding": padding}
    assert run("check", array, "-q").stdout.startswith(f"{array}: 2 of 936")


def test_every_file_is_checked_even_if_one_is_missing(array: Path) -> None:
    none = array.with_name("none.npy")
    done = run("check", none, array)
    assert done.exit_code == 1
    assert f"{none}: No such file or directory" in done.stdout
    assert f"{array}: ok" in done.stdout
    done = run("check", none, "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["files"][0]["problems"][0]["fix"] is None


def test_a_directory(array: Path) -> None:
    done = run("check", array.parent)
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        f"{array}: ok, 1 tensor, 1 packed, 936 padding slots",
        f"{array.with_name('x.npy')}: ok, 1 tensor, 0 packed, 0 padding slots",
    ]
    array.unlink()
    done = run("check", array.parent, "--json")
    assert done.exit_code == 1
    folder, plain = json.loads(done.stdout)["files"]
    assert folder["file"] == str(array.parent)
    assert folder["problems"][0]["problem"].endswith("is the record of 'packed.npy', which is missing")
    assert plain["problems"] == []


def test_records_stand_for_what_they_describe(array: Path) -> None:
    """As a shell's wildcards name them."""
    plain = array.with_name("x.npy")
    done = run("check", *sorted(array.parent.iterdir()))
    assert done.exit_code == 0
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == [str(array), str(plain)]
    folder, packed = array.with_name("folder"), array.with_name("packed")
    folder.mkdir()
    plain.rename(folder / "x.npy")
    assert run("pack", folder, packed, "--layout", "{1,0:T(8,128)}").exit_code == 0
    done = run("check", packed / "tilejit-layouts.json")
    assert done.stdout == f"{packed / 'x.npy'}: ok, 1 tensor, 1 packed, 936 padding slots\n"


def test_misuse() -> None:
    assert "check reads files, not standard input" in refuses("check", "-")
    assert "missing argument" in refuses("check")
    assert "unknown option" in refuses("check", "x.npy", "--repair")


@pytest.mark.full
def test_a_process_of_its_own(array: Path) -> None:
    assert child("check", array).returncode == 0
    damage(array, 172)
    done = child("check", array)
    assert done.returncode == 1
    assert "1 of 936" in done.stdout


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
def test_files_may_exceed_the_address_space(tmp_path: Path) -> None:
    """A packed file of 768 MiB with 448 MiB of address space."""
    source, small = tmp_path / "x.npy", tmp_path / "small.npy"
    for path, rows in ((source, 192_001), (small, 16_001)):
        x = np.lib.format.open_memmap(tmp_path / "plain.npy", "w+", np.float32, (rows, 1000))
        x[0] = 1
        x.flush()
        assert run("pack", tmp_path / "plain.npy", path, "--layout", "{1,0:T(8,128)}", "-q").exit_code == 0
    command = [sys.executable, "-c", LIMITED, "448", str(source), str(small), "check", "-q"]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment(TILEJIT_THREADS="1"), check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    damage(source, 192_008 * 1024 - 1)
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment(TILEJIT_THREADS="1"), check=False
    )
    assert done.returncode == 1
    assert "1 of " in done.stdout
