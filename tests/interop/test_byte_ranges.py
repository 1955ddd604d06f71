"""Byte ranges of selections contain every selected element, and otherwise only gaps."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.extent import examples
from tilejit import as_layout, linear_index
from tilejit.interop.byte_ranges import box_ranges, indices_of, slot_ranges
from tilejit.layout.cute_shape import Spec

SPECS = [
    as_layout("tpu", dims=(40, 300), dtype="f32"),
    as_layout("tpu", dims=(3, 40, 300), dtype="bf16"),
    as_layout("{0,1:T(8,128)}", dims=(40, 300), dtype="uint8"),
    as_layout("{1,0:T(64,128)(8,1)E(4)}", dims=(70, 200), dtype="s4"),
    as_layout("{2,1,0:T(*,*,4)}", dims=(6, 5, 4), dtype="f32"),
    as_layout("Sw<2,2,2> o 0 o (8,8):(8,1)", dims=(8, 8), dtype="f32"),
    as_layout("(8,8):(1,8)", dims=(7, 5), dtype="f64"),
    as_layout("{}", dims=(), dtype="f32"),
]


def bytes_of_elements(spec: Spec, picks: tuple[np.ndarray, ...]) -> set[int]:
    """Every byte of one of the elements, by the definition."""
    found = set()
    for index in np.array(np.meshgrid(*picks, indexing="ij")).reshape(len(picks), -1).T:
        first = linear_index(spec, tuple(int(i) for i in index)) * spec.bits
        found.update(range(first // 8, (first + spec.bits - 1) // 8 + 1))
    return found


def slices(extent: int) -> st.SearchStrategy[object]:
    return st.one_of(
        st.integers(0, extent - 1),
        st.builds(slice, st.integers(0, extent), st.integers(0, extent), st.integers(1, 9)),
    )


@pytest.mark.parametrize("spec", SPECS, ids=str)
@settings(max_examples=examples(5, full=25))
@given(data=st.data())
def test_without_gaps_ranges_are_the_bytes_of_the_elements(spec: Spec, data: st.DataObject) -> None:
    box = tuple(data.draw(slices(n)) for n in spec.dimensions)
    picks = tuple(indices_of(part, n) for part, n in zip(box, spec.dimensions, strict=True))
    want = bytes_of_elements(spec, picks) if picks else set(range(spec.size_in_bytes))
    ranges = box_ranges(spec, picks, 0)
    if ranges is None:
        assert want == set(range(spec.size_in_bytes))
        return
    assert {b for low, high in ranges for b in range(low, high)} == want
    assert all(a[1] < b[0] for a, b in pairwise(ranges))
    if picks:
        slots = np.ravel(linear_index(spec, np.ix_(*picks)))
        assert slot_ranges(spec, slots, 0) == ranges


def test_short_gaps_are_read() -> None:
    spec = as_layout("{1,0:T(8,128)}", dims=(64, 1024), dtype="f32")
    row = (np.array([3]), np.arange(1024))
    assert box_ranges(spec, row, 0) == [(k * 4096 + 1536, k * 4096 + 2048) for k in range(8)]
    assert box_ranges(spec, row, 4096) == [(1536, 7 * 4096 + 2048)]


def test_everything_is_read_if_parts_cost_as_much() -> None:
    spec = as_layout("{1,0:T(8,128)}", dims=(64, 1024), dtype="f32")
    assert box_ranges(spec, (np.arange(64), np.arange(1024))) is None
    assert box_ranges(spec, (np.arange(0), np.arange(1000))) == []
    assert slot_ranges(spec, np.arange(64 * 1024)) is None
    assert slot_ranges(spec, np.arange(0)) == []


def test_large_selections_need_no_table_of_pairs() -> None:
    spec = as_layout("{1,0:T(8,128)}", dims=(1 << 20, 1 << 20), dtype="uint8")
    every = np.arange(0, 1 << 20, 2)
    assert box_ranges(spec, (every, every), 0) is None
