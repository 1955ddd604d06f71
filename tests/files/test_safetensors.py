"""Packing checkpoints: unpacking restores them, bad files are refused, and no file is left half-written."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError, deserialize, safe_open
from safetensors.numpy import save_file

import tilejit
from tests.cli.running import fails, run
from tests.files.containers import BF16, bytes_of, entry, model, raw, save_model
from tests.tools.extent import examples
from tilejit.files import safetensors
from tilejit.files.conversion import plan_file_pack, plan_file_unpack
from tilejit.files.safetensors_header import DTYPE_BITS


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return save_model(tmp_path / "model.safetensors")


@pytest.mark.full
@pytest.mark.parametrize("layout", ["tpu", "tpu-doc"])
def test_a_model_of_mixed_ranks_is_restored_byte_for_byte(source: Path, layout: str) -> None:
    packed, back = source.with_name("packed.safetensors"), source.with_name("back.safetensors")
    plan_file_pack(source, layout).write(packed)
    plan_file_unpack(packed).write(back)
    assert back.read_bytes() == source.read_bytes()


def library_reads(path: Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """The dtype, shape and bytes of each tensor, as the safetensors library reads a file."""
    known = deserialize(path.read_bytes())
    return {name: (one["dtype"], tuple(one["shape"]), bytes(one["data"])) for name, one in known}


def tilejit_reads(path: Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    file = safetensors.read(path)
    return {e.name: (e.dtype, e.shape, bytes_of(file.bytes_of(e))) for e in file.entries}


def test_the_safetensors_library_and_tilejit_read_each_others_files(source: Path) -> None:
    """The library writes a file, which is packed and unpacked.

    Both readers see the same tensors in all three.
    """
    packed, back = source.with_name("packed.safetensors"), source.with_name("back.safetensors")
    plan_file_pack(source, "tpu").write(packed)
    plan_file_unpack(packed).write(back)
    for path in (source, packed, back):
        assert tilejit_reads(path) == library_reads(path)
    tensors = {name: x.tobytes() for name, x in model().items()}
    assert {name: data for name, (_, _, data) in library_reads(back).items()} == tensors
    with safe_open(packed, "np") as read:
        assert read.metadata() == safetensors.read(packed).metadata


def test_the_packed_file_holds_the_buffers_and_their_shapes(source: Path) -> None:
    packed = source.with_name("packed.safetensors")
    plan = plan_file_pack(source, "tpu")
    plan.write(packed)
    file = safetensors.read(packed)
    tensors = model()
    assert {e.name for e in file.entries} == set(tensors)
    for tensor in file.entries:
        (packing,) = json.loads(file.metadata[f"tilejit.{tensor.name}"])
        spec = tilejit.Shape.from_json(packing["shape"])
        want = tilejit.pack(tensors[tensor.name], "tpu")
        assert spec == want.layout
        assert len(tensor.shape) == 1
        assert bytes_of(file.bytes_of(tensor)) == want.buffer.tobytes()
    assert file.metadata["format"] == "pt"


@pytest.mark.full
def test_tensors_are_aligned(source: Path) -> None:
    packed = source.with_name("packed.safetensors")
    plan_file_pack(source, "tpu-doc").write(packed)
    start = 8 + int.from_bytes(packed.read_bytes()[:8], "little")
    for tensor in safetensors.read(packed).entries:
        assert (start + tensor.begin) % (DTYPE_BITS[tensor.dtype] // 8) == 0


def test_only_the_requested_tensors_are_packed(source: Path) -> None:
    one, two, back = (source.with_name(f"{k}.safetensors") for k in ("one", "two", "back"))
    plan_file_pack(source, "{1,0:T(8,128)}", tensors=["weight"]).write(one)
    plan_file_pack(one, "tpu", tensors=["bias"]).write(two)
    assert {c.name for c in plan_file_unpack(two).converted} == {"weight", "bias"}
    plan_file_unpack(two, tensors=["weight"]).write(back)
    assert [c.name for c in plan_file_unpack(back).converted] == ["bias"]
    plan_file_unpack(back).write(back)
    assert back.read_bytes() == source.read_bytes()


@pytest.mark.full
def test_a_dtype_converts_on_the_way(source: Path) -> None:
    packed, back = source.with_name("packed.safetensors"), source.with_name("back.safetensors")
    plan_file_pack(source, "tpu", tensors=["weight"], dtype="bf16").write(packed)
    plan_file_unpack(packed).write(back)
    file = safetensors.read(back)
    weight = next(e for e in file.entries if e.name == "weight")
    assert weight.dtype == "BF16"
    assert bytes_of(file.bytes_of(weight)) == model()["weight"].astype(BF16).tobytes()


@pytest.mark.parametrize(
    "options", [{"dtype": "s4"}, {"layout": "s4[40,50]{1,0:T(64,128)(8,1)E(4)}"}], ids=str
)
def test_narrow_integers_share_bytes_and_come_back_as_bytes(source: Path, options: dict[str, str]) -> None:
    packed, back = source.with_name("packed.safetensors"), source.with_name("back.safetensors")
    plan = plan_file_pack(source, **{"layout": "tpu", "tensors": ["int"], **options})  # type: ignore[arg-type]
    assert plan.converted[0].spec.packed
    plan.write(packed)
    assert next(e.dtype for e in safetensors.read(packed).entries if e.name == "int") == "U8"
    plan_file_unpack(packed).write(back)
    assert back.read_bytes() == source.read_bytes()


def test_f4_stays_two_to_a_byte(tmp_path: Path) -> None:
    source, packed, back = (tmp_path / f"{k}.safetensors" for k in ("model", "packed", "back"))
    data = np.random.default_rng(0).integers(0, 256, 12 * 10 // 2, np.uint8).tobytes()
    source.write_bytes(raw({"q": entry("F4", [12, 10], 0, len(data))}, data))
    plan_file_pack(source, "{1,0:T(8,128)(8,1)E(4)}").write(packed)
    plan_file_unpack(packed).write(back)
    file = safetensors.read(back)
    assert (file.entries[0].dtype, file.entries[0].shape) == ("F4", (12, 10))
    assert bytes_of(file.data) == data


def test_a_value_that_does_not_fit_leaves_the_old_file(tmp_path: Path) -> None:
    source, target = tmp_path / "model.safetensors", tmp_path / "out.safetensors"
    source.write_bytes(raw({"a": entry("I8", [4], 0, 4)}, bytes([0, 1, 99, 2])))
    target.write_bytes(b"old")
    with pytest.raises(tilejit.LayoutError, match="tensor 'a'"):
        plan_file_pack(source, "s4[4]{0:E(4)}").write(target)
    assert target.read_bytes() == b"old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.safetensors", "out.safetensors"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, OSError])
def test_an_interruption_leaves_the_old_file(source: Path, error: type[BaseException]) -> None:
    def stop(_: int) -> None:
        raise error

    before = source.read_bytes()
    with pytest.raises(error):
        plan_file_pack(source, "tpu").write(source, stop)
    assert source.read_bytes() == before
    assert [p.name for p in source.parent.iterdir()] == [source.name]


def test_the_file_may_replace_its_source(source: Path) -> None:
    before = source.read_bytes()
    plan_file_pack(source, "tpu").write(source)
    assert source.read_bytes() != before
    plan_file_unpack(source).write(source)
    assert source.read_bytes() == before


def test_links_are_followed_and_modes_kept(source: Path) -> None:
    target, link = source.with_name("real.safetensors"), source.with_name("link.safetensors")
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    plan_file_pack(source, "tpu").write(link)
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert plan_file_unpack(target).converted


def test_progress_counts_every_byte(source: Path) -> None:
    plan, seen = plan_file_pack(source, "tpu"), []
    plan.write(source.with_name("packed.safetensors"), seen.append)
    assert sum(seen) == plan.nbytes


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"layout": "{1,0:T(8,128)}", "tensors": ["weight", "bias"]}, "tensor 'bias'"),
        ({"layout": "tpu", "tensors": ["none"]}, "tensor 'none' does not exist"),
        ({"layout": "bf16[40,300]", "tensors": ["weight"]}, "--dtype bf16"),
        ({"layout": "bf16[40,300]", "tensors": ["weight"], "dtype": "f16"}, "becomes f16"),
        ({"layout": "tpu", "dtype": "f128"}, "unknown dtype"),
        ({"layout": "tpu", "dtype": "f6e2m3fn"}, "tensor 'wave'|f6e2m3fn"),
        ({"layout": "tpu", "tensors": ["ids"], "dtype": "c128"}, "c128"),
    ],
    ids=str,
)
def test_errors_name_tensors_that_cannot_be_packed(source: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(tilejit.LayoutError, match=words):
        plan_file_pack(source, **options)


def test_a_packed_tensor_is_not_packed_again(source: Path) -> None:
    plan_file_pack(source, "tpu", tensors=["ids"]).write(source)
    with pytest.raises(tilejit.LayoutError, match="'ids': it is already in tpu"):
        plan_file_pack(source, "tpu")
    with pytest.raises(tilejit.LayoutError, match="'weight': it is not packed"):
        plan_file_unpack(source, tensors=["weight"])


LIES = [
    "",
    "[",
    "[" * 100_000,
    "null",
    "{}",
    '{"primitive_type": "f32", "dimensions": [1e9]}',
    '{"primitive_type": "f32", "dimensions": [4611686018427387904, 4611686018427387904]}',
    '{"primitive_type": "f32", "dimensions": [5]}',
    '{"primitive_type": "s8", "dimensions": [16]}',
    '{"primitive_type": "token", "dimensions": []}',
    '{"primitive_type": "f32", "dimensions": [-1], "dynamic": [true]}',
    '{"primitive_type": "f32", "dimensions": [4], "layout": {"minor_to_major": [7]}}',
    '{"primitive_type": ["f32"], "dimensions": {"a": 4}}',
    '{"primitive_type": "f32", "dimensions": [' + "9" * 5000 + "]}",
]


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie[:40] or "nothing")
def test_a_wrong_layout_in_the_metadata_is_refused(tmp_path: Path, lie: str) -> None:
    source = tmp_path / "model.safetensors"
    header = {"__metadata__": {"tilejit.a": lie}, "a": entry("F32", [4], 0, 16)}
    source.write_bytes(raw(header, bytes(16)))
    with pytest.raises(tilejit.LayoutError, match="tensor 'a'"):
        plan_file_unpack(source)


GOOD = entry("F32", [2, 2], 0, 16)
DAMAGED = {
    "nothing": b"",
    "seven bytes": bytes(7),
    "long header": raw({"a": GOOD}, bytes(16), length=2**63),
    "beyond the file": raw({"a": GOOD}, b"", length=1 << 20),
    "no brace": raw(b' {"a":1}'),
    "no JSON": raw(b'{"a":'),
    "not UTF-8": raw(b'{"\xff":1}'),
    "deep": raw(b'{"a":' * 100_000),
    "deep list": raw(b'{"a":' + b"[" * 100_000),
    "NaN": raw(b'{"a":NaN}'),
    "long number": raw(b'{"a":' + b"9" * 5000 + b"}"),
    "surrogate": raw(b'{"\\ud800":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}', bytes(16)),
    "twice": raw(b'{"a":1,"a":1}'),
    "metadata list": raw({"__metadata__": []}),
    "metadata number": raw({"__metadata__": {"a": 1}}),
    "entry number": raw({"a": 1}),
    "no offsets": raw({"a": {"dtype": "F32", "shape": [2, 2]}}),
    "more than the three": raw({"a": {**GOOD, "b": 1}}, bytes(16)),
    "dtype unknown": raw({"a": entry("F5", [2, 2], 0, 16)}, bytes(16)),
    "dtype list": raw({"a": {**GOOD, "dtype": ["F32"]}}, bytes(16)),
    "negative size": raw({"a": entry("F32", [-2, -2], 0, 16)}, bytes(16)),
    "fraction": raw({"a": entry("F32", [2.0, 2], 0, 16)}, bytes(16)),
    "truth": raw({"a": entry("F32", [True, 4], 0, 16)}, bytes(16)),
    "huge": raw({"a": entry("F32", [2**62, 2**62, 2**62], 0, 16)}, bytes(16)),
    "huge times nothing": raw({"a": entry("F32", [2**62, 2**62, 0], 0, 0)}),
    "too few bytes": raw({"a": entry("F32", [2, 3], 0, 16)}, bytes(16)),
    "backwards": raw({"a": entry("F32", [2, 2], 16, 0)}, bytes(16)),
    "hole": raw({"a": entry("F32", [2, 2], 4, 20)}, bytes(20)),
    "overlap": raw({"a": GOOD, "b": entry("F32", [2, 2], 8, 24)}, bytes(24)),
    "more data": raw({"a": GOOD}, bytes(17)),
    "less data": raw({"a": GOOD}, bytes(15)),
    "half a byte": raw({"a": entry("F4", [3], 0, 2)}, bytes(2)),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_refused(tmp_path: Path, content: bytes) -> None:
    source = tmp_path / "model.safetensors"
    source.write_bytes(content)
    for plan in (lambda: plan_file_pack(source, "tpu"), lambda: plan_file_unpack(source)):
        with pytest.raises(tilejit.LayoutError):
            plan()


def test_an_error_about_too_many_dimensions_names_the_tensor(tmp_path: Path) -> None:
    source = tmp_path / "model.safetensors"
    source.write_bytes(raw({"a": entry("U8", [1] * 200, 0, 1)}, b"x"))
    with pytest.raises(tilejit.LayoutError, match="tensor 'a'"):
        plan_file_pack(source, "tpu").write(tmp_path / "out.safetensors")


@pytest.mark.parametrize(
    "dims",
    [(2**62, 0), (0, 2**62), (0, 2**63 - 1, 2**63 - 1), (2**63 - 1, 2**63 - 1, 0), (2**62, 5, 0)],
    ids=str,
)
def test_huge_shapes_without_elements_are_read_like_the_library(
    tmp_path: Path, dims: tuple[int, ...]
) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(raw({"a": entry("F32", list(dims), 0, 0)}))
    try:
        (known,) = deserialize(path.read_bytes())
    except SafetensorError:
        with pytest.raises(tilejit.LayoutError, match="has 0 bytes"):
            safetensors.read(path)
        return
    assert safetensors.read(path).entries[0].shape == dims == tuple(known[1]["shape"])


def test_paths_that_are_not_files_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "folder.safetensors"
    folder.mkdir()
    with pytest.raises(tilejit.LayoutError, match="not a regular file"):
        plan_file_pack(folder, "tpu")
    with pytest.raises(FileNotFoundError):
        plan_file_pack(tmp_path / "none.bin", "tpu")
    with pytest.raises(FileNotFoundError):
        plan_file_pack(tmp_path / "none.safetensors", "tpu")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
@pytest.mark.timeout(20)
def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.safetensors")
    with pytest.raises(tilejit.LayoutError, match="not a regular file"):
        plan_file_pack(tmp_path / "pipe.safetensors", "tpu")


def test_errors_name_the_requested_file(source: Path) -> None:
    target = source.parent / "none" / "out.safetensors"
    with pytest.raises(FileNotFoundError) as caught:
        plan_file_pack(source, "tpu").write(target)
    assert caught.value.filename == str(target)


def test_a_device_is_never_replaced(source: Path) -> None:
    with pytest.raises(tilejit.TilejitError, match="not a regular file"):
        plan_file_pack(source, "tpu").write("/dev/null")
    with pytest.raises(tilejit.TilejitError, match="not a regular file"):
        plan_file_pack(source, "tpu").write(source.parent)


@settings(max_examples=examples(22, full=200), deadline=None)
@given(st.data())
def test_a_flipped_byte_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(
        raw({"__metadata__": {"a": "b"}, "a": GOOD, "b": entry("U8", [3], 16, 19)}, bytes(19))
    )
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 20))] = data.draw(st.integers(0, 255))
    source = tmp_path_factory.getbasetemp() / "flipped.safetensors"
    source.write_bytes(content)
    try:
        plan_file_pack(source, "tpu")
    except tilejit.LayoutError:
        return
    assert safetensors.read(source).entries is not None


def test_the_dtypes_are_those_of_ml_dtypes() -> None:
    from tilejit.files.safetensors import DTYPE_OF
    from tilejit.layout.dtypes import lookup

    for name, dtype in DTYPE_OF.items():
        assert DTYPE_BITS[dtype] == 8 * np.dtype(lookup(name).numpy).itemsize
    assert lookup("f8e4m3fn").numpy == np.dtype(ml_dtypes.float8_e4m3fn)


def test_a_float_dtype_for_all_tensors_leaves_integers_alone(tmp_path: Path) -> None:
    """A model's position ids do not survive in bf16. A tensor that is named explicitly is still converted."""
    source, packed = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    save_file({"ids": np.arange(300), "w": np.ones((3, 5), np.float32)}, source)
    plan = plan_file_pack(source, "tpu", dtype="bf16")
    plan.write(packed)
    assert plan.kept == ("ids",)
    assert {c.name: c.spec.primitive_type for c in plan.converted} == {"ids": "s64", "w": "bf16"}
    named = plan_file_pack(source, "tpu", dtype="bf16", tensors=["ids"])
    assert [c.spec.primitive_type for c in named.converted] == ["bf16"]


@pytest.mark.parametrize(
    "command", [("unpack",), ("relayout", "--layout", "tpu"), ("pack", "--layout", "tpu")]
)
def test_metadata_of_missing_tensors_is_reported(tmp_path: Path, command: tuple[str, ...]) -> None:
    """Another program dropped or renamed a packed tensor; its bytes must not pass for a plain array."""
    source, packed, out = (tmp_path / name for name in ("m.safetensors", "p.safetensors", "o.safetensors"))
    save_file({"weight": np.ones((40, 30), np.float32), "small": np.ones((3, 5), np.int8)}, source)
    assert run("pack", source, packed, "--layout", "tenstorrent").exit_code == 0
    with safe_open(packed, "numpy") as file:
        tensors, metadata = {name: file.get_tensor(name) for name in ("weight", "small")}, file.metadata()
    tensors["renamed"] = tensors.pop("weight")
    save_file(tensors, packed, metadata)
    said = fails(command[0], packed, out, *command[1:])
    assert "lacks the packed tensor 'weight', whose layout its metadata describes" in said
    assert not out.exists()
    if command[0] != "pack":
        assert run(command[0], packed, out, *command[1:], "--tensor", "small").exit_code == 0
    assert "p.safetensors lacks packed tensors: weight" in run("show", packed).stderr


@pytest.mark.parametrize(
    "layout",
    ["[" * 100_000, "{", '{"a": 1, "a": 2}', "3", '{"dimensions": ' + "[" * 900 + "]" * 900 + "}"],
    ids=lambda text: text[:20],
)
def test_damaged_layouts_name_the_file_and_the_fix(tmp_path: Path, layout: str) -> None:
    path, out = tmp_path / "m.safetensors", tmp_path / "o.safetensors"
    save_file({"w": np.zeros(8, np.float32)}, path, {"tilejit.w": layout})
    said = " ".join(fails("unpack", path, out).split())
    assert f"tensor 'w': the record 'tilejit.w' in the metadata of {str(path)!r}: " in said
    assert "restore it, or pack its source again" in said
    assert "recursion" not in said
    assert not out.exists()
