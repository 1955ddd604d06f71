"""Files compared with what they record: padding slot by slot, sizes, metadata, files of a directory."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import tilejit
from tests.cli.running import run
from tests.files.containers import save_model
from tests.files.test_provenance import record_in, rewrite
from tests.tools.extent import few_by_default
from tilejit.files import padding, windows
from tilejit.files.check import Problem, check_file
from tilejit.files.check_directory import check_directory
from tilejit.files.conversion import open_file, plan_file_pack, plan_file_unpack
from tilejit.files.recorded import LAYOUTS_NAME
from tilejit.files.shards import INDEX_NAME
from tilejit.files.sidecar import sidecar_of

LAYOUTS = {
    "f32[70,90]{1,0:T(8,128)}": "float32",
    "f32[70,90]{0,1:T(4,4)}": "float32",
    "bf16[70,90]{1,0:T(8,128)(2,1)}": "bfloat16",
    "f8e8m0fnu[70,90]{1,0:T(128,4)}": "float8_e8m0fnu",
    "s4[70,90]{1,0:T(8,128)E(4)}": "int4",
    "s4[71,5]{1,0:E(4)}": "int4",
    "u2[70,90]{0,1:T(3,8)E(2)}": "uint2",
    "pred[70,90]{0,1:T(16,64)E(1)}": "bool",
    "pred[70,90]{1,0:T(8,128)}": "bool",
    "c64[70,9]{1,0:T(8,16)}": "complex64",
    "f32[70,90] (70,90):(1,128)": "float32",
    "f32[70,90] Sw<3,0,3> o 0 o (128,128):(128,1)": "float32",
    "f32[]{:L(16)}": "float32",
    "f32[0,5]{1,0:T(8,128)}": "float32",
}


def packed(folder: Path, layout: str, name: str = "x.npy", seed: int = 5) -> tuple[Path, Any]:
    """A packed file of random elements, and its layout."""
    spec = tilejit.as_layout(layout)
    rng = np.random.default_rng(seed)
    size = max(1, int(np.prod(spec.dimensions)) * spec.dtype.itemsize)
    raw = rng.integers(0, 256, size, np.uint8)
    if spec.primitive_type in ("pred", "s4", "u2"):
        raw = raw & 1
    values = raw[: int(np.prod(spec.dimensions)) * spec.dtype.itemsize].view(spec.dtype)
    source = folder / "source.npy"
    array = values.reshape(spec.dimensions)
    stored = array.view(np.uint8) if spec.dtype.itemsize == 1 and array.ndim else array
    held = spec.element.byte_dtype
    if held is not None:
        array = stored.view(held) if array.ndim else array.astype(held)
    np.save(source, array)
    plan_file_pack(source, layout).write(folder / name)
    source.unlink()
    return folder / name, spec


def padding_of(spec: Any) -> np.ndarray[Any, Any]:
    """The slots that hold no element, by the layout's own map."""
    slots = np.arange(spec.physical_size)
    if not slots.size:
        return slots
    if not spec.dimensions:
        return slots[1:]
    return np.asarray(slots[np.asarray(tilejit.multi_index(spec, slots)[0]) < 0])


@pytest.fixture(params=[None, 3000], ids=["whole", "pieces"])
def _cut(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Buffers checked at once, and in parts of about that many bytes through small windows."""
    if request.param is not None:
        monkeypatch.setattr(padding, "MOST_BYTES", request.param)
        monkeypatch.setattr(padding, "BLOCK_BYTES", 256)
        monkeypatch.setattr(windows, "WINDOW_BYTES", 2 * request.param)


@pytest.mark.usefixtures("_cut")
@pytest.mark.parametrize("layout", few_by_default([*LAYOUTS], 1))
def test_every_changed_padding_slot_is_counted(tmp_path: Path, layout: str) -> None:
    path, spec = packed(tmp_path, layout)
    slots = padding_of(spec)
    checked = check_file(path)
    assert checked.problems == ()
    assert (checked.tensors, checked.packed, checked.padding_slots) == (1, 1, len(slots))
    rng = np.random.default_rng(1)
    for count in {min(n, len(slots)) for n in (1, 2, 17)} - {0}:
        chosen = np.sort(rng.choice(slots, count, replace=False))
        whole = path.read_bytes()
        data = bytearray(whole)
        start = len(whole) - spec.size_in_bytes
        for slot in chosen:
            bit = slot * spec.bits
            data[start + bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(data)
        (problem,) = check_file(path).problems
        assert problem.padding == padding.Padding(len(slots), count, chosen[0])
        assert problem.byte == start + chosen[0] * spec.bits // 8
        assert f"{count} of {len(slots)} padding slots are not 0; the first is slot {chosen[0]}, byte " in (
            problem.text
        )
        path.write_bytes(whole)
    assert check_file(path).problems == ()


@pytest.mark.usefixtures("_cut")
@pytest.mark.parametrize("layout", few_by_default([name for name in LAYOUTS if "[0" not in name], 1))
def test_changed_elements_are_no_padding(tmp_path: Path, layout: str) -> None:
    """Whatever their bits are: NaN with any payload, and bytes that are no bool."""
    path, spec = packed(tmp_path, layout)
    raw = bytearray(path.read_bytes())
    start = len(raw) - spec.size_in_bytes
    if not spec.packed:
        noise = (
            np.random.default_rng(7)
            .integers(0, 256, spec.size_in_bytes, np.uint8)
            .reshape(-1, spec.dtype.itemsize)
        )
        noise[padding_of(spec)] = 0
        raw[start:] = noise.tobytes()
        path.write_bytes(raw)
    assert check_file(path).problems == ()


@pytest.mark.full
def test_bits_after_the_last_slot_count_too(tmp_path: Path) -> None:
    path, spec = packed(tmp_path, "s4[71,5]{1,0:E(4)}")
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 0xF0
    path.write_bytes(raw)
    (problem,) = check_file(path).problems
    assert problem.padding == padding.Padding(0, 1, spec.physical_size)


@pytest.mark.parametrize("value", [7, -1.5, float("-inf"), float("nan")])
def test_padding_has_the_recorded_value(tmp_path: Path, value: float) -> None:
    source, path = tmp_path / "s.npy", tmp_path / "x.npy"
    x = np.ones((30, 30), np.float32)
    np.save(source, x)
    spec = tilejit.make_shape("f32", x.shape, (1, 0), ((8, 128),), padding_value=value)
    plan_file_pack(source, spec).write(path)
    assert check_file(path).problems == ()
    buffer = np.load(path, mmap_mode="r+")
    assert buffer[-1] == value or (np.isnan(buffer[-1]) and np.isnan(value))
    buffer[-1] = 0
    buffer.flush()
    (problem,) = check_file(path).problems
    assert f"are not {float(value)}; the first is slot {buffer.size - 1}" in problem.text


@pytest.mark.full
@pytest.mark.usefixtures("_cut")
def test_layouts_below_others_are_checked_too(tmp_path: Path) -> None:
    path, spec = packed(tmp_path, "bf16[70,90]{1,0:T(8,128)(2,1)}")
    buffer = np.load(path)
    slot = int(padding_of(spec)[5])
    buffer.view(np.uint16)[slot] = 3
    np.save(path, buffer)
    twice = tmp_path / "twice.npy"
    plan_file_pack(path, "tpu", again=True).write(twice)
    (problem,) = check_file(twice).problems
    assert problem.spec == spec
    assert problem.byte == -1
    assert problem.padding is not None
    assert (problem.padding.differing, problem.padding.first) == (1, slot)
    assert f"slot {slot} of the buffer that was packed again" in problem.text
    plan_file_unpack(twice).write(path)
    (problem,) = check_file(path).problems
    assert problem.padding is not None
    assert problem.padding.first == slot


def texts(problems: tuple[Problem, ...]) -> list[str]:
    return [f"{one.tensor}: {one.text}" for one in problems]


@pytest.mark.full
def test_tensors_of_a_checkpoint(tmp_path: Path) -> None:
    source, path = save_model(tmp_path / "m.safetensors"), tmp_path / "p.safetensors"
    plan_file_pack(source, "tpu").write(path)
    checked = check_file(path)
    assert (checked.tensors, checked.packed, checked.problems) == (10, 10, ())
    assert checked.padding_slots > 0
    assert check_file(source).packed == 0
    file = open_file(path)
    weight = next(entry for entry in file.entries if entry.name == "weight")
    raw = bytearray(path.read_bytes())
    begin = file.data.begin + weight.begin
    slots = padding_of(tilejit.as_layout("tpu", dtype="f32", dims=(40, 300)))
    raw[begin + 4 * slots[0]] ^= 1
    path.write_bytes(raw)
    (problem,) = check_file(path).problems
    assert problem.tensor == "weight"
    assert problem.padding == padding.Padding(len(slots), 1, slots[0])
    assert problem.byte == begin + 4 * slots[0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"layout": None}, "packings[0].layout: expected a string"),
        (
            {"shape": {"primitive_type": "u8", "dimensions": [3]}},
            "expected U8[3] for its layout, got U8[5120]",
        ),
        ("{", "is not JSON"),
        ("3", "packings: expected a list of 1 to 100 packings, got 3"),
    ],
    ids=str,
)
def test_damaged_metadata_is_a_problem_of_the_tensor(tmp_path: Path, change: Any, words: str) -> None:
    source, path = tmp_path / "s.safetensors", tmp_path / "p.safetensors"
    save_file({"w": np.ones((200, 20), np.uint8), "v": np.ones((200, 20), np.uint8)}, source)
    plan_file_pack(source, "nvfp4-scales").write(path)
    assert check_file(path).problems == ()
    rewrite(path, change if isinstance(change, str) else [{**record_in(path)[0], **change}])
    (problem,) = check_file(path).problems
    assert problem.tensor == "w"
    assert words in problem.text
    assert "\n" in problem.text


def test_lost_tensors_are_named(tmp_path: Path) -> None:
    source, path = tmp_path / "s.safetensors", tmp_path / "p.safetensors"
    save_file({"w": np.ones((200, 20), np.uint8)}, source)
    plan_file_pack(source, "nvfp4-scales").write(path)
    from safetensors import safe_open

    with safe_open(path, "numpy") as file:
        metadata, flat = file.metadata(), file.get_tensor("w")
    save_file({"renamed": flat}, path, metadata)
    (problem,) = check_file(path).problems
    assert problem.tensor == "w"
    assert "the file lacks it" in problem.text


def test_files_that_changed_since(tmp_path: Path) -> None:
    path, _ = packed(tmp_path, "f32[70,90]{1,0:T(8,128)}")
    whole = path.read_bytes()
    path.write_bytes(whole[:-8])
    assert "elements take 36864 bytes" in texts(check_file(path).problems)[0]
    np.save(path, np.ones((70, 90), np.float32))
    assert "it has changed since" in texts(check_file(path).problems)[0]
    np.save(path, np.zeros(9216, np.int32))
    assert "holds int32[9216], not the flat buffer of f32[70,90]" in texts(check_file(path).problems)[0]
    path.write_bytes(whole)
    sidecar_of(path).write_text("{")
    assert "is not JSON" in texts(check_file(path).problems)[0]
    raw, _ = packed(tmp_path, "f32[70,90]{1,0:T(8,128)}", "y.bin")
    assert check_file(raw).problems == ()
    raw.write_bytes(raw.read_bytes()[:-1])
    assert "expected 36864 bytes for f32[70,90]" in texts(check_file(raw).problems)[0]
    sidecar_of(raw).unlink()
    assert "no record beside it says their shape" in texts(check_file(raw).problems)[0]
    with pytest.raises(FileNotFoundError):
        check_file(tmp_path / "none.npy")


def of_directory(path: Path) -> list[str]:
    """The names of the files with problems, and these."""
    return [
        f"{Path(c.path).name}: {p.text.splitlines()[0]}" for c in check_directory(path) for p in c.problems
    ]


def test_a_directory_and_its_record_list_the_same_files(tmp_path: Path) -> None:
    plain, folder = tmp_path / "plain", tmp_path / "folder"
    plain.mkdir()
    x = np.arange(600, dtype=np.float32).reshape(20, 30)
    for name in ("x.npy", "y.npy", "b.npy"):
        np.save(plain / name, x[0] if name == "b.npy" else x)
    assert run("pack", plain, folder, "--layout", "tenstorrent").exit_code == 0
    assert of_directory(folder) == []
    assert [(c.tensors, c.packed) for c in check_directory(folder)] == [(0, 0), (1, 0), (1, 1), (1, 1)]
    (folder / "x.npy").rename(folder / "z.npy")
    np.save(folder / "plain.npy", x)
    assert of_directory(folder) == [
        f"folder: {LAYOUTS_NAME} lists 'x.npy', which is missing",
        f"plain.npy: {LAYOUTS_NAME} beside it does not list it",
        f"z.npy: {LAYOUTS_NAME} beside it does not list it",
    ]
    (folder / LAYOUTS_NAME).write_text("{")
    assert all("is not a valid record of layouts" in text for text in of_directory(folder))


def test_single_records_without_their_files(tmp_path: Path) -> None:
    path, _ = packed(tmp_path, "f32[70,90]{1,0:T(8,128)}")
    raw, _ = packed(tmp_path, "f32[70,90]{1,0:T(4,128)}", "y.bin")
    assert of_directory(tmp_path) == []
    assert [Path(c.path).name for c in check_directory(tmp_path)] == [tmp_path.name, "x.npy", "y.bin"]
    path.rename(tmp_path / "z.npy")
    raw.unlink()
    found = of_directory(tmp_path)
    assert found[:2] == [
        f"{tmp_path.name}: 'x.npy.tilejit.json' is the record of 'x.npy', which is missing",
        f"{tmp_path.name}: 'y.bin.tilejit.json' is the record of 'y.bin', which is missing",
    ]
    assert "z.npy: it may be packed in f32[70,90]{1,0:T(8,128)}, because the record" in found[2]


def test_a_checkpoint_and_its_index_list_the_same_shards(tmp_path: Path) -> None:
    model, folder = tmp_path / "model", tmp_path / "folder"
    model.mkdir()
    x = np.ones((20, 30), np.float32)
    names = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
    for k, name in enumerate(names):
        save_file({f"w{k}": x, f"b{k}": x[0]}, model / name)
    weights = {f"{letter}{k}": names[k] for letter in "wb" for k in (0, 1)}
    (model / INDEX_NAME).write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": weights}))
    assert of_directory(model) == [], "others count differently"
    assert run("pack", model, folder, "--layout", "tpu").exit_code == 0
    assert of_directory(folder) == []
    (folder / names[0]).rename(folder / "other.safetensors")
    assert of_directory(folder) == [
        f"folder: {INDEX_NAME} lists {names[0]!r}, which is missing",
        f"folder: {INDEX_NAME} does not list 'other.safetensors'",
    ]
    plan_file_pack(model / names[0], "tenstorrent", tensors=["w0"]).write(folder / names[0])
    (folder / "other.safetensors").unlink()
    (found,) = of_directory(folder)
    assert "metadata.total_size: expected " in found
    save_file({"w1": x, "c": x}, folder / names[1])
    assert of_directory(folder)[:2] == [
        f"folder: {INDEX_NAME} says that {names[1]!r} holds this tensor, but it does not",
        f"folder: {INDEX_NAME} does not say that {names[1]!r} holds this tensor",
    ]
    (folder / INDEX_NAME).write_text("{")
    assert "is not an index of shards" in of_directory(folder)[0]


def test_directories_that_are_not_complete(tmp_path: Path) -> None:
    assert of_directory(tmp_path) == [f"{tmp_path.name}: it holds neither .safetensors nor .npy files"]
    np.save(tmp_path / "x.npy", np.ones(3))
    (tmp_path / ".tilejit-done.json").write_text("{}")
    assert of_directory(tmp_path) == [
        f"{tmp_path.name}: .tilejit-done.json says that a run with --resume has not ended"
    ]


def test_a_check_writes_nothing(tmp_path: Path) -> None:
    path, _ = packed(tmp_path, "f32[70,90]{1,0:T(8,128)}")
    os.chmod(path, 0o444)
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.iterdir()}
    assert of_directory(tmp_path) == []
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.iterdir()} == before


def test_parts_are_reported_as_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, spec = packed(tmp_path, "f32[70,90]{1,0:T(8,128)}")
    monkeypatch.setattr(padding, "MOST_BYTES", 5000)
    parts: list[int] = []
    check_file(path, advance=parts.append)
    assert len(parts) > 5
    assert sum(parts) == spec.size_in_bytes
