"""Which loops become tables: the first ones in cache, and those that keep pages near past it."""

from __future__ import annotations

import numpy as np
import pytest

import tilejit as tj
from codegen.schedule.choose_tables import table_axes
from codegen.schedule.thresholds import Thresholds
from tests.tools.boxes import box_of
from tests.tools.guard import Guarded
from tests.tools.oracle import packed_by_definition, random_elements
from tilejit.programs import compiled

FACES_TO_PAIRS = box_of(
    [
        (256, 262144, 262144),
        (2, 1024, 131072),
        (2, 256, 65536),
        (32, 8192, 2048),
        (4, 64, 512),
        (4, 2048, 128),
        (2, 512, 64),
        (16, 2, 4),
        (2, 32, 2),
    ],
    width=2,
)
"""bf16[8192,4096] from T(32,32)(16,16) to T(8,128)(2,1): each tile of rows has four parts, 64 KiB apart."""


def test_the_order_that_touches_fewer_pages_decides() -> None:
    assert table_axes(FACES_TO_PAIRS, past_cache=False) == ("d0", "d1", "d2"), "by destination"
    assert table_axes(FACES_TO_PAIRS, past_cache=True) == ("d0", "d3", "d5"), "by source"


@pytest.mark.parametrize("past_cache", [False, True])
def test_a_kernel_has_loops_for_all_axes(past_cache: bool) -> None:
    few = FACES_TO_PAIRS.with_axes(FACES_TO_PAIRS.axes[3:])
    assert table_axes(few, past_cache=past_cache) == ()


FACES, PAIRS = "{1,0:T(32,32)(16,16)}", "{1,0:T(8,128)(2,1)}"


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("source", "target"), [(FACES, PAIRS), (PAIRS, FACES)])
@pytest.mark.parametrize("dims", ["96,512", "101,397"])
def test_tables_of_large_copies_reach_every_element(
    source: str, target: str, dims: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between guard pages, as if no cache held them."""
    monkeypatch.setattr(compiled, "machine_thresholds", lambda _: Thresholds(stream_bytes=0))
    a, b = (tj.Shape.parse(f"bf16[{dims}]{layout}") for layout in (source, target))
    x = random_elements(np.random.default_rng(3), a.dtype, int(np.prod(a.dimensions))).reshape(a.dimensions)
    zero = np.zeros(1, a.dtype)
    data = packed_by_definition(x, a, zero, np.zeros(a.size_in_bytes, np.uint8))
    want = packed_by_definition(x, b, zero, np.zeros(b.size_in_bytes, np.uint8))
    arenas = Guarded(len(data)), Guarded(len(want))
    tj.clear_caches()
    for at_end in (False, True):
        src = arenas[0].place(len(data), at_end=at_end)
        dst = arenas[1].place(len(want), at_end=at_end)
        src[:] = data
        tiled = tj.TiledArray.from_buffer(src.view(a.dtype), a)
        tj.relayout(tiled, b, out=dst.view(b.dtype), threads=threads)
        assert np.array_equal(dst, want)
        assert arenas[1].untouched()
    tj.clear_caches()
