"""Layouts recorded beside packed .npy files: directories packed and unpacked, and damaged records."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilejit
from tests.cli.running import fails, run
from tests.files.containers import save_model
from tilejit.files import plan
from tilejit.files.conversion import plan_file_pack, plan_file_unpack
from tilejit.files.file_types import open_file
from tilejit.files.packings import Record, packings_to_json
from tilejit.files.recorded import LAYOUTS_NAME, read_layouts, record, recorded_packings
from tilejit.layout.cute_shape import Spec

X = np.arange(20 * 30, dtype=np.float32).reshape(20, 30)
ARRAYS = {"x.npy": X, "b.npy": X[0], "ids.npy": np.arange(64, dtype=np.int64).reshape(4, 16)}


def recorded_layout(path: Path) -> Spec | None:
    """The layout that the record of a directory has for a file."""
    packings = recorded_packings(path)
    return packings[-1].spec if packings else None


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    folder = tmp_path / "plain"
    folder.mkdir()
    for name, x in ARRAYS.items():
        np.save(folder / name, x)
    return folder


@pytest.fixture
def packed(plain: Path) -> Path:
    folder = plain.with_name("packed")
    done = run("pack", plain, folder, "--layout", "tenstorrent")
    assert done.exit_code == 0, done.output
    return folder


@pytest.mark.full
def test_a_directory_is_packed_and_unpacked(plain: Path, packed: Path, tmp_path: Path) -> None:
    """Arrays that the layout does not fit are copied unchanged."""
    assert {name for name, layout in read_layouts(packed).items() if layout} == {"x.npy", "ids.npy"}
    assert read_layouts(packed)["b.npy"] is None
    other, back = tmp_path / "other", tmp_path / "back"
    assert run("relayout", packed, other, "--layout", "{0,1:T(4,4)}").stdout.startswith("converted 2 of 3 ")
    assert str(recorded_layout(other / "x.npy")) == "f32[20,30]{0,1:T(4,4)}"
    for folder in (packed, other):
        assert run("unpack", folder, back).stdout.startswith("unpacked 2 of 3 tensors")
        assert {p.name: p.read_bytes() for p in back.iterdir()} == {
            p.name: p.read_bytes() for p in plain.iterdir()
        }


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        (("relayout", "--layout", "tenstorrent"), "b.npy"),
        (("relayout", "--layout", "tenstorrent", "--tensor", "x"), "ids.npy"),
        (("unpack", "--tensor", "x"), "ids.npy"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else v,
)
def test_arrays_that_stay_packed_keep_their_layouts(
    plain: Path, tmp_path: Path, command: tuple[str, ...], kept: str
) -> None:
    """Those that a new layout does not fit, and those that --tensor leaves alone."""
    folder, other, back = tmp_path / "tpu", tmp_path / "other", tmp_path / "back"
    assert run("pack", plain, folder, "--layout", "tpu").exit_code == 0
    done = run(command[0], folder, other, *command[1:])
    assert done.exit_code == 0, done.output
    assert recorded_layout(other / kept) == recorded_layout(folder / kept) is not None
    assert run("unpack", other, back).exit_code == 0
    for name, x in ARRAYS.items():
        assert (np.load(back / name) == x).all()


def test_one_file_of_a_directory_needs_no_shape(packed: Path, tmp_path: Path) -> None:
    back = tmp_path / "x.npy"
    assert run("unpack", packed / "x.npy", back).exit_code == 0
    assert (np.load(back) == X).all()
    plan_file_unpack(packed / "x.npy").write(back)
    assert (np.load(back) == X).all()
    said = fails("pack", packed / "x.npy", back, "--layout", "tpu")
    assert "x.npy': it is already in tenstorrent\n  unpack it with `tilejit unpack`, or pass --again" in said


def test_a_dry_run_records_nothing(plain: Path, tmp_path: Path) -> None:
    assert run("pack", plain, tmp_path / "out", "--layout", "tpu", "--dry-run").exit_code == 0
    assert not (tmp_path / "out").exists()


def test_every_write_keeps_the_record_up_to_date(plain: Path, packed: Path) -> None:
    assert run("pack", plain / "b.npy", packed / "b.npy", "--layout", "tpu").exit_code == 0
    assert str(recorded_layout(packed / "b.npy")) == str(tilejit.as_layout("tpu", dtype="f32", dims=(30,)))
    plan_file_unpack(packed / "x.npy").write(packed / "x.npy")
    assert recorded_layout(packed / "x.npy") is None
    plan_file_pack(plain / "x.npy", "blis-a", mr=4).write(packed / "new.npy")
    assert str(recorded_layout(packed / "new.npy")) == "f32[20,30]{1,0:T(4,1)}"
    for name in ("b.npy", "ids.npy", "new.npy"):
        plan_file_unpack(packed / name).write(packed / name)
    assert not (packed / LAYOUTS_NAME).exists()
    assert run("pack", plain / "x.npy", packed / "x.npy", "--layout", "tpu").exit_code == 0
    assert not (packed / LAYOUTS_NAME).exists()


def test_writers_of_different_files_keep_each_others_entries(plain: Path, packed: Path) -> None:
    """Each reads the record and replaces it; without a lock, the last one drops the others' entries."""
    file_plan = plan_file_pack(plain / "x.npy", "tpu")
    names = [f"{k}.npy" for k in range(8)]
    before = read_layouts(packed)

    def write(name: str) -> None:
        for _ in range(4):
            file_plan.write(packed / name)

    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(write, names))
    assert {*read_layouts(packed)} == {*before, *names}


def test_plain_arrays_stay_listed_while_the_only_packed_one_is_replaced(tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    plain.mkdir()
    np.save(plain / "x.npy", X)
    np.save(plain / "bias.npy", X[0])
    assert run("pack", plain, packed, "--layout", "{1,0:T(8,128)}").exit_code == 0
    plan_file_pack(plain / "x.npy", "{1,0:T(4,4)}").write(packed / "x.npy")
    assert read_layouts(packed)["bias.npy"] is None


def test_a_failed_write_changes_neither_the_array_nor_its_record(plain: Path, packed: Path) -> None:
    large = plain / "large.npy"
    np.save(large, np.full((4, 4), 100, np.int8))
    before = contents(packed)
    assert run("pack", large, packed / "ids.npy", "--layout", "s4[4,4]{1,0}").exit_code == 1
    assert run("pack", large, packed / "ids.npy", "--layout", "tpu", "-n").exit_code == 1
    with pytest.raises(tilejit.TilejitError, match="exists and is kept"):
        plan_file_pack(large, "tpu").write(packed / "ids.npy", clobber=False)
    assert contents(packed) == before


def test_a_directory_that_fails_halfway_has_correct_records(
    plain: Path, packed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrays are written in the order of their names, so ids.npy is new at that point, and x.npy is old."""
    before, real = contents(packed), plan.Plan.write

    def write(self: Any, path: Path, *args: Any, **more: Any) -> None:
        if path.name == "x.npy":
            raise KeyboardInterrupt
        real(self, path, *args, **more)

    monkeypatch.setattr(plan.Plan, "write", write)
    assert run("pack", plain, packed, "--layout", "{1,0:T(2,4)}").exit_code == 130
    assert str(recorded_layout(packed / "ids.npy")) == "s64[4,16]{1,0:T(2,4)}"
    assert str(recorded_layout(packed / "x.npy")) == "f32[20,30]{1,0:T(32,32)(16,16)}"
    assert contents(packed)["x.npy"] == before["x.npy"]
    assert (
        tilejit.TiledArray.from_buffer(np.load(packed / "ids.npy"), "s64[4,16]{1,0:T(2,4)}").unpack()
    ).sum() == (ARRAYS["ids.npy"].sum())
    for command in ((), ("--resume",)):
        monkeypatch.setattr(plan.Plan, "write", real)
        assert run("pack", plain, packed, "--layout", "{1,0:T(2,4)}", *command).exit_code == 0
        assert str(recorded_layout(packed / "x.npy")) == "f32[20,30]{1,0:T(2,4)}"


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def test_a_link_is_recorded_at_its_place_and_at_its_target(plain: Path, packed: Path) -> None:
    other = packed.with_name("other")
    assert run("pack", plain, other, "--layout", "tpu").exit_code == 0
    (other / "x.npy").unlink()
    (other / "x.npy").symlink_to(packed / "x.npy")
    assert run("pack", plain / "x.npy", other / "x.npy", "--layout", "{0,1}").exit_code == 0
    for folder in (packed, other):
        assert str(recorded_layout(folder / "x.npy")) == "f32[20,30]{0,1}"


def test_links_to_the_record_of_the_input_are_not_written_through(packed: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / LAYOUTS_NAME).symlink_to(packed / LAYOUTS_NAME)
    before = (packed / LAYOUTS_NAME).read_bytes()
    assert "is a link to a file of IN" in fails("unpack", packed, out)
    assert (packed / LAYOUTS_NAME).read_bytes() == before


@pytest.mark.full
@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        "\xff",
        "[" * 100_000,
        '{"version": 1}',
        '{"version": 1, "layouts": []}',
        '{"version": 2, "layouts": {}}',
        '{"version": "' + "x" * 10_000 + '", "layouts": {}}',
        '{"version": 1, "layouts": {"x.npy": ' + "9" * 5000 + "}}",
        '{"version": 1, "layouts": ' + '{"a":' * 50_000 + "1" + "}" * 50_000 + "}",
    ],
    ids=lambda text: text[:30],
)
def test_damaged_records_are_refused(plain: Path, packed: Path, tmp_path: Path, text: str) -> None:
    (packed / LAYOUTS_NAME).write_bytes(text.encode("latin-1"))
    before = {p: p.read_bytes() for p in packed.iterdir()}
    for arguments in (
        ("unpack", packed, tmp_path / "out"),
        ("unpack", packed / "x.npy", tmp_path / "out.npy"),
        ("pack", plain, packed, "--layout", "tpu"),
        ("pack", plain / "x.npy", packed / "x.npy", "--layout", "tpu"),
    ):
        assert "is not a valid record of layouts" in fails(*arguments)
    assert {p: p.read_bytes() for p in packed.iterdir()} == before
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "out.npy").exists()
    shape = "f32[20,30]{1,0:T(32,32)(16,16)}"
    assert run("unpack", packed / "x.npy", tmp_path / "out.npy", "--shape", shape).exit_code == 0


def entry(**changed: Any) -> list[dict[str, Any]]:
    data: dict[str, Any] = tilejit.as_layout("tenstorrent", dtype="f32", dims=(20, 30)).to_json()
    return [{"layout": "tenstorrent", "parameters": {}, "shape": {**data, **changed}}]


@pytest.mark.full
@pytest.mark.parametrize(
    "data",
    [
        3,
        [],
        "f32[20,30]",
        {},
        [{}],
        [3],
        [*entry(), *entry()],
        [{**entry()[0], "layout": 3}],
        [{**entry()[0], "parameters": [3]}],
        [{**entry()[0], "planes": {}}],
        [{**entry()[0], "shape": {"cute_layout": 3}}],
        entry(dimensions=[2**62, 2**62]),
        entry(dimensions=[-1, 30]),
        entry(dimensions=[1] * 100_000),
        entry(dimensions=[40, 40]),
        entry(primitive_type="f64"),
        entry(primitive_type="token"),
        entry(primitive_type=None),
        entry(unknown=1),
    ],
    ids=lambda data: str(data)[:60],
)
def test_wrong_entries_are_refused(plain: Path, packed: Path, tmp_path: Path, data: Any) -> None:
    """By every command that reads the array. Commands on other arrays of the folder ignore them."""
    layouts = {**read_layouts(packed), "x.npy": data}
    (packed / LAYOUTS_NAME).write_text(json.dumps({"version": 1, "layouts": layouts}))
    out = tmp_path / "out"
    for arguments in (("unpack", packed, out), ("relayout", packed, out, "--layout", "tpu")):
        assert "x.npy" in fails(*arguments)
        assert not out.exists()
    assert run("unpack", packed / "ids.npy", tmp_path / "ids.npy").exit_code == 0
    assert (tmp_path / "ids.npy").read_bytes() == (plain / "ids.npy").read_bytes()


def test_an_array_that_changed_after_it_was_recorded_is_refused(packed: Path, tmp_path: Path) -> None:
    np.save(packed / "x.npy", X)
    said = fails("unpack", packed, tmp_path / "out")
    assert f"it has changed since {str(packed / LAYOUTS_NAME)!r} recorded the layout" in said


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_as_a_record_is_refused(packed: Path, tmp_path: Path) -> None:
    (packed / LAYOUTS_NAME).unlink()
    os.mkfifo(packed / LAYOUTS_NAME)
    assert "not a regular file" in fails("unpack", packed, tmp_path / "out")


def test_names_of_any_characters(tmp_path: Path) -> None:
    names = ["ü.npy", "a b\n.npy", "\udcff.npy", '"\\.npy']
    spec = tilejit.as_layout("f32[4]{0}")
    record(tmp_path, dict.fromkeys(names, packings_to_json((Record("tpu", {}, spec),))))
    assert all(recorded_layout(tmp_path / name) == spec for name in names)
    record(tmp_path, dict.fromkeys(names))
    assert not list(tmp_path.iterdir())


def test_paths_in_a_record_are_not_opened(packed: Path, tmp_path: Path) -> None:
    """They are compared with the names in the directory."""
    spec = read_layouts(packed)["x.npy"]
    layouts = {"../plain/x.npy": spec, "/etc/passwd": spec, "gone.npy": spec}
    (packed / LAYOUTS_NAME).write_text(json.dumps({"version": 1, "layouts": layouts}))
    assert open_file(packed / "ids.npy").entries[0].name == "ids"
    said = fails("unpack", packed, tmp_path / "out")
    assert "lists files that are missing: '../plain/x.npy', '/etc/passwd', 'gone.npy'" in said
    assert not (tmp_path / "out").exists()


def rewritten(folder: Path, **entries: Any) -> None:
    """Change entries of a record; `...` removes one."""
    layouts = {**read_layouts(folder), **{f"{name}.npy": data for name, data in entries.items()}}
    kept = {name: data for name, data in layouts.items() if data is not ...}
    (folder / LAYOUTS_NAME).write_text(json.dumps({"version": 1, "layouts": kept}))


@pytest.mark.parametrize("command", [("unpack",), ("relayout", "--layout", "tpu")], ids=lambda c: c[0])
@pytest.mark.parametrize("lost", ["entry", "record"])
def test_a_packed_file_without_an_entry_is_not_taken_for_a_plain_array(
    packed: Path, tmp_path: Path, command: tuple[str, ...], lost: str
) -> None:
    """Nor is a flat array that may be one. Arrays of several dimensions are not packed buffers."""
    out = tmp_path / "out"
    np.save(packed / "two.npy", X)
    if lost == "record":
        (packed / LAYOUTS_NAME).unlink()
    else:
        rewritten(packed, x=..., b=...)
    said = fails(command[0], packed, out, *command[1:])
    names = "'b.npy', 'ids.npy', 'x.npy'" if lost == "record" else "'b.npy', 'x.npy'"
    assert f"no layout is recorded for {names} in " in said
    assert '"x.npy": null' in said
    assert not out.exists()
    if lost == "entry":
        assert run(command[0], packed, out, *command[1:], "--tensor", "ids").exit_code == 0
        assert not {"x.npy", "b.npy"} & {*read_layouts(out)}
        assert (out / "x.npy").read_bytes() == (packed / "x.npy").read_bytes()
        shown = run("show", packed)
        assert "tilejit-layouts.json does not list b.npy, x.npy" in shown.stderr


def test_a_renamed_packed_file_is_not_packed_again(packed: Path, tmp_path: Path) -> None:
    renamed, out = packed / "z.npy", tmp_path / "out"
    (packed / "x.npy").rename(renamed)
    for layout in ("tenstorrent", "{0:T(128)}"):
        said = fails("pack", renamed, out.with_suffix(".npy"), "--layout", layout)
        assert f"'{renamed}': it may be packed, because {LAYOUTS_NAME} beside it does not list it\n" in said
        with pytest.raises(tilejit.LayoutError, match="may be packed"):
            plan_file_pack(renamed, layout)
    (packed / "ids.npy").unlink()
    rewritten(packed, x=..., ids=...)
    assert "no layout is recorded for 'z.npy' in" in fails("pack", packed, out, "--layout", "{0:T(128)}")
    assert "may be packed" in fails("pack", packed, out, "--layout", "{0:T(128)}", "--tensor", "z")
    assert run("pack", packed, out, "--layout", "{0:T(128)}", "--tensor", "b").exit_code == 0
    rewritten(packed, z=None)
    assert run("pack", renamed, out.with_suffix(".npy"), "--layout", "{0:T(128)}").exit_code == 0


def test_a_plain_array_is_listed_by_hand(plain: Path, packed: Path, tmp_path: Path) -> None:
    np.save(packed / "more.npy", X[0])
    assert "'more.npy'" in fails("unpack", packed, tmp_path / "out")
    rewritten(packed, more=None)
    assert run("unpack", packed, tmp_path / "out").exit_code == 0
    assert (tmp_path / "out" / "more.npy").read_bytes() == (packed / "more.npy").read_bytes()


@pytest.mark.parametrize("command", [("unpack",), ("relayout", "--layout", "tpu")], ids=lambda c: c[0])
def test_missing_files_are_named(packed: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    (packed / "x.npy").unlink()
    (packed / "b.npy").unlink()
    said = fails(command[0], packed, tmp_path / "out", *command[1:])
    assert "tilejit-layouts.json' lists files that are missing: 'b.npy', 'x.npy'" in said
    assert not (tmp_path / "out").exists()
    assert "lists files that are missing: b.npy, x.npy" in run("show", packed).stderr
    assert "lists files that are missing" not in run("show", packed / "ids.npy").stderr
    rewritten(packed, y=None, z=None)
    said = fails(command[0], packed, tmp_path / "out", *command[1:])
    assert "missing: 'b.npy', 'x.npy', 'y.npy' and 1 more\n" in said


@pytest.mark.full
def test_flat_arrays_beside_packed_checkpoints_are_restored(plain: Path, tmp_path: Path) -> None:
    """The layout fits no array, so the record lists only plain ones."""
    for name in ("x.npy", "ids.npy"):
        (plain / name).unlink()
    save_model(plain / "model.safetensors")
    packed, other, back = (tmp_path / name for name in ("packed", "other", "back"))
    assert run("pack", plain, packed, "--layout", "tenstorrent").exit_code == 0
    assert read_layouts(packed) == {"b.npy": None}
    assert run("relayout", packed, other, "--layout", "tpu").exit_code == 0
    assert run("unpack", other, back).exit_code == 0
    assert contents(back)["b.npy"] == contents(plain)["b.npy"]
    assert not (back / LAYOUTS_NAME).exists()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 100_000, "it is nested too deeply"),
        ('{"version": 1, "layouts": {"x.npy": null, "x.npy": {}}}', "it names 'x.npy' twice"),
        ('{"version": 1,\n "layouts": {,}}', "line 2 column 14"),
        ('{"version": 1, "layouts": NaN}', "NaN is not valid JSON"),
    ],
    ids=lambda text: text[:30],
)
def test_damaged_records_are_explained(packed: Path, tmp_path: Path, text: str, why: str) -> None:
    (packed / LAYOUTS_NAME).write_text(text)
    said = fails("unpack", packed, tmp_path / "out").replace("\n    ", " ")
    assert why in said
    assert "remove it, and pass layouts with --shape" in said
    assert "recursion" not in said


def test_deep_entries_are_explained(packed: Path, tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(900):
        deep = [deep]
    rewritten(packed, x=entry(dimensions=deep))
    said = fails("unpack", packed / "x.npy", tmp_path / "out.npy")
    assert "the entry of 'x.npy': packings[0].shape: " in said
    assert "or remove it and unpack the file with --shape" in said
    assert "recursion" not in said
