"""Buffers made in pieces equal those made at once, and files too large for memory are packed."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

import tilejit
from tests.cli.running import run
from tests.files.containers import save_model
from tests.tools.oracle import environment
from tilejit.files import made, pieces
from tilejit.files.conversion import plan_file_pack
from tilejit.files.pieces import Pieces, cut
from tilejit.files.windows import FileArray, FileBytes

CASES = [
    ("{1,0:T(8,128)}", (100, 300), np.float32),
    ("{0,1:T(8,128)(2,1)}", (100, 300), ml_dtypes.bfloat16),
    ("{2,1,0:T(8,128)}", (3, 50, 200), np.float32),
    ("{1,2,0:T(4,4)}", (2, 37, 41), np.int16),
    ("{0:T(16)}", (1000,), np.float64),
    ("{1,0:T(64,128)(8,1)E(4)}", (300, 200), ml_dtypes.int4),
    ("{1,0:T(32,128)(32,1)E(1)}", (200, 200), np.bool_),
    ("{1,0:T(8,128)L(512)}", (30, 130), np.float32),
    ("((8,16),(32,4)):((32,1024),(1,256))", (100, 100), np.float32),
    ("(128,100):(104,1)", (120, 100), np.float32),
    ("tenstorrent", (70, 100), np.float32),
]


def elements(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    return (values % 13 - 6 if dtype != np.bool_ else values % 3 == 0).astype(dtype)


def in_file(folder: Path, x: np.ndarray[Any, Any]) -> FileArray:
    """The array in a file of its bytes."""
    path = folder / "x.bin"
    path.write_bytes(x.tobytes())
    with open(path, "rb") as file:
        return FileArray(FileBytes.of(file.fileno(), str(path), 0, x.nbytes), x.dtype, x.shape)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "MOST_BYTES", 4096)
    monkeypatch.setattr(pieces, "SCATTERED_BYTES", 6000)


@pytest.mark.full
@pytest.mark.parametrize(("layout", "shape", "dtype"), CASES, ids=str)
def test_pieces_add_up_to_the_buffer(tmp_path: Path, layout: str, shape: tuple[int, ...], dtype: Any) -> None:
    x = elements(shape, dtype)
    spec = tilejit.as_layout(layout, dims=shape, dtype=x.dtype)
    whole = tilejit.pack(x, spec).buffer.view(np.uint8)
    result = made.packed(in_file(tmp_path, x), spec, None, 1)
    assert isinstance(result, Pieces)
    found = [piece.copy() for piece in result.after(0)]
    assert len(found) >= 2
    assert (np.concatenate(found) == whole).all()
    for done in (0, 1, 4095, len(found[0]), len(whole) // 2, len(whole) - 1, len(whole)):
        rest = [piece.copy() for piece in result.after(done)]
        assert (np.concatenate([*rest, np.zeros(0, np.uint8)]) == whole[done:]).all()


def test_a_padding_value_fills_slots_without_elements(tmp_path: Path) -> None:
    x = elements((50, 70), np.float32)
    spec = tilejit.make_shape("f32", (50, 70), tiles=((8, 128),), padding_value=7)
    found = made.packed(in_file(tmp_path, x), spec, None, 1)
    assert isinstance(found, Pieces)
    assert (
        np.concatenate([p.copy() for p in found.after(0)]) == tilejit.pack(x, spec).buffer.view(np.uint8)
    ).all()


def test_layouts_that_cannot_be_split_are_packed_at_once() -> None:
    swizzled = tilejit.as_layout("Sw<5,0,7> o 0 o (64,64):(64,1)", dims=(64, 64), dtype="f32")
    assert cut(swizzled, 4096) is None
    assert pieces.in_pieces(swizzled, lambda box: np.zeros((1, 1)), (1, 1)) is None
    empty = tilejit.as_layout("{1,0}", dims=(0, 64), dtype="f32")
    assert cut(empty, 4096) is None


@pytest.mark.full
@pytest.mark.parametrize("layout", ["tpu", "tenstorrent"])
def test_files_made_in_pieces_equal_those_made_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    model = save_model(tmp_path / "model.safetensors")
    at = {name: tmp_path / f"{name}.safetensors" for name in ("a", "b", "back", "wa", "wb", "wback")}

    def convert(a: Path, b: Path, back: Path) -> None:
        for command in (
            ("pack", model, a, "--layout", layout, "--dtype", "bf16"),
            ("relayout", a, b, "--layout", "{1,0:T(4,32)}"),
            ("unpack", b, back),
        ):
            result = run(*command)
            assert result.exit_code == 0, result.output

    convert(at["a"], at["b"], at["back"])
    monkeypatch.setattr(pieces, "MOST_BYTES", 1 << 30)
    convert(at["wa"], at["wb"], at["wback"])
    for name in ("a", "b", "back"):
        assert at[name].read_bytes() == at[f"w{name}"].read_bytes()


def test_an_error_in_a_late_piece_names_the_tensor_and_leaves_nothing(tmp_path: Path) -> None:
    x = np.zeros((200, 200), np.int8)
    x[199, 199] = 100
    source, target = tmp_path / "x.safetensors", tmp_path / "y.safetensors"
    save_file({"late": x}, source)
    for more in ((), ("--resume",)):
        result = run("pack", source, target, "--layout", "s4[200,200]{1,0:T(8,128)}", *more)
        assert result.exit_code == 1
        assert "tensor 'late'" in result.stderr
        assert [p.name for p in tmp_path.iterdir()] == [source.name]


@pytest.mark.full
def test_a_cast_in_pieces_warns_once_and_counts_all(tmp_path: Path) -> None:
    x = np.full((200, 200), 1e5, np.float32)
    np.save(tmp_path / "x.npy", x)
    for layout in ("{1,0:T(8,128)}", "{0,1:T(8,128)}"):
        plan = plan_file_pack(tmp_path / "x.npy", layout, dtype="f16")
        with pytest.warns(RuntimeWarning) as caught:
            plan.write(tmp_path / "y.npy")
        assert [str(w.message) for w in caught] == ["overflow encountered in cast"]
        assert plan.losses["x"].inf == x.size
        with np.errstate(over="raise"), pytest.raises(FloatingPointError):
            plan.write(tmp_path / "z.npy")
        assert sorted(p.name for p in tmp_path.iterdir()) == ["x.npy", "y.npy", "y.npy.tilejit.json"]


LIMITED = """
import resource, sys
import tilejit.cli.files, tilejit.files.conversion
from tilejit.cli import main
used = int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_DATA, (used + (256 << 20), -1))
main()
"""


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
def test_a_file_larger_than_memory_is_packed(tmp_path: Path) -> None:
    """512 MiB of elements, 256 MiB of memory. With the whole buffer, the same process runs out of memory."""
    source, packed = tmp_path / "x.npy", tmp_path / "y.npy"
    x = np.lib.format.open_memmap(source, "w+", np.float32, (16384, 8192))
    x[::1000] = np.arange(8192)
    x.flush()
    limited = partial(
        subprocess.run, capture_output=True, text=True, env=environment(TILEJIT_THREADS="1"), check=False
    )
    layout = "{1,0:T(8,128)}"
    command = ["pack", str(source), str(packed), "--layout", layout]
    done = limited([sys.executable, "-c", LIMITED, *command])
    assert done.returncode == 0, done.stderr
    y = tilejit.TiledArray.from_buffer(np.load(packed, mmap_mode="r"), f"f32[16384,8192]{layout}")
    assert (y[15000:15002, 100:300] == x[15000:15002, 100:300]).all()
    at_once = LIMITED.replace("main()", "import tilejit.files.pieces as p; p.MOST_BYTES = 1 << 40; main()")
    done = limited([sys.executable, "-c", at_once, *command])
    assert done.returncode == 1
    assert "memory" in done.stderr
