"""Packing .npy files."""

from __future__ import annotations

import io
import os
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit
from tests.cli.running import run
from tilejit.files import npy
from tilejit.files.conversion import plan_file_pack, plan_file_relayout, plan_file_unpack
from tilejit.files.file_types import open_file
from tilejit.files.plan import Plan

ARRAYS: dict[str, Any] = {
    "matrix": np.arange(33 * 300, dtype=np.float32).reshape(33, 300),
    "scalar": np.array(7, np.int16),
    "empty": np.zeros((0, 5), np.int8),
    "bool": np.arange(12).reshape(3, 4) % 3 == 0,
    "complex": np.arange(12).reshape(3, 4) * 1j,
    "fortran": np.asfortranarray(np.arange(35.0).reshape(5, 7)),
    "big-endian": np.arange(35, dtype=">i4").reshape(5, 7),
}


def pack_file(source: Path, target: Path, layout: str, dtype: str | None = None) -> Any:
    return written(plan_file_pack(source, layout, dtype=dtype, casting="unsafe"), target)


def unpack_file(source: Path, target: Path, shape: str) -> Any:
    return written(plan_file_unpack(open_file(source, shape=shape)), target)


def relayout_file(source: Path, target: Path, shape: str, layout: str) -> Any:
    return written(plan_file_relayout(open_file(source, shape=shape), layout), target)


def written(plan: Plan, target: Path) -> Any:
    """The packed shape of the array, after the file is written."""
    plan.write(target)
    (one,) = plan.converted
    return one.spec


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path, Path]:
    return tmp_path / "x.npy", tmp_path / "packed.npy", tmp_path / "back.npy"


@pytest.mark.full
@pytest.mark.parametrize("name", ARRAYS)
def test_a_packed_array_is_restored(paths: tuple[Path, Path, Path], name: str) -> None:
    source, packed, back = paths
    np.save(source, ARRAYS[name])
    spec = pack_file(source, packed, "tpu")
    assert np.array_equal(np.load(packed), tilejit.pack(ARRAYS[name], "tpu").buffer)
    assert unpack_file(packed, back, str(spec)) == spec
    result = np.load(back)
    assert result.dtype == ARRAYS[name].dtype.newbyteorder("=")
    assert np.array_equal(result, ARRAYS[name])


@pytest.mark.full
@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e8m0fnu"])
def test_raw_elements_are_read_by_the_given_dtype_and_written_as_numpy_does(
    paths: tuple[Path, Path, Path], name: str
) -> None:
    source, packed, back = paths
    x = np.arange(1, 700, dtype=np.float32).reshape(1, 699).astype(getattr(ml_dtypes, name))
    np.save(source, x)
    with pytest.raises(tilejit.LayoutError, match="--dtype"):
        pack_file(source, packed, "tpu")
    spec = pack_file(source, packed, "tpu", dtype=name)
    assert spec == tilejit.pack(x, "tpu").layout
    unpack_file(packed, back, str(spec))
    assert back.read_bytes() == source.read_bytes()


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["bf16", "f8e5m2", "f16", "s32"])
def test_a_dtype_converts(paths: tuple[Path, Path, Path], dtype: str) -> None:
    source, packed, back = paths
    x = np.linspace(-9, 9, 35, dtype=np.float32).reshape(5, 7)
    np.save(source, x)
    spec = pack_file(source, packed, "tpu", dtype=dtype)
    unpack_file(packed, back, str(spec))
    assert spec.primitive_type == dtype
    assert np.load(back).tobytes() == x.astype(spec.dtype).tobytes()


def test_narrow_integers_share_bytes(paths: tuple[Path, Path, Path]) -> None:
    source, packed, back = paths
    x = np.arange(-8, 8, dtype=np.int8).reshape(2, 8)
    np.save(source, x)
    spec = pack_file(source, packed, "{1,0:E(4)}", dtype="s4")
    assert np.load(packed).dtype == np.uint8
    assert np.load(packed).nbytes == 8
    unpack_file(packed, back, str(spec))
    assert np.load(back).dtype == np.int8
    assert np.array_equal(np.load(back), x)


def test_a_file_may_replace_its_source(paths: tuple[Path, Path, Path]) -> None:
    source, _, _ = paths
    np.save(source, ARRAYS["matrix"])
    before = source.read_bytes()
    spec = pack_file(source, source, "tpu")
    unpack_file(source, source, str(spec))
    assert source.read_bytes() == before


def _saved(value: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, value, **options)
    return file.getvalue()


def _header(text: str) -> bytes:
    head = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + bytes(64)


def _archive() -> bytes:
    file = io.BytesIO()
    np.savez(file, a=np.zeros(3))
    return file.getvalue()


BAD = {
    "nothing": b"",
    "text": b"hello, world, this is no array",
    "objects": _saved(np.array([{}], object), allow_pickle=True),
    "archive": _archive(),
    "records": _saved(np.zeros(3, [("a", "i4"), ("b", "f4")])),
    "strings": _saved(np.array(["a", "b"])),
    "dates": _saved(np.zeros(3, "M8[s]")),
    "cut": _saved(np.zeros(100))[:-8],
    "no dict": _header("[1, 2]"),
    "code": _header("__import__('os').abort()"),
    "unfinished": _header("{'descr': ((((("),
    "no descr": _header("{'fortran_order': False, 'shape': (3,)}"),
    "descr": _header("{'descr': 'zz', 'fortran_order': False, 'shape': (3,), }"),
    "negative": _header("{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }"),
    "huge": _header("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 8), }"),
    "many": _header("{'descr': '<f4', 'fortran_order': False, 'shape': (" + "1," * 99 + "), }"),
    "words": _header("{'descr': '<f4', 'fortran_order': False, 'shape': ('a',), }"),
    "version": b"\x93NUMPY\x09\x00" + bytes(100),
    "zip": b"PK\x03\x04" + bytes(100),
    "overflow": _header("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }"),
    "empty and huge": _header(
        "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4611686018427387904, 8), }"
    ),
    "truth": _header("{'descr': '<f4', 'fortran_order': False, 'shape': (True, 3), }"),
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD)
def test_a_bad_file_is_refused(paths: tuple[Path, Path, Path], content: bytes) -> None:
    source, packed, _ = paths
    source.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(tilejit.TilejitError):
            pack_file(source, packed, "tpu")
    assert not packed.exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"layout": "f32[2,2]"}, "33"),
        ({"layout": "bf16[33,300]"}, "--dtype bf16"),
        ({"layout": "bf16[33,300]", "dtype": "f16"}, "f16"),
        ({"layout": "tpuu"}, "tpu"),
    ],
    ids=str,
)
def test_a_wrong_layout_is_refused(
    paths: tuple[Path, Path, Path], options: dict[str, Any], words: str
) -> None:
    source, packed, _ = paths
    np.save(source, ARRAYS["matrix"])
    with pytest.raises(tilejit.LayoutError, match=words):
        pack_file(source, packed, **options)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_is_read(paths: tuple[Path, Path, Path], version: tuple[int, int]) -> None:
    source, packed, _ = paths
    with open(source, "wb") as file:
        np.lib.format.write_array(file, ARRAYS["fortran"], version)
    assert np.array_equal(npy.read(source).array.whole(), ARRAYS["fortran"])
    pack_file(source, packed, "tpu")
    assert np.array_equal(np.load(packed), tilejit.pack(ARRAYS["fortran"], "tpu").buffer)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
@pytest.mark.timeout(20)
def test_a_pipe_is_refused_at_once(paths: tuple[Path, Path, Path]) -> None:
    source, packed, _ = paths
    os.mkfifo(source)
    with pytest.raises(tilejit.LayoutError, match="not a regular file"):
        pack_file(source, packed, "tpu")
    with pytest.raises(tilejit.LayoutError, match="not a regular file"):
        unpack_file(source, packed, "f32[3]")


def test_int8_files_for_narrow_integers_need_no_dtype(paths: tuple[Path, Path, Path]) -> None:
    source, packed, _ = paths
    np.save(source, np.arange(-8, 8, dtype=np.int8).reshape(2, 8))
    assert pack_file(source, packed, "s4[2,8]{1,0:E(4)}").packed
    with pytest.raises(tilejit.LayoutError, match="--dtype uint4"):
        pack_file(source, packed, "u4[2,8]{1,0:E(4)}")


def test_raw_elements_of_another_width_are_refused(paths: tuple[Path, Path, Path]) -> None:
    source, packed, _ = paths
    np.save(source, np.zeros(4, "V2"))
    with pytest.raises(tilejit.LayoutError, match="2 bytes"):
        pack_file(source, packed, "tpu", dtype="f32")


@pytest.mark.parametrize("shape", ["f32[4,6]", "f64[4,3]", "f64[3,4]{0,1}", "f64[3,4]{1,0:T(3,2)}", "s8[96]"])
def test_an_array_is_not_a_flat_buffer(paths: tuple[Path, Path, Path], shape: str) -> None:
    """It has the right size, but is not packed: its bytes would be read as other elements."""
    source, target, _ = paths
    np.save(source, np.arange(12.0).reshape(3, 4))
    with pytest.raises(tilejit.LayoutError, match=r"holds float64\[3, 4\], not the flat buffer of"):
        relayout_file(source, target, shape, "{0:T(4)}" if shape == "s8[96]" else "tpu")
    with pytest.raises(tilejit.LayoutError, match=r"holds float64\[3, 4\], not the flat buffer of"):
        unpack_file(source, target, shape)
    assert not target.exists()


def test_a_row_major_array_is_its_own_buffer(paths: tuple[Path, Path, Path]) -> None:
    source, target, _ = paths
    rows = np.arange(12.0).reshape(3, 4)
    for order in ("C", "F"):
        np.save(source, np.array(rows, order=order))
        relayout_file(source, target, "f64[3,4]", "{0,1}")
        assert np.array_equal(np.load(target), rows.T.reshape(-1))


def test_a_flat_buffer_of_another_dtype_is_refused(paths: tuple[Path, Path, Path]) -> None:
    """Bytes hold any elements; 32 bits of another kind are most likely a mistake."""
    source, target, _ = paths
    np.save(source, np.arange(12, dtype=np.int32))
    with pytest.raises(tilejit.LayoutError, match=r"holds int32\[12\]"):
        relayout_file(source, target, "f32[3,4]", "{0,1}")
    np.save(source, np.arange(12, dtype=np.float32).view(np.uint8))
    relayout_file(source, target, "f32[3,4]", "{0,1}")
    assert np.array_equal(np.load(target), np.arange(12, dtype=np.float32).reshape(3, 4).T.reshape(-1))


def test_a_buffer_of_another_size_is_refused(paths: tuple[Path, Path, Path]) -> None:
    source, packed, _ = paths
    np.save(source, np.zeros(4, np.float32))
    with pytest.raises(tilejit.LayoutError, match="16 bytes"):
        unpack_file(source, packed, "f32[5]")


@pytest.mark.full
def test_raw_elements_take_the_dtype_of_a_complete_layout(paths: tuple[Path, Path, Path]) -> None:
    """np.load returns bf16 as '|V2'; a layout that names bf16 says what the bytes are."""
    source, packed, back = paths
    x = np.arange(15).reshape(3, 5).astype(ml_dtypes.bfloat16)
    np.save(source, x)
    assert np.load(source).dtype.kind == "V"
    assert str(pack_file(source, packed, "bf16[3,5]{0,1:T(2,2)}")) == "bf16[3,5]{0,1:T(2,2)}"
    with pytest.raises(tilejit.LayoutError, match="2 bytes, which f32 does not fit"):
        pack_file(source, back, "f32[3,5]{0,1:T(2,2)}")
    done = run("unpack", packed, back, "--shape", "bf16[3,5]{0,1:T(2,2)}")
    assert done.exit_code == 0
    assert "np.load returns bf16 as '|V2', raw bytes" in done.stderr
    assert ".view(ml_dtypes.bfloat16)" in done.stderr
    assert np.array_equal(np.load(back).view(ml_dtypes.bfloat16), x)
    assert np.array_equal(tilejit.unpack(np.load(packed), "bf16[3,5]{0,1:T(2,2)}"), x)
    with pytest.raises(TypeError, match=r"x\.view\(ml_dtypes\.bfloat16\)"):
        tilejit.pack(np.load(back), "{0,1:T(2,2)}")


def test_raw_bytes_are_read_as_the_named_integers(paths: tuple[Path, Path, Path]) -> None:
    source, packed, _ = paths
    x = np.arange(15, dtype=np.uint8).reshape(3, 5)
    np.save(source, x.view("V1"))
    for layout, dtype in (("{0,1}", "uint8"), ("u8[3,5]{0,1}", None)):
        assert str(pack_file(source, packed, layout, dtype=dtype)) == "u8[3,5]{0,1}"
        assert np.array_equal(np.load(packed), x.T.reshape(-1))
    with pytest.raises(tilejit.LayoutError, match="write 'uint8' or 'uint64'"):
        pack_file(source, packed, "{0,1}", dtype="u8")
