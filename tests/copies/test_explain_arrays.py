"""`explain` between arrays shows what `copyto` runs."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj

F4 = np.zeros((100, 120), "f4")


@pytest.mark.full
@pytest.mark.parametrize(
    ("src", "dst"),
    [
        (F4.T, np.zeros((120, 100), ">f4")),
        (F4.T, np.zeros((120, 100), "f8")),
        (F4[0], np.zeros((100, 120), "f4")),
        (F4, np.zeros((100, 120), ml_dtypes.bfloat16)),
        (np.zeros((300, 50), "V3").T, np.zeros((50, 300), "V3")),
    ],
    ids=["swapped", "cast", "broadcast", "bf16", "three bytes"],
)
def test_the_kernels_are_those_of_a_plan(src: Any, dst: Any) -> None:
    shown = tj.explain(dst, src).program.kernels
    assert shown
    assert shown == tj.plan_copy(dst, src, threads=1).kernels


def test_keywords_of_copies() -> None:
    one, other = (
        tj.explain(np.zeros((120, 100), "f4"), F4.T, virtual_vector_size=size).schedule for size in (16, 32)
    )
    assert 'Tile("row", 16, level="strip"), Tile("column", 16, level="strip")' in one
    assert 'Tile("row", 32, level="strip"), Tile("column", 32, level="strip")' in other
    sized = tj.explain("{1,0:T(8,128)}", F4, specialize="sizes").source
    assert sized != tj.explain("{1,0:T(8,128)}", F4).source
    with pytest.raises(tj.LayoutError, match="specialize"):
        tj.explain(F4.copy(), F4, specialize="all")


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(tj.LayoutError, match="same_kind"):
        tj.explain(np.zeros((100, 120), "i4"), F4)
    with pytest.raises(tj.LayoutError, match="broadcast"):
        tj.explain(np.zeros((10, 120), "f4"), F4)
    with pytest.raises(tj.LayoutError, match="NumPy copies"):
        tj.explain(np.zeros((100, 120), "u4"), F4, casting="unsafe")


def test_the_report_states_the_resulting_size() -> None:
    """In elements of the copy, whatever the box has, and why it is less than requested."""
    runs = np.zeros((30, 200), "u1")[:, :150]
    transposed, dense = np.zeros((120, 100), "f4"), np.zeros((30, 150), "u1")
    cases: tuple[tuple[Any, Any, Any, str], ...] = (
        (F4.T, transposed, 3, "3 became 16x4"),
        (F4.T, transposed, 32, "32 became 32x32"),
        (F4.T, transposed, 1000, "1000 became 100x120 (its loops have no more)"),
        (runs, dense, 1000, "1000 became 7x150"),
        (runs, dense, (8, 1000), "8x1000 became 8x150 (its loops have no more)"),
    )
    for src, dst, size, text in cases:
        explained = tj.explain(dst, src, virtual_vector_size=size)
        assert f"virtual_vector_size {text}\n" in explained.report(), size
        assert f"virtual_vector_size {text}\n" in explained.schedule, size
    assert "virtual_vector_size" not in tj.explain(transposed, F4.T).report()


@pytest.mark.parametrize(
    ("dst", "src"),
    [
        ("f32[100,300]{1,0:T(8,128)}", None),
        (np.zeros((2000, 2000), "f8"), np.zeros((2000, 2000), "f4").T),
        (np.zeros((0, 3)), np.ones((0, 3))),
    ],
    ids=["tiles", "blocks", "nothing"],
)
def test_a_repr_has_three_lines_at_most(dst: Any, src: Any) -> None:
    made = tj.explain(dst, src)
    first, *rest = repr(made).splitlines()
    boxes = len(made.steps)
    assert first.startswith(f"<tilejit.Explanation copy of {boxes} box")
    assert len(rest) <= 2
    assert bool(rest) == bool(boxes)
    assert all(len(line) < 300 for line in rest)


@pytest.mark.parametrize("dst", [np.zeros((3, 5)), "{1,0:T(2,2)}", None])
def test_unknown_casting_rules_are_refused(dst: Any) -> None:
    with pytest.raises(tj.LayoutError, match="casting: expected one of no, equiv"):
        tj.explain(dst, np.zeros((3, 5)), casting="foo")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="casting: expected one of"):
        tj.explain(dst, np.zeros((3, 5)), casting=[])  # type: ignore[arg-type]
