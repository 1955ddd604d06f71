"""`explain` of gather_tiles and scatter_tiles shows what they run."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj

IDS = [4, 0, 4]


@cache
def f32() -> tj.TiledArray:
    return tj.pack(np.arange(1000 * 300, dtype=np.float32).reshape(1000, 300), "{1,0:T(8,128)}")


@cache
def bf16() -> tj.TiledArray:
    return tj.pack(np.ones((64, 256), ml_dtypes.bfloat16), "{1,0:T(8,128)(2,1)}")


@cache
def int4() -> tj.TiledArray:
    return tj.pack(np.ones((64, 256), ml_dtypes.int4), "{1,0:T(64,128)(8,1)E(4)}")


@pytest.mark.full
@pytest.mark.parametrize(
    ("make", "ids"), [(f32, IDS), (bf16, IDS), (int4, [1, 0, 1])], ids=["f32", "bf16", "int4"]
)
def test_both_functions(make: Callable[[], tj.TiledArray], ids: list[int]) -> None:
    t = make()
    gathered = tj.explain(tj.gather_tiles, t, ids)
    assert gathered.steps
    assert "def " in gathered.source
    scattered = tj.explain(tj.scatter_tiles, t, ids, tj.gather_tiles(t, ids), duplicates="last")
    assert scattered.steps
    assert gathered.report() != scattered.report()


@pytest.mark.full
def test_the_explained_program_gives_the_same_result() -> None:
    """The program is run on the addresses of the arrays."""
    out = np.zeros((3, 8, 128), np.float32)
    tj.explain(tj.gather_tiles, f32(), IDS, out).program.run(f32().buffer.ctypes.data, out.ctypes.data, 1)
    assert (out == tj.gather_tiles(f32(), IDS)).all()
    t = tj.TiledArray(np.zeros_like(f32().buffer), f32().layout)
    program = tj.explain(tj.scatter_tiles, t, [4, 0], out[:2]).program
    program.run(out.ctypes.data, t.buffer.ctypes.data, 1)
    assert (tj.gather_tiles(t, [4, 0]) == out[:2]).all()


def test_another_output_gives_another_copy() -> None:
    """The output has other strides, or is a tiled array."""
    turned = np.zeros((3, 128, 8), np.float32).transpose(0, 2, 1)
    tiled = tj.pack(np.zeros((3, 8, 128), np.float32), "{2,1,0:T(8,64)}")
    nests = [tj.explain(tj.gather_tiles, f32(), IDS, out=out).nest for out in (None, turned, tiled)]
    assert len(set(nests)) == 3


def test_nothing_is_written() -> None:
    t, out = tj.TiledArray(np.zeros_like(f32().buffer), f32().layout), np.zeros((3, 8, 128), np.float32)
    tj.explain(tj.gather_tiles, f32(), IDS, out)
    tj.explain(tj.scatter_tiles, t, [4, 0], np.ones((2, 8, 128), np.float32))
    assert not out.any()
    assert not t.buffer.any()


REFUSED: list[tuple[type[Exception], str, Any]] = [
    (tj.LayoutIndexError, "tile 1000 is out of range", lambda: tj.explain(tj.gather_tiles, f32(), [1000])),
    (tj.LayoutError, "twice", lambda: tj.explain(tj.scatter_tiles, f32(), [1, 1], 0)),
    (tj.LayoutError, "got .all.", lambda: tj.explain(tj.scatter_tiles, f32(), [1], 0, duplicates="all")),
    (TypeError, "expected a TiledArray", lambda: tj.explain(tj.gather_tiles, f32().buffer, [1])),
    (TypeError, "missing a required argument: 'ids'", lambda: tj.explain(tj.gather_tiles, f32())),
    (
        TypeError,
        "unexpected keyword argument 'values'",
        lambda: tj.explain(tj.gather_tiles, f32(), [1], values=0),
    ),
    (TypeError, "does not take this keyword", lambda: tj.explain(tj.gather_tiles, f32(), [1], casting="no")),
    (
        TypeError,
        "does not take this keyword",
        lambda: tj.explain(tj.gather_tiles, f32(), [1], specialize="sizes"),
    ),
    (TypeError, "a destination and a source", lambda: tj.explain("{1,0:T(8,128)}", f32().buffer, [1])),  # type: ignore[call-overload]
]


@pytest.mark.parametrize(("error", "text", "call"), REFUSED, ids=[text for _, text, _ in REFUSED])
def test_wrong_arguments_are_refused(error: type[Exception], text: str, call: Any) -> None:
    with pytest.raises(error, match=text):
        call()
