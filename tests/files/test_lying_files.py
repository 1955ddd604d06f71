"""Files whose headers are wrong, and layouts too large for memory: one line of error, and nothing written."""

from __future__ import annotations

import io
import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.cli.running import fails, run
from tests.files.containers import entry, raw
from tilejit.files import npy

GOOD = entry("F32", [2, 2], 0, 16)
FAR = 2**62
SAFETENSORS = {
    "header of 2^63": raw({"a": GOOD}, bytes(16), length=2**63),
    "header of 2^64-1": raw({"a": GOOD}, bytes(16), length=2**64 - 1),
    "header as long as the file": raw({"a": GOOD}, bytes(16), length=100),
    "offsets that overlap": raw({"a": GOOD, "b": entry("F32", [2, 2], 8, 24)}, bytes(24)),
    "one tensor in another": raw({"a": GOOD, "b": entry("U8", [4], 4, 8)}, bytes(16)),
    "offsets beyond the end": raw({"a": entry("F32", [2, 2], 16, 32)}, bytes(16)),
    "offsets that are negative": raw({"a": entry("F32", [2, 2], -16, 0)}, bytes(16)),
    "offsets that are huge": raw({"a": entry("U8", [16], FAR, FAR + 16)}, bytes(16)),
    "offsets past 64 bits": raw({"a": entry("U8", [16], 2**64, 2**64 + 16)}, bytes(16)),
    "offsets the wrong way": raw({"a": entry("F32", [2, 2], 16, 0)}, bytes(16)),
    "a product past 64 bits": raw({"a": entry("F32", [FAR, 4], 0, 16)}, bytes(16)),
    "a product of 2^64": raw({"a": entry("U8", [2**32, 2**32], 0, 0)}),
    "a product that wraps to the size": raw({"a": entry("U8", [2**32 + 1, 2**32 - 1, 16], 0, 16)}, bytes(16)),
    "a size of 2^62": raw({"a": entry("U8", [FAR], 0, 16)}, bytes(16)),
    "a key twice": raw(b'{"a":%b,"a":%b}' % ((json.dumps(GOOD).encode(),) * 2), bytes(16)),
    "a key twice inside": raw(
        b'{"a":{"dtype":"F32","dtype":"U8","shape":[16],"data_offsets":[0,16]}}', bytes(16)
    ),
    "deep JSON": raw(b'{"a":' + b"[" * 200_000, bytes(16)),
    "deep JSON, closed": raw(b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}", bytes(16)),
    "dtype unknown": raw({"a": entry("F5", [2, 2], 0, 16)}, bytes(16)),
    "dtype of NumPy": raw({"a": entry("float32", [2, 2], 0, 16)}, bytes(16)),
    "dtype null": raw({"a": entry(None, [2, 2], 0, 16)}, bytes(16)),  # type: ignore[arg-type]
}


def layout(**more: Any) -> dict[str, Any]:
    """A header whose metadata describes a tensor of 96 bytes with this layout."""
    shape = {**tj.Shape.parse("f32[3,5]{1,0:T(2,2)}").to_json(), **more}
    return {"__metadata__": {"tilejit.a": json.dumps(shape)}, "a": entry("F32", [24], 0, 96)}


def tiles(*sizes: int) -> dict[str, Any]:
    own = tj.Shape.parse("f32[3,5]{1,0:T(2,2)}").to_json()["layout"]
    return {**own, "tiles": [list(sizes)]}


PACKED = {
    "tiles past 64 bits": layout(layout=tiles(FAR, FAR)),
    "tiles of 2^62": layout(layout=tiles(FAR, 1)),
    "tiles of nothing": layout(layout=tiles()),
    "tiles of 0": layout(layout=tiles(0, 2)),
    "tiles below 0": layout(layout=tiles(-2, -2)),
    "dimensions of 2^62": layout(dimensions=[FAR, FAR]),
    "dimensions whose bytes wrap": layout(dimensions=[2**32, 2**32]),
    "dimensions below 0": layout(dimensions=[-3, -5]),
    "another order": layout(layout={**tiles(2, 2), "minor_to_major": [1, 1]}),
    "another dtype": layout(primitive_type="f64"),
    "smaller than what is stored": layout(dimensions=[3, 2]),
    "larger than what is stored": layout(dimensions=[4, 7]),
}


def refused(target: Path, *arguments: object, code: int = 1) -> None:
    """Refused by the command line, with an absent destination and with an existing one, which stays."""
    for old in (None, b"old"):
        if old is not None:
            target.write_bytes(old)
        fails(*arguments, code=code)
        assert (target.read_bytes() if target.exists() else None) == old
        assert not list(target.parent.glob(".tilejit-*"))


@pytest.mark.full
@pytest.mark.parametrize("name", SAFETENSORS)
def test_safetensors(tmp_path: Path, name: str) -> None:
    source, target = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    source.write_bytes(SAFETENSORS[name])
    refused(target, "pack", source, target, "--layout", "tpu")
    target.unlink()
    refused(target, "unpack", source, target)
    target.unlink()
    refused(target, "relayout", source, target, "--layout", "tpu")
    fails("show", source)


@pytest.mark.full
@pytest.mark.parametrize("name", PACKED)
def test_wrong_layouts_in_headers(tmp_path: Path, name: str) -> None:
    source, target = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    source.write_bytes(raw(PACKED[name], bytes(96)))
    refused(target, "unpack", source, target)
    target.unlink()
    refused(target, "relayout", source, target, "--layout", "{1,0:T(8,128)}")
    fails("show", source)


def header(text: str, version: int = 1, claimed: int | None = None) -> bytes:
    head = text.encode() + b"\n"
    length = len(head) if claimed is None else claimed
    return b"\x93NUMPY" + bytes([version, 0]) + length.to_bytes(2 if version == 1 else 4, "little") + head


def facts(descr: str = "'<f4'", order: str = "False", shape: str = "(4, 4)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


NPY = {
    "objects": header(facts("'|O'")) + bytes(256),
    "objects in records": header(facts("[('a', '|O')]")) + bytes(256),
    "a size of 2^62": header(facts(shape=f"({FAR},)")) + bytes(64),
    "a product of 2^64": header(facts(shape=f"({2**32}, {2**32})")) + bytes(64),
    "a product past 64 bits, by columns": header(facts(order="True", shape=f"({FAR}, 4)")) + bytes(64),
    "by columns and too short": header(facts(order="True", shape="(4, 5)")) + bytes(64),
    "order no truth": header(facts(order="7")) + bytes(64),
    "elements of 2^31 bytes": header(facts(f"'|V{2**31 - 1}'", shape="(1,)")) + bytes(64),
    "elements past 64 bits": header(facts(f"'|V{2**64}'", shape="(1,)")) + bytes(64),
    "a header longer than the file": header(facts(), 2, claimed=9000),
    "a header of 4 GiB": header(facts(), 3, claimed=2**32 - 1) + bytes(64),
    "a header of 64 KiB": header(facts() + " " * 65_000) + bytes(64),
    "numbers of 5,000 digits": header(facts(shape=f"({'9' * 5000},)")) + bytes(64),
    "parentheses of 5,000": header(facts(shape="(" * 5000 + ")" * 5000)) + bytes(64),
}


@pytest.mark.full
@pytest.mark.parametrize("name", NPY)
def test_npy(tmp_path: Path, name: str) -> None:
    source, target = tmp_path / "in.npy", tmp_path / "out.npy"
    source.write_bytes(NPY[name])
    refused(target, "pack", source, target, "--layout", "{:T(8)}" if "2^31" in name else "tpu")
    target.unlink()
    refused(target, "unpack", source, target, "--shape", "f32[4,4]{1,0}")
    shown = run("show", source)
    assert shown.exit_code in (0, 1)  # some of them are valid, but not arrays that can be packed
    assert shown.stderr.startswith("tilejit: ") == bool(shown.exit_code)


@pytest.mark.parametrize("version", [2, 3])
def test_a_header_of_a_gib_is_not_read(tmp_path: Path, version: int) -> None:
    """The file is as long as it claims, with holes on disk. NumPy would read all of it and then complain."""
    source = tmp_path / "in.npy"
    source.write_bytes(header(facts(), version, claimed=1 << 30))
    os.truncate(source, (1 << 30) + 4096)
    tracemalloc.start()
    try:
        with pytest.raises(tj.LayoutError, match="header takes 1073741824 bytes"):
            npy.read(source)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


ENDLESS = [
    "{0:T(4611686018427387904)}",
    "{0:T(9223372036854775807)}",
    "{0:T(4611686018427387904)(4611686018427387904)}",
    "{0:L(9223372036854775807)}",
    "{0:T(288230376151711744)}",
    "(a b) -> b a, b=4611686018427387904",
    "(a b c) -> c b a, b=4294967296, c=4294967296",
    "u8[4611686018427387904]{0}",
    "u8[5]{0:T(1152921504606846976)}",
    "5:1152921504606846976",
    "((5,4611686018427387904)):((1,5))",
    "A4611686018427387904a",
    "blis-a, mr=4611686018427387904",
]


@pytest.mark.full
@pytest.mark.parametrize("text", ENDLESS)
def test_layouts_too_large_for_memory(tmp_path: Path, text: str) -> None:
    """They are refused before anything is written, by the function and by the command."""
    x = np.arange(5, dtype=np.uint8)
    room = np.full(64, 7, np.uint8)
    with pytest.raises(tj.TilejitError):
        tj.pack(x, text, out=room)
    assert (room == 7).all()
    with pytest.raises(tj.TilejitError):
        tj.pack(x, text)
    source, target = tmp_path / "in.npy", tmp_path / "out.npy"
    file = io.BytesIO()
    np.save(file, x)
    source.write_bytes(file.getvalue())
    unreadable = text.startswith("u8[4")  # for any array
    refused(target, "pack", source, target, "--layout", text, code=2 if unreadable else 1)
