"""Every refusal of a layout carries its witness, and tables of any integer type are read alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tilejit import LayoutError, cute
from tilejit.cute import Layout, NoLayoutError, Witness, from_offsets, parse, recognize


@pytest.mark.parametrize(
    ("refused", "witness"),
    [
        (lambda: cute.composition(parse("(6,2):(1,7)"), parse("(3,2):(2,3)")), Witness(5, 8, 7)),
        (lambda: cute.composition(parse("(4,4):(1,100)"), parse("4:-1")), Witness(1, -1, None)),
        (lambda: cute.left_inverse(parse("(2,2):(1,1)")), Witness(2, 1, 2)),
        (lambda: cute.left_inverse(parse("(4,4):(1,-8)")), Witness(4, -8, None)),
        (lambda: cute.complement(parse("(2,2):(2,3)"), 12), Witness(3, 2, 1)),
        (lambda: cute.complement(parse("(4,2):(-3,-1)"), 5), Witness(3, 0, 1)),
        (lambda: cute.complement(parse("(4,0):(1,4)"), 12), Witness(0, 0, 1)),
        (lambda: cute.logical_divide(parse("12:1"), parse("(2,2):(2,3)")), Witness(3, 2, 1)),
        (lambda: cute.logical_product(parse("(2,2):(2,3)"), 3), Witness(3, 2, 1)),
        (lambda: from_offsets([0, 1, 10, 12]), Witness(3, 12, 11)),
        (lambda: from_offsets([[0, 1], [2, 2]]), Witness((1, 1), 2, 3)),
        (lambda: from_offsets([[5, 6]]), Witness((0, 0), 5, 0)),
        (lambda: cute.from_xla(tj.Shape.parse("f32[12,4]{1,0:T(6,4)(4,1)}")), Witness((6, 0), 32, 18)),
        (lambda: cute.to_xla(parse("(4,4):(1,2)")), Witness((0, 1), 2, 4)),
        (lambda: cute.to_xla(parse("4:0")), Witness(1, 0, 1)),
        (lambda: cute.to_xla(parse("(4,2):(1,-4)")), Witness((0, 1), -4, None)),
        (lambda: cute.to_xla(parse("Sw<1,0,1> o 0 o 4:1")), Witness(3, 2, 4)),
    ],
)
def test_witnesses(refused: Callable[[], Any], witness: Witness) -> None:
    with pytest.raises(NoLayoutError) as refusal:
        refused()
    assert refusal.value.witness == witness
    assert witness.value != witness.expected


def test_the_text_of_a_witness() -> None:
    assert str(Witness(3, 12, 11)) == "index 3 gives 12, not 11"
    assert str(Witness((1, 0), -4, None)) == "index (1, 0) gives -4, before the first element"


@pytest.mark.parametrize("text", ["(3,3):(2,3)", "(3,7,5):(2,11,90)"])
def test_the_lack_of_a_mixed_radix_has_a_witness(text: str) -> None:
    """A layout that maps the earlier offsets back to their indices gives another index there."""
    with pytest.raises(NoLayoutError, match="a layout that is correct for") as refusal:
        cute.left_inverse(parse(text))
    seen = refusal.value.witness
    assert seen is not None
    assert seen.value != seen.expected == seen.index


@pytest.mark.parametrize(
    ("table", "found"),
    [
        (np.array([0, 200, 144], np.uint8), Witness(2, 144, 400)),
        (np.array([0, 2**62, -(2**63)]), Witness(2, -(2**63), 2**63)),
        (np.array([0, -128, 0], np.int8), Witness(2, 0, -256)),
        (np.array([0, 200], np.uint8), Layout(2, 200)),
        (np.array([0, 2**63 - 1], np.uint64), Layout(2, 2**63 - 1)),
        ([0, np.int64(3), 6], Layout(3, 3)),
        (np.array([0, np.int64(3), np.uint8(6)], object), Layout(3, 3)),
        ([], Layout(0, 0)),
    ],
)
def test_tables_do_not_wrap(table: Any, found: Layout | Witness) -> None:
    """Both recognizers, by one rule."""
    assert recognize(table) == found
    if isinstance(found, Layout):
        assert from_offsets(table) == found
    else:
        with pytest.raises(NoLayoutError) as refusal:
            from_offsets(table)
        assert refusal.value.witness == found


@pytest.mark.parametrize("read", [recognize, from_offsets])
@pytest.mark.parametrize(
    ("table", "error", "text"),
    [
        (np.array([0, 2**64 - 1], np.uint64), LayoutError, "64 bits"),
        ([[0, 1], [2]], LayoutError, "rows of equal length"),
        (np.ma.array([0, 7], mask=[0, 1]), TypeError, "without a mask"),
        (np.array([0, True], object), TypeError, "got bool"),
        (np.array([0.0]), TypeError, "got float64"),
        (np.array([0, 1.0], object), TypeError, "got float"),
    ],
)
def test_objects_that_are_not_tables_are_refused(
    read: Callable[[Any], Any], table: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        read(table)


def test_the_recognizer_keeps_the_shape_of_the_table() -> None:
    assert recognize(np.arange(6), (1, (2, 3))) == Layout((1, (2, 3)), (0, (1, 2)))
    assert recognize(np.array([0, 1, 2, 4]), (2, 2)) == Witness(3, 4, 3)
    assert recognize([0, 1, 2, 3, 4, 5, 6, 8], (2, (2, 2))) == Witness(7, 8, 7)
    assert recognize(np.zeros(0, int), (0, 3)) == Layout((0, 3), (0, 0))
    for shape in ((2, 2), 5, (-2, -3), ()):
        with pytest.raises(LayoutError, match="does not fill"):
            recognize(np.arange(6), shape)


@pytest.mark.parametrize("slots", [77, 2**80, -1])
def test_no_elements_have_no_slots(slots: int) -> None:
    with pytest.raises(LayoutError, match="has 0 slots"):
        cute.to_xla(Layout((3, 0), (5, 1)), slots=slots)
    assert cute.to_xla(Layout((3, 0), (5, 1)), slots=0).dimensions == (3, 0)


def test_tables_of_many_axes() -> None:
    """NumPy's arrays have up to 64 dimensions, but some of its functions support only 32."""
    axes = (1,) * 62
    assert from_offsets(np.arange(4).reshape(*axes, 2, 2)).stride == (*(0,) * 62, 2, 1)
    for last in (4, 2**70):
        with pytest.raises(NoLayoutError) as refusal:
            from_offsets(np.array([0, 1, 2, last]).reshape(*axes, 2, 2))
        assert refusal.value.witness == Witness((*(0,) * 62, 1, 1), last, 3)
    assert Layout((2, 2), (1, 5))(np.full((1,) * 40, 3)).item() == 6
    tiled = tj.pack(np.zeros((4, 4), np.float32), "{1,0:T(2,2)}")
    with pytest.raises(LayoutError, match="ids has shape"):
        tj.gather_tiles(tiled, np.full((1,) * 40, 2**70, object).tolist())
