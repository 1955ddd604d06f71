"""`tilejit show FILE`, and pictures of the tensors in files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tilejit
from tests.cli.running import fails, refuses, run
from tests.cli.terminals import shown
from tests.files.containers import model, save_model
from tilejit.cli.contents import names_files
from tilejit.files import safetensors
from tilejit.layout.dtypes import primitive_type


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    source = save_model(tmp_path / "model.safetensors")
    assert run("pack", source, tmp_path / "packed.safetensors", "--layout", "tenstorrent").exit_code == 0
    return tmp_path / "packed.safetensors"


@pytest.mark.full
def test_tensors_are_listed_with_layouts_and_padding(packed: Path) -> None:
    """Packed tensors are listed with their original shapes and the layouts in the metadata."""
    found = json.loads(run("show", packed, "--json").stdout)
    tensors, stored = model(), {e.name: e for e in safetensors.read(packed).entries}
    assert [row["tensor"] for row in found["tensors"]] == list(stored)
    for row in found["tensors"]:
        x = tensors[row["tensor"]]
        assert row["dimensions"] == list(x.shape)
        assert row["dtype"] == primitive_type(x.dtype).name
        assert row["bytes"] == stored[row["tensor"]].nbytes
        assert row["padding_bytes"] == row["bytes"] - x.nbytes
        if x.ndim >= 2:
            spec = tilejit.as_layout("tenstorrent", dtype=x.dtype, dims=x.shape)
            assert row["shape"] == str(spec)
        else:
            assert row["shape"] is None
    assert found["total"]["bytes"] == sum(e.nbytes for e in stored.values())
    assert found["total"]["padding_bytes"] == sum(row["padding_bytes"] for row in found["tensors"])


@pytest.mark.full
def test_a_page_does_not_replace_what_it_shows(packed: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((8, 8), np.float32))
    assert run("pack", tmp_path / "x.npy", tmp_path / "y.npy", "--layout", "tpu").exit_code == 0
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    link = tmp_path.parent / f"{tmp_path.name}.html"
    link.symlink_to(packed)
    for words, output in (
        ((packed, "weight"), packed),
        ((packed, "weight"), tmp_path / "none" / ".." / packed.name),
        ((packed, "weight"), link),
        ((tmp_path, "x"), packed),
        ((tmp_path / "y.npy",), tmp_path / "y.npy"),
        ((tmp_path / "y.npy",), tmp_path / "y.npy.tilejit.json"),
    ):
        assert "give another name for the page" in fails("view", *words, "-o", output)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.full
@pytest.mark.parametrize("columns", [30, 60, 100])
def test_every_tensor_is_listed(packed: Path, columns: int) -> None:
    done = run("show", packed, columns=columns)
    assert done.exit_code == 0, done.output
    for name in model():
        assert name in done.stdout
    assert "{1,0:T(32,32)(16,16)}" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("10 tensors, 8 packed, ")
    lines = shown(("show", packed), columns=columns).text.splitlines()
    assert max(map(len, lines)) <= max(columns, 50)


@pytest.mark.full
def test_arrays_and_directories(tmp_path: Path) -> None:
    source, packed = tmp_path / "a", tmp_path / "b"
    source.mkdir()
    x = np.arange(600, dtype=np.float32).reshape(20, 30)
    np.save(source / "x.npy", x)
    np.save(source / "columns.npy", np.asfortranarray(x))
    np.save(source / "records.npy", np.zeros(3, "i4,f8"))
    assert "20,30  f32    row-major" in run("show", source / "x.npy").stdout
    assert "column-major" in run("show", source / "columns.npy").stdout
    (source / "records.npy").unlink()
    assert run("pack", source, packed, "--layout", "{1,0:T(8,16)}").exit_code == 0
    rows = json.loads(run("show", packed, "--json").stdout)["tensors"]
    assert [(row["file"], row["tensor"]) for row in rows] == [("columns.npy", "columns"), ("x.npy", "x")]
    assert {row["shape"] for row in rows} == {"f32[20,30]{1,0:T(8,16)}"}
    assert "{1,0:T(8,16)}" in run("show", packed / "x.npy").stdout
    assert "600 " not in run("show", packed / "x.npy").stdout


@pytest.mark.full
def test_files_that_are_refused(packed: Path, tmp_path: Path) -> None:
    assert "No such file" in fails("show", tmp_path / "none.npy")
    (tmp_path / "bad.npy").write_bytes(b"bad")
    assert "not a .npy file" in fails("show", tmp_path / "bad.npy")
    (tmp_path / "empty").mkdir()
    assert "neither .safetensors nor .npy" in fails("show", tmp_path / "empty")
    raw = packed.read_bytes().replace(b'\\"dimensions\\":[40,300]', b'\\"dimensions\\":[40,999]')
    packed.write_bytes(raw)
    assert "belongs to another tensor" in fails("show", packed)


@pytest.mark.full
def test_a_tensor_of_a_file_is_drawn_in_its_own_layout(packed: Path) -> None:
    """`show FILE TENSOR` draws the shape that `show FILE` lists, or row-major order."""
    for row in json.loads(run("show", packed, "--json").stdout)["tensors"]:
        facts = json.loads(run("show", packed, row["tensor"], "--json").stdout)
        assert facts["size_in_bytes"] == row["bytes"]
        assert facts["dimensions"] == row["dimensions"]
        if row["shape"]:
            assert facts["shape"] == row["shape"]
            assert run("show", packed, row["tensor"]).stdout.startswith(row["shape"])
    spec = tilejit.as_layout("blis-a", dtype="f32", dims=(40, 300), mr=4)
    assert run("show", packed, "weight", "--layout", "blis-a", "mr=4").stdout.startswith(str(spec))
    assert "<svg" in run("show", packed, "weight", "--svg").stdout
    page = run("view", packed, "weight", "-o", "-").stdout
    assert "<title>f32[40,300]{1,0:T(32,32)(16,16)}</title>" in page


def test_a_file_of_one_tensor_needs_no_name(tmp_path: Path) -> None:
    for name, x in (("x", np.ones((4, 6), np.float32)), ("columns", np.ones((4, 6), np.float32, "F"))):
        np.save(tmp_path / f"{name}.npy", x)
    page = run("view", tmp_path / "columns.npy", "-o", "-").stdout
    assert "<title>f32[4,6]{0,1}</title>" in page
    assert page == run("view", tmp_path, "columns", "-o", "-").stdout
    assert "<title>f32[4,6]{1,0}</title>" in run("show", tmp_path / "x.npy", "--svg").stdout
    drawn = run("show", tmp_path / "x.npy", "--layout", "blis-a", "mr=4").stdout
    assert drawn.startswith("f32[4,6]{1,0:T(4,1)}")


def test_tensors_that_cannot_be_drawn(packed: Path, tmp_path: Path) -> None:
    assert "name one of them: " in fails("view", packed)
    assert "tensor 'none' does not exist\n  " in fails("show", packed, "none")
    assert "mr is a parameter of --layout" in refuses("show", packed, "mr=4")
    assert "'other' is not a parameter" in refuses("show", packed, "weight", "other")
    assert "unknown format" in refuses("show", packed, "weight", "--layout", "nope-nope")
    folder = tmp_path / "both"
    folder.mkdir()
    save_model(folder / "model.safetensors")
    np.save(folder / "weight.npy", np.zeros((2, 3), "V2"))
    assert "pass one of the files: model.safetensors, weight.npy" in fails("show", folder, "weight")
    assert "such as bf16[2,3]" in fails("show", folder / "weight.npy", "weight")


def test_names_cannot_move_the_cursor(tmp_path: Path) -> None:
    np.save(tmp_path / "a\x1b[2Jb.npy", np.zeros(3))
    text = run("show", tmp_path / "a\x1b[2Jb.npy").stdout + run("show", tmp_path).stdout
    assert "\x1b" not in text
    assert "a?[2Jb" in text


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("x.npy", True),
        ("X.NPY", True),
        ("none/model.safetensors", True),
        (".", True),
        ("f32[3,5]{1,0:T(2,2)}", False),
        ("... -> ...", False),
        ("(4,8):(8,1)", False),
        ("", False),
        ("-", False),
        ("a" * 5000, False),
        ("a\0.txt", False),
    ],
)
def test_arguments_that_name_files(text: str, named: bool) -> None:
    assert names_files(text) is named
