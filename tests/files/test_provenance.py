"""What packed files say about themselves: records of every kind of file, and packing twice."""

from __future__ import annotations

import io
import json
import os
import shutil
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import tilejit
from tests.cli.running import fails, in_shell, run
from tests.files.containers import save_model
from tilejit.files import whole_file
from tilejit.files.check import check_file
from tilejit.files.conversion import plan_file_pack, plan_file_relayout, plan_file_unpack
from tilejit.files.file_types import open_file
from tilejit.files.packings import packings_from_json, packings_to_json
from tilejit.files.provenance import known_of
from tilejit.files.sidecar import SUFFIX, sidecar_of

SCALES = np.arange(200 * 20).reshape(200, 20).astype(np.uint8)
FORMAT = "nvfp4-scales"
KINDS = ("x.npy", "x.bin", "x.pt", "x.safetensors")


def saved(path: Path, values: np.ndarray[Any, Any]) -> Path:
    if path.suffix == ".safetensors":
        save_file({"w": values}, path)
    else:
        np.save(path, values)
    return path


def packed(folder: Path, name: str, values: np.ndarray[Any, Any] = SCALES, *layout: str) -> Path:
    """A file of that name, packed on the command line; its source is removed."""
    source = saved(folder / ("source.safetensors" if name.endswith(".safetensors") else "source.npy"), values)
    raw = ("--raw",) if name.endswith(".pt") else ()
    done = run("pack", source, folder / name, "--layout", *(layout or (FORMAT,)), *raw)
    assert done.exit_code == 0, done.output
    source.unlink()
    return folder / name


def unpacked(path: Path) -> np.ndarray[Any, Any]:
    """The array of a packed file, unpacked on the command line without a shape."""
    other = path.with_name("restored.safetensors" if path.suffix == ".safetensors" else "restored.npy")
    done = run("unpack", path, other, *(("--raw",) if path.suffix == ".pt" else ()))
    assert done.exit_code == 0, done.output
    found = load_file(other)["w"] if other.suffix == ".safetensors" else np.load(other)
    other.unlink()
    return np.asarray(found)


def record_in(path: Path) -> list[dict[str, Any]]:
    """The record of a packed file, as other programs read it."""
    if path.suffix == ".safetensors":
        raw = path.read_bytes()
        header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
        return list(json.loads(header["__metadata__"]["tilejit.w"]))
    found = json.loads(Path(f"{path}{SUFFIX}").read_text())
    assert set(found) == {"version", "packings"}
    return list(found["packings"])


@pytest.mark.parametrize("name", KINDS)
def test_a_packed_file_says_its_layout(tmp_path: Path, name: str) -> None:
    path = packed(tmp_path, name)
    spec = tilejit.as_layout(FORMAT, dtype="uint8", dims=SCALES.shape)
    assert record_in(path) == [{"layout": FORMAT, "parameters": {}, "shape": spec.to_json()}]
    assert np.array_equal(unpacked(path), SCALES)
    assert sorted(os.listdir(tmp_path)) == sorted({name} | {p.name for p in tmp_path.glob("*" + SUFFIX)})


@pytest.mark.parametrize("name", KINDS)
def test_what_says_that_it_is_packed_is_not_packed_again(tmp_path: Path, name: str) -> None:
    path = packed(tmp_path, name)
    out, raw = path.with_name(f"out{path.suffix}"), (("--raw",) if name == "x.pt" else ())
    before = {p: p.read_bytes() for p in tmp_path.iterdir()}
    for layout in (FORMAT, "{0:T(4)}", "tpu"):
        said = fails("pack", path, out, "--layout", layout, *raw)
        assert f"it is already in {FORMAT}\n" in said
        assert "`tilejit unpack`" in said
        assert "--again" in said
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before


@pytest.mark.full
@pytest.mark.parametrize("name", KINDS)
def test_files_packed_several_times_are_unpacked_one_by_one(tmp_path: Path, name: str) -> None:
    path, raw = packed(tmp_path, name), (("--raw",) if name == "x.pt" else ())
    twice, thrice = (path.with_name(f"{word}{path.suffix}") for word in ("twice", "thrice"))
    for source, target, layout in ((path, twice, ("tpu",)), (twice, thrice, ("(a b) -> b a", "b=5"))):
        assert run("pack", source, target, "--layout", *layout, "--again", *raw).exit_code == 0
    layouts = [(one["layout"], one["parameters"]) for one in record_in(thrice)]
    assert layouts == [(FORMAT, {}), ("tpu", {}), ("(a b) -> b a", {"b": 5})]
    assert "it is already in (a b) -> b a b=5" in fails("pack", thrice, path, "--layout", "tpu", *raw)
    other = path.with_name(f"other{path.suffix}")
    done = run("unpack", thrice, other, *raw)
    assert "still packed, because pack was applied more than once" in done.stderr
    assert other.read_bytes() == twice.read_bytes()
    assert record_in(other) == record_in(twice)
    assert run("unpack", twice, other, *raw).exit_code == 0
    assert other.read_bytes() == path.read_bytes()
    assert record_in(other) == record_in(path)
    assert np.array_equal(unpacked(other), SCALES)


@pytest.mark.parametrize("name", KINDS)
def test_scales_are_swizzled_twice_with_their_dimensions(tmp_path: Path, name: str) -> None:
    path, raw = packed(tmp_path, name), (("--raw",) if name == "x.pt" else ())
    twice, other = (path.with_name(f"{word}{path.suffix}") for word in ("twice", "other"))
    again = ("pack", path, twice, "--layout", FORMAT, "--again", *raw)
    assert "write their dimensions, e.g. --dims" in fails(*again).replace("\n    ", " ")
    assert "its buffer has 5120 elements, but dims [256, 21] have 5376" in fails(*again, "--dims", "256,21")
    assert run(*again, "--dims", "256,20").exit_code == 0
    assert raw or run("check", twice).exit_code == 0
    assert [one["shape"]["dimensions"] for one in record_in(twice)] == [[200, 20], [256, 20]]
    assert run("unpack", twice, other, *raw).exit_code == 0
    assert other.read_bytes() == path.read_bytes()
    assert record_in(other) == record_in(path)
    assert np.array_equal(unpacked(other), SCALES)


@pytest.mark.full
def test_a_relayout_replaces_the_last_packing(tmp_path: Path) -> None:
    path = packed(tmp_path, "x.npy")
    twice, other = tmp_path / "twice.npy", tmp_path / "other.npy"
    plan_file_pack(path, "tpu", again=True).write(twice)
    plan_file_relayout(twice, "(a b) -> b a", b=4).write(other)
    assert [one["layout"] for one in record_in(other)] == [FORMAT, "(a b) -> b a"]
    plan_file_unpack(other).write(twice)
    assert twice.read_bytes() == path.read_bytes()


@pytest.mark.full
@pytest.mark.parametrize(
    ("dtype", "layout"),
    [
        ("bfloat16", ("tpu",)),
        ("float8_e4m3fn", ("tpu",)),
        ("int4", ("{1,0:T(8,128)E(4)}",)),
        ("bool", ("pred[33,20]{1,0:E(1)}",)),
        ("complex128", ("(33,20):(20,1)",)),
    ],
)
def test_elements_without_a_numpy_name_are_packed_again(
    tmp_path: Path, dtype: str, layout: tuple[str, ...]
) -> None:
    """NumPy stores them as raw bytes, and the record has their type."""
    x = (np.arange(33 * 20).reshape(33, 20) % 2).astype(getattr(ml_dtypes, dtype, dtype))
    source, path, twice, once = (tmp_path / f"{name}.npy" for name in ("source", "x", "twice", "once"))
    np.save(source, x.astype(np.int8) if dtype == "int4" else x)
    given = {"int4": "s4", "bool": None, "complex128": None}.get(dtype, dtype)
    plan_file_pack(source, *layout, dtype=given).write(path)
    plan_file_pack(path, "tpu", again=True).write(twice)
    plan_file_unpack(twice).write(once)
    assert once.read_bytes() == path.read_bytes()
    plan_file_unpack(once).write(twice)
    assert twice.read_bytes() == source.read_bytes()
    assert not sidecar_of(twice).exists()


@pytest.mark.full
def test_a_buffer_that_is_packed_again_keeps_its_dtype(tmp_path: Path) -> None:
    path = packed(tmp_path, "x.npy", SCALES.astype(np.float32), "{1,0:T(8,128)}")
    said = fails("pack", path, tmp_path / "y.npy", "--layout", "tpu", "--again", "--dtype", "bf16")
    assert "a buffer that is packed again keeps its dtype: expected f32, got bf16" in said
    plan_file_pack(path, "tpu", again=True).write(tmp_path / "y.npy")
    said = fails("unpack", tmp_path / "y.npy", tmp_path / "z.npy", "--dtype", "bf16")
    assert "keeps its dtype: expected f32, got bf16" in said
    assert run("unpack", path, tmp_path / "z.npy", "--dtype", "bf16").exit_code == 0


def test_only_some_tensors_of_a_file_are_packed(tmp_path: Path) -> None:
    source, some, both = (tmp_path / f"{name}.safetensors" for name in ("source", "some", "both"))
    save_model(source)
    assert run("pack", source, some, "--layout", "tpu", "--tensor", "weight").exit_code == 0
    said = fails("pack", some, both, "--layout", "tenstorrent", "tile=16")
    assert "tensor 'weight': it is already in tpu\n" in said
    assert "select others with --tensor" in said
    arguments = ("pack", some, both, "--layout", "tenstorrent", "tile=16")
    assert run(*arguments, "--tensor", "ids").exit_code == 0
    packings = {e.name: open_file(both).packings(e) for e in open_file(both).entries}
    assert [str(one) for one in packings["weight"]] == ["tpu"]
    assert [str(one) for one in packings["ids"]] == ["tenstorrent tile=16"]
    assert packings["bias"] == ()
    assert run("unpack", both, some).exit_code == 0
    assert some.read_bytes() == source.read_bytes()


@pytest.mark.full
def test_rules_and_orders_are_recorded_as_they_were_written(tmp_path: Path) -> None:
    source, target, rules = tmp_path / "m.safetensors", tmp_path / "p.safetensors", tmp_path / "r.toml"
    save_file({"w": SCALES}, source)
    rules.write_text(
        "[[rule]]\ntensors = 'w'\nlayout = 'tenstorrent'\nparameters = { tile = [16, 32], face = 8 }\n"
    )
    assert run("pack", source, target, "--rules", rules).exit_code == 0
    (one,) = record_in(target)
    assert (one["layout"], one["parameters"]) == ("tenstorrent", {"tile": [16, 32], "face": 8})
    assert "already in tenstorrent tile=16,32 face=8" in fails("pack", target, source, "--layout", "tpu")
    assert run("pack", source, target, "--layout", "C").exit_code == 0
    assert record_in(target)[0]["layout"] == "C"


@pytest.mark.full
def test_layouts_of_any_python_type_are_recorded(tmp_path: Path) -> None:
    source, target = saved(tmp_path / "x.npy", SCALES), tmp_path / "y.npy"
    for layout, text in (
        (tilejit.as_layout(FORMAT, dtype="uint8", dims=SCALES.shape), "u8[200,20]{1,0:T(32,4)(4,1,1,4)}"),
        (tilejit.Layout((0, 1)), "{0,1}"),
        (tilejit.cute.parse("(200,20):(20,1)"), "(200,20):(20,1)"),
    ):
        plan_file_pack(source, layout).write(target)
        assert record_in(target)[0]["layout"] == text
        plan_file_unpack(target).write(target)
        assert np.array_equal(np.load(target), SCALES)
    plan_file_pack(source, "blis-a", mr=np.int64(8)).write(target)
    assert record_in(target)[0]["parameters"] == {"mr": 8}


def test_a_plain_file_leaves_no_record(tmp_path: Path) -> None:
    source, target = saved(tmp_path / "x.npy", SCALES), tmp_path / "y.npy"
    plan_file_pack(source, "tpu").write(target)
    assert sidecar_of(target).exists()
    plan_file_unpack(target).write(target)
    assert sorted(os.listdir(tmp_path)) == ["x.npy", "y.npy"]
    plan = plan_file_pack(source, "tpu")
    plan.write(io.BytesIO())
    plan.write(target, recorded=False)
    assert sorted(os.listdir(tmp_path)) == ["x.npy", "y.npy"]


@pytest.mark.full
def test_a_directory_takes_the_records_of_its_files(tmp_path: Path) -> None:
    """Single records and that of the directory never both describe a file."""
    plain, folder, back = tmp_path / "plain", tmp_path / "folder", tmp_path / "back"
    plain.mkdir()
    folder.mkdir()
    saved(plain / "x.npy", SCALES)
    plan_file_pack(plain / "x.npy", "blis-a", mr=8).write(folder / "x.npy")
    assert sidecar_of(folder / "x.npy").exists()
    assert run("unpack", folder, back).exit_code == 0
    assert (back / "x.npy").read_bytes() == (plain / "x.npy").read_bytes()
    assert "already in blis-a mr=8" in fails("pack", folder, tmp_path / "other", "--layout", "tpu")
    assert run("pack", plain, folder, "--layout", "tpu").exit_code == 0
    assert sorted(os.listdir(folder)) == ["tilejit-layouts.json", "x.npy"]
    plan_file_pack(plain / "x.npy", "blis-a", mr=8).write(folder / "x.npy")
    assert sorted(os.listdir(folder)) == ["tilejit-layouts.json", "x.npy"]
    assert str(known_of(folder / "x.npy").packings[0]) == "blis-a mr=8"


def test_records_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    plain, folder = tmp_path / "plain", tmp_path / "folder"
    plain.mkdir()
    saved(plain / "x.npy", SCALES)
    assert run("pack", plain, folder, "--layout", "tpu").exit_code == 0
    plan_file_pack(plain / "x.npy", "blis-a", mr=8).write(tmp_path / "x.npy")
    os.rename(sidecar_of(tmp_path / "x.npy"), sidecar_of(folder / "x.npy"))
    said = fails("unpack", folder / "x.npy", tmp_path / "y.npy")
    assert "contradict each other about" in said
    assert "remove the one that is wrong" in said


@pytest.mark.parametrize("name", ["x.npy", "x.bin"])
def test_a_renamed_file_is_recognized_by_the_record_left_behind(tmp_path: Path, name: str) -> None:
    path = packed(tmp_path, name)
    renamed = path.rename(path.with_name(f"renamed{path.suffix}"))
    out = tmp_path / "out.npy"
    for command in (("pack", "--layout", "{0:T(4)}"), ("unpack",)):
        said = fails(command[0], renamed, out, *command[1:]).replace("\n    ", " ")
        assert f"it may be packed in {FORMAT}, because the record '{name}{SUFFIX}' beside it lacks" in said
        assert f"rename the record to 'renamed{path.suffix}{SUFFIX}' too" in said
    if name == "x.npy":
        for command in (("pack", "--layout", "{0:T(4)}"), ("unpack",)):
            said = fails(command[0], tmp_path, tmp_path.with_name("out"), *command[1:])
            assert f"renamed.npy': it may be packed in {FORMAT}" in said.replace("\n    ", " ")
    np.save(tmp_path / "other.npy", SCALES.reshape(-1))
    assert run("pack", tmp_path / "other.npy", out, "--layout", "{0:T(4)}").exit_code == 0
    os.rename(sidecar_of(path), sidecar_of(renamed))
    assert np.array_equal(unpacked(renamed), SCALES)


@pytest.mark.full
def test_records_follow_links(tmp_path: Path) -> None:
    """A link may lead to the file, as may one beside a linked record."""
    path, link, out = packed(tmp_path, "x.npy"), tmp_path / "links" / "y.npy", tmp_path / "out.npy"
    link.parent.mkdir()
    link.symlink_to(path)
    assert np.array_equal(unpacked(link), SCALES)
    assert f"already in {FORMAT}" in fails("pack", link, out, "--layout", "tpu")
    plan_file_unpack(link).write(out)
    plan_file_pack(out, "blis-a", mr=4).write(link)
    assert str(known_of(path).packings[0]) == "blis-a mr=4"
    blob = tmp_path / "blobs"
    blob.mkdir()
    os.rename(path, blob / "1")
    os.rename(sidecar_of(path), blob / "2")
    link.unlink()
    link.symlink_to(blob / "1")
    sidecar_of(link).symlink_to(blob / "2")
    assert np.array_equal(unpacked(link), SCALES)


@pytest.mark.parametrize("resume", [False, True])
def test_a_failed_write_keeps_the_file_and_its_record(
    tmp_path: Path, resume: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, source = packed(tmp_path, "x.npy"), saved(tmp_path / "s.npy", SCALES)
    before = {p: p.read_bytes() for p in (path, sidecar_of(path))}
    real = os.replace

    def full(old: Any, new: Any) -> None:
        if Path(new) == path:
            assert not sidecar_of(path).exists(), "a record of older bytes beside a new file"
            raise OSError(28, "No space left on device", str(new))
        real(old, new)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        plan_file_pack(source, "blis-a", mr=4).write(path, resume=resume)
    assert {p: p.read_bytes() for p in before} == before
    monkeypatch.setattr(os, "replace", real)
    plan_file_pack(source, "blis-a", mr=4).write(path, resume=resume)
    assert str(known_of(path).packings[0]) == "blis-a mr=4"


def test_a_record_exists_until_its_file_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is killed while it writes a large file loses nothing."""
    path, source = packed(tmp_path, "x.npy"), saved(tmp_path / "s.npy", SCALES)
    found = []
    real = os.fsync

    def synced(handle: int) -> None:
        found.append(sidecar_of(path).exists())
        real(handle)

    monkeypatch.setattr(whole_file.os, "fsync", synced)
    plan_file_pack(source, "blis-a", mr=4).write(path)
    assert found[0]


def test_names_that_leave_no_room_for_a_record(tmp_path: Path) -> None:
    """Nothing is written that cannot be recorded. Plain files may have such names."""
    source, path = saved(tmp_path / "s.npy", SCALES), tmp_path / ("x" * 251 + ".npy")
    assert "File name too long" in fails("pack", source, path, "--layout", "tpu")
    assert os.listdir(tmp_path) == ["s.npy"]
    np.save(path, SCALES)
    assert run("pack", path, tmp_path / "y.npy", "--layout", "tpu").exit_code == 0
    assert run("unpack", tmp_path / "y.npy", path).exit_code == 0
    assert path.read_bytes() == source.read_bytes()


def test_no_clobber_keeps_the_record_of_a_renamed_file(tmp_path: Path) -> None:
    path, source = packed(tmp_path, "x.npy"), saved(tmp_path / "s.npy", SCALES)
    path.rename(tmp_path / "renamed.npy")
    before = sidecar_of(path).read_bytes()
    assert "--no-clobber" in fails("pack", source, path, "--layout", "blis-a", "-n")
    assert sidecar_of(path).read_bytes() == before
    assert not path.exists()


@pytest.mark.parametrize("when", ["before", "after"])
def test_ctrl_c_around_the_replacement(tmp_path: Path, when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record is that of the file, old or new."""
    path, source = packed(tmp_path, "x.npy"), saved(tmp_path / "s.npy", SCALES)
    real = os.replace

    def interrupted(old: Any, new: Any) -> None:
        if Path(new) == path:
            if when == "after":
                real(old, new)
            raise KeyboardInterrupt
        real(old, new)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        plan_file_pack(source, "blis-a", mr=4).write(path)
    monkeypatch.setattr(os, "replace", real)
    assert str(known_of(path).packings[0]) == (FORMAT if when == "before" else "blis-a mr=4")
    assert np.array_equal(unpacked(path), SCALES)


@pytest.mark.parametrize("name", ["x.npy", "x.bin"])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "expected an object with version and packings"),
        ('{"version": 1, "version": 1}', "names 'version' twice"),
        ('{"version": 9, "packings": []}', "version: expected 1, got '9'"),
        ('{"version": 1, "packings": []}', "packings: expected a list of 1 to 100 packings, got 0 packings"),
        ('{"version": 1, "packings": {}}', "packings: expected a list of 1 to 100 packings, got an object"),
        ('{"version": 1, "packings": [3]}', "packings[0]: expected an object with layout"),
        ('{"version": 1, "packings": [{"layout": 3}]}', "packings[0].parameters: the field is missing"),
        ('{"version": 1, "packings": [{"planes": 3}]}', "packings[0].planes: unknown field"),
    ],
    ids=lambda text: text[:40],
)
def test_damaged_records_name_the_file_and_the_field(
    tmp_path: Path, name: str, text: str, words: str
) -> None:
    path = packed(tmp_path, name)
    sidecar_of(path).write_text(text)
    for command in (("unpack",), ("pack", "--layout", "tpu"), ("relayout", "--layout", "tpu")):
        said = fails(command[0], path, tmp_path / "out.npy", *command[1:]).replace("\n    ", " ")
        assert words in said
        assert repr(str(sidecar_of(path))) in said
        assert "restore it, or remove it and unpack the file with --shape" in said
    shape = "u8[200,20]{1,0:T(32,4)(4,1,1,4)}"
    assert run("unpack", path, tmp_path / "out.npy", "--shape", shape).exit_code == 0
    assert np.array_equal(np.load(tmp_path / "out.npy"), SCALES)
    plan_file_pack(tmp_path / "out.npy", "tpu").write(path)
    assert str(known_of(path).packings[0]) == "tpu"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"layout": None}, "packings[0].layout: expected a string, got None"),
        ({"parameters": "x"}, "packings[0].parameters: expected an object, got 'x'"),
        ({"shape": None}, "packings[0].shape: expected a dict"),
        ({"shape": {"primitive_type": "u8"}}, "packings[0].shape: the field 'dimensions' is missing"),
        ({"shape": {"primitive_type": "u8", "dimensions": [-1]}}, "packings[0].shape: "),
        ({"shape": {"primitive_type": "token", "dimensions": []}}, "packings[0].shape: "),
        (
            {"shape": {"primitive_type": "u8", "dimensions": [3]}},
            "expected U8[3] for its layout, got U8[5120]",
        ),
        ({"shape": {"primitive_type": "f32", "dimensions": [1280]}}, "expected F32[1280] for its layout"),
    ],
    ids=str,
)
def test_damaged_metadata_names_the_tensor_and_the_field(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    path = packed(tmp_path, "x.safetensors")
    (one,) = record_in(path)
    rewrite(path, [{**one, **change}])
    said = fails("unpack", path, tmp_path / "y.safetensors").replace("\n    ", " ")
    assert "tensor 'w': " in said
    assert words in said
    assert "restore it, or pack its source again" in said or "the file was changed" in said
    if "packings" in words:
        assert f"the record 'tilejit.w' in the metadata of {str(path)!r}: packings[0]." in said


def rewrite(path: Path, record: Any) -> None:
    """Replace the record in the metadata of a safetensors file."""
    raw = path.read_bytes()
    size = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:size])
    header["__metadata__"]["tilejit.w"] = record if isinstance(record, str) else json.dumps(record)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + raw[size:])


@pytest.mark.parametrize(
    ("layout", "says"),
    [
        ("nope-format", "the recorded layout is not verified: unknown format 'nope-format'"),
        ("tpu", "the record contradicts itself: tpu is u8[200,20]"),
    ],
)
def test_a_record_must_agree_with_itself(tmp_path: Path, layout: str, says: str) -> None:
    path = packed(tmp_path, "x.safetensors")
    (one,) = record_in(path)
    assert check_file(path).problems == ()
    rewrite(path, [one | {"layout": layout}])
    (problem,) = check_file(path).problems
    assert says in problem.text
    assert problem.tensor == "w"
    assert run("check", path).exit_code == 1


@pytest.mark.parametrize(
    ("layout", "says"),
    [
        ("gptq", "it packs values into buffer in Python, tilejit.pack takes the array of values"),
        ("ggml-q4_0", "packs codes, d into buffer in Python, tilejit.pack takes a mapping of codes, d"),
    ],
)
def test_a_format_of_planes_says_what_it_takes(tmp_path: Path, layout: str, says: str) -> None:
    path = saved(tmp_path / "x.npy", SCALES)
    parameters = ("bits=3",) if layout == "gptq" else ()
    said = fails("pack", path, tmp_path / "y.npy", "--layout", layout, *parameters)
    assert says in " ".join(said.split())


def test_packings_must_fit_each_other(tmp_path: Path) -> None:
    path = packed(tmp_path, "x.safetensors")
    (one,) = record_in(path)
    rewrite(path, [one, one])
    said = fails("unpack", path, tmp_path / "y.safetensors").replace("\n    ", " ")
    assert "packings[1].shape: expected the 5120 bytes of the packing before, got u8[200,20]" in said


def test_a_truncated_file_differs_from_its_record(tmp_path: Path) -> None:
    path = packed(tmp_path, "x.bin")
    path.write_bytes(path.read_bytes()[:-3])
    said = fails("unpack", path, tmp_path / "y.npy").replace("\n    ", " ")
    assert "expected 5120 bytes for u8[200,20]" in said
    assert f"it has changed since {str(sidecar_of(path))!r} recorded the layout" in said


def test_a_shape_from_the_caller_replaces_the_record(tmp_path: Path) -> None:
    """If both agree, the record also knows the packings before."""
    path, out = packed(tmp_path, "x.npy"), tmp_path / "out.npy"
    plan_file_unpack(open_file(path, shape="u8[5120]{0}")).write(out)
    assert np.array_equal(np.load(out), np.load(path))
    assert not sidecar_of(out).exists()
    plan_file_pack(path, "(a b) -> b a", again=True, b=4).write(out)
    shape = "u8[5120]{0:T(1280,4)}"
    given = open_file(out, shape=known_of(out).packings[-1].spec)
    assert given.packings(given.entries[0]) == known_of(out).packings, shape


def test_redirected_files_are_found_with_their_records(tmp_path: Path) -> None:
    """Standard input may be a file, whose name the system knows."""
    path = packed(tmp_path, "x.npy")
    handle = os.open(path, os.O_RDONLY)
    try:
        name = f"/proc/self/fd/{handle}"
        if not os.path.exists(name):
            pytest.skip("the system does not name open files")
        assert known_of(name).packings == known_of(path).packings
    finally:
        os.close(handle)


@pytest.mark.full
@pytest.mark.skipif(not shutil.which("sh"), reason="no shell here")
def test_pipes(tmp_path: Path) -> None:
    """A .npy file in a pipe has no record, so pack prints the shape. Tensors keep theirs."""
    path = packed(tmp_path, "x.npy")
    for command in (
        "unpack - a.npy < x.npy",
        "pack a.npy - --layout tpu -q > p.npy",
        "unpack - b.npy < p.npy",
    ):
        done = in_shell(f"tilejit {command}", tmp_path)
        assert (done.returncode == 0) == ("b.npy" not in command), done.stderr
    assert np.array_equal(np.load(tmp_path / "a.npy"), SCALES)
    assert "pass the layout with --shape" in done.stderr
    assert f"already in {FORMAT}" in in_shell("tilejit pack - b.npy --layout tpu < x.npy", tmp_path).stderr
    done = in_shell("tilejit pack a.npy - --layout tpu > p.npy", tmp_path)
    assert (
        "unpack it with: tilejit unpack - unpacked.npy --shape 'u8[200,20]{0,1:T(8,128)(4,1)}'" in done.stderr
    )
    saved(tmp_path / "m.safetensors", SCALES)
    line = f"tilejit pack - - -q --layout {FORMAT} < m.safetensors | tilejit unpack - - -q > n.safetensors"
    assert in_shell(line, tmp_path).returncode == 0
    assert (tmp_path / "n.safetensors").read_bytes() == (tmp_path / "m.safetensors").read_bytes()
    assert known_of(path).packings


def test_records_in_json_are_read_back(tmp_path: Path) -> None:
    path = packed(tmp_path, "x.npy", SCALES.astype(np.complex64), "(200,20):(20,1)")
    packings = known_of(path).packings
    assert packings_from_json(json.loads(json.dumps(packings_to_json(packings))), "x", "y") == packings


def test_show_reads_raw_bytes_with_a_record(tmp_path: Path) -> None:
    path = packed(tmp_path, "x.bin")
    assert run("show", path).stdout.endswith("1 tensor, 1 packed, 5.0 KiB, 21.9% padding\n")
    path.unlink()
    assert run("show", path).exit_code == 2
