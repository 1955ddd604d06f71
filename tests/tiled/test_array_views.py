"""The algebra on arrays: views have the elements that the algebra of layouts names."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilejit as tj
from tests.cute import brute, draw
from tests.tools.extent import examples
from tests.tools.strategies import Pick, chance, one_of, permutation, picker
from tilejit import cute
from tilejit.cute import Layout, _, offsets, parse

DIVIDES = (cute.logical_divide, cute.zipped_divide, cute.tiled_divide, cute.flat_divide)
X = np.arange(20 * 300, dtype=np.float32).reshape(20, 300)
TILED = ("{1,0:T(8,128)}", "{0,1:T(*,128)}", "((8,3),(128,3)):((128,1024),(1,3072))")


def numbered(dims: tuple[int, ...], order: tuple[int, ...]) -> Any:
    """An array whose elements are their own numbers, the first dimension fastest, in any memory order."""
    x = np.arange(prod(dims)).reshape(dims, order="F")
    back = tuple(np.argsort(order))
    return np.ascontiguousarray(x.transpose(order)).transpose(back)


def colexicographic(view: Any) -> list[int]:
    return np.asarray(view).reshape(-1, order="F").tolist()


def drawn_dims(pick: Pick) -> tuple[int, ...]:
    return tuple(one_of(pick, (1, 2, 3, 4, 5, 6, 8, 12)) for _k in range(pick(1, 3)))


def drawn_part(pick: Pick, size: int) -> Any:
    if chance(pick, 5):
        return _
    if chance(pick, 2):
        return pick(1, size)
    return (
        Layout(one_of(pick, (1, 2, 3, (2, 2))), None)
        if chance(pick, 3)
        else draw.tiler(pick, Layout(size), 6)
    )


def judge_flat(pick: Pick) -> str:
    """A tiler of all dimensions: the algebra's result for the compact layout of the array's numbers."""
    dims = drawn_dims(pick)
    x = numbered(dims, permutation(pick, len(dims)))
    change = one_of(pick, (*DIVIDES, cute.composition))
    tiler = draw.tiler(pick, Layout(x.size), 12)
    try:
        wanted = change(Layout(x.size), tiler)
    except tj.LayoutError:
        with pytest.raises(tj.LayoutError):
            change(x, tiler)
        return "refused"
    table = offsets(wanted).tolist()
    if table and not 0 <= min(table) <= max(table) < x.size:
        with pytest.raises(tj.LayoutError, match=r"reach|across"):
            change(x, tiler)
        return "beyond"
    own = Layout(x.shape, tuple(s // x.itemsize for s in x.strides))
    try:
        view = change(x, tiler)
    except cute.NoLayoutError:
        with pytest.raises(cute.NoLayoutError):
            change(own, tiler)
        return "none"
    assert isinstance(view, np.ndarray)
    assert not view.size or np.shares_memory(view, x)
    assert colexicographic(view) == table, f"{change.__name__}({dims}, {tiler})"
    assert view.flags.writeable == (len(set(table)) == len(table))
    return "found"


def judge_by_dimension(pick: Pick) -> str:
    """Dimension by dimension: the indices that the algebra finds for each, including those past the end."""
    dims = drawn_dims(pick)
    x = numbered(dims, permutation(pick, len(dims)))
    tiler = tuple(drawn_part(pick, size) for size in dims)
    try:
        parts = [cute.zipped_divide(Layout(n), part) for n, part in zip(dims, tiler, strict=True)]
    except tj.LayoutError:
        with pytest.raises(tj.LayoutError):
            cute.zipped_divide(x, tiler)
        return "refused"
    tables = [offsets(part) for part in parts]
    inside = np.ones((), bool)
    found: Any = np.zeros((), np.int64)
    weight = 1
    for n, table in zip(dims, tables, strict=True):
        inside = np.multiply.outer(inside, (table >= 0) & (table < n))
        found = np.add.outer(found, np.clip(table, 0, n - 1) * weight)
        weight *= n
    found = np.where(inside, found, -1)
    groups = [tuple(brute.flat(mode)) for part in parts for mode in part.shape]
    count = len(dims)
    split = [n for part in parts for n in (prod(brute.flat(part.shape[0])), prod(brute.flat(part.shape[1])))]
    order = [2 * k for k in range(count)] + [2 * k + 1 for k in range(count)]
    sizes = tuple(n for k in order for n in groups[k])

    def arranged(values: Any) -> Any:
        return _split(values, split).transpose(order).reshape(-1, order="F").reshape(sizes, order="F")

    view = cute.zipped_divide(x, tiler, fill_value=-1)
    assert isinstance(view, cute.TileView)
    assert (view.predicate == arranged(inside)).all()
    assert (view.unpack() == arranged(found)).all(), f"{dims} / {tiler}"
    if not inside.all():
        with pytest.raises(tj.LayoutError, match=r"reach index .*\n.*fill_value"):
            cute.zipped_divide(x, tiler)
        return "ragged"
    plain = cute.zipped_divide(x, tiler)
    assert np.shares_memory(plain, x)
    assert (plain == arranged(found)).all()
    for change in (cute.tiled_divide, cute.flat_divide):
        assert change(x, tiler).strides == plain.strides
    return "whole"


def _split(values: Any, sizes: list[int]) -> Any:
    """Each axis as two, the first of them fastest."""
    out = values
    for k in range(len(sizes) // 2):
        shape = out.shape
        low, high = sizes[2 * k], sizes[2 * k + 1]
        out = np.moveaxis(out.reshape(*shape[: 2 * k], high, low, *shape[2 * k + 1 :]), 2 * k, 2 * k + 1)
    return out


@pytest.mark.parametrize("judge", [judge_flat, judge_by_dimension])
def test_fixed_cases(judge: Callable[[Pick], str], seed: int) -> None:
    results = [judge(picker(np.random.default_rng((seed, number)))) for number in range(400)]
    assert max(results.count("found"), results.count("whole")) > 40, {r: results.count(r) for r in results}


@pytest.mark.parametrize("judge", [judge_flat, judge_by_dimension])
@settings(max_examples=examples(11, full=100))
@given(data=st.data())
def test_drawn_cases(judge: Callable[[Pick], str], data: Any) -> None:
    judge(lambda low, high: data.draw(st.integers(low, high)))


@pytest.mark.parametrize("change", [*DIVIDES, cute.composition])
@pytest.mark.parametrize("layout", TILED)
@pytest.mark.parametrize("tiler", [(4, 100), (10, _), parse("<(2,2):(1,10),3:100>"), (5,)], ids=str)
def test_tiled_arrays_have_the_same_views_as_arrays(change: Any, layout: str, tiler: Any) -> None:
    t = tj.pack(X, layout)
    view, want = change(t, tiler), change(X, tiler)
    assert tuple(brute.flat(view.shape)) == want.shape
    assert view.shape == change(Layout(X.shape), tiler).shape
    assert (view.unpack() == want).all()
    assert view.predicate.all()
    after = X.copy()
    change(after, tiler)[...] = -want
    view[...] = -want
    assert (t.unpack() == after).all()


CUTE_S = (
    ("(9,(4,8)):(59,(13,1))", "<3:3,(2,4):(1,8)>", "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))"),
    ("(4,2,3):(2,1,8)", "4:2", "((2,2),(2,3)):((4,1),(2,8))"),
    ("(8,(2,3)):(1,(8,16))", "<4:2,3:2>", None),
    ("((2,4),6):((1,12),2)", "<(2,2):(1,4),2:3>", None),
)
"""Layouts and tilers. The first two are from CuTe's documentation, with its results of logical_divide."""


@pytest.mark.parametrize("change", [*DIVIDES, cute.composition])
@pytest.mark.parametrize(("layout", "tiler", "divided"), CUTE_S)
def test_views_of_tiled_arrays_agree_with_the_algebra_of_layouts(
    change: Any, layout: str, tiler: str, divided: str | None
) -> None:
    own, by = parse(layout), parse(tiler)
    wanted = change(own, by)
    if divided and change is cute.logical_divide:
        assert str(wanted) == divided
    dims = tuple(mode.size for mode in own)
    t = tj.pack(np.arange(prod(dims), dtype=np.float32).reshape(dims), own)
    view = change(t, by)
    assert colexicographic(view) == t.buffer[offsets(wanted)].tolist()
    assert prod(brute.flat(view.shape)) == wanted.size


@pytest.mark.parametrize("layout", TILED)
@pytest.mark.parametrize("tiler", ["4:5", "(4,3):(1,20)", "(2,2,3):(2,1,40)", "4:21", "(2,2):(0,1)"])
def test_tilers_of_all_dimensions(layout: str, tiler: str) -> None:
    """Counted with the first dimension fastest. 4:21 is a diagonal."""
    t = tj.pack(X, layout)
    view, want = cute.composition(t, parse(tiler)), cute.composition(X, parse(tiler))
    assert (view.unpack() == want).all()
    assert colexicographic(want) == X.reshape(-1, order="F")[offsets(parse(tiler))].tolist()


@pytest.mark.parametrize("layout", ["array", *TILED])
def test_the_seed_s_tiler_over_an_array_it_does_not_divide(layout: str) -> None:
    """<2:3,3:2> over 32 x 16 covers 36 x 18."""
    x = np.arange(32 * 16, dtype=np.float32).reshape(32, 16)
    held: Any = x.copy() if layout == "array" else tj.pack(x, layout.replace("((8,3)", "((8,4)"))
    tiler = parse("<2:3,3:2>")
    assert cute.composition(x, tiler).tolist() == [[0, 2, 4], [48, 50, 52]]
    with pytest.raises(tj.LayoutError, match="reach index 35 of dimension 0, which has 32"):
        cute.logical_divide(held, tiler)
    view = cute.logical_divide(held, tiler, fill_value=-1)
    assert view.shape == ((2, (3, 6)), (3, (2, 3)))
    inside = view.predicate
    assert inside.sum() == x.size
    padded = np.full((36, 18), -1, np.float32)
    padded[:32, :16] = x
    want = padded.reshape(6, 2, 3, 3, 3, 2).transpose(1, 2, 0, 4, 5, 3)
    assert (view.unpack() == want).all()
    assert (inside == (want >= 0)).all()
    view[...] = want + 1
    assert (np.asarray(held) == x + 1).all()
    view[...] = 7
    assert (np.asarray(held) == 7).all()


def test_threads_of_an_array() -> None:
    threads = Layout((4, 8), (8, 1))
    t = tj.pack(X, TILED[0])
    seen = np.zeros(X.shape, np.int64)
    for index in range(32):
        row, column = divmod(index, 8)
        want = X[row::4, column::8]
        mine = cute.local_partition(X, threads, index)
        assert mine.strides == want.strides
        assert (mine == want).all()
        assert (cute.local_partition(t, threads, index).unpack() == want).all()
        whole = cute.local_partition(X, threads, index, fill_value=0)
        assert whole.shape == (5, 38)
        assert whole.predicate.sum() == want.size
        cute.local_partition(seen, threads, index)[...] += 1
    assert (seen == 1).all()
    assert cute.local_partition(X, Layout((4, 9, 8)), 3, proj=(1, _, 1)).shape == (5, 38)


@pytest.mark.parametrize("case", range(20))
def test_partitions_agree_with_those_of_layouts(case: int) -> None:
    pick = picker(np.random.default_rng(case))
    dims = (4 * pick(1, 4), 6 * pick(1, 3))
    x = numbered(dims, permutation(pick, 2))
    threads = Layout((one_of(pick, (1, 2, 4)), one_of(pick, (1, 2, 3, 6))), None)
    index = pick(0, threads.size - 1)
    own, begin = cute.local_partition(Layout(dims), threads, index)
    assert colexicographic(cute.local_partition(x, threads, index)) == (begin + offsets(own)).tolist()
    tile, begin = cute.local_tile(Layout(dims), (2, 3), (1, pick(0, 1)))
    mine = cute.local_tile(x, (2, 3), (1, (begin // dims[0]) // 3))
    assert colexicographic(mine) == (begin + offsets(tile)).tolist()


def test_tiles_of_an_array() -> None:
    x = X.copy()
    assert cute.local_tile(x, (8, 128), (2, 2)).strides == x.strides
    assert (cute.local_tile(x, (8, 128), (2, 2)) == x[16:, 256:]).all()
    edge = cute.local_tile(x, (8, 128), (2, 2), fill_value=0)
    assert edge.shape == (8, 128)
    assert edge.predicate.sum() == 4 * 44
    assert edge.unpack().sum() == x[16:, 256:].sum()
    assert cute.local_tile(x, (8, _), (1, _)).shape == (8, 300)
    assert cute.local_tile(x, (8, 9, 100), (1, 5, 2), proj=(1, _, 1)).tolist() == x[8:16, 200:].tolist()
    assert (cute.local_tile(x, Layout(20), 7) == x[:, 7]).all()


def test_views_write_to_the_array() -> None:
    x = np.zeros((4, 8), np.int16)
    cute.zipped_divide(x, (2, 4))[:, :, 1, 0] = 5
    assert x[2:, :4].tolist() == [[5] * 4] * 2
    assert x.sum() == 40
    x.flags.writeable = False
    assert not cute.zipped_divide(x, (2, 4)).flags.writeable
    with pytest.raises(tj.LayoutError, match="read-only"):
        cute.zipped_divide(x, (3, 4), fill_value=0)[...] = 1


def test_any_strides_and_dtypes() -> None:
    records = np.zeros((6, 4), [("a", "u1"), ("b", "<f4")])
    fields = records["b"][::-1, ::2]
    fields[...] = np.arange(12).reshape(6, 2)
    assert cute.logical_divide(fields, (3, 2)).tolist() == cute.logical_divide(fields.copy(), (3, 2)).tolist()
    assert np.shares_memory(cute.logical_divide(fields, (3, 2)), records)
    objects = np.array([["a", 1], [None, 2.5]], object)
    assert cute.composition(objects, Layout(2, 3)).tolist() == ["a", 2.5]
    assert cute.zipped_divide(np.zeros((0, 4)), (_, 2)).shape == (1, 2, 0, 2)
    assert cute.composition(np.array(5), ()).shape == ()


def test_packed_elements_beyond_the_end() -> None:
    x = (np.arange(60 * 100) % 7).astype(np.int8).reshape(60, 100)
    t = tj.pack(x, "s4[60,100]{1,0:T(64,128)(8,1)E(4)}")
    view = cute.logical_divide(t, (7, 30), fill_value=-1)
    padded = np.full((63, 120), -1, np.int8)
    padded[:60, :100] = x
    want = padded.reshape(9, 7, 4, 30).transpose(1, 0, 3, 2)
    assert (view.unpack().astype(np.int8) == want).all()
    view[...] = 2
    assert (t.unpack().astype(np.int8) == 2).all()


REFUSED: tuple[tuple[Callable[[], Any], type[Exception], str], ...] = (
    (lambda: cute.zipped_divide([1, 2], 2), TypeError, "expected a Layout, a NumPy array .*got list"),
    (lambda: cute.zipped_divide(np.ma.zeros(4), 2), TypeError, "without a mask"),
    (lambda: cute.zipped_divide(X, (1, 1, 1)), tj.LayoutError, "3 parts, but the array has 2 .*\n  pass"),
    (lambda: cute.zipped_divide(X, 2.5), TypeError, "got float"),
    (lambda: cute.zipped_divide(X, (2, True)), TypeError, "got bool"),
    (lambda: cute.composition(X, parse("Sw<1,0,2> o 0 o 8:1")), tj.LayoutError, "no strides\n  pick"),
    (lambda: cute.composition(X, 6001), tj.LayoutError, "reach index|across"),
    (lambda: cute.composition(X, Layout(2, -1)), tj.LayoutError, "before A's first element"),
    (lambda: cute.composition(X, 21), cute.NoLayoutError, "across the dimensions .*\n  .*asfortranarray"),
    (lambda: cute.composition(np.asfortranarray(X), 6001), tj.LayoutError, "reach element 6000 of .*6000"),
    (lambda: cute.zipped_divide(X, parse("<(2,2):(2,3),_>")), cute.NoLayoutError, "complement"),
    (lambda: cute.zipped_divide(X, (3, 3), fill_value="x"), tj.LayoutError, "cannot convert"),
    (lambda: cute.zipped_divide(X, (3, 3), fill_value=[0, 1]), tj.LayoutError, "shape .2,..*\n  pass one"),
    (lambda: cute.zipped_divide(Layout(4), 3, fill_value=0), TypeError, "fill_value is for arrays"),
    (lambda: cute.zipped_divide(np.zeros((0, 3)), 2), tj.LayoutError, "no elements"),
    (lambda: cute.zipped_divide(np.zeros((0, 3)), (2, 3)), tj.LayoutError, "no elements.*\n  keep"),
    (lambda: cute.local_partition(X, (4, 8), 0), TypeError, "expected a Layout"),  # type: ignore[arg-type]
    (lambda: cute.local_partition(X, Layout((4, 8)), 32), tj.LayoutIndexError, "thread 32 does not exist"),
    (lambda: cute.local_partition(X, Layout((4, 8, 2)), 0), tj.LayoutError, "3 parts"),
    (
        lambda: cute.local_tile(X, (8, 128), (3, 0)),
        tj.LayoutIndexError,
        "tile 3 does not exist along dimension 0",
    ),
    (lambda: cute.local_tile(X, Layout(20), 300), tj.LayoutIndexError, "tile 300 does not exist"),
    (lambda: cute.local_tile(X, (8, 128), (0, 0, 0)), tj.LayoutError, "coordinate has 3 parts"),
    (lambda: cute.composition(X, (2**62, 2)), tj.LayoutError, "64 bits"),
    (lambda: cute.zipped_divide(X, (Layout((1,) * 70), _)), tj.LayoutError, "at most"),
)


@pytest.mark.parametrize(("call", "error", "words"), REFUSED)
def test_refusals(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_views_with_duplicate_places_are_not_written() -> None:
    t = tj.pack(X, TILED[0])
    view = cute.composition(t, (Layout((2, 2), (1, 1)), _))
    assert (view.unpack() == X[[[0, 1], [1, 2]]].reshape(2, 2, 300)).all()
    with pytest.raises(tj.LayoutError, match="more than once"):
        view[...] = 0
    assert not cute.composition(X, (Layout((2, 2), (1, 1)), _)).flags.writeable
    apart = cute.composition(t, (Layout((2, 3), (3, 2)), _))
    apart[...] = 0
    assert (t.unpack()[[0, 2, 3, 4, 5, 7]] == 0).all()
