"""Padding as boxes: together with the elements, every slot exactly once."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given

from codegen.maps.access import map_offset
from codegen.maps.padding import lower_padding
from codegen.maps.refine import Box
from tests.tools.oracle import PADDING, slots_of
from tests.tools.strategies import shapes
from tilejit.layout.indexing import access_map
from tilejit.layout.shape import Shape


def slots_of_box(box: Box) -> list[int]:
    return [
        box.dst_base + sum(k * d[2] for k, d in zip(digits, box.digits, strict=True))
        for digits in product(*(range(d[0]) for d in box.digits))
    ]


@given(shapes(most=150))
def test_padding_boxes_are_the_padding(shape: Shape) -> None:
    access = access_map(shape)
    want = np.flatnonzero(slots_of(shape) == PADDING).tolist()
    pads, fill_first = lower_padding(access)
    got = sorted(slot for pad in pads for slot in slots_of_box(pad))
    assert access.slots == len(slots_of(shape))
    if fill_first:
        assert set(got) <= set(want)
        assert len(got) == access.tail
    else:
        assert got == want


@given(shapes(most=100))
def test_elements_and_padding_fill_the_buffer_once(shape: Shape) -> None:
    access = access_map(shape)
    pads, fill_first = lower_padding(access)
    count = Counter(slot for pad in pads for slot in slots_of_box(pad))
    count.update(int(map_offset(access, index)) for index in np.ndindex(*shape.dimensions))
    assert set(count.values()) <= {1}
    if not fill_first:
        assert len(count) == access.slots


def test_inner_padding_of_one_box() -> None:
    """f32[3,5]T(3,5)(4,1): twenty slots, and one box of padding."""
    pads, fill_first = lower_padding(access_map(Shape.parse("f32[3,5]{1,0:T(3,5)(4,1)}")))
    assert not fill_first
    assert [pad.volume for pad in pads] == [5]


@pytest.mark.parametrize("text", ["f32[0,3]{1,0:T(2,2)}", "f32[0]{0:L(8)}", "s4[0,5]{1,0:E(4)}"])
def test_empty_arrays_have_only_padding(text: str) -> None:
    shape = Shape.parse(text)
    pads, fill_first = lower_padding(access_map(shape))
    assert not fill_first
    assert sum(pad.volume for pad in pads) == access_map(shape).slots
