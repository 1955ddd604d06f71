"""Blockings as CuTe layouts: strides of digits, reversed digits, offsets and pitches."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from tilejit.layout.dtypes import lookup
from tilejit.layout.formats.blocking import Blocking, DigitName
from tilejit.layout.formats.spelling import blocked_shape
from tilejit.layout.formats.strided import strided_shape

PAIRS = Blocking((6, 8), ((6,), (4, 2)), ((0, 0), (1, 0), (1, 1)))
BLOCKS = Blocking((5, 12), ((2, 4), (2, 3, 2)), ((1, 0), (0, 0), (1, 2), (0, 1), (1, 1)))
CODES = (np.arange(60, dtype=np.uint32) * 2654435761 >> 16) % 16


def codes(dims: tuple[int, ...]) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.resize(CODES, dims).astype(np.uint8)


@pytest.mark.parametrize(
    "blocking", [PAIRS, BLOCKS, Blocking((0, 4), ((0,), (4,)), ((1, 0), (0, 0)))], ids=str
)
def test_digits_without_gaps_are_the_blocked_shape(blocking: Blocking) -> None:
    """The same offsets as XLA's tiles, which another module finds."""
    own, tiles = (f(blocking, lookup("u8"), 0) for f in (strided_shape, blocked_shape))
    x = codes(blocking.dimensions)
    assert own.physical_size == tiles.physical_size
    assert tj.pack(x, own).buffer.tolist() == tj.pack(x, tiles).buffer.tolist()


def test_a_reversed_digit_puts_the_first_nibble_in_the_high_bits() -> None:
    shape = strided_shape(PAIRS, lookup("u4"), 4, reversed_digits=frozenset({DigitName(1, 1)}))
    assert str(shape) == "u4[6,8] Sw<0,0,0> o 1 o (6,(2,4)):(8,(-1,2)) E(4)"
    x = codes((6, 8))
    t = tj.pack(x.astype(ml_dtypes.uint4), shape)
    assert t.buffer.tolist() == (x[:, ::2] << 4 | x[:, 1::2]).reshape(-1).tolist()
    assert tj.unpack(t).astype(np.uint8).tolist() == x.tolist()


def test_pitches_and_an_offset_leave_the_rest_of_records() -> None:
    """A pitch applies to its digit, and more major digits follow the gap."""
    order = DigitName(0, 0), DigitName(1, 0), DigitName(1, 1)
    blocking = Blocking((2, 6), ((2,), (2, 3)), order)
    shape = strided_shape(blocking, lookup("u8"), 8, offset=2, pitches={order[1]: 5})
    record = np.dtype({"names": ["q"], "formats": ["3u1"], "offsets": [2], "itemsize": 5})
    theirs, own = np.full(20, 255, np.uint8), np.full(20, 255, np.uint8)
    x = codes((2, 6))
    theirs.view(record)["q"] = x.reshape(4, 3)
    assert shape.physical_size == theirs.size
    assert tj.unpack(theirs, shape).tolist() == x.tolist()
    tj.pack(x, shape, out=own, padding="keep")
    assert own.tolist() == theirs.tolist()


def test_wrong_digits_and_widths_are_refused() -> None:
    with pytest.raises(tj.LayoutError, match=r"no digit \(1, 2\)"):
        strided_shape(PAIRS, lookup("u4"), 4, reversed_digits=frozenset({DigitName(1, 2)}))
    with pytest.raises(tj.LayoutError, match="element_size_in_bits is 4, but u8 has 8"):
        strided_shape(PAIRS, lookup("u8"), 4)
