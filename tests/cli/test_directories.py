"""Rules, dry runs and directories of shards on the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import tilejit
from tests.cli.running import fails, refuses, run
from tests.cli.terminals import shown
from tests.files.containers import model, save_model
from tilejit.files import plan, safetensors
from tilejit.files.directory import DONE_NAME
from tilejit.files.recorded import LAYOUTS_NAME
from tilejit.files.shards import INDEX_NAME

SHARDS = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """A checkpoint with two shards, the second without a matrix, and files that do not belong to it."""
    directory = tmp_path / "model"
    directory.mkdir()
    tensors = model()
    first = {name: x for name, x in tensors.items() if x.ndim >= 2}
    save_file(first, directory / SHARDS[0])
    save_file({name: x for name, x in tensors.items() if x.ndim < 2}, directory / SHARDS[1])
    weights = {name: SHARDS[name not in first] for name in tensors}
    index = {"metadata": {"total_size": 1, "who": "me"}, "weight_map": weights}
    (directory / INDEX_NAME).write_text(json.dumps(index))
    (directory / "config.json").write_text("{}")
    save_file({"x": np.zeros(3)}, directory / "other.safetensors")
    return directory


def contents(directory: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in directory.iterdir()}


@pytest.mark.full
def test_shards_are_packed_and_unpacked(shards: Path) -> None:
    packed, other, back = (shards.with_name(name) for name in ("packed", "other", "back"))
    there = run("pack", shards, packed, "--layout", "tenstorrent", "tile=16")
    assert there.exit_code == 0, there.output
    assert there.stdout.startswith("packed 8 of 10 tensors")
    assert "does not fit: " in there.stderr
    assert set(contents(packed)) == {*SHARDS, INDEX_NAME}
    assert (packed / SHARDS[1]).read_bytes() == (shards / SHARDS[1]).read_bytes()
    old, new = (json.loads((d / INDEX_NAME).read_text()) for d in (shards, packed))
    assert new["weight_map"] == old["weight_map"]
    total = sum(e.nbytes for name in SHARDS for e in safetensors.read(packed / name).entries)
    assert new["metadata"] == {"total_size": total, "who": "me"}
    assert run("relayout", packed, other, "--layout", "{1,0:T(4,4)}").exit_code == 0
    assert run("unpack", other, back).stdout.startswith("unpacked 8 of 10 tensors")
    for name in SHARDS:
        assert (back / name).read_bytes() == (shards / name).read_bytes()


def test_named_tensors_of_a_directory(shards: Path) -> None:
    packed = shards.with_name("packed")
    done = run("pack", shards, packed, "--layout", "tpu", "--tensor", "bias", "--json")
    (row,) = json.loads(done.stdout)
    assert (row["file"], row["tensor"]) == (SHARDS[1], "bias")
    assert (packed / SHARDS[0]).read_bytes() == (shards / SHARDS[0]).read_bytes()
    out = shards.with_name("out")
    assert "tensor 'nope' does not exist" in fails("pack", shards, out, "--layout", "tpu", "--tensor", "nope")
    assert "tensor 'bias'" in fails("pack", shards, out, "--layout", "tenstorrent", "--tensor", "bias")
    assert not out.exists()


@pytest.mark.full
def test_a_directory_of_plain_files(tmp_path: Path) -> None:
    source, packed = tmp_path / "a", tmp_path / "b" / "c"
    source.mkdir()
    save_model(source / "model.safetensors")
    x = np.arange(600, dtype=np.float32).reshape(20, 30)
    np.save(source / "x.npy", x)
    np.save(source / "bias.npy", x[0])
    np.save(source / "columns.npy", np.asfortranarray(x[:, 0:1].repeat(3, 1)))
    done = run("pack", source, packed, "--layout", "tenstorrent")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("packed 10 of 13 tensors")
    assert (np.load(packed / "x.npy") == tilejit.pack(x, "tenstorrent").buffer).all()
    assert (packed / "bias.npy").read_bytes() == (source / "bias.npy").read_bytes()
    (packed / LAYOUTS_NAME).unlink()
    (packed / "model.safetensors").unlink()
    for command in (("unpack",), ("relayout", "--layout", "tpu")):
        said = fails(command[0], packed, tmp_path / "d", *command[1:])
        assert "no layout is recorded for 'bias.npy', " in said
        assert "with --shape" in said


def test_directories_that_are_refused(shards: Path, tmp_path: Path) -> None:
    out, empty = tmp_path / "out", tmp_path / "empty"
    empty.mkdir()
    layout = ("--layout", "tpu")
    assert "are the same directory" in fails("pack", shards, shards, *layout)
    assert "neither .safetensors nor" in fails("pack", empty, out, *layout)
    (tmp_path / "file").write_bytes(b"")
    assert "two directories" in fails("pack", shards, tmp_path / "file", *layout)
    assert "can be unpacked" in fails("unpack", shards, out)
    assert "unknown format" in refuses("pack", shards, out, "--layout", "nope-nope")
    (shards / SHARDS[1]).write_bytes(b"damaged")
    assert "not a safetensors file" in fails("pack", shards, out, *layout)
    assert not out.exists()


@pytest.mark.parametrize(
    ("index", "says"),
    [
        ({"weight_map": {"x": "../other.safetensors"}}, "plain names"),
        ({"weight_map": {"x": "/etc/x.safetensors"}}, "plain names"),
        ({"weight_map": {"x": "a\\b.safetensors"}}, "plain names"),
        ({"weight_map": {"x": "C:x.safetensors"}}, "plain names"),
        ({"weight_map": {"x": "..safetensors"}}, "plain names"),
        ({"weight_map": {"x": "x.bin"}}, "plain names"),
        ({"weight_map": {"x": ["x.safetensors"]}}, "plain names"),
        ({"weight_map": {}}, "names no tensor"),
        ({"weight_map": 3}, "no weight_map"),
        ([], "no weight_map"),
        ("{", "not an index of shards"),
        ("[" * 100_000, "not an index of shards"),
        ({"weight_map": {"nope": SHARDS[0]}}, "holds 'nope', but it does not"),
        ({"weight_map": {"x": "missing.safetensors"}}, "No such file"),
    ],
    ids=lambda v: str(v)[:50],
)
def test_indexes_that_are_refused(shards: Path, tmp_path: Path, index: Any, says: str) -> None:
    (shards / INDEX_NAME).write_text(index if isinstance(index, str) else json.dumps(index))
    before = set(tmp_path.rglob("*"))
    assert says in fails("pack", shards, tmp_path / "out", "--layout", "tpu")
    assert set(tmp_path.rglob("*")) == before


@pytest.mark.full
def test_an_interrupted_directory_is_resumed(shards: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed, want = shards.with_name("packed"), shards.with_name("want")
    command = ("pack", shards, packed, "--layout", "tpu", "--resume")
    run("pack", shards, want, "--layout", "tpu")
    real, written = plan.Plan.write, []

    def write(self: Any, path: Path, *args: Any, **more: Any) -> None:
        written.append(path.name)
        if len(written) == 2:
            raise KeyboardInterrupt
        real(self, path, *args, **more)

    monkeypatch.setattr(plan.Plan, "write", write)
    assert run(*command).exit_code == 130
    assert set(contents(packed)) == {SHARDS[0], DONE_NAME}
    assert run(*command).stdout.endswith("; 8 by an earlier run, 2 now\n")
    assert written == [*SHARDS, SHARDS[1]]
    assert contents(packed) == contents(want)


@pytest.mark.parametrize("fails_at", ["first.npy", "second.npy", LAYOUTS_NAME])
def test_a_failed_run_leaves_nothing_that_it_added(
    tmp_path: Path, fails_at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither directories nor finished files. Existing directories and other files stay."""
    source, target = tmp_path / "in", tmp_path / "new" / "out"
    source.mkdir()
    for name in ("first.npy", "second.npy"):
        value = 100 if name == fails_at else 1  # s4 holds up to 7
        np.save(source / name, np.full((4, 4), value, np.int8))
    if fails_at == LAYOUTS_NAME:
        real = os.replace

        def replace(old: Path, new: Path) -> None:
            real(old, new if new.name != LAYOUTS_NAME else new / "none")

        monkeypatch.setattr(os, "replace", replace)
    command = ("pack", source, target, "--layout", "s4[4,4]{1,0}")
    for more in ((), ("--no-clobber",)):
        said = fails(*command, *more)
        assert fails_at in said
        assert [p.name for p in tmp_path.iterdir()] == ["in"]
    target.mkdir(parents=True)
    (target / "other.txt").write_text("kept")
    fails(*command)
    assert [p.name for p in target.iterdir()] == ["other.txt"]


RULES = """
[[rule]]
tensors = "weight|small"
layout = "tenstorrent"
parameters = { tile = 16 }
[[rule]]
tensors = "w.*"
skip = true
[[rule]]
tensors = "nothing"
layout = "tpu"
"""


def test_rules_give_tensors_their_layouts(tmp_path: Path) -> None:
    source, packed, again = (save_model(tmp_path / f"{name}.safetensors") for name in "abc")
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES)
    done = run("pack", source, packed, "--rules", rules, "--json")
    assert {row["tensor"]: row["shape"] for row in json.loads(done.stdout)} == {
        "weight": "f32[40,300]{1,0:T(16,16)}",
        "small": "f8e4m3fn[64,200]{1,0:T(16,16)}",
    }
    assert "the rule in line 9 never applies: no tensor matches 'nothing' first" in done.stderr
    with_default = run("pack", source, packed, "--rules", rules, "--layout", "tpu")
    assert with_default.stdout.startswith("packed 9 of 10 tensors")
    done = run("relayout", packed, again, "--rules", rules)
    assert done.stdout.startswith("converted 2 of 10 tensors")
    rules.write_text("[[rule]]\ntensors = 'bias'\nlayout = 'tenstorrent'\n")
    said = " ".join(fails("pack", source, packed, "--rules", rules).split())
    assert f"{str(rules)!r}, line 3: tensor 'bias': the format 'tenstorrent' takes 2 or more" in said
    rules.write_text("[[rule]]\ntensors = 'small'\nlayout = 'tpu'\n" + rules.read_text())
    noted = " ".join(run("pack", source, packed, "--rules", rules).stderr.split())
    assert f"{str(rules)!r}, line 6: tensor 'bias': the format 'tenstorrent'" in noted
    rules.write_text("[[rule]]\ntensors = '.*'\nskip = true\n")
    assert "can be packed" in fails("pack", source, packed, "--rules", rules)
    rules.write_text("[[rule]]\ntensors = '.*'\nlayuot = 'tpu'\n")
    assert "line 3: unknown key 'layuot' in a rule" in fails("pack", source, packed, "--rules", rules)
    rules.write_text("[[rule]]\ntensors = 'weight'\nlayout = 'C'\n")
    (row,) = json.loads(run("pack", source, packed, "--rules", rules, "--json").stdout)
    assert row["shape"] == "f32[40,300]{1,0}"
    assert "pass --layout L, --rules FILE, or both" in refuses("pack", source, packed)


@pytest.mark.parametrize("columns", [30, 60, 80, 200])
def test_a_dry_run_prints_sizes_and_writes_nothing(tmp_path: Path, columns: int) -> None:
    source, target = save_model(tmp_path / "model.safetensors"), tmp_path / "out.safetensors"
    done = run("pack", source, target, "--layout", "tenstorrent", "--dry-run", columns=columns)
    assert done.exit_code == 0, done.output
    spec = tilejit.as_layout("tenstorrent", dims=(40, 300), dtype="f32")
    for text in ("46.9 KiB", "80.0 KiB", f"{100 * spec.padding_fraction:.1f}%", "f32", "unchanged"):
        assert text in done.stdout or columns < 80
    assert "[]" not in done.stdout
    assert "total" in done.stdout
    assert [p.name for p in tmp_path.iterdir()] == [source.name]


@pytest.mark.full
def test_names_are_complete_without_a_terminal(tmp_path: Path) -> None:
    name = "model.layers.0.self_attention.query_projection.weight"
    save_file({name: np.ones((40, 300), np.float32)}, tmp_path / "model.safetensors")
    arguments = (
        "pack",
        tmp_path / "model.safetensors",
        tmp_path / "x.safetensors",
        "--layout",
        "tpu",
        "--dry-run",
    )
    done = run(*arguments)
    row = done.stdout.splitlines()[1]
    assert row.split() == [name, "40,300", "f32", "{1,0:T(8,128)}", "46.9", "KiB", "60.0", "KiB", "21.9%"]
    lines = shown(arguments, columns=80).text.splitlines()
    assert len(lines) > 3
    assert max(map(len, lines)) <= 80


def test_a_dry_run_as_json_equals_the_report_of_the_run(tmp_path: Path, shards: Path) -> None:
    out = tmp_path / "out"
    found = json.loads(run("pack", shards, out, "--layout", "tpu", "--dry-run", "--json").stdout)
    assert not out.exists()
    run("pack", shards, out, "--layout", "tpu")
    sizes = {e.name: e.nbytes for name in SHARDS for e in safetensors.read(out / name).entries}
    assert {row["tensor"]: row["bytes_after"] for row in found["tensors"]} == sizes
    assert found["total"]["bytes_after"] == sum(sizes.values())
    tensors = model()
    for row in found["tensors"]:
        assert row["padding_bytes"] == row["bytes_after"] - tensors[row["tensor"]].nbytes
    x = tmp_path / "x.npy"
    np.save(x, tensors["weight"])
    table = run("pack", x, tmp_path / "y.npy", "--layout", "tpu", "--dry-run")
    assert "60.0 KiB" in table.stdout
    assert "nothing was written" in table.stdout
    assert not (tmp_path / "y.npy").exists()


def test_links_back_into_the_source_are_not_written_through(shards: Path) -> None:
    """`cp -s` and caches of checkpoints make such folders, and the input was packed in place."""
    packed, before = shards.with_name("packed"), contents(shards)
    for name in (SHARDS[1], INDEX_NAME):
        packed.mkdir()
        (packed / name).symlink_to(shards / name)
        assert "is a link to a file of IN" in fails("pack", shards, packed, "--layout", "tpu")
        assert contents(shards) == before
        (packed / name).unlink()
        packed.rmdir()


def test_an_index_of_other_files_is_not_left_behind(tmp_path: Path) -> None:
    source, packed = tmp_path / "a", tmp_path / "b"
    source.mkdir()
    packed.mkdir()
    save_model(source / "model.safetensors")
    (packed / INDEX_NAME).write_text("{}")
    assert "remove it" in fails("pack", source, packed, "--layout", "tpu")
    assert [p.name for p in packed.iterdir()] == [INDEX_NAME]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_as_the_list_of_finished_shards_is_refused(shards: Path) -> None:
    packed = shards.with_name("packed")
    packed.mkdir()
    os.mkfifo(packed / DONE_NAME)
    assert "not a regular file" in fails("pack", shards, packed, "--layout", "tpu", "--resume")


def test_a_link_as_the_list_of_finished_shards_is_not_followed(shards: Path) -> None:
    packed, other = shards.with_name("packed"), shards.with_name("notes.txt")
    packed.mkdir()
    other.write_text("mine")
    (packed / DONE_NAME).symlink_to(other)
    assert "is a link" in fails("pack", shards, packed, "--layout", "tpu", "--resume")
    assert other.read_text() == "mine"
    assert [p.name for p in packed.iterdir()] == [DONE_NAME]


@pytest.mark.full
@pytest.mark.parametrize(
    "command", [("pack", "--layout", "tpu"), ("unpack",), ("relayout", "--layout", "tpu")]
)
def test_directories_inside_each_other_are_refused(shards: Path, command: tuple[str, ...]) -> None:
    """Through any names and links, before anything is written."""
    inside, link, outer = shards / "deep" / "out", shards.with_name("link"), shards.parent
    link.symlink_to(shards)
    before = sorted(outer.rglob("*"))
    name, *options = command
    for source, target, words in (
        (shards, inside, "OUT is inside IN"),
        (link, inside, "OUT is inside IN"),
        (shards, link / "out", "OUT is inside IN"),
        (shards, outer / "none" / ".." / shards.name / "out", "OUT is inside IN"),
        (shards, outer, "IN is inside OUT"),
        (link, outer, "IN is inside OUT"),
        (shards, link, "the same directory"),
        (shards, outer / "none" / ".." / shards.name, "the same directory"),
        (shards, shards / "none" / "..", "the same directory"),
    ):
        assert words in fails(name, source, target, *options)
    assert sorted(outer.rglob("*")) == before


def test_two_outputs_in_one_file_are_refused(shards: Path) -> None:
    """The second one would replace the first."""
    packed = shards.with_name("packed")
    packed.mkdir()
    (packed / SHARDS[1]).symlink_to(SHARDS[0])
    assert "are the same file" in fails("pack", shards, packed, "--layout", "tpu")
    assert [p.name for p in packed.iterdir()] == [SHARDS[1]]


@pytest.mark.parametrize("command", ["pack", "relayout"])
def test_the_rules_are_not_replaced(tmp_path: Path, command: str) -> None:
    np.save(tmp_path / "x.npy", np.ones((8, 8), np.float32))
    rules = tmp_path / "rules.toml"
    rules.write_text("[[rule]]\ntensors = '.*'\nlayout = 'tpu'\n")
    before = rules.read_bytes()
    said = fails(command, tmp_path / "x.npy", rules, "--rules", rules)
    assert f"OUT and --rules are the same file, {str(rules)!r}" in said
    assert rules.read_bytes() == before
