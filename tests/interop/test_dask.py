"""dask arrays in tiled chunks, against pack of the same boxes and of the whole array."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from tilejit import LayoutError, TilejitError

pytest.importorskip("dask.array", reason="the extra dask is not installed")
pytest.importorskip("zarr", "3.1", reason="the extra dask is not installed")

import dask
import dask.array as da
import zarr
from dask.delayed import Delayed

from tilejit.files.check import check_file
from tilejit.files.file_types import open_recorded
from tilejit.interop.dask import TiledDask, from_zarr, pack, to_flat
from tilejit.interop.dask.chunks import tile_extents

Array = np.ndarray[Any, Any]

CASES: list[tuple[Any, str, tuple[int, ...], Any, dict[str, int]]] = [
    ("{1,0:T(8,128)}", "f4", (100, 300), (40, 128), {}),
    ("{1,0:T(8,128)(2,1)}", "bf16", (61, 200), (16, -1), {}),
    ("{0,1:T(4,16)}", "f4", (37, 41), None, {}),
    ("tpu", "bf16", (40, 500), None, {}),
    ("tenstorrent", "f4", (70, 100), (32, 64), {}),
    ("blis-a", "f4", (45, 33), None, {"mr": 8}),
    ("nChw16c", "f4", (3, 20, 5, 7), (2, 16, 5, 3), {}),
    ("(m mi) n -> m n mi", "f4", (50, 9), (16, 4), {"mi": 8}),
    ("{1,0}", ">f4", (13, 17), (5, 6), {}),
    ("{1,0:T(64,128)(8,1)E(4)}", "s4", (100, 300), (64, 128), {}),
    ("{2,1,0:T(*,8)}", "f4", (6, 10, 12), (2, 5, 12), {}),
    ("(16,32):(32,1)", "f4", (40, 70), None, {}),
    ("Sw<2,2,2> o 0 o (8,32):(32,1)", "f4", (20, 64), (8, 32), {}),
    ("{0:T(128)}", "f4", (1000,), None, {}),
    ("{}", "f4", (), None, {}),
]


def drawn(dims: tuple[int, ...], name: str, seed: int) -> Array:
    random = np.random.default_rng(seed)
    if name == "s4":
        return random.integers(-8, 8, dims).astype(ml_dtypes.int4)
    if name == "bf16":
        return random.integers(-99, 99, dims).astype(ml_dtypes.bfloat16)
    return random.integers(0, 120, dims).astype(name)


def lazy(x: Array) -> Any:
    """In chunks that fit no tile."""
    return da.from_array(x, chunks=tuple(max(1, n // 2 + 1) for n in x.shape))


def same(a: Array, b: Array) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def of_a_chunk(x: Array, t: TiledDask, place: tuple[int, ...]) -> bytes:
    """The buffer of the chunk at a place, by the definition: the box, with zeros up to a complete chunk."""
    box = np.zeros(t.chunk.dimensions, x.dtype.newbyteorder("="))
    part = x[tuple(slice(k * e, (k + 1) * e) for k, e in zip(place, box.shape, strict=True))]
    box[tuple(slice(0, n) for n in part.shape)] = part
    return tj.pack(box, t.chunk).buffer.tobytes()


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.full
@pytest.mark.parametrize(("layout", "dtype", "dims", "chunks", "parameters"), CASES, ids=str)
def test_chunks_are_packed_one_by_one(
    layout: Any, dtype: str, dims: tuple[int, ...], chunks: Any, parameters: Any, seed: int, tmp_path: Path
) -> None:
    """Every buffer, the restored array, and both again through zarr."""
    x = drawn(dims, dtype, seed)
    t = pack(lazy(x), layout, chunks=chunks, **parameters)
    native = x.astype(x.dtype.newbyteorder("="))
    t.to_zarr(tmp_path / "z")
    again = from_zarr(tmp_path / "z")
    for found in (t, again):
        buffers = found.array.compute()
        assert all(buffers[place].tobytes() == of_a_chunk(x, t, place) for place in np.ndindex(t.grid))
        assert same(found.unpack().compute(), native)
        assert found.shape == dims
        assert found.nbytes == buffers.nbytes
    assert again.layout == t.layout
    assert same(zarr.open_array(tmp_path / "z")[...].view(native.dtype), native) or dtype == "s4"


@pytest.mark.full
@pytest.mark.parametrize(("layout", "dtype", "dims", "chunks", "parameters"), CASES, ids=str)
def test_a_flat_file_is_the_whole_buffer(
    layout: Any, dtype: str, dims: tuple[int, ...], chunks: Any, parameters: Any, seed: int, tmp_path: Path
) -> None:
    x = drawn(dims, dtype, seed)
    t = pack(lazy(x), layout, chunks=chunks, padding=1, **parameters)
    if t.layout is None:
        with pytest.raises(LayoutError, match="of a chunk, not of the whole"):
            t.to_flat(tmp_path / "x.bin")
        return
    t.to_flat(tmp_path / "x.bin", piece_bytes=3000)
    whole = tj.pack(x.astype(x.dtype.newbyteorder("=")), layout, padding=1, **parameters)
    assert (tmp_path / "x.bin").read_bytes() == whole.buffer.tobytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.bin", "x.bin.tilejit.json"]
    checked = check_file(tmp_path / "x.bin")
    assert (checked.packed, checked.problems) == (1, ())
    file = open_recorded(tmp_path / "x.bin")
    (one,) = file.packings(file.entries[0])
    assert (one.spec.layout, one.spec.padding_value) == (whole.layout.layout, 1)


@pytest.mark.full
@pytest.mark.parametrize(
    ("first", "second", "chunks", "moves"),
    [
        ("{1,0:T(8,128)}", "tenstorrent", (64, 128), True),
        ("{1,0:T(8,128)}", "{0,1:T(4,8)}", (40, 128), True),
        ("{1,0:T(8,128)}", "tenstorrent", (40, 128), False),
        ("{1,0:T(8,8)}", "(16,32):(1,16)", (16, 32), True),
        ("(16,32):(1,16)", "{1,0:T(8,128)}", None, False),
    ],
)
def test_relayout_of_chunks(first: str, second: str, chunks: Any, moves: bool, seed: int) -> None:
    """The chunks of the array are packed again. If they are complete tiles of both layouts, extents stay."""
    x = drawn((150, 300), "f4", seed)
    t = pack(lazy(x), first, chunks=chunks)
    u = t.relayout(second, padding=3)
    assert (u.chunk.dimensions == t.chunk.dimensions) == moves
    new = pack(lazy(x), second, chunks=u.chunk.dimensions, padding=3)
    assert same(u.array.compute(), new.array.compute())
    assert (u.shape, u.chunk, u.layout) == (new.shape, new.chunk, new.layout)


def test_one_byte_integers_become_packed_ones(seed: int) -> None:
    x = drawn((70, 130), "s4", seed)
    shape = "s4[70,130]{1,0:T(64,128)(8,1)E(4)}"
    assert same(pack(lazy(x.astype(np.int8)), shape).unpack().compute(), x)
    with pytest.raises(LayoutError, match="9"):
        pack(lazy(x.astype(np.int8) * 0 + 9), shape).unpack().compute()


def test_missing_chunks_hold_the_fill_value(tmp_path: Path, seed: int) -> None:
    x = drawn((40, 200), "f4", seed)
    pack(lazy(x), "{1,0:T(8,128)}", chunks=(16, 128)).to_zarr(tmp_path)
    (tmp_path / "c/2/1").unlink()
    x[32:, 128:] = 0
    assert same(from_zarr(tmp_path).unpack().compute(), x)


def test_zarr_writes_the_same_files(tmp_path: Path, seed: int) -> None:
    """The codec itself makes the same files, including those at the edges."""
    x = drawn((40, 200), "f4", seed)
    pack(lazy(x), "{1,0:T(8,128)}", chunks=(16, 128)).to_zarr(tmp_path / "ours")
    theirs = zarr.create_array(
        tmp_path / "theirs",
        shape=x.shape,
        chunks=(16, 128),
        dtype="f4",
        serializer=zarr.open_array(tmp_path / "ours").metadata.codecs[0],
        compressors=None,
    )
    theirs[...] = x
    files = sorted(p.relative_to(tmp_path / "ours") for p in (tmp_path / "ours").rglob("c/*/*"))
    assert len(files) == 6
    for file in files:
        assert (tmp_path / "ours" / file).read_bytes() == (tmp_path / "theirs" / file).read_bytes()


def test_nothing_is_computed_early(tmp_path: Path) -> None:
    def never(block: Array) -> Array:
        raise AssertionError("computed")

    x = da.ones((64, 256), chunks=(32, 128), dtype="f4").map_blocks(never, meta=np.empty((0, 0), "f4"))
    t = pack(x, "{1,0:T(8,128)}").relayout("{0,1:T(8,8)}")
    write = t.to_zarr(tmp_path / "z", compute=False)
    assert isinstance(write, Delayed)
    with pytest.raises(AssertionError, match="computed"):
        write.compute()
    with pytest.raises(AssertionError, match="computed"):
        t.to_flat(tmp_path / "x.bin")
    assert [p.name for p in tmp_path.iterdir()] == ["z"]  # no unfinished file


@pytest.mark.full
def test_an_array_exists_once_all_its_chunks_do(tmp_path: Path, seed: int) -> None:
    """A run that fails leaves no array, which would hold zeros. The next run writes it."""
    x = drawn((64, 256), "f4", seed)

    def failing(block: Array, block_id: tuple[int, ...]) -> Array:
        if block_id == (1, 1):
            raise OSError("no more")
        return block

    bad = lazy(x).rechunk((32, 128)).map_blocks(failing, dtype="f4", meta=np.empty((0, 0), "f4"))
    for _ in range(2):
        with pytest.raises(OSError, match="no more"):
            pack(bad, "{1,0:T(8,128)}").to_zarr(tmp_path / "z")
        with pytest.raises(FileNotFoundError):
            from_zarr(tmp_path / "z")
    t = pack(lazy(x), "{1,0:T(8,128)}", chunks=(32, 128))
    first, second = (t.to_zarr(tmp_path / "z", compute=False) for _ in range(2))
    first.compute()
    assert same(from_zarr(tmp_path / "z").unpack().compute(), x)
    second.compute()  # an identical array
    other = pack(lazy(x), "{0,1}")
    late = other.to_zarr(tmp_path / "y", compute=False)
    t.to_zarr(tmp_path / "y")
    with pytest.raises(LayoutError, match="another array was created"):
        late.compute()
    store: dict[str, Any] = {}
    t.to_zarr(store)
    assert same(from_zarr(store).unpack().compute(), x)
    with pytest.raises(TilejitError, match="a folder"):
        t.to_zarr(zarr.storage.ZipStore(tmp_path / "z.zip", mode="w"))


def test_tasks_hold_layouts_and_no_kernels(seed: int) -> None:
    """A pickled task is only as large as its description, even after kernels were compiled."""
    t = pack(da.ones((64, 256), chunks=(64, 256), dtype="f4"), "{1,0:T(8,128)}")
    before = len(pickle.dumps(dict(t.unpack().__dask_graph__())))
    t.unpack().compute()
    assert len(pickle.dumps(dict(t.unpack().__dask_graph__()))) == before < 20_000


@pytest.mark.parametrize(
    ("tiles", "extents"),
    [("T(8,128)(2,1)", (8, 128)), ("T(4,8)(2,4,8)", (4, 16)), ("T(128)", (1, 128)), ("", (1, 1))],
)
def test_tile_extents(tiles: str, extents: tuple[int, ...]) -> None:
    spec = tj.as_layout(f"f32[5,7]{{1,0:{tiles}}}" if tiles else "f32[5,7]{1,0}")
    assert isinstance(spec, tj.Shape)
    assert tile_extents(spec) == extents


X = da.ones((100, 300), chunks=(50, 100), dtype="f4")
T8 = "{1,0:T(8,128)}"


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: pack(X, T8, chunks=(12, 128)), LayoutError, "pass multiples of .*8.*128"),
        (lambda: pack(X, T8, chunks=(8, 0)), LayoutError, "do not fit"),
        (lambda: pack(X, T8, chunks=(8,)), LayoutError, "do not fit"),
        (lambda: pack(X, T8, chunks=1.5), TypeError, "expected one integer"),
        (lambda: pack(X, T8, chunks="auto"), TypeError, "expected one integer"),
        (lambda: pack(X, T8, chunks=(8, None)), TypeError, "expected one integer"),
        (lambda: pack(X, T8, chunks=np.int64(100)), LayoutError, "multiples of .*8.*128"),
        (lambda: pack(X, T8).to_zarr(None), TypeError, "got None"),
        (lambda: to_flat(X, T8, "/none", piece_bytes=0), LayoutError, "expected at least 1, got 0"),
        (lambda: to_flat(X, T8, "/none", piece_bytes=True), TypeError, "got bool"),
        (lambda: to_flat(X, T8, "/none", piece_bytes=1.5), TypeError, "got float"),
        (
            lambda: pack(X.map_blocks(lambda b: b[:3], meta=X._meta), T8).unpack().compute(),
            LayoutError,
            "pass chunks= to map_blocks",
        ),
        (lambda: pack(X, "(16,32):(32,1)", chunks=(32, 32)), LayoutError, "do not fit"),
        (lambda: pack(X, "(16):(1)"), LayoutError, "pass one mode for each dimension"),
        (lambda: pack(X, "bf16[100,300]{1,0}"), LayoutError, "astype"),
        (lambda: pack(X, "f32[100,301]{1,0}"), LayoutError, "dimensions"),
        (lambda: pack(X, T8, padding="keep"), LayoutError, "padding: expected a number"),
        (lambda: pack(X, T8, dtype="f4"), TypeError, "dtype"),
        (lambda: pack(X, T8, threads=0), tj.KernelError, "threads"),
        (lambda: pack(X[X[:, 0] > 0], T8), LayoutError, "compute_chunk_sizes"),
        (lambda: to_flat(X[X[:, 0] > 0], T8, "x.bin"), LayoutError, "compute_chunk_sizes"),
        (lambda: pack(X[:0], T8), LayoutError, "no elements"),
        (lambda: pack(X.astype(object), T8), TypeError, "object"),
        (lambda: pack(pack(X, T8), T8), TypeError, "unpack it first"),
        (lambda: pack(X, T8).relayout("bf16[100,300]{1,0}"), LayoutError, "same dtype"),
        (
            lambda: pack(X, tj.make_shape("f32", (100, 300), padded_dimensions=(128, 300))),
            LayoutError,
            "padded_dimensions",
        ),
        (lambda: to_flat(X.astype("f8"), "f32[100,300]{1,0}", "/none"), LayoutError, "astype"),
        (
            lambda: to_flat(X, "Sw<2,4,3> o 0 o (128,512):(512,1)", "/none", piece_bytes=30),
            LayoutError,
            "piece_bytes=[0-9]+ to write",
        ),
        (lambda: to_flat(X, "(16,32):(32,1)", "/none"), LayoutError, "layout of the whole array"),
    ],
)
def test_refused(call: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()


def test_zarr_arrays_that_are_refused(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "plain", shape=(8, 8), chunks=(4, 4), dtype="f4")
    with pytest.raises(LayoutError, match="not plain tiled buffers: codecs BytesCodec, ZstdCodec"):
        from_zarr(tmp_path / "plain")
    t = pack(da.ones((8, 8), dtype="f4"), "{1,0:T(4,4)}")
    with pytest.raises(LayoutError, match="overwrite=True"):
        t.to_zarr(tmp_path / "plain")
    t.to_zarr(tmp_path / "plain", overwrite=True)
    (tmp_path / "plain/c/0/0").write_bytes(b"short")
    with pytest.raises(LayoutError, match="has 5 bytes"):
        from_zarr(tmp_path / "plain").unpack().compute()


def test_reprs_have_two_lines() -> None:
    t = pack(da.ones((100, 300), dtype="f4", chunks=(40, 128)), "{1,0:T(8,128)}")
    assert repr(t) == (
        "TiledDask(f32[100,300]{1,0:T(8,128)},\n  3 x 3 chunks of f32[40,128]{1,0:T(8,128)}, 184320 bytes)"
    )
    t = pack(da.ones((40, 70), dtype="f4"), "(16,32):(32,1)")
    assert repr(t) == ("TiledDask(float32[40,70],\n  3 x 3 chunks of f32[16,32] (16,32):(32,1), 18432 bytes)")
