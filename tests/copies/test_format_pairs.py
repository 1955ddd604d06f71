"""From every named format to every other of the same dtype and rank: the same bytes as a fresh pack."""

from __future__ import annotations

import random
from functools import cache
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.tools.oracle import same_elements
from tilejit.layout.dtypes import primitive_type

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]
SHAPES: tuple[tuple[str, Dims], ...] = (
    ("s8", (1, 32, 8, 32)),
    ("s8", (2, 19, 3, 5)),
    ("bf16", (37, 21)),
    ("f32", (13, 37)),
    ("s4", (9, 35)),
)
"""In four dimensions many formats support bytes: an even and an uneven array."""
MOST_PAIRS = 600


@cache
def takers(dtype: str, dims: Dims) -> tuple[str, ...]:
    """The formats that support such an array."""
    return tuple(name for name in tj.formats() if _takes(name, dtype, dims))


def _takes(name: str, dtype: str, dims: Dims) -> bool:
    """Whether the format stores such elements; formats of codes take bytes, but narrow them."""
    try:
        return tj.as_layout(name, dims=dims, dtype=dtype).primitive_type == dtype
    except tj.LayoutError:
        return False


@cache
def array(dtype: str, dims: Dims) -> Array:
    """No element is zero, as padding is, and no two neighbors are equal."""
    element = primitive_type(dtype)
    assert element.numpy
    most = 7 if element.bits == 4 else 113
    return (np.arange(prod(dims)) % most + 1).reshape(dims).astype(element.numpy)


@cache
def packed(name: str, dtype: str, dims: Dims) -> tj.TiledArray:
    return tj.pack(array(dtype, dims), name)


@pytest.mark.full
@pytest.mark.parametrize(("dtype", "dims"), SHAPES, ids=str)
def test_every_pair(dtype: str, dims: Dims) -> None:
    """One pair after the other in a single test, so that they share packed buffers."""
    names = takers(dtype, dims)
    assert len(names) >= 8
    pairs = [*product(names, names)]
    for source, target in random.Random(0).sample(pairs, min(MOST_PAIRS, len(pairs))):
        want = packed(target, dtype, dims)
        got = tj.relayout(packed(source, dtype, dims), target)
        assert got.layout == want.layout, (source, target)
        assert got.buffer.tobytes() == want.buffer.tobytes(), (source, target)


@pytest.mark.parametrize("specialize", ["structure", "sizes"])
@pytest.mark.parametrize(
    ("source", "target", "dtype", "dims"),
    [
        ("ascend-fractal-nz", "col4_4r2_8c", "bf16", (37, 21)),
        ("jpeg-8x8-blocks", "col32_2r_4r4", "s4", (9, 35)),
    ],
)
def test_rows_of_one_contiguous_block_become_listed_lines(
    source: str, target: str, dtype: str, dims: Dims, specialize: Any
) -> None:
    """Numba refused their kernel: 8 rows of 4 elements were stored as 4 lines of 8."""
    got = tj.relayout(packed(source, dtype, dims), target, specialize=specialize)
    assert got.buffer.tobytes() == packed(target, dtype, dims).buffer.tobytes()


@pytest.mark.full
@pytest.mark.parametrize(("dtype", "dims"), SHAPES, ids=str)
def test_unpacking_restores_the_array(dtype: str, dims: Dims) -> None:
    """Together with the test of every pair: any chain of formats gives back the array bit for bit."""
    x = array(dtype, dims)
    for name in takers(dtype, dims):
        tiled = packed(name, dtype, dims)
        assert same_elements(tj.unpack(tiled), x, tiled.layout), name
