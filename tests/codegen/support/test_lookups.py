"""Lookups that fail name what is missing, and where, instead of raising StopIteration or KeyError."""

from __future__ import annotations

import pytest

from codegen.ir.strided_box import Axis, Element, StridedBox
from codegen.support.lookups import Known, expect

WORD = Element("u32", 32)
BOX = StridedBox((Axis("i", 9, 1200, 512), Axis("j", 128, 4, 4)), 0, 0, WORD, WORD)


def test_the_next_item() -> None:
    items = iter("ab")
    assert [expect(items, "a letter", "here"), expect(items, "a letter", "here")] == ["a", "b"]
    with pytest.raises(AssertionError, match=r"^expected a letter in here$"):
        expect(items, "a letter", "here")


def test_known_keys() -> None:
    known = Known(i=4, j=8)
    assert (known["i"], known.get("k"), "k" in known) == (4, None, False)
    with pytest.raises(AssertionError, match=r"^expected k among i, j$"):
        _ = known["k"]
    with pytest.raises(AssertionError, match=r"^expected 1 among no keys$"):
        _ = Known[int, int]()[1]


def test_axes_of_a_box() -> None:
    with pytest.raises(AssertionError, match="expected axis strip in src: u32"):
        BOX.axis("strip")
    with pytest.raises(AssertionError, match="expected strip among i, j"):
        _ = BOX.extents["strip"]
    with pytest.raises(AssertionError, match="expected axis strip"):
        [BOX.digits((name,)) for name in ("i", "strip")]  # StopIteration would end a generator
