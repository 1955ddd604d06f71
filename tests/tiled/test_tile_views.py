"""local_tile and logical_divide of tiled arrays give the elements of slices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tilejit import cute
from tilejit.cute import _

LAYOUTS = (
    "{1,0:T(8,128)}",
    "{0,1:T(8,128)(2,1)}",
    "{1,0:T(*,128)}",
    "((8,3),(128,3)):((128,1024),(1,3072))",
    "Sw<3,3,3> o 0 o ((8,3),(64,5)):((64,2560),(1,512))",
)
X = np.arange(20 * 300, dtype=np.float32).reshape(20, 300)

TILES: tuple[tuple[Any, Any, Callable[[Any], Any]], ...] = (
    ((8, 128), (1, 1), lambda x: x[8:16, 128:256]),
    ((8, 128), (2, 2), lambda x: x[16:, 256:]),
    ((4, _), (2,), lambda x: x[8:12]),
    ((4, 100), (1, _), lambda x: x[4:8].reshape(4, 3, 100).transpose(0, 2, 1)),
    ((cute.Layout(2, 10), 5), (3, 7), lambda x: x[3::10, 35:40]),
    ((cute.Layout((2, 2), (1, 10)), _), (2,), lambda x: x[[4, 5, 14, 15]].reshape(2, 2, 300).swapaxes(0, 1)),
)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("tiler", "coord", "want"), TILES, ids=lambda v: "" if callable(v) else str(v))
def test_a_tile_is_a_slice(layout: str, tiler: Any, coord: Any, want: Callable[[Any], Any]) -> None:
    t = tj.pack(X, layout)
    view = cute.local_tile(t, tiler, coord)
    assert view.shape == want(X).shape
    assert (view.unpack() == want(X)).all()
    assert (np.asarray(view) == want(X)).all()
    assert (view[0] == want(X)[0]).all()
    marked = np.arange(X.size).reshape(X.shape)
    values = -np.arange(view.unpack().size, dtype=np.float32).reshape(view.shape)
    view[...] = values
    after = X.copy()
    after.reshape(-1)[want(marked)] = values
    assert (tj.unpack(t) == after).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_logical_divide_puts_tiles_before_their_repeats(layout: str) -> None:
    t = tj.pack(X, layout)
    view = cute.logical_divide(t, (5, 100))
    assert view.shape == ((5, 4), (100, 3))
    want = X.reshape(4, 5, 3, 100).transpose(1, 0, 3, 2)
    assert (view.unpack() == want).all()
    view[...] = want + 1
    assert (tj.unpack(t) == X + 1).all()
    assert cute.logical_divide(t, (cute.Layout(2, 5),)).shape == ((2, (5, 2)), 300)


def test_layouts_are_still_divided() -> None:
    assert str(cute.logical_divide(cute.Layout(16), cute.Layout(4, 2))) == "(4,(2,2)):(2,(1,8))"
    assert cute.local_tile(cute.Layout((4, 8)), (2, 4), (1, 0))[1] == 2


def test_packed_elements() -> None:
    x = (np.arange(64 * 128) % 7).astype(np.int8).reshape(64, 128)
    t = tj.pack(x, "s4[64,128]{1,0:T(64,128)(8,1)E(4)}")
    view = cute.local_tile(t, (7, 30), (2, 1))
    assert (view.unpack().astype(np.int8) == x[14:21, 30:60]).all()
    view[...] = 3
    x[14:21, 30:60] = 3
    assert (tj.unpack(t).astype(np.int8) == x).all()


REFUSED: tuple[tuple[Callable[[Any], Any], type[Exception], str], ...] = (
    (
        lambda t: cute.local_tile(t, (8, 128), (3, 0)),
        tj.LayoutIndexError,
        "tile 3 does not exist along dimension 0",
    ),
    (lambda t: cute.local_tile(t, (8, 128), (0, -1)), tj.LayoutIndexError, "tile -1 does not exist"),
    (lambda t: cute.local_tile(t, (8, 128), (0, 2**70)), tj.LayoutIndexError, "does not exist"),
    (lambda t: cute.local_tile(t, (8, 128), (_, 0)), tj.LayoutError, "reach index 23 of dimension 0"),
    (lambda t: cute.local_tile(t, (8, 128, 1), (0, 0)), tj.LayoutError, "3 parts, .*\n  pass"),
    (lambda t: cute.local_tile(t, (8, 8), (True, 0)), TypeError, "in a coordinate, got bool"),
    (lambda t: cute.local_tile(t, (True, 8), (0, 0)), TypeError, "in a tiler, got bool"),
    (
        lambda t: cute.local_tile(t, (8, 8), ((0, 0), 0)),
        TypeError,
        r"coord\[0\]: expected an integer, got tuple",
    ),
    (lambda t: cute.local_tile(t, (8, 8), (0, 0))[0, 99], tj.LayoutIndexError, r"99 .* axis 1 .*\n.*8,8"),
    (lambda t: cute.local_tile(t, (8, 8), (0, 0))[0, 0, 0], tj.LayoutIndexError, "8,8"),
    (lambda t: cute.local_tile(t, (8, 8), (0, 0))[::0], tj.LayoutIndexError, "8,8"),
    (lambda t: cute.local_tile(t, (8, 8), (0, 0))["a"], tj.LayoutIndexError, "8,8"),
    (lambda t: cute.local_tile(t, (0, 128), (0, 0)), tj.LayoutError, "no elements"),
    (lambda t: cute.local_tile(t, "ab", (0, 0)), TypeError, "tuples in a tiler, got str"),
    (lambda t: cute.local_tile(t, (8.5, 1), (0, 0)), TypeError, "got float"),
    (lambda t: cute.local_tile(t, (8, 1), (0.5, 0)), TypeError, "float"),
    (lambda t: cute.logical_divide(t, (8, 128)), tj.LayoutError, "reach index 23"),
    (lambda t: cute.logical_divide(t, cute.Layout(8)), tj.LayoutError, "across the dimensions .*\n  pass"),
    (lambda t: cute.local_tile(t, (4, 4), (0, 0)).__setitem__(0, 1), TypeError, "written as a whole"),
    (lambda t: cute.local_tile(t, (4, 4), (0, 0)).__setitem__(..., np.zeros(3)), tj.LayoutError, "broadcast"),
)


@pytest.mark.parametrize(("call", "error", "words"), REFUSED)
def test_refusals(call: Callable[[Any], Any], error: type[Exception], words: str) -> None:
    t = tj.pack(X, LAYOUTS[0])
    before = t.buffer.copy()
    with pytest.raises(error, match=words):
        call(t)
    assert (t.buffer == before).all()


@pytest.mark.parametrize("place", [1.5, "0", (0, 0), object, np.array([0, 0]), slice(0, 1)], ids=str)
@pytest.mark.parametrize("tiler", [(8, 8), (), (None, 8)], ids=str)
def test_places_that_are_not_numbers_are_refused(tiler: Any, place: Any) -> None:
    t = tj.pack(np.zeros((20, 30), np.float32), "{1,0:T(8,8)}")
    with pytest.raises(TypeError):
        tj.cute.local_tile(t, tiler, (place, 0))


@pytest.mark.parametrize("place", [1, np.int64(3), -1, 10**30])
def test_a_dimension_with_a_single_tile(place: Any) -> None:
    t = tj.pack(np.zeros((20, 30), np.float32), "{1,0:T(8,8)}")
    with pytest.raises(tj.LayoutIndexError, match=r"one tile, .*\n  pass 0"):
        tj.cute.local_tile(t, (), (place, 0))


def test_a_dimension_without_elements() -> None:
    t = tj.pack(np.zeros((0, 5), np.float32), "{1,0:T(2,2)}")
    for call in (
        lambda: cute.local_tile(t, (2, 2), (0, 0)),
        lambda: cute.local_tile(t, (2, 2), (_, 0)),
        lambda: cute.logical_divide(t, (2, 5)),
    ):
        with pytest.raises(tj.LayoutError, match=r"dimension 0 of \[0,5\].* no tiles\n  keep it whole"):
            call()
    assert cute.local_tile(t, (_, 2), (0, 1)).unpack().shape == (0, 2)
    assert cute.logical_divide(t, (_, 5)).unpack().shape == (0, 5, 1)
