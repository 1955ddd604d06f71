"""Any requested view either exists, or a LayoutError or TypeError says why not."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tilejit import cute
from tilejit.cute import Layout, _, parse

TV = parse("(2,2):(1,2)")
DEEP: Any = 1
for _level in range(3000):
    DEEP = (DEEP,)


def arrays() -> tuple[Any, ...]:
    return (
        np.arange(40.0).reshape(8, 5),
        np.array(3),
        np.zeros((0, 3)),
        np.zeros((1, 1, 1)),
        np.broadcast_to(np.arange(3), (4, 3)),
        np.zeros(6)[::-2],
        np.array([None, "a"], object),
        tj.pack(np.arange(40, dtype=np.int32).reshape(8, 5), "{1,0:T(8,128)}"),
        tj.pack(np.zeros((0, 5), np.float32), "{1,0:T(8,128)}"),
        [1, 2],
        None,
        "tpu",
    )


TILERS: tuple[Any, ...] = (
    0, 1, 3, -1, 2**62, 2**63, 10**30, True, 1.5, float("nan"), "2", b"2", None, _, (), [], [2], DEEP, {2: 3},
    (2, 0), (-2, 3), (2**62, 2**62), ((2,), 3), ((2, 2), 3), (3, None), (None, 3), ("a", 2), (np.int8(2), 3),
    np.array(2), np.array([2, 3]), object(), slice(None), slice(1), range(3), iter((2, 3)),
    Layout(0), Layout(4, 0), Layout(4, -1), Layout((2, 2), (2, 3)), Layout(3, 2**61), Layout((2,) * 70),
    Layout(2**62, 0), Layout((2**31, 2**30)), parse("Sw<1,0,2> o 0 o 8:1"), parse("Sw<1,0,2>"),
    (Layout(4, -1), 2), (Layout(2, 3), Layout(3, 2)), (Layout(2**40, 0), 1),
    TV, Layout((2, 2), (0, 3)),
)  # fmt: skip
FILLS: tuple[Any, ...] = (None, 0, "x", [1, 2], float("nan"), 2**80, object(), np.ma.masked)
Call = Callable[[Any, Any, Any], Any]
CALLS: dict[str, Call] = {
    **{
        name: lambda x, tiler, fill, name=name: getattr(cute, name)(x, tiler, fill_value=fill)  # type: ignore[misc]
        for name in ("logical_divide", "zipped_divide", "tiled_divide", "flat_divide", "composition")
    },
    "local_tile": lambda x, tiler, fill: cute.local_tile(x, tiler, (0, 0), fill_value=fill),
    "tile": lambda x, tiler, fill: cute.local_tile(x, (2, 2), tiler, fill_value=fill),
    "local_partition": lambda x, tiler, fill: cute.local_partition(x, tiler, 0, fill_value=fill),
    "thread": lambda x, tiler, fill: cute.local_partition(x, Layout((2, 2)), tiler, fill_value=fill),
    "proj": lambda x, tiler, fill: cute.local_partition(x, Layout((2, 2)), 1, tiler, fill_value=fill),
    "partition_tv": lambda x, tiler, fill: cute.partition_tv(x, tiler, TV, 1, fill_value=fill),
    "layout_tv": lambda x, tiler, fill: cute.partition_tv(x, (2, 2), tiler, fill_value=fill),
    "value": lambda x, tiler, fill: cute.partition_tv(x, (2, 2), TV, tiler, fill_value=fill),
}  # fmt: skip


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:.*NaN:RuntimeWarning", "ignore:.*nan:RuntimeWarning")
@pytest.mark.parametrize("name", CALLS)
def test_a_view_exists_or_the_error_says_why_not(name: str) -> None:
    answered = 0
    for x, tiler in product(arrays(), TILERS):
        for fill in FILLS if isinstance(tiler, int | tuple) else FILLS[:2]:
            try:
                view = CALLS[name](x, tiler, fill)
            except (tj.LayoutError, TypeError):
                continue
            answered += 1
            if isinstance(view, np.ndarray) and view.size < 1000:
                assert view.copy().size == view.size
            elif isinstance(view, cute.TileView) and np.prod(view.index_map.sizes, dtype=object) < 1000:
                assert view.unpack().shape == view.predicate.shape
    assert answered > 5


def test_views_too_large_for_memory() -> None:
    view = cute.composition(np.zeros(4), Layout(2**58, 0), fill_value=0)
    for read in (view.unpack, lambda: view.predicate):
        with pytest.raises(tj.OutOfMemoryError):
            read()
