"""Repeated gathers and scatters give the results and errors of first calls."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilejit as tj
from tests.copies.test_tiles import INTEGERS, chunk_table_of, filled, same, tile_and_grid, values_of, written
from tests.tools.extent import examples
from tests.tools.guard import Guarded

REPEATS = 11
"""Calls of a kind. Native code answers the later ones."""

SPECS = (
    "f32[37,131]{1,0:T(8,16)}",
    "bf16[64,256]{1,0:T(16,128)(2,1)}",
    "s8[70,40]{1,0:T(32,32)(4,1)}",
    "f64[5,9,20]{2,0,1:T(4,8)}",
    "u16[100]{0:T(16)}",
    "s4[130,260]{1,0:T(64,128)(8,1)E(4)}",
    "u2[37,131]{0,1:T(8,16)(2,1)E(2)}",
    "pred[70,300]{1,0:T(32,128)(32,1)E(1)}",
)


def some_ids(spec: tj.Shape, count: int, seed: int) -> Any:
    """Different tiles, in random order."""
    return np.random.default_rng(seed).permutation(prod(tile_and_grid(spec)[0]))[:count]


@pytest.mark.full
@pytest.mark.parametrize("text", SPECS)
def test_repeated_calls_are_the_definition(text: str) -> None:
    spec = tj.Shape.parse(text)
    grid, tile = tile_and_grid(spec)
    t, again = filled(spec), filled(spec, 4)
    slots, zeros = chunk_table_of(spec), np.zeros(t.nbytes, np.uint8)
    dims = ",".join(map(str, (3, *tile)))
    other = tj.Shape.parse(f"{spec.primitive_type}[{dims}]{{{','.join(map(str, range(len(tile) + 1)))}}}")
    held = filled(other)
    out = np.empty((3, *tile), spec.dtype)
    for seed in range(REPEATS):
        ids = some_ids(spec, 3, seed)
        want = values_of(spec, t.buffer.view(np.uint8))[slots[ids]]
        positions = np.stack(np.unravel_index(ids, grid), 1)
        for given_ids in (ids, positions):
            out.view(np.uint8)[...] = 0xA5
            assert tj.gather_tiles(t, given_ids, out) is out
            assert same(out, want, spec)
            fresh = tj.gather_tiles(t, given_ids)
            assert same(fresh, want, spec)
            assert fresh.flags.writeable
            assert tj.gather_tiles(t, given_ids, held) is held
            assert same(held.unpack(), want, spec)
            for values in (out, held):
                again.buffer.view(np.uint8)[...] = 0
                tj.scatter_tiles(again, given_ids, values)
                assert again.buffer.tobytes() == written(spec, zeros, ids, want).tobytes()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_refused_ids_write_nothing(dtype: str) -> None:
    """Also after calls that native code answered."""
    t = filled(tj.Shape.parse(SPECS[0]))
    before, out = t.buffer.tobytes(), np.empty((3, 8, 16), np.float32)
    highest = min(int(np.iinfo(np.dtype(dtype)).max), 2**64 - 1)
    for _ in range(REPEATS):
        tj.gather_tiles(t, np.array([4, 0, 44], dtype), out)
        tj.scatter_tiles(t, np.array([4, 0, 44], dtype), out)
        tj.gather_tiles(t, np.array([[0, 4], [0, 0], [4, 8]], dtype), out)
        tj.scatter_tiles(t, np.array([[0, 4], [0, 0], [4, 8]], dtype), out)
    spoiled = np.full_like(out, 77)
    flat = [[4, 0, 45], [highest, 0, 1]] + ([] if "u" in dtype else [[4, -1, 3]])
    axes = [[[0, 9], [0, 0], [4, 8]], [[5, 0], [0, 0], [4, 8]]]
    for wrong in (*flat, *axes):
        with pytest.raises(tj.LayoutIndexError, match="is out of range"):
            tj.gather_tiles(t, np.array(wrong, dtype), spoiled)
        with pytest.raises(tj.LayoutIndexError, match="is out of range"):
            tj.gather_tiles(t, np.array(wrong, dtype))
        with pytest.raises(tj.LayoutIndexError, match="is out of range"):
            tj.scatter_tiles(t, np.array(wrong, dtype), spoiled)
    assert (spoiled == 77).all()
    assert t.buffer.tobytes() == before


def test_a_tile_that_is_named_twice() -> None:
    t = filled(tj.Shape.parse(SPECS[0]))
    values = np.arange(3 * 128, dtype=np.float32).reshape(3, 8, 16)
    for _ in range(REPEATS):
        tj.scatter_tiles(t, np.array([4, 0, 44]), values)
        tj.scatter_tiles(t, np.array([3, 1, 2]), values, duplicates="last")
        before = t.buffer.tobytes()
        with pytest.raises(tj.LayoutError, match="tile 4 twice, at positions 0 and 2"):
            tj.scatter_tiles(t, np.array([4, 0, 4]), values + 1)
        assert t.buffer.tobytes() == before
        tj.scatter_tiles(t, np.array([3, 1, 3]), values, duplicates="last")
        assert (tj.gather_tiles(t, np.array([3, 1, 2])) == values[[2, 1, 2]]).all()
        assert (tj.gather_tiles(t, np.array([1, 1, 1])) == values[[1, 1, 1]]).all()


@given(st.data())
@settings(max_examples=examples(5, full=60))
def test_duplicates_among_many(data: st.DataObject) -> None:
    """Naming every tile once is accepted. Naming one tile twice is refused, wherever it is."""
    count = data.draw(st.integers(2, 300))
    t = tj.TiledArray.from_buffer(np.zeros(1 << 12, np.uint8), "u8[4096]{0:T(2)}")
    shuffled = np.random.default_rng(data.draw(st.integers(0, 99))).permutation(2048)
    ids = (shuffled if data.draw(st.booleans()) else np.arange(2048))[:count]
    values = np.arange(2 * count, dtype=np.uint8).reshape(count, 2)
    tj.scatter_tiles(t, ids, values)
    assert (t.buffer.reshape(-1, 2)[ids] == values).all()
    one = data.draw(st.integers(0, count - 1))
    other = data.draw(st.integers(0, count - 1).filter(lambda k: k != one))
    ids[one] = ids[other]
    before = t.buffer.tobytes()
    with pytest.raises(tj.LayoutError, match="twice"):
        tj.scatter_tiles(t, ids, values + np.uint8(1))
    assert t.buffer.tobytes() == before


def test_arrays_that_no_longer_fit_are_refused() -> None:
    """Later calls refuse, or copy first, the same arrays as first calls do."""
    t, ids = filled(tj.Shape.parse(SPECS[0])), np.array([3, 1])
    out = np.empty((2, 8, 16), np.float32)
    for _ in range(REPEATS):
        tj.gather_tiles(t, ids, out)
        tj.scatter_tiles(t, ids, out)
    before = t.buffer.tobytes()
    inside = t.buffer[:256].reshape(2, 8, 16)
    with pytest.raises(tj.LayoutError, match="overlaps"):
        tj.gather_tiles(t, ids, inside)
    frozen = out.copy()
    frozen.flags.writeable = False
    with pytest.raises(tj.LayoutError, match="out is read-only"):
        tj.gather_tiles(t, ids, frozen)
    read_only = tj.TiledArray.from_buffer(t.buffer.tobytes(), t.layout)
    assert tj.gather_tiles(read_only, ids, out).tobytes() == frozen.tobytes()
    with pytest.raises(tj.LayoutError, match="read-only"):
        tj.scatter_tiles(read_only, ids, frozen)
    with pytest.raises(TypeError):
        tj.scatter_tiles(t, ids, np.ma.masked_array(out, out > 0))
    with pytest.raises(TypeError):
        tj.gather_tiles(t, np.ma.masked_array(ids, [False, True]), out)
    with pytest.raises(TypeError):
        tj.gather_tiles(t, np.array([True, False]), out)
    with pytest.raises(tj.TilejitError):
        tj.gather_tiles(t, ids, out, threads=0)
    with pytest.raises(TypeError):
        tj.gather_tiles(t, ids, out, threads=True)
    assert t.buffer.tobytes() == before
    want = t.buffer[:256].reshape(2, 8, 16).copy()
    tj.scatter_tiles(t, ids, inside)
    assert tj.gather_tiles(t, ids).tobytes() == want.tobytes()
    subclass = out.view(type("Named", (np.ndarray,), {}))
    assert tj.gather_tiles(t, ids, subclass) is subclass
    assert subclass.tobytes() == want.tobytes()


def test_ids_within_the_result() -> None:
    """Ids are read before anything is written."""
    t = tj.pack(np.arange(64 * 8, dtype=np.int64).reshape(64, 8), "{1,0:T(8,8)}")
    for _ in range(REPEATS):
        out = np.zeros((2, 8, 8), np.int64)
        ids = out.reshape(-1)[7:9]
        ids[...] = 5, 2
        want = tj.gather_tiles(t, [5, 2])
        assert (tj.gather_tiles(t, ids, out) == want).all()


@pytest.mark.parametrize("text", [SPECS[1], *SPECS[-3:]])
def test_nothing_outside_the_arrays_is_touched(text: str) -> None:
    """First and last tiles between guard pages, in repeated calls."""
    spec = tj.Shape.parse(text)
    data = filled(spec).buffer.view(np.uint8)
    count = prod(tile_and_grid(spec)[0])
    ids = np.array([count - 1, 0, count - 1])
    want = values_of(spec, data)[chunk_table_of(spec)[ids]]
    tiles, logical, numbers = Guarded(len(data) + 64), Guarded(want.nbytes + 64), Guarded(64)
    for at_end in (False, True):
        buffer, room = tiles.place(len(data), at_end=at_end), logical.place(want.nbytes, at_end=at_end)
        guarded = numbers.place(24, at_end=at_end).view(np.int64)
        out = room.view(spec.dtype).reshape(want.shape)
        buffer[:], guarded[:] = data, ids
        t = tj.TiledArray.from_buffer(buffer if spec.packed else buffer.view(spec.dtype), spec)
        for _ in range(REPEATS):
            out.view(np.uint8)[...] = 0
            tj.gather_tiles(t, guarded, out)
            assert same(out, want, spec)
            guarded[:] = 0, 1, count - 1
            tj.scatter_tiles(t, guarded, out)
            buffer[:], guarded[:] = data, ids
            assert tiles.untouched()
            assert logical.untouched()
            assert numbers.untouched()


@pytest.mark.full
@pytest.mark.parametrize("threads", [None, 1, 3, np.int64(2)], ids=["auto", "1", "3", "int64"])
@pytest.mark.parametrize("text", SPECS)
def test_many_tiles_and_several_threads(text: str, threads: Any) -> None:
    """Refused ids write nothing."""
    spec = tj.Shape.parse(text)
    t, again, zeros = filled(spec), filled(spec), np.zeros(filled(spec).nbytes, np.uint8)
    slots, (grid, tile) = chunk_table_of(spec), tile_and_grid(spec)
    count = prod(grid)
    out = np.empty((count, *tile), spec.dtype)
    for seed in range(REPEATS):
        ids = some_ids(spec, count, seed)
        want = values_of(spec, t.buffer.view(np.uint8))[slots[ids]]
        out.view(np.uint8)[...] = 0xA5
        assert tj.gather_tiles(t, ids, out, threads=threads) is out
        assert same(out, want, spec)
        assert same(tj.gather_tiles(t, ids, threads=threads), want, spec)
        again.buffer.view(np.uint8)[...] = 0
        tj.scatter_tiles(again, ids, out, threads=threads)
        assert again.buffer.tobytes() == written(spec, zeros, ids, want).tobytes()
        before = again.buffer.tobytes()
        for k in (0, count // 2, count - 1):
            wrong = ids.copy()
            wrong[k] = count
            out.view(np.uint8)[...] = 0xA5
            with pytest.raises(tj.LayoutIndexError, match="is out of range"):
                tj.gather_tiles(t, wrong, out, threads=threads)
            assert (out.view(np.uint8) == 0xA5).all()
            wrong[k] = ids[k - 1]
            with pytest.raises(tj.LayoutError, match="twice"):
                tj.scatter_tiles(again, wrong, out, threads=threads)
        assert again.buffer.tobytes() == before


@pytest.mark.full
@pytest.mark.parametrize("text", SPECS)
def test_threads_that_gather_and_scatter_at_once(text: str) -> None:
    """The same kinds of calls, with arrays of their own, also refused ones."""
    spec = tj.Shape.parse(text)
    t, grid = filled(spec), tile_and_grid(spec)[0]
    tiles, total = tj.gather_tiles(t, np.arange(prod(grid))), prod(grid)
    out = np.empty((3, *tiles.shape[1:]), spec.dtype)
    calls = (np.array([2, 0, 1]), np.array([[0] * len(grid)] * 3))
    for _ in range(REPEATS):
        for ids in calls:
            tj.gather_tiles(t, ids)
            tj.gather_tiles(t, ids, out)
        tj.scatter_tiles(t, calls[0], tiles[calls[0]])

    def work(seed: int) -> bool:
        rng, fine = np.random.default_rng(seed), True
        own, out = t.copy(), np.empty((3, *tiles.shape[1:]), spec.dtype)
        for _ in range(60):
            ids = rng.permutation(total)[:3]
            fine &= same(tj.gather_tiles(t, ids, out), tiles[ids], spec)
            fine &= same(tj.gather_tiles(t, ids), tiles[ids], spec)
            tj.scatter_tiles(own, ids, out)
            for wrong in (np.array([0, total, 1]), np.array([1, 0, 1])):
                with pytest.raises(tj.LayoutError):
                    tj.scatter_tiles(own, wrong, out)
        return fine and own.buffer.tobytes() == t.buffer.tobytes()

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


@pytest.mark.parametrize("text", ["f32[1024,128]{1,0:T(8,128)}", "s4[2048,128]{1,0:T(64,128)(8,1)E(4)}"])
@pytest.mark.parametrize("count", [2, 16])
def test_threads_that_share_a_plan(text: str, count: int) -> None:
    """Each call has its own offsets, whether it holds the GIL or not."""
    spec = tj.Shape.parse(text)
    t = filled(spec)
    total = prod(tile_and_grid(spec)[0])
    tiles = tj.gather_tiles(t, np.arange(total))

    def work(seed: int) -> bool:
        rng, fine = np.random.default_rng(seed), True
        own, out = t.copy(), np.empty((count, *tiles.shape[1:]), spec.dtype)
        for _ in range(100):
            ids = rng.permutation(total)[:count]
            fine &= same(tj.gather_tiles(t, ids, out), tiles[ids], spec)
            tj.scatter_tiles(own, ids, out)
        return fine and own.buffer.tobytes() == t.buffer.tobytes()

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


@pytest.mark.parametrize("size", [4, 16, 100, (2, 32), "hw"], ids=str)
@pytest.mark.parametrize("text", [SPECS[0], SPECS[3], SPECS[5]])
def test_sizes_of_super_vectors(text: str, size: Any) -> None:
    """They change the kernel, not the result."""
    spec = tj.Shape.parse(text)
    t, ids = filled(spec), some_ids(spec, 3, 1)
    tiles = tj.gather_tiles(t, ids, virtual_vector_size=size)
    assert same(tiles, tj.gather_tiles(t, ids), spec)
    target = filled(spec, 4)
    wanted = filled(spec, 4)
    tj.scatter_tiles(target, ids, tiles, virtual_vector_size=size)
    tj.scatter_tiles(wanted, ids, tiles)
    np.testing.assert_array_equal(target.buffer.view(np.uint8), wanted.buffer.view(np.uint8))


@pytest.mark.parametrize("size", [64, (4, 32)], ids=str)
def test_calls_with_a_size_are_planned_once(size: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of as many other tiles compile nothing; another size does."""
    spec = tj.Shape.parse("f32[64,1024]{1,0:T(8,128)}")
    t = filled(spec)
    everything = tj.gather_tiles(t, np.arange(64))
    first = tj.gather_tiles(t, np.array([3, 1]), virtual_vector_size=size)
    target = tj.TiledArray(np.zeros_like(t.buffer), t.layout)
    tj.scatter_tiles(target, np.array([3, 1]), first, virtual_vector_size=size)

    def refuse(*arguments: Any, **keywords: Any) -> Any:
        raise AssertionError("the copy is compiled again")

    monkeypatch.setattr("tilejit.copies.tiles.compiled", refuse)
    for ids in ([0, 5], [7, 7], [63, 2]):
        tiles = tj.gather_tiles(t, np.array(ids), virtual_vector_size=size)
        assert same(tiles, everything[ids], spec)
    tj.scatter_tiles(target, np.array([5, 0]), first, virtual_vector_size=size)
    assert same(tj.gather_tiles(target, np.array([5, 0]), virtual_vector_size=size), first, spec)
    with pytest.raises(AssertionError, match="compiled again"):
        tj.gather_tiles(t, np.array([3, 1]), virtual_vector_size=48)


def test_an_explanation_shows_the_size() -> None:
    t = filled(tj.Shape.parse("f32[64,1024]{1,0:T(8,128)}"))
    shown = tj.explain(tj.gather_tiles, t, [3, 1], virtual_vector_size=32)
    assert "virtual_vector_size 32" in shown.schedule
    assert shown.source != tj.explain(tj.gather_tiles, t, [3, 1]).source


def test_sizes_that_are_refused() -> None:
    t = filled(tj.Shape.parse(SPECS[0]))
    for size in (0, -1, "many", (1, 2, 3)):
        with pytest.raises(tj.LayoutError):
            tj.gather_tiles(t, [0], virtual_vector_size=size)
