"""`tilejit identify`: formats of the tensors of a file, beside the originals or alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import tilejit as tj
from tests.cli.running import refuses, run

CODES = np.random.default_rng(0).integers(0, 16, (64, 128), np.uint8)


@pytest.fixture
def dump(tmp_path: Path) -> tuple[str, str]:
    """A file of packed tensors, and one of originals."""
    packed = {"w": tj.pack(CODES, "marlin-int4").buffer, "s": tj.pack(CODES[:, :8], "tenstorrent").buffer}
    save_file(packed, tmp_path / "dump.safetensors")
    save_file({"w": CODES, "s": CODES[:, :8].copy()}, tmp_path / "model.safetensors")
    return str(tmp_path / "dump.safetensors"), str(tmp_path / "model.safetensors")


@pytest.mark.full
def test_tensors_beside_their_originals(dump: tuple[str, str]) -> None:
    lines = run("identify", dump[0], "--against", dump[1], columns=200).stdout.splitlines()
    assert any(line.startswith("w: exact: marlin-int4") for line in lines)
    assert any(line.startswith("s: exact: tenstorrent") for line in lines)
    rows = json.loads(run("identify", dump[0], "--against", dump[1], "--json").stdout)
    assert {row["tensor"]: row["verdict"] for row in rows} == {"w": "exact", "s": "exact"}


def test_without_originals_nothing_is_claimed(dump: tuple[str, str]) -> None:
    rows = json.loads(run("identify", dump[0], "--json").stdout)
    assert {row["verdict"] for row in rows} <= {"guess", "unknown"}


def test_single_arrays_need_no_equal_names(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", CODES)
    tj.pack(CODES, "awq-gemm").buffer.tofile(tmp_path / "b.bin")
    text = run("identify", str(tmp_path / "b.bin"), "--against", str(tmp_path / "a.npy")).stdout
    assert text.startswith("b: exact: awq-gemm")


def test_an_empty_file_is_unknown(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", CODES)
    (tmp_path / "empty.bin").write_bytes(b"")
    found = run("identify", str(tmp_path / "empty.bin"), "--against", str(tmp_path / "a.npy"))
    assert (found.exit_code, found.stdout) == (0, "empty: unknown: no format fits\n")


@pytest.mark.parametrize("name", ["p.npy", "p.bin", "p.safetensors"])
def test_the_recorded_layout_comes_first(tmp_path: Path, name: str) -> None:
    scales = np.random.default_rng(0).integers(1, 255, (130, 5), np.uint8)
    original, packed = tmp_path / "p.safetensors", tmp_path / "out" / name
    save_file({"p": scales}, original)
    if not name.endswith("safetensors"):
        original = tmp_path / "p.npy"
        np.save(original, scales)
    packed.parent.mkdir()
    assert run("pack", str(original), str(packed), "--layout", "nvfp4-scales").exit_code == 0
    text = run("identify", str(packed), columns=200).stdout
    assert text == "p: recorded: nvfp4-scales, u8[130,5]{1,0:T(32,4)(4,1,1,4)}\n"
    first, second, *_ = run("identify", str(packed), "--against", original, columns=200).stdout.splitlines()
    assert first.endswith("; it unpacks to the original")
    assert second.startswith("p: exact: nvfp4-scales")
    np.save(tmp_path / "other.npy", scales[::-1])
    rows = run("identify", str(packed), "--against", tmp_path / "other.npy", "--json").stdout
    assert not json.loads(rows)[0]["unpacks_to_original"]


def test_misuse(tmp_path: Path, dump: tuple[str, str]) -> None:
    save_file({"x": CODES, "y": CODES}, tmp_path / "other.safetensors")
    other = str(tmp_path / "other.safetensors")
    assert "no tensor of dump.safetensors has an original" in refuses("identify", dump[0], "--against", other)
    assert "omit --dims" in refuses("identify", dump[0], "--against", dump[1], "--dims", "64,128")
