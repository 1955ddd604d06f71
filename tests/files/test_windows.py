"""Files are read through windows that are smaller than the files, with the same elements."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilejit
from tests.tools.oracle import environment
from tilejit.arrays.memory import Array
from tilejit.files import windows
from tilejit.files.conversion import open_file, plan_file_pack
from tilejit.files.windows import FileArray, FileBytes, FileTiles

BOXES = (
    (slice(0, 70), slice(0, 90)),
    (slice(3, 4), slice(0, 90)),
    (slice(5, 61), slice(7, 8)),
    (slice(9, 50), slice(30, 77)),
)
LAYOUTS = (
    "f32[70,90]{1,0:T(8,128)}",
    "f32[70,90]{0,1:T(4,4)}",
    "bf16[70,90]{1,0:T(8,128)(2,1)}",
    "s4[70,90]{1,0:T(8,128)E(4)}",
    "pred[70,90]{0,1:E(1)}",
    "f32[70,90] (70,90):(1,128)",
    "f32[70,90] Sw<3,0,3> o 0 o (128,128):(128,1)",
)


@pytest.fixture(autouse=True)
def _small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "WINDOW_BYTES", 5000)


def stored(path: Path, data: bytes, skip: int) -> FileBytes:
    """The bytes in a file, after others."""
    path.write_bytes(bytes(skip) + data)
    with open(path, "rb") as file:
        return FileBytes.of(file.fileno(), str(path), skip, len(data))


@pytest.mark.full
@pytest.mark.parametrize("layout", LAYOUTS)
def test_boxes_of_packed_files(tmp_path: Path, layout: str) -> None:
    spec = tilejit.as_layout(layout)
    x = (np.arange(70 * 90).reshape(70, 90) % 3).astype(spec.dtype)
    tiles = FileTiles(stored(tmp_path / "x", tilejit.pack(x, spec).buffer.tobytes(), 6), spec)
    for box in BOXES:
        assert np.array_equal(tiles[box], x[box])
    assert np.array_equal(tiles.whole().unpack(), x)


def test_a_box_within_tiles_maps_only_these(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(70 * 90, dtype=np.float32).reshape(70, 90)
    spec = tilejit.as_layout("f32[70,90]{1,0:T(8,128)}")
    tiles = FileTiles(stored(tmp_path / "x", tilejit.pack(x, spec).buffer.tobytes(), 0), spec)
    mapped: list[int] = []
    read = FileBytes.map

    def counted(data: FileBytes, begin: int, end: int) -> Array:
        mapped.append(end - begin)
        return read(data, begin, end)

    monkeypatch.setattr(FileBytes, "map", counted)
    assert np.array_equal(tiles[slice(9, 16), slice(0, 90)], x[9:16])
    assert np.array_equal(tiles[slice(63, 66), slice(3, 90)], x[63:66, 3:])
    one, other = mapped
    assert one <= 8 * 128 * 4
    assert other <= 2 * 8 * 128 * 4


@pytest.mark.parametrize("order", ["C", "F"])
def test_boxes_of_arrays(tmp_path: Path, order: str) -> None:
    x = np.arange(70 * 90, dtype=">i4").reshape(70, 90)
    data = stored(tmp_path / "x", x.tobytes(order), 3)  # type: ignore[arg-type]
    array = FileArray(data, x.dtype, x.shape, order == "F")
    for box in BOXES:
        assert np.array_equal(array[box], x[box])
    assert np.array_equal(array.whole(), x)


def test_a_file_that_becomes_shorter_is_reported(tmp_path: Path) -> None:
    source, target = tmp_path / "x.npy", tmp_path / "y.npy"
    np.save(source, np.ones((64, 256), np.float32))
    plan = plan_file_pack(open_file(source), "{1,0:T(8,128)}")
    with open(source, "r+b") as file:
        file.truncate(10_000)
    with pytest.raises(tilejit.LayoutError, match="became shorter while it was read"):
        plan.write(target)
    assert not target.exists()


LIMITED = """
import resource, sys
from tilejit.cli import app
spare, source, small, *rest = sys.argv[1:]
def run(*arguments):
    try:
        app(list(arguments))
    except SystemExit as end:
        return end.code
first = rest[0], small, rest[1], *rest[2:]  # loads everything that the command needs
assert run(*first) == 0
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (int(spare) << 20), -1))
sys.exit(run(rest[0], source, *rest[1:]))
"""


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
def test_files_may_exceed_the_address_space(tmp_path: Path) -> None:
    """A file of 768 MiB with 448 MiB of address space. With 16 MiB, the run fails and leaves nothing."""
    source, small, packed = tmp_path / "x.npy", tmp_path / "small.npy", tmp_path / "y.npy"
    rows = 196_608
    x = np.lib.format.open_memmap(source, "w+", np.float32, (rows, 1024))
    x[100_001] = np.arange(1024)
    x.flush()
    np.save(small, np.ones((16_384, 1024), np.float32))

    def run(spare: int, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", LIMITED, str(spare), str(source), str(small), *command],
            capture_output=True,
            text=True,
            env=environment(TILEJIT_THREADS="1"),
            check=False,
        )

    for layout in ("{1,0:T(8,128)}", "{0,1}"):
        done = run(448, "pack", str(packed), "--layout", layout, "-q")
        assert done.returncode == 0, done.stderr
        y = tilejit.TiledArray.from_buffer(np.load(packed, mmap_mode="r"), f"f32[{rows},1024]{layout}")
        assert np.array_equal(y[100_000:100_003], x[100_000:100_003])
        packed.unlink()
    failed = run(16, "pack", str(packed), "--layout", "{1,0:T(8,128)}", "-q")
    assert failed.returncode == 1
    assert "memory" in failed.stderr
    assert {p.name for p in tmp_path.iterdir()} <= {"x.npy", "small.npy", "y.npy", "y.npy.tilejit.json"}
