"""Joins of very many arrays: small ones with several dtypes and orders, and a large one among them."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.conftest import SEED
from tests.numpy_api.drawn import assert_same, content, outcome
from tests.tools.sizes import kernels_for_all_sizes

Array = np.ndarray[Any, np.dtype[Any]]

MIXTURES: dict[str, tuple[str, ...]] = {
    "one": ("f4",),
    "floats": ("f4", "f8", "f2"),
    "numbers": ("?", "i1", "u2", "f4", "i8"),
    "signs": ("i8", "u8"),
    "byte orders": ("f4", ">f4"),
    "swapped": (">i4",),
    "complex": ("c8", "f8"),
    "texts": ("S3", "S7"),
    "texts and numbers": ("U4", "i2"),
    "records": ("i4,f8",),
    "dates": ("M8[s]", "M8[ms]"),
    "objects": ("O", "f4"),
    "impossible": ("M8[s]", "f4"),
}


def parts(mixture: str, count: int, *, same_shape: bool, large: int | None) -> list[Array]:
    """Arrays of a few rows of three, some in Fortran order, some reversed; one is large."""
    rng, kinds, out = np.random.default_rng(SEED), MIXTURES[mixture], []
    for k in range(count):
        rows = 4 if same_shape else int(rng.integers(0, 6))
        rows = 30_000 if k == large else rows
        x = content(np.dtype(kinds[k * len(kinds) // count]), (rows, 3), k)
        out.append((x, np.asfortranarray(x), x[::-1])[k % 5 % 3])
    return out


COMPILED = ("one", "signs", "byte orders", "complex", "records", "objects")
"""Mixtures whose joins by kernels are tested. Conversions of the others have separate tests."""


@pytest.mark.full
@pytest.mark.parametrize(
    ("mixture", "count", "ours"),
    [
        *((mixture, count, False) for mixture in MIXTURES for count in (9, 400)),
        *((mixture, 110, True) for mixture in COMPILED),
    ],
)
def test_many_small_parts(mixture: str, count: int, ours: bool) -> None:
    """Dtype, bytes, strides and exceptions are NumPy's, wherever the dtypes change."""
    rows, same = (parts(mixture, count, same_shape=flag, large=None) for flag in (False, True))
    turned = [x.T for x in rows]
    for name, arrays, axis in (
        ("concatenate", rows, 0),
        ("concatenate", turned, -1),
        ("concatenate", [np.asfortranarray(x) for x in same], 0),
        ("concatenate", tuple(same), 1),
        ("stack", same, 0),
        ("stack", same, 1),
        ("stack", same, -1),
        ("stack", rows, 0),
    ):
        with kernels_for_all_sizes() if ours else nullcontext():
            assert_same(*(outcome(getattr(module, name), arrays, axis) for module in (tj, np)))


@pytest.mark.parametrize("dtype", [None, "f4", ">f8", "i2"])
@pytest.mark.parametrize("large", [0, 1, 299])
@pytest.mark.parametrize("mixture", ["one", "numbers", "byte orders"])
def test_one_part_is_large(mixture: str, large: int, dtype: str | None) -> None:
    """The first part, which decides, or another one; to another dtype, and to `out=`."""
    arrays = parts(mixture, 300, same_shape=False, large=large)
    for turned in (False, True):
        given, axis = ([x.T for x in arrays], 1) if turned else (arrays, 0)
        for casting in ("same_kind", "unsafe"):
            keywords = {"dtype": dtype, "casting": casting}
            assert_same(*(outcome(module.concatenate, given, axis, **keywords) for module in (tj, np)))
        out = [np.zeros(np.concatenate(given, axis).shape, dtype or "f8") for _ in range(2)]
        for module, into in zip((tj, np), out, strict=True):
            outcome(module.concatenate, given, axis, into)
        assert_same((out[0], []), (out[1], []))


@pytest.mark.parametrize("ours", [False, True])
@pytest.mark.parametrize("where", [0, 150, 299])
def test_one_part_does_not_fit(where: int, ours: bool) -> None:
    """One part among hundreds has another shape, rank or class. Nothing is written."""
    arrays = parts("one", 300, same_shape=True, large=None)
    for odd in (np.zeros((4, 2), "f4"), np.zeros(4, "f4"), np.zeros((1, 4, 3), "f4"), 3.0, None, [[1, 2, 3]]):
        mixed = [*arrays[:where], odd, *arrays[where:]]
        out = [np.full((1204, 3), 7, "f4") for _ in range(2)]
        with kernels_for_all_sizes() if ours else nullcontext():
            for name in ("concatenate", "stack"):
                assert_same(*(outcome(getattr(module, name), mixed) for module in (tj, np)))
            for module, into in zip((tj, np), out, strict=True):
                outcome(module.concatenate, mixed, 0, into)
        assert_same((out[0], []), (out[1], []))
