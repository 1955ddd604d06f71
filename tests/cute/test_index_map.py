"""The identity of an array: a stride stands for steps along all dimensions, and maps find indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilejit import LayoutError
from tilejit.cute.compose import compose_layouts
from tilejit.cute.index_map import Identity, IndexMap, ViewAxis
from tilejit.cute.layout import Layout, offsets
from tilejit.cute.witness import NoLayoutError


@given(data=st.data())
def test_strides_stand_for_steps(data: Any) -> None:
    dims = tuple(data.draw(st.lists(st.integers(1, 50), min_size=1, max_size=5)))
    longest = [data.draw(st.integers(1, 60)) for _n in dims]
    steps = tuple(data.draw(st.integers(-n, n)) for n in longest)
    identity = Identity.of(dims, [2 * n + 1 for n in longest])
    assert identity.steps(identity.stride(steps)) == steps


@given(data=st.data())
def test_a_layout_across_dimensions_is_one_in_each(data: Any) -> None:
    """A layout composed with the identity has the indices that the numbers of its elements name."""
    dims = tuple(data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    count = Layout(dims).size
    modes = data.draw(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 12)), min_size=1, max_size=3))
    layout = Layout(tuple(n for n, _s in modes), tuple(s for _n, s in modes))
    numbers = offsets(layout)
    if numbers.max() >= count:
        return
    identity = Identity.across(dims, dims)
    wanted = np.unravel_index(numbers, dims, order="F")
    try:
        found = identity.read(compose_layouts(identity.layout, layout))
    except NoLayoutError:
        return
    axes = IndexMap(dims, found.starts, found.axes[::-1], None)  # row-major numbers count the last axis first
    for index, want in zip(axes.indices(np.arange(layout.size)), wanted, strict=True):
        assert (index == want).all()


def test_maps_detect_places_past_the_end() -> None:
    own = IndexMap((5, 4), (0, 0), (ViewAxis(2, (3, 0)), ViewAxis(2, (0, 1)), ViewAxis(2, (2, 0))), None)
    assert own.reach(0) == (0, 5)
    assert own.beyond() == 0
    inside = own.predicate(np.ones(own.sizes, bool))
    assert inside.sum() == 6
    assert not inside[1, :, 1].any()
    assert IndexMap((5,), (9,), (ViewAxis(0, (1,)),), None).beyond() is None
    with pytest.raises(LayoutError, match="64 bits"):
        Identity.of((2,) * 3, (2**40,) * 3)
