"""The recognizer: the layout with a table's offsets, or the first index at which there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.support.errors import LayoutError
from tests.cute.tilings import chain_offset, has_chain, is_sum_of_chains, sizes_of
from tests.tools.extent import examples
from tilejit import cute
from tilejit.cute.tables import table_chain, table_chains
from tilejit.cute.witness import Witness

SMALL = st.integers(-3, 12)


@st.composite
def layouts(draw: Any, *, rank: int | None = None, most: int = 200) -> cute.Layout:
    """Layouts with any modes and strides of any sign."""
    shape: list[Any] = []
    stride: list[Any] = []
    left = most
    for _ in range(draw(st.integers(1, 3)) if rank is None else rank):
        sizes, steps = [], []
        for _ in range(draw(st.integers(1, 3))):
            size = draw(st.integers(1, min(6, max(1, left))))
            left //= size
            sizes.append(size)
            steps.append(draw(st.integers(-40, 200)))
        single = len(sizes) == 1
        shape.append(sizes[0] if single else tuple(sizes))
        stride.append(steps[0] if single else tuple(steps))
    return cute.Layout(tuple(shape), tuple(stride))


@st.composite
def near_chains(draw: Any) -> list[int]:
    """Offsets of a chain, cut anywhere, and often changed at one or two places."""
    sizes = draw(st.lists(st.integers(2, 4), min_size=1, max_size=3))
    chain = tuple((size, draw(SMALL)) for size in sizes)
    count = draw(st.integers(1, min(24, int(np.prod(sizes)))))
    values = [chain_offset(chain, i) for i in range(count)]
    for _ in range(draw(st.integers(0, 2))):
        values[draw(st.integers(0, count - 1))] = draw(SMALL)
    return [value - values[0] for value in values]


def mode_box(layout: cute.Layout) -> tuple[int, ...]:
    return tuple(mode.size for mode in layout)


@pytest.mark.parametrize(
    ("table", "layout"),
    [
        ([0, 4, 1, 5], "(2,2):(4,1)"),
        ([[0, 4], [1, 5]], "(2,2):(1,4)"),
        (range(8), "8:1"),
        ([0], "1:0"),
        (0, "():()"),
        ([0, 0, 0], "3:0"),
        ([0, -1, -2], "3:-1"),
        ([], "0:0"),
        (np.zeros((2, 0), np.int8), "(2,0):(0,0)"),
        (np.arange(24, dtype=np.uint8).reshape(2, 3, 4), "(2,3,4):(12,4,1)"),
        (np.arange(8).reshape(2, 2, 2).transpose(2, 0, 1).reshape(4, 2), "((2,2),2):((4,1),2)"),
        ([0, 2**63 - 1], "2:9223372036854775807"),
        ([[0, 2**62], [2**62, 2**63]], "(2,2):(4611686018427387904,4611686018427387904)"),
    ],
)
def test_tables(table: Any, layout: str) -> None:
    assert str(cute.from_offsets(table)) == layout


def test_a_larger_box() -> None:
    with pytest.raises(LayoutError, match="index 2 gives 10, but the indices before it require 2"):
        cute.from_offsets([0, 1, 10])
    assert str(cute.from_offsets([0, 1, 10], boxed=True)) == "(2,2):(1,10)"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([0, 1, 10, 12], "index 3 gives 12, but the indices before it require 11"),
        ([[0, 1], [2, 2]], r"index \(1, 1\) gives 2, but the indices before it require 3"),
        ([5, 6], "index 0 gives 5, but a layout starts at 0"),
        (7, "gives 7"),
        ([[1], [2, 3]], "rows of equal length"),
    ],
)
def test_refusals(table: Any, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        cute.from_offsets(table)


@pytest.mark.parametrize("table", ["01", [0.0, 1.0], [False, True], None, [None], [2**70, "x"]])
def test_other_objects(table: Any) -> None:
    with pytest.raises(TypeError):
        cute.from_offsets(table)


def test_sums_past_64_bits_do_not_wrap() -> None:
    """(1, 1) would be right modulo 2^64."""
    top = 2**63 - 1
    with pytest.raises(LayoutError, match=rf"\(1, 1\) gives -2, but .* require {2 * top}"):
        cute.from_offsets([[0, top], [top, -2]])


@given(layouts())
def test_a_layout_is_found_again(layout: cute.Layout) -> None:
    """Mode by mode from its box, and as one chain from its colexicographic offsets."""
    table = cute.offsets(layout)
    flat = cute.from_offsets(table)
    assert np.array_equal(cute.offsets(flat), table)
    found = cute.from_offsets(table.reshape(mode_box(layout), order="F"))
    assert layout.rank == 1 or mode_box(found) == mode_box(layout)
    assert np.array_equal(cute.offsets(found), table)


@settings(max_examples=examples(55, full=500))
@given(near_chains(), st.booleans())
def test_a_chain_is_found_exactly_if_there_is_one(values: list[int], whole: bool) -> None:
    found = table_chain(np.array(values), whole=whole)
    assert isinstance(found, Witness) != has_chain(values, whole=whole)
    if not isinstance(found, Witness):
        assert [chain_offset(found or ((1, 0),), i) for i in range(len(values))] == values


@given(near_chains())
def test_the_witness_is_the_first(values: list[int]) -> None:
    """The offsets before it have a chain, those up to it have none, and the expected one would fit."""
    found = table_chain(np.array(values), whole=False)
    if isinstance(found, Witness):
        assert values[found.index] == found.value != found.expected
        assert has_chain(values[: found.index], whole=False)
        assert not has_chain(values[: found.index + 1], whole=False)
        assert has_chain([*values[: found.index], found.expected], whole=False)


@given(near_chains())
def test_the_witness_of_a_complete_chain_is_forced(values: list[int]) -> None:
    """Every chain of this size with the offsets before the witness has the expected offset there."""
    found = table_chain(np.array(values), whole=True)
    if not isinstance(found, Witness):
        return
    assert values[found.index] == found.value != found.expected
    for sizes in sizes_of(len(values), whole=True):
        weights = [int(np.prod(sizes[:k])) for k in range(len(sizes))]
        strides = [values[w] if w < found.index else 10**6 for w in weights]
        chain = tuple(zip(sizes, strides, strict=True))
        if all(chain_offset(chain, i) == values[i] for i in range(found.index)):
            assert chain_offset(chain, found.index) == found.expected


@settings(max_examples=examples(33, full=300))
@given(layouts(rank=2, most=30), st.integers(0, 10**6), st.integers(-2, 2), st.booleans())
def test_tables_of_two_axes(layout: cute.Layout, place: int, change: int, whole: bool) -> None:
    """A layout's table; in most cases one offset is changed."""
    table = cute.offsets(layout).reshape(mode_box(layout), order="F").copy()
    if place % table.size:
        table.flat[place % table.size] += change
    found = table_chains(table, whole=whole)
    assert isinstance(found, Witness) != is_sum_of_chains(table, whole=whole)
    if isinstance(found, Witness):
        assert table[found.index] == found.value != found.expected


def test_a_million_offsets() -> None:
    """The bits of a 2^20 table are dealt to four axes, and found without a loop over elements."""
    bits = np.arange(1 << 20).reshape((2,) * 20).transpose(np.random.default_rng(7).permutation(20))
    table = bits.reshape(32, 64, 2, 256)
    found = cute.from_offsets(table)
    assert np.array_equal(cute.offsets(found).reshape(table.shape, order="F"), table)
    with pytest.raises(LayoutError, match="require"):
        cute.from_offsets(table ^ (table >> 7 & 15))
