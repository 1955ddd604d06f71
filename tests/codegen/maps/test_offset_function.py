"""Offsets of single elements, against the definition."""

from __future__ import annotations

from itertools import product

import pytest

import tilejit as tj
from codegen.maps.access import map_offset
from codegen.maps.offset_function import offset_function
from tilejit.layout.indexing import access_map

TEXTS = [
    "f32[3,5]{1,0:T(2,2)}",
    "bf16[9,30]{1,0:T(8,16)(2,1)}",
    "f32[]",
    "s4[6,7,5]{0,2,1:T(4)E(4)}",
    "f32[4,6,10]{2,1,0:T(*,4)}",
    "u8[7]{0:T(4)}",
]


@pytest.mark.parametrize("text", TEXTS)
def test_every_offset(text: str) -> None:
    shape = tj.Shape.parse(text)
    access = access_map(shape)
    offset = offset_function(access)
    assert offset is not None
    for index in product(*map(range, shape.dimensions)):
        assert offset(*index) == map_offset(access, index)


def test_offsets_that_are_not_sums_of_digits() -> None:
    spec = tj.as_layout("Sw<2,0,3> o 0 o (8,8):(8,1)", dtype="f32", dims=(8, 8))
    assert offset_function(access_map(spec)) is None
