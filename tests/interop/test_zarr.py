"""zarr arrays with tiled chunks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilejit
from tilejit import LayoutError

zarr = pytest.importorskip("zarr", "3.1", reason="the extra zarr is not installed")

from zarr.codecs import GzipCodec, TransposeCodec  # noqa: E402
from zarr.storage import LocalStore, MemoryStore, WrapperStore  # noqa: E402

from tests.tools.oracle import run_python  # noqa: E402
from tilejit.interop.zarr import TileCodec  # noqa: E402

NAME = "tilejit.tile"


class Counted(WrapperStore[Any]):
    """A store that counts the bytes and requests of chunks that are read.

    Open it for writing too, because zarr otherwise reads from a copy of it.
    """

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.bytes_read = self.requests = 0

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        data = await super().get(key, prototype, byte_range)
        if data is not None and not key.endswith("zarr.json"):
            self.bytes_read += len(data)
            self.requests += 1
        return data


def ramp(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def made(store: Any, x: np.ndarray[Any, Any], chunks: tuple[int, ...], codec: Any, **more: Any) -> Any:
    z = zarr.create_array(
        store, shape=x.shape, dtype=x.dtype, chunks=chunks, serializer=codec, **{"compressors": None} | more
    )
    z[...] = x
    return z


LAYOUTS = [
    TileCodec("tpu"),
    TileCodec("{0,1:T(8,128)}"),
    TileCodec("blis-a", {"mr": 4}),
    TileCodec("(m mi) n -> m n mi", {"mi": 8}),
    TileCodec("(16,256):(256,1)"),
]


@pytest.mark.full
@pytest.mark.parametrize(
    ("codec", "dtype"),
    [*((codec, "f4") for codec in LAYOUTS), *((LAYOUTS[0], t) for t in (">i2", "c8"))],
    ids=str,
)
def test_arrays_are_restored(codec: TileCodec, dtype: str) -> None:
    """zarr treats chunks at the edges as complete ones. Stored chunks equal the result of `pack`."""
    x, store = ramp((37, 300), dtype), MemoryStore(held := {})
    made(store, x, (16, 256), codec)
    z = zarr.open_array(store, mode="r")
    assert (z[...] == x).all()
    assert (z[3:30:7, 250:] == x[3:30:7, 250:]).all()
    if len(codec.parameters) == 0:
        native = x.astype(x.dtype.newbyteorder("="))[:16, :256]
        assert held["c/0/0"].to_bytes() == tilejit.pack(native, codec.layout).buffer.tobytes()


def test_booleans_and_arrays_of_any_rank() -> None:
    for shape, chunks in (((), ()), ((50,), (20,)), ((3, 20, 140), (2, 9, 130))):
        x, store = ramp(shape, np.int64) > 1, MemoryStore()
        made(store, x, chunks, TileCodec("tpu"))
        assert np.array_equal(zarr.open_array(store, mode="r")[...], x)


@pytest.mark.full
def test_a_fresh_process_finds_the_codec(tmp_path: Path) -> None:
    x = ramp((64, 256), np.float32)
    made(LocalStore(tmp_path / "a.zarr"), x, (32, 128), TileCodec("tpu"))
    code = (
        "import sys, zarr\n"
        "assert not any(m.split('.')[0] in ('tilejit', 'codegen', 'numba') for m in sys.modules)\n"
        "z = zarr.open_array(sys.argv[1], mode='r')\n"
        "print(z[40, 200], float(z[...].sum()), z.serializer.layout)\n"
    )
    done = run_python(code, tmp_path / "a.zarr")
    assert done.stdout == f"{x[40, 200]} {float(x.sum())} tpu\n", done.stderr


def test_the_description_survives_json(tmp_path: Path) -> None:
    codec = TileCodec("tenstorrent", {"tile": [16, 32], "face": 8})
    made(LocalStore(tmp_path), ramp((32, 64), np.float32), (32, 64), codec)
    (described,) = json.loads((tmp_path / "zarr.json").read_text())["codecs"]
    parameters = {"face": 8, "tile": [16, 32]}
    assert described == {"name": NAME, "configuration": {"layout": "tenstorrent", "parameters": parameters}}
    assert TileCodec.from_dict(described) == codec
    again = {"name": NAME, "configuration": {"layout": "tpu", "dtype": "BF16"}}
    assert TileCodec.from_dict(again).to_dict()["configuration"]["dtype"] == "bf16"


@pytest.mark.parametrize("more", [{"shards": (64, 256)}, {"compressors": [GzipCodec()]}, {}], ids=str)
def test_shards_and_compressors_around_the_codec(more: dict[str, Any]) -> None:
    x, store = ramp((100, 300), np.float32), MemoryStore()
    made(store, x, (32, 128), TileCodec("{1,0:T(8,128)}"), **more)
    z = zarr.open_array(store)
    assert (z[...] == x).all()
    assert (z[17:60, 5:299:3] == x[17:60, 5:299:3]).all()
    z[30:40, 100:200] = -1
    x[30:40, 100:200] = -1
    assert (zarr.open_array(store, mode="r")[...] == x).all()


def test_a_transpose_before_the_codec() -> None:
    x, store = ramp((40, 300), np.float32), MemoryStore(held := {})
    made(store, x, (20, 150), TileCodec("tpu"), filters=[TransposeCodec(order=(1, 0))])
    assert (zarr.open_array(store, mode="r")[5:, ::2] == x[5:, ::2]).all()
    assert len(held["c/0/0"]) == tilejit.as_layout("tpu", dims=(150, 20), dtype="f32").size_in_bytes


def test_unwritten_chunks_have_the_fill_value() -> None:
    store = MemoryStore()
    z = zarr.create_array(
        store, shape=(64, 256), dtype="f4", chunks=(32, 128), fill_value=7, serializer=TileCodec("tpu")
    )
    z[:3, :3] = 1
    want = np.full((64, 256), 7, np.float32)
    want[:3, :3] = 1
    z = zarr.open_array(store, mode="r")
    assert (z[...] == want).all()
    assert (z[::9, 120:140] == want[::9, 120:140]).all()
    assert z[63, 255] == 7


SELECTIONS: list[Any] = [
    (slice(5, 9), slice(100, 140)),
    (3, slice(None)),
    (slice(None), 200),
    (-1, -1),
    (slice(2, 60, 7), slice(None, None, 31)),
    (slice(5, 5), slice(None)),
    Ellipsis,
]


@pytest.mark.full
@pytest.mark.parametrize(
    ("codec", "dtype"),
    [
        (TileCodec("{1,0:T(8,128)}"), "f4"),
        (TileCodec("tpu", dtype="bf16"), "u2"),
        (TileCodec("{1,0:T(64,128)(8,1)E(4)}", dtype="s4"), "i1"),
        (TileCodec("{1,0:T(32,128)(32,1)E(1)}"), "?"),
    ],
    ids=str,
)
def test_selections_agree_with_numpy(codec: TileCodec, dtype: str) -> None:
    x = (ramp((96, 300), np.int64) % 7 - 3 if dtype != "?" else ramp((96, 300), np.int64) % 3).astype(dtype)
    store = MemoryStore()
    made(store, x, (80, 280), codec)
    z = zarr.open_array(store, mode="r")
    for selection in SELECTIONS:
        assert np.array_equal(z[selection], x[selection]), selection
    rows, columns = [3, 79, 80, 95, 4], [299, 0, 279, 280, 7]
    assert np.array_equal(z.oindex[rows[:4], columns[1:4]], x[np.ix_(rows[:4], columns[1:4])])
    assert np.array_equal(z.oindex[rows[:4], 2:9], x[rows[:4], 2:9])
    assert np.array_equal(z.vindex[rows, columns], x[rows, columns])
    mask = np.zeros(x.shape, bool)
    mask[rows, columns] = True
    assert np.array_equal(z.vindex[mask], x[mask])


def test_a_selection_reads_only_the_tiles_that_it_needs() -> None:
    """Chunks of 4 MiB, in tiles of 4 KiB."""
    x, store = ramp((2048, 2048), np.float32), Counted(MemoryStore())
    made(store, x, (1024, 1024), TileCodec("{1,0:T(8,128)}"))
    z = zarr.open_array(store, mode="r+")
    tile = 8 * 128 * 4
    for selection, tiles, requests in (
        ((5, 7), 1, 1),
        ((slice(0, 8), slice(0, 128)), 1, 1),
        ((slice(1000, 1032), slice(1000, 1048)), 8, 8),
        ((slice(0, 16), slice(0, 1024)), 16, 1),
        ((slice(0, 1024), 5), 128, 128),
        ((slice(0, 1024), slice(0, 1024)), 1024, 1),
    ):
        store.bytes_read = store.requests = 0
        assert np.array_equal(z[selection], x[selection])
        assert store.bytes_read <= tiles * tile, selection
        assert store.requests <= requests, selection
    store.bytes_read = 0
    rows = [0, 1000, 2000]
    assert np.array_equal(z.vindex[rows, rows], x[rows, rows])
    assert store.bytes_read == 12


def test_a_compressed_chunk_is_read_completely() -> None:
    x, store = ramp((64, 256), np.float32), Counted(MemoryStore())
    made(store, x, (64, 256), TileCodec("tpu"), compressors=[GzipCodec()])
    assert zarr.open_array(store, mode="r+")[5, 7] == x[5, 7]
    assert store.requests == 1


def test_a_damaged_chunk_is_an_error(tmp_path: Path) -> None:
    x = ramp((64, 256), np.float32)
    z = made(LocalStore(tmp_path), x, (64, 256), TileCodec("tpu"))
    chunk = tmp_path / "c" / "0" / "0"
    chunk.write_bytes(chunk.read_bytes()[:-1])
    for selection in (..., (63, 255)):
        with pytest.raises(LayoutError, match="a chunk does not have the 65536 bytes"):
            z[selection]


@pytest.mark.parametrize(
    ("configuration", "says"),
    [
        ({"layout": "tpu", "tile": 8}, "unknown key 'tile'"),
        ({"parameters": {"mr": 8}}, "has no layout"),
        ({"layout": 8}, "layout: expected a str"),
        ({"layout": "blis-a", "parameters": {"mr": "8"}}, "'mr': expected an integer or a list of integers"),
        ({"layout": "blis-a", "parameters": [8]}, "parameters: expected a map"),
        ({"layout": "blis-a", "parameters": {"threads": 8}}, "the name threads"),
        ({"layout": "tpu", "dtype": "nope"}, "nope"),
        ({"layout": "tpu", "dtype": 8}, "dtype: expected a str"),
        (None, "has no configuration"),
    ],
    ids=str,
)
def test_descriptions_that_are_refused(configuration: Any, says: str) -> None:
    with pytest.raises(LayoutError, match=says):
        TileCodec.from_dict({"name": NAME, "configuration": configuration})


@pytest.mark.parametrize(
    ("codec", "dtype", "says"),
    [
        (TileCodec("{2,1,0}"), "f4", r"chunks float32\[8, 8\].*\{2,1,0\}"),
        (TileCodec("nope-nope"), "f4", "unknown format"),
        (TileCodec("blis-a", {"nr": 8}), "f4", "nr"),
        (TileCodec("f64[8,8]"), "f4", "is for f64, but the chunks are f32"),
        (TileCodec("f32[8,9]"), "f4", "8.*9"),
        (TileCodec("(8,8):(0,1)"), "f4", "chunks float32"),
        (TileCodec("tpu", dtype="bf16"), "f4", "cannot hold elements of bf16"),
        (TileCodec("tpu", dtype="s4"), "i2", "cannot hold elements of s4"),
    ],
    ids=str,
)
def test_arrays_that_are_refused_on_creation(codec: TileCodec, dtype: str, says: str) -> None:
    store = MemoryStore(held := {})
    with pytest.raises(LayoutError, match=f"(?s){says}"):
        zarr.create_array(store, shape=(20, 20), dtype=dtype, chunks=(8, 8), serializer=codec)
    assert not held


def test_values_outside_narrow_dtypes_are_refused() -> None:
    x = np.full((8, 8), 9, np.int8)
    with pytest.raises(LayoutError, match="9"):
        made(MemoryStore(), x, (8, 8), TileCodec("tpu", dtype="s4"))


@pytest.mark.filterwarnings("ignore:The data type .RawBytes")
def test_raw_bytes_have_the_codecs_dtype() -> None:
    """bfloat16 has no name in zarr, so raw elements of two bytes hold it."""
    import ml_dtypes

    x = ramp((20, 130), ml_dtypes.bfloat16)
    store = MemoryStore(held := {})
    made(store, x.view("u2"), (20, 130), TileCodec("tpu", dtype="bf16"))
    assert held["c/0/0"].to_bytes() == tilejit.pack(x, "tpu").buffer.tobytes()
    raw = MemoryStore(held_raw := {})
    made(raw, x.view("V2"), (20, 130), TileCodec("tpu", dtype="bf16"))
    assert held_raw["c/0/0"].to_bytes() == held["c/0/0"].to_bytes()
    assert zarr.open_array(raw, mode="r")[...].tobytes() == x.tobytes()
    with pytest.raises(LayoutError, match="name their dtype"):
        made(MemoryStore(), x.view("V2"), (20, 130), TileCodec("tpu"))


def test_the_event_loop_is_not_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packing and unpacking run in threads other than that of zarr's loop."""
    import asyncio
    import threading

    import tilejit.interop.zarr as module

    seen: list[bool] = []

    def noted(real: Any) -> Any:
        def call(*args: Any, **more: Any) -> Any:
            try:
                asyncio.get_running_loop()
                seen.append(False)
            except RuntimeError:
                seen.append(threading.current_thread() is not threading.main_thread())
            return real(*args, **more)

        return call

    monkeypatch.setattr(module, "pack", noted(module.pack))
    monkeypatch.setattr(module, "unpack", noted(module.unpack))
    x = ramp((8, 128), np.float32)
    z = made(MemoryStore(), x, (8, 128), TileCodec("tpu"), compressors=[GzipCodec()])
    assert (z[...] == x).all()
    assert seen
    assert all(seen)
