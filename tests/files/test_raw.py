"""Raw bytes: dumps of packed buffers without a header, read and written."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

import tilejit as tj
from tests.cli.running import fails, refuses, run
from tests.cli.test_streams import piped
from tilejit.files.conversion import plan_file_pack, plan_file_relayout, plan_file_unpack
from tilejit.files.file_types import open_file

SHAPE = "bf16[50,300]{1,0:T(8,128)(2,1)}"
X = np.arange(50 * 300).reshape(50, 300).astype(ml_dtypes.bfloat16)
PADDED = np.pad(X.view(np.uint16), ((0, 6), (0, 84)))
DUMP = PADDED.reshape(7, 4, 2, 3, 128).transpose(0, 3, 1, 4, 2).tobytes()
"""X in tiles of 8 x 128, in which pairs of rows are interleaved."""


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump.bin"
    path.write_bytes(DUMP)
    return path


def test_a_dump_is_unpacked(dump: Path) -> None:
    out = dump.with_name("out.npy")
    result = run("unpack", dump, out, "--shape", SHAPE)
    assert (result.exit_code, result.stdout) == (0, "bf16[50,300]\n")
    assert np.load(out).tobytes() == X.tobytes()
    assert run("unpack", dump, out.with_suffix(".raw"), "--shape", SHAPE).exit_code == 0
    assert out.with_suffix(".raw").read_bytes() == X.tobytes()
    assert run("unpack", dump, out, "--shape", SHAPE, "--dtype", "f32").stdout == "f32[50,300]\n"
    assert np.array_equal(np.load(out), X.astype(np.float32))


def test_the_bytes_before_a_dump_are_skipped(dump: Path) -> None:
    out = dump.with_name("out.npy")
    dump.write_bytes(b"123" + DUMP)
    text = fails("unpack", dump, out, "--shape", SHAPE)
    assert f"expected {len(DUMP)} bytes for {SHAPE}, got {len(DUMP) + 3}\n" in text
    assert "--offset 3" in text
    assert run("unpack", dump, out, "--shape", SHAPE, "--offset", 3).exit_code == 0
    assert np.load(out).tobytes() == X.tobytes()
    file = open_file(dump, shape=SHAPE, offset=3)
    plan_file_relayout(file, "{0,1}").write(dump.with_name("t.bin"))
    assert dump.with_name("t.bin").read_bytes() == X.T.tobytes()


@pytest.mark.full
def test_packs_and_relayouts_write_raw_bytes(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(dump.parent)
    np.save("x.npy", X.astype(np.float32))
    for name, more in (("y.bin", ()), ("z.pt", ("--raw",))):
        result = run("pack", "x.npy", name, "--layout", "{1,0:T(8,128)}", *more)
        assert Path(name).read_bytes() == tj.pack(np.load("x.npy"), "{1,0:T(8,128)}").buffer.tobytes()
        undo = shlex.split(result.stderr.strip().removeprefix("unpack it with: "))[1:]
        assert run(*undo).exit_code == 0
        assert Path(undo[2]).read_bytes() == Path("x.npy").read_bytes()
    shape = "f32[50,300]{1,0:T(8,128)}"
    assert run("relayout", "y.bin", "t.bin", "--shape", shape, "--layout", "tenstorrent").exit_code == 0
    assert Path("t.bin").read_bytes() == tj.pack(np.load("x.npy"), "tenstorrent").buffer.tobytes()
    plan = plan_file_pack("x.npy", "{1,0:T(8,128)}")
    plan.write("t.npy", raw=True)
    assert Path("t.npy").read_bytes() == Path("y.bin").read_bytes()
    plan.write("t.bin", raw=False)
    assert np.load("t.bin").tobytes() == Path("y.bin").read_bytes()


@pytest.mark.full
def test_raw_bytes_go_through_pipes() -> None:
    code, found, said = piped("unpack", "-", "-", "--raw", "--shape", SHAPE, data=DUMP)
    assert (code, found, said) == (0, X.tobytes(), "bf16[50,300]\n")
    arguments = "relayout", "-", "-", "-q", "--offset", 2, "--shape", SHAPE, "--layout", "{1,0}"
    code, found, _ = piped(*arguments, data=b"ab" + DUMP)
    assert code == 0
    assert found.startswith(b"\x93NUMPY")
    assert found.endswith(X.tobytes())
    assert piped("unpack", "-", "-", data=DUMP)[2].endswith("if it is raw bytes, pass --shape\n")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("x.pt", "safetensors.torch.save_file(torch.load('x.pt')"),
        ("x.npz", "np.load('x.npz')[\"NAME\"]"),
        ("x.gguf", "gguf.GGUFReader('x.gguf')"),
        ("x.h5", "h5py.File('x.h5')"),
    ],
)
def test_files_of_other_types_come_with_advice(
    dump: Path, name: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(dump.parent)
    dump.rename(name)
    text = refuses("unpack", name, "out.npy", "--shape", SHAPE)
    assert words in text
    assert "--raw" in text
    assert "does not write" in refuses("unpack", "dump.bin", name, "--shape", SHAPE)
    with pytest.raises(tj.TilejitError, match="does not read"):
        open_file(name, shape=SHAPE)
    assert run("unpack", name, "out.npy", "--shape", SHAPE, "--raw").exit_code == 0
    assert np.load("out.npy").tobytes() == X.tobytes()


def test_raw_names_may_mislead(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --raw, a .npy file holds raw bytes if it lacks NumPy's header, or if --offset skips it."""
    monkeypatch.chdir(dump.parent)
    Path("x.npy").write_bytes(DUMP)
    assert "not a .npy file" in fails("unpack", "x.npy", "out.npy", "--shape", SHAPE)
    assert run("unpack", "x.npy", "out.npy", "--shape", SHAPE, "--raw").exit_code == 0
    assert np.load("out.npy").tobytes() == X.tobytes()
    np.save("x.npy", np.frombuffer(DUMP, np.uint8))
    for more in ((), ("--offset", 128)):
        Path("out.npy").unlink()
        assert run("unpack", "x.npy", "out.npy", "--shape", SHAPE, "--raw", *more).exit_code == 0
        assert np.load("out.npy").tobytes() == X.tobytes()
    assert "--offset is for raw bytes" in refuses(
        "unpack", "x.npy", "out.npy", "--shape", SHAPE, "--offset", 1
    )


def test_wrong_requests_write_nothing(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(dump.parent)
    save_file({"w": np.ones((2, 2))}, "m.safetensors")
    Path("empty.bin").touch()
    Path("torch.bin").write_bytes(b"PK\x03\x04" + DUMP)
    Path("folder").mkdir()
    Path("folder", "x.npy").touch()
    os.mkfifo("pipe.bin")
    before = sorted(os.listdir())
    shape: tuple[Any, ...] = ("--shape", SHAPE)
    cases: list[tuple[str, tuple[Any, ...], int]] = [
        ("no record beside it says their shape", ("unpack", "dump.bin", "o.npy"), 1),
        ("no record beside it says their shape", ("pack", "dump.bin", "o.npy", "--layout", "tpu"), 1),
        ("begins like a zip archive", ("unpack", "torch.bin", "o.npy"), 1),
        ("begins like a zip archive", ("unpack", "torch.bin", "o.npy", *shape), 1),
        (", got 0\n", ("unpack", "empty.bin", "o.npy", *shape), 1),
        ("ends before byte 99", ("unpack", "empty.bin", "o.npy", *shape, "--offset", 99), 1),
        ("expected 3221225472 bytes", ("unpack", "dump.bin", "o.npy", "--shape", "f32[805306368]"), 1),
        ("more than 2^63 bits", ("unpack", "dump.bin", "o.npy", "--shape", "f32[4611686018427387904]"), 2),
        ("not a regular file", ("unpack", "pipe.bin", "o.npy", *shape), 1),
        ("not a regular file", ("unpack", "dump.bin", "pipe.bin", *shape), 1),
        ("not a regular file", ("unpack", "dump.bin", "/dev/null", *shape), 1),
        ("not a regular file", ("unpack", "/dev/null", "o.npy", "--shape", "f32[0]"), 1),
        ("same file", ("unpack", "dump.bin", "dump.bin", *shape), 1),
        ("No such file", ("unpack", "none.bin", "o.npy", *shape), 1),
        ("--raw is for one file", ("pack", "folder", "o", "--raw", "--layout", "tpu"), 2),
        ("--offset is for one file", ("unpack", "folder", "o", "--offset", 1), 2),
        ("OUT is a .safetensors file", ("unpack", "dump.bin", "o.safetensors", *shape), 2),
        ("--tensor is for", ("unpack", "dump.bin", "o.npy", *shape, "--tensor", "w"), 2),
        ("becomes s8", ("unpack", "dump.bin", "o.npy", *shape, "--dtype", "s8"), 1),
    ]
    for words, arguments, code in cases:
        assert words in fails(*arguments, code=code), arguments
        assert sorted(os.listdir()) == before
    assert Path("dump.bin").read_bytes() == DUMP
    with pytest.raises(tj.TilejitError, match="raw bytes hold one array"):
        plan_file_pack("m.safetensors", "tpu").write("o.bin", raw=True)
    with pytest.raises(tj.TilejitError, match="has no offset"):
        open_file("m.safetensors", offset=1)
    with pytest.raises(tj.LayoutError, match="from 0 on, got -1"):
        open_file("dump.bin", shape=SHAPE, offset=-1)
    with pytest.raises(tj.LayoutError, match="already in bf16"):
        plan_file_pack(open_file("dump.bin", shape=SHAPE), "tpu")


def test_arrays_without_elements_and_elements_of_four_bits(tmp_path: Path) -> None:
    path, out = tmp_path / "x.bin", tmp_path / "y.npy"
    path.touch()
    plan_file_unpack(open_file(path, shape="f32[0,5]")).write(out)
    assert np.load(out).shape == (0, 5)
    path.write_bytes(b"\x12\xfe")
    plan_file_unpack(open_file(path, shape="s4[4]{0:E(4)}")).write(out)
    assert np.load(out).tolist() == [2, 1, -2, -1]
    path.write_bytes(b"\x00\x00\x80\x3f")
    plan_file_unpack(open_file(path, shape="f32[]")).write(out)
    assert np.load(out) == 1


@pytest.mark.full
def test_raw_bytes_replace_a_record(tmp_path: Path) -> None:
    """The record of a .npy file must not describe the raw bytes that replace it."""
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    plain.mkdir()
    np.save(plain / "x.npy", np.ones((5, 7), np.float32))
    np.save(plain / "z.npy", np.ones((5, 7), np.float32))
    assert run("pack", plain, packed, "--layout", "tpu").exit_code == 0
    plan_file_pack(plain / "x.npy", "blis-a", mr=4).write(packed / "x.npy", raw=True)
    assert list(open_file(packed / "z.npy").entries)
    (one,) = json.loads((packed / "tilejit-layouts.json").read_text())["layouts"]["x.npy"]
    assert one["layout"] == "blis-a"
    file = open_file(packed / "x.npy", raw=True)
    plan_file_unpack(file).write(packed / "y.npy")
    assert (packed / "y.npy").read_bytes() == (plain / "x.npy").read_bytes()


def test_an_interrupted_run_of_another_dtype_starts_over(dump: Path) -> None:
    plans = [plan_file_unpack(open_file(dump, shape=SHAPE), dtype=dtype) for dtype in (None, "f8e5m2")]
    assert plans[0].origin() != plans[1].origin()
