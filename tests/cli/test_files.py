"""`tilejit pack` and `tilejit unpack`."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import tilejit
from tests.cli.running import child, fails, refuses, run
from tests.files.containers import bytes_of, save_model
from tests.tools.oracle import environment
from tilejit.files import safetensors
from tilejit.files.conversion import plan_file_pack


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return save_model(tmp_path / "model.safetensors")


@pytest.fixture
def array(tmp_path: Path) -> Path:
    path = tmp_path / "x.npy"
    np.save(path, np.arange(33 * 300, dtype=np.float32).reshape(33, 300))
    return path


def test_a_npy_file_is_packed_and_unpacked(array: Path) -> None:
    packed, back = array.with_name("packed.npy"), array.with_name("back.npy")
    there = run("pack", array, packed, "--layout", "tpu")
    assert there.stdout == "f32[33,300]{1,0:T(8,128)}\n"
    assert there.stderr.startswith(f"unpack it with: tilejit unpack {packed} ")
    assert run("unpack", packed, back, "--shape", there.stdout.strip()).exit_code == 0
    assert back.read_bytes() == array.read_bytes()


@pytest.mark.full
@pytest.mark.parametrize("name", ["y.npy", "a b'c.npy", "-y.npy"])
@pytest.mark.parametrize("layout", ["tpu", "C", "(33,300):(300,1)", "(m mi) n -> m n mi, mi=2"])
def test_the_unpack_command_runs_as_printed(
    array: Path, name: str, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(array.parent)
    before = os.listdir()
    done = run("pack", array, "--layout", layout, "--", name)
    (command,) = done.stderr.splitlines()
    assert run(*shlex.split(command.removeprefix("unpack it with: "))[1:]).exit_code == 0
    (made,) = {*os.listdir()} - {*before, name, f"{name}.tilejit.json"}
    assert Path(made).read_bytes() == array.read_bytes()
    facts = json.loads(run("pack", array, "--layout", layout, "--json", "--", name).stdout)
    assert f"unpack it with: {facts['unpack']}" == command
    assert run("pack", array, "--layout", layout, "-q", "--", name).output == ""


def test_no_clobber_keeps_existing_files(array: Path, model: Path, tmp_path: Path) -> None:
    kept = array.with_name("kept.npy")
    kept.write_bytes(b"old")
    link, folder = array.with_name("link.npy"), tmp_path / "folder"
    link.symlink_to("nowhere")
    for out in (kept, link):
        for option in ("-n", "--no-clobber"):
            assert "--no-clobber" in fails("pack", array, out, "--layout", "tpu", option)
    assert "--no-clobber" in fails("unpack", array, kept, "--shape", "f32[33,300]", "-n")
    assert "--no-clobber" in fails("relayout", array, kept, "--shape", "f32[33,300]", "--layout", "C", "-n")
    assert "--no-clobber" in fails("view", "f32[2,3]", "-o", kept, "-n")
    assert "--no-clobber" in fails("pack", array, kept, "--layout", "tpu", "--dry-run", "-n")
    assert "pass one of the two" in refuses("pack", array, kept, "--layout", "tpu", "-n", "--resume")
    assert kept.read_bytes() == b"old"
    assert os.readlink(link) == "nowhere"
    folder.mkdir()
    (folder / model.name).write_bytes(b"old")
    (tmp_path / "in").mkdir()
    model.rename(tmp_path / "in" / model.name)
    assert "--no-clobber" in fails("pack", tmp_path / "in", folder, "--layout", "tpu", "-n")
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == {model.name: b"old"}
    fresh = array.with_name("fresh.npy")
    assert run("pack", array, fresh, "--layout", "tpu", "-n").exit_code == 0
    assert run("pack", tmp_path / "in", tmp_path / "out", "--layout", "tpu", "-n").exit_code == 0
    assert not [p for p in tmp_path.rglob("*") if p.name.startswith(".tilejit")]


@pytest.mark.full
def test_a_checkpoint_is_packed_and_unpacked(model: Path) -> None:
    packed, back = model.with_name("packed.safetensors"), model.with_name("back.safetensors")
    there = run("pack", model, packed, "--layout", "tpu")
    assert there.stdout.startswith("packed 10 of 10 tensors, ")
    assert there.stderr.startswith("tiles are mostly empty: wave (96.0% padding), ")
    assert run("unpack", packed, back).stdout.startswith("unpacked 10 of 10 tensors, ")
    assert back.read_bytes() == model.read_bytes()


def test_json_describes_the_packed_file(model: Path, array: Path) -> None:
    packed = model.with_name("packed.safetensors")
    rows = json.loads(run("pack", model, packed, "--layout", "tpu", "--tensor", "ids", "--json").stdout)
    spec = tilejit.as_layout("tpu", dims=(4, 4), dtype=np.int64)
    assert [(row["tensor"], row["shape"], row["size_in_bytes"]) for row in rows] == [
        ("ids", str(spec), spec.size_in_bytes)
    ]
    packed, back = model.with_name("packed.npy"), model.with_name("back.npy")
    fact = json.loads(run("pack", array, packed, "--layout", "tpu", "--json").stdout)
    assert fact["shape"] == "f32[33,300]{1,0:T(8,128)}"
    assert (
        json.loads(run("unpack", packed, back, "--shape", fact["shape"], "--json").stdout)["size_in_bytes"]
        == 61440
    )


@pytest.mark.parametrize("link", [None, "symbolic", "hard", ".."])
@pytest.mark.parametrize("kind", ["array", "model"])
@pytest.mark.parametrize("more", [(), ("--dry-run",), ("--resume",), ("--no-clobber",)], ids=str)
def test_a_file_is_not_converted_onto_itself(
    request: pytest.FixtureRequest, kind: str, link: str | None, more: tuple[str, ...]
) -> None:
    source: Path = request.getfixturevalue(kind)
    before, target = source.read_bytes(), source
    if link == "..":  # behind a missing directory
        target = source.parent / "none" / ".." / source.name
    elif link is not None:
        target = source.with_name(f"link{source.suffix}")
        target.symlink_to(source) if link == "symbolic" else target.hardlink_to(source)
    for command in ("pack", "relayout"):
        said = fails(command, source, target, "--layout", "tpu", *more)
        assert f"IN and OUT are the same file, {str(target)!r}\n  give another name for OUT" in said
    assert "the same file" in fails("unpack", source, target, *more)
    assert source.read_bytes() == Path(os.path.realpath(target)).read_bytes() == before
    assert {p.name for p in source.parent.iterdir()} >= {source.name, target.name}
    assert not list(source.parent.glob("*.partial"))


@pytest.mark.parametrize(
    "name", ["tilejit-layouts.json", "x.npy.tilejit.json", "model.safetensors.index.json"]
)
def test_records_are_not_replaced_by_tensors(array: Path, name: str) -> None:
    record, link = array.with_name(name), array.with_name("link.bin")
    record.write_text("{}")
    link.symlink_to(record)
    for target in (record, link):
        said = fails("pack", array, target, "--layout", "tpu")
        assert f"OUT: '{name}' is the name of a record of tensors\n  give another name for OUT" in said
    assert record.read_text() == "{}"


def test_json_of_shapes_that_xlas_text_cannot_express(tmp_path: Path) -> None:
    """The metadata stores padding that XLA's text cannot. No report may fail after the file is written."""
    shape = tilejit.make_shape("f32", (2, 3), padded_dimensions=(4, 4), padding_value=7)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    packed, back = tmp_path / "packed.safetensors", tmp_path / "back.safetensors"
    plan_file_pack(saved(tmp_path, x), shape).write(packed)
    result = run("unpack", packed, back, "--json")
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)
    assert row["size_in_bytes"] == 64
    assert "padded_dimensions=(4, 4)" in row["shape"]


def saved(directory: Path, x: np.ndarray[Any, Any]) -> Path:
    path = directory / "x.safetensors"
    save_file({"x": x}, path)
    return path


def test_errors(model: Path, array: Path) -> None:
    out, other = model.with_name("out.safetensors"), array.with_name("out.npy")
    assert "tensor 'bias'" in fails("pack", model, out, "--layout", "{1,0:T(8,128)}", "--tensor", "bias")
    assert "the same kind" in refuses("pack", model, other, "--layout", "tpu")
    assert "IN is a .safetensors file and OUT is raw bytes" in refuses(
        "pack", model, "out.bin", "--layout", "tpu"
    )
    assert "No such file" in fails("pack", "none.npy", other, "--layout", "tpu")
    missing = array.parent / "none" / "x.npy"
    assert f"No such file or directory: '{missing}'" in fails("pack", array, missing, "--layout", "tpu")
    assert f"the directory '{missing.parent}' does not exist" in fails(
        "pack", array, missing, "--layout", "tpu"
    )
    assert "in braces, such as {1,0}" in refuses("pack", array, other, "--layout", "1,0:T(8,128)")
    assert "--dtype bf16" in fails("pack", array, other, "--layout", "bf16[33,300]")
    assert "opaque" not in refuses("pack", array, other, "--layout", "tpu", "--dtype", "nope")
    assert "--layout" in refuses("pack", array, other)
    assert "--shape" in fails("unpack", array, other)
    assert "--shape is for .npy" in refuses("unpack", model, out, "--shape", "f32[3]")
    assert "--tensor is for" in refuses("pack", array, other, "--layout", "tpu", "--tensor", "x")
    unpacked = fails("unpack", model, out)
    assert f"nothing in '{model.name}' can be unpacked" in unpacked
    assert "unpacked already" in unpacked
    assert "threads" in refuses("pack", array, other, "--layout", "tpu", "--threads", "0")
    assert not out.exists()
    assert not other.exists()


def test_control_characters_in_names_cannot_move_the_cursor(tmp_path: Path) -> None:
    assert "\\n" in fails("pack", "a\nb.npy", tmp_path / "x.npy", "--layout", "tpu")
    assert "\\x1b" in fails("pack", "a\x1b[31m.npy", tmp_path / "x.npy", "--layout", "tpu")


PAUSED = """
import os, sys, time
real = os.fsync
def pause(handle):
    real(handle)
    print("written", flush=True)
    time.sleep(60)
os.fsync = pause
from tilejit.cli import main
main()
"""


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL], ids=str)
def test_a_kill_leaves_the_old_file(model: Path, number: signal.Signals) -> None:
    target = model.with_name("out.safetensors")
    target.write_bytes(b"old")
    command = [sys.executable, "-c", PAUSED, "pack", str(model), str(target), "--layout", "tpu"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment()) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "written\n"
        process.send_signal(number)
        code = process.wait(60)
        line = f"tilejit pack --resume {model} {target} --layout tpu"
        said = f"tilejit: interrupted\n  the next run starts again; a run that can be continued: {line}\n"
        assert process.stderr.read() == (said if number is signal.SIGINT else "")
    assert target.read_bytes() == b"old"
    if number is not signal.SIGKILL:
        assert code == 128 + number
    left = sorted(p.name for p in model.parent.iterdir())
    if number is signal.SIGKILL and len(left) == 3:  # the file system has no files without a name
        return
    assert left == [model.name, target.name]


def test_pack_names_tensors_that_are_mostly_padding(tmp_path: Path) -> None:
    """Half is not most; unpacking and --quiet say nothing."""
    x, packed, again = (tmp_path / name for name in ("x.safetensors", "p.safetensors", "a.safetensors"))
    save_file({"ids": np.arange(30), "half": np.arange(512), "all": np.arange(1024)}, x)
    note = "tiles are mostly empty: ids (97.1% padding)\n  a layout with smaller tiles takes less space\n"
    assert run("pack", x, packed, "--layout", "{0:T(1024)}").stderr == note
    assert run("relayout", packed, again, "--layout", "{0:T(2048)}").stderr.startswith(
        "tiles are mostly empty: ids (98.5% padding), half (75.0% padding)\n"
    )
    assert run("pack", x, packed, "--layout", "{0:T(1024)}", "--quiet").stderr == ""
    assert run("unpack", packed, again).stderr == ""


@pytest.mark.full
def test_an_interrupted_run_says_how_to_continue(model: Path) -> None:
    target = model.with_name("out's.safetensors")
    words = ["pack", str(model), str(target), "--layout", "tpu", "--resume"]
    command = [sys.executable, "-c", PAUSED, *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment()) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "written\n"
        process.send_signal(signal.SIGINT)
        first, then = process.stderr.read().splitlines()
        assert (process.wait(60), first) == (130, "tilejit: interrupted")
    assert then.startswith("  continue with: tilejit pack ")
    assert shlex.split(then.partition(": ")[2]) == ["tilejit", *words]
    assert not target.exists()
    assert run(*words).exit_code == 0
    run("pack", model, model.with_name("want.safetensors"), "--layout", "tpu")
    assert target.read_bytes() == model.with_name("want.safetensors").read_bytes()


@pytest.mark.full
def test_a_layout_error_exits_with_2_and_shows_a_caret(array: Path) -> None:
    result = child("pack", array, array.with_name("out.npy"), "--layout", "{1,1}")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "tilejit: minor_to_major names dimension 1 twice",
        "  {1,1}",
        "     ^",
        "  name each of 0 and 1 once, e.g. {1,0}",
    ]


@pytest.mark.full
@pytest.mark.parametrize("layout", ["tenstorrent", "((8,5),(64,5)):((64,2560),(1,512))", "{0,1}"])
def test_relayout_of_a_npy_file(array: Path, layout: str) -> None:
    packed, other, back = (array.with_name(name) for name in ("packed.npy", "other.npy", "back.npy"))
    shape = run("pack", array, packed, "--layout", "tpu").stdout.strip()
    there = run("relayout", packed, other, "--shape", shape, "--layout", layout)
    spec = tilejit.as_layout(layout, dims=(33, 300), dtype="f32")
    assert there.stdout == f"{spec}\n"
    assert (np.load(other) == tilejit.pack(np.load(array), layout).buffer).all()
    assert run("unpack", other, back, "--shape", there.stdout.strip()).exit_code == 0
    assert back.read_bytes() == array.read_bytes()


@pytest.mark.full
def test_relayout_of_a_checkpoint(model: Path) -> None:
    packed, other, want = (model.with_name(f"{name}.safetensors") for name in ("a", "b", "c"))
    run("pack", model, packed, "--layout", "tpu")
    assert run("relayout", packed, other, "--layout", "tpu-doc").stdout.startswith("converted 10 of 10 ")
    run("pack", model, want, "--layout", "tpu-doc")
    assert other.read_bytes() == want.read_bytes()
    back = model.with_name("back.safetensors")
    run("unpack", other, back)
    assert back.read_bytes() == model.read_bytes()


MATRICES = ("tenstorrent", "tile=16")


@pytest.mark.full
def test_tensors_that_the_layout_does_not_fit_are_named_and_left_unpacked(model: Path) -> None:
    packed, back = model.with_name("packed.safetensors"), model.with_name("back.safetensors")
    done = run("pack", model, packed, "--layout", *MATRICES)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("packed 8 of 10 tensors")
    said = (
        "not packed, because the layout does not fit: bias, scale\n  tensor 'bias': the format 'tenstorrent'"
    )
    assert said in done.stderr
    assert "--tensor" in done.stderr
    assert run("unpack", packed, back).stdout.startswith("unpacked 8 of 10 tensors")
    assert back.read_bytes() == model.read_bytes()


@pytest.mark.full
def test_relayout_leaves_tensors_that_do_not_fit_as_they_are(model: Path) -> None:
    packed, other, back = (model.with_name(f"{name}.safetensors") for name in ("a", "b", "c"))
    run("pack", model, packed, "--layout", "tpu")
    done = run("relayout", packed, other, "--layout", *MATRICES)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("converted 8 of 10 tensors")
    assert "not converted, because the layout does not fit: bias, scale\n" in done.stderr
    old, new = safetensors.read(packed), safetensors.read(other)
    for name in ("bias", "scale"):
        before, after = (
            bytes_of(file.bytes_of(next(e for e in file.entries if e.name == name))) for file in (old, new)
        )
        assert after == before
        assert new.metadata[f"tilejit.{name}"] == old.metadata[f"tilejit.{name}"]
    run("unpack", other, back)
    assert back.read_bytes() == model.read_bytes()


def test_a_layout_that_fits_no_named_tensor_is_refused(model: Path) -> None:
    packed, out = model.with_name("packed.safetensors"), model.with_name("out.safetensors")
    run("pack", model, packed, "--layout", "tpu")
    for source, command in ((model, "pack"), (packed, "relayout")):
        assert "unknown format" in refuses(command, source, out, "--layout", "nope-nope")
        assert "tensor 'scale'" in fails(
            command, source, out, "--layout", *MATRICES, "--tensor", "scale", "--tensor", "weight"
        )
        assert "the name threads" in refuses(command, source, out, "--layout", "blis-a", "threads=4")
        named = refuses(command, source, out, "--layout", "(threads b) n -> b threads n", "b=2")
        assert "an axis has the name threads" in named
    assert "f6e2m3fn" in fails("pack", model, out, "--layout", "tpu", "--dtype", "f6e2m3fn")
    assert not out.exists()


def test_relayout_names_missing_arguments(array: Path, model: Path) -> None:
    assert "--shape" in fails("relayout", array, array.with_name("b.npy"), "--layout", "tpu")
    assert "can be converted" in fails("relayout", model, model.with_name("b.safetensors"), "--layout", "tpu")
    assert "is for .npy files" in refuses(
        "relayout", model, model.with_name("b.safetensors"), "--layout", "tpu", "--shape", "f32[2]"
    )


PATTERN = "... (m mi) n -> ... m n mi"


@pytest.mark.full
def test_parameters_of_formats_and_patterns(array: Path) -> None:
    packed, other = array.with_name("p.npy"), array.with_name("o.npy")
    x = np.load(array)
    shape = run("pack", array, packed, "--layout", "blis-a", "mr=4").stdout.strip()
    assert shape == "f32[33,300]{1,0:T(4,1)}"
    assert np.load(packed).tobytes() == tilejit.pack(x, "blis-a", mr=4).buffer.tobytes()
    arguments = ("relayout", packed, other, "--shape", shape, "--layout")
    tiled = run(*arguments, "tenstorrent", "tile=16,32", "face=8").stdout.strip()
    assert tiled == "f32[33,300]{1,0:T(16,32)(8,8)}"
    assert np.load(other).tobytes() == tilejit.pack(x, tiled).buffer.tobytes()
    assert run(*arguments, PATTERN, "mi=8").stdout == "f32[33,300]{1,0:T(8,1)}\n"


@pytest.mark.full
def test_parameters_for_every_tensor(model: Path) -> None:
    packed, other = model.with_name("packed.safetensors"), model.with_name("other.safetensors")
    pick = ("--tensor", "ids")
    assert run("pack", model, packed, "--layout", "blis-a", "mr=4", *pick).exit_code == 0
    rows = json.loads(run("relayout", packed, other, "--layout", PATTERN, "mi=2", "--json").stdout)
    assert [row["shape"] for row in rows] == ["s64[4,4]{1,0:T(2,1)}"]


@pytest.mark.parametrize(
    ("parameters", "code", "says"),
    [
        (("nr=4",), 2, "it takes mr"),
        (("mr",), 2, "not a parameter"),
        (("mr=4", "mr=5"), 2, "given twice"),
        (("mr=4,4",), 1, "integer"),
        (("dtype=4",), 2, "dtype"),
        (("threads=4",), 2, "threads"),
    ],
    ids=str,
)
def test_parameters_that_are_refused(
    array: Path, model: Path, parameters: tuple[str, ...], code: int, says: str
) -> None:
    out, packed = array.with_name("b.npy"), model.with_name("b.safetensors")
    assert says in fails("pack", array, out, "--layout", "blis-a", *parameters, code=code)
    assert says in fails(
        "pack", model, packed, "--layout", "blis-a", *parameters, "--tensor", "ids", code=code
    )
    arguments = ("relayout", array, out, "--shape", "f32[33,300]", "--layout", "blis-a")
    assert says in fails(*arguments, *parameters, code=code)
    assert not out.exists()
    assert not packed.exists()


def test_a_file_without_permission_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 1: the command line is right. Root reads all files, so the check is replaced."""
    source = tmp_path / "x.npy"
    np.save(source, np.zeros((3, 5), np.float32))
    (tmp_path / "r.toml").write_text("")
    (tmp_path / "x.mlir").write_text("")
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    done = run("pack", source, tmp_path / "y.npy", "--layout", "tpu")
    assert done.exit_code == 0, done.output
    assert run("pack", source, tmp_path / "y.npy", "--layout", "tpu").exit_code == 0, "it replaces OUT"
    assert "not readable" not in run("pack", source, source, "--rules", tmp_path / "r.toml").stderr
    assert "not readable" not in run("vectorize", tmp_path / "x.mlir").stderr
