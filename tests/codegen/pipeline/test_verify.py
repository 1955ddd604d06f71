"""A copy that breaks one of the verifier's seven invariants is refused; what the compiler makes passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from codegen.analysis.ranges import check_disjoint, check_range
from codegen.frontend.box_copy import box_copy, copied_box
from codegen.ir.strided_box import Axis, Element, StridedBox
from codegen.maps.access import AccessMap, Root, strided_map
from codegen.maps.boxed_copy import BoxedCopy
from codegen.maps.digit_trees import Leaf, Opaque, Split, Tree, Window
from codegen.maps.refine import Box, Digit, PairLeaf, PairSplit, PairTable, PairTree
from codegen.passes.make_nest import make_nest
from codegen.pipeline.verify import (
    check_box_bounds,
    check_injective,
    check_pair_tree,
    check_probes,
    check_regrouping,
    check_stage,
    check_tree,
    check_volumes,
    verify_box,
    verify_copy,
)
from codegen.schedule.choose_transpose import transpose_schedule
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.offset_tables import OffsetTable
from codegen.support.errors import KernelError
from tests.codegen.passes.test_passes_of_copies import normal
from tests.tools.strategies import shapes_and_strides
from tilejit.layout.indexing import access_map
from tilejit.layout.shape import Shape

U32 = Element("u32", 32)


def copy_of(text: str) -> BoxedCopy:
    """A C-ordered array into a tiled buffer."""
    shape = Shape.parse(text)
    array = np.empty(shape.dimensions, shape.dtype)
    src = strided_map(array.shape, array.strides, (0, array.nbytes), element_bits=8 * array.itemsize)
    return box_copy(src, access_map(shape).in_units(8))


@pytest.fixture
def tiled() -> BoxedCopy:
    return copy_of("f32[20,30]{1,0:T(8,4)}")


def broken(copy: BoxedCopy, change: object) -> BoxedCopy:
    """The copy with its first box changed."""
    assert callable(change)
    return replace(copy, boxes=(change(copy.boxes[0]), *copy.boxes[1:]))


@given(shapes_and_strides())
def test_compiled_copies_pass(case: tuple[Shape, tuple[int, ...]]) -> None:
    shape, strides = case
    dst = access_map(shape)
    size = shape.dtype.itemsize
    low = sum(min(0, (n - 1) * s) for n, s in zip(shape.dimensions, strides, strict=True) if n)
    high = sum(max(0, (n - 1) * s) for n, s in zip(shape.dimensions, strides, strict=True) if n)
    src = strided_map(shape.dimensions, strides, (low, high + size), element_bits=8 * size)
    unit = 8 if shape.bits >= 8 else 1
    copy = box_copy(src.in_units(unit), dst.in_units(unit))
    verify_copy(copy)
    for box in copy.boxes:
        elements = (Element(shape.primitive_type, bits) for bits in (8 * size, shape.bits))
        before = copied_box(copy, box, *elements)
        verify_box(before, normal(before))


@pytest.mark.parametrize(
    "tree",
    [
        Split(12, 0, Leaf(12, 1), Leaf(0, 1)),
        Split(12, 5, Leaf(2, 5), Leaf(5, 1)),
        Split(12, 5, Leaf(3, 5), Leaf(4, 1)),
        Split(12, 5, Leaf(3, 5), Leaf(6, 1)),
        Split(12, 4, Split(3, 2, Leaf(1, 8), Leaf(2, 4)), Leaf(4, 1)),
        Leaf(-1, 4),
        Window(4, Leaf(8, 1), 6, 1),
        Window(4, Leaf(8, 1), 2, -1),
        Opaque(-2, lambda m: m, 0, 0),
    ],
    ids=lambda tree: str(tree).split("<")[0][:60],
)
def test_1_trees(tree: Tree) -> None:
    with pytest.raises(KernelError, match="verify"):
        check_tree(tree)


@pytest.mark.parametrize(
    "tree",
    [
        PairSplit(12, 0, PairLeaf(12, 1, 1), PairLeaf(1, 1, 1)),
        PairSplit(12, 5, PairLeaf(2, 5, 5), PairLeaf(5, 1, 1)),
        PairSplit(12, 5, PairLeaf(4, 5, 5), PairLeaf(5, 1, 1)),
        PairSplit(12, 4, PairLeaf(3, 4, 4), PairSplit(4, 3, PairLeaf(1, 3, 3), PairLeaf(3, 1, 1))),
        PairLeaf(0, 1, 1),
        PairTable(0, lambda m: m, lambda m: m),
    ],
    ids=lambda tree: str(tree).split("<")[0][:60],
)
def test_1_pair_trees(tree: PairTree) -> None:
    with pytest.raises(KernelError, match="verify"):
        check_pair_tree(tree)


def test_2_volumes(tiled: BoxedCopy) -> None:
    check_volumes(tiled)
    with pytest.raises(KernelError, match=r"hold \d+ elements of 600"):
        check_volumes(replace(tiled, boxes=tiled.boxes[1:]))
    with pytest.raises(KernelError, match="slots of padding"):
        check_volumes(replace(tiled, pads=tiled.pads[1:]))
    with pytest.raises(KernelError, match="elements of 600"):
        check_volumes(replace(tiled, boxes=(*tiled.boxes, tiled.boxes[0])))


@pytest.mark.parametrize("side", ["source", "destination"])
def test_3_bounds(tiled: BoxedCopy, side: str) -> None:
    far = {"source": 20 * 30 * 4, "destination": 24 * 32 * 4}[side]
    for base in (-4, far):
        moved = {"src_base": base} if side == "source" else {"dst_base": base}
        with pytest.raises(KernelError, match=f"the {side} is touched"):
            check_box_bounds(replace(tiled.boxes[0], **moved), tiled)  # type: ignore[arg-type]
    with pytest.raises(KernelError, match="touched at 0 to 8"):
        check_range(side, 0, 9, (0, 8))
    check_range(side, 0, 8, (0, 8))


def box(digits: tuple[Digit, ...], tables: tuple[PairTable, ...] = ()) -> Box:
    """Some digits of a copy."""
    return Box(0, 0, digits, tuple("ij"[: len(digits)]), tables, (0,) * len(digits))


def staged_columns() -> CopyNest:
    """Five rows of 6 x 7 columns, which scratch holds together; each 7 begin anywhere in the destination."""
    axes = Axis("j", 7, 2, 10), Axis("i", 6, 14, 96), Axis("row", 5, 84, 2)
    box = StridedBox(axes, 0, 0, Element("u16", 16), Element("u16", 16))
    found = transpose_schedule(box, stream=True)
    assert found is not None
    nest = make_nest(box, found)
    assert nest.staged_block is not None
    assert nest.staged_block.runs is not None
    return nest


def with_block(**changes: object) -> Callable[[CopyNest], CopyNest]:
    """Nests with another block."""

    def changed(nest: CopyNest) -> CopyNest:
        assert nest.staged_block is not None
        return replace(nest, staged_block=replace(nest.staged_block, **changes))  # type: ignore[arg-type]

    return changed


def without_more_rows(nest: CopyNest) -> CopyNest:
    row = nest.axis("row")
    assert row.src_table is not None
    alone = replace(row, src_table=replace(row.src_table, more=0))
    return replace(nest, loops=tuple(alone if x is row else x for x in nest.loops))


STAGED_REACH = 0, 5 * 84, 0, 5 * 96 + 70


def test_3_staged_tiles() -> None:
    check_stage(staged_columns(), (0, 0), STAGED_REACH)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without_more_rows, r"registers read \d+ rows"),
        (with_block(size_bytes=6 * 128), "scratch"),
        (with_block(runs=OffsetTable(((6, 97),))), "destination"),
        (with_block(runs=OffsetTable(((6, 95),))), "6 runs of 7 columns"),
        (with_block(staged_runs=OffsetTable(((6, 64),))), "6 runs of 7 columns"),
        (with_block(run_columns=6), "6 runs of 6 columns"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_3_broken_stages(change: Callable[[CopyNest], CopyNest], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        check_stage(change(staged_columns()), (0, 0), STAGED_REACH)


@pytest.mark.parametrize(("side", "message"), [(1, "source"), (3, "destination")])
def test_3_stages_beyond_the_box(side: int, message: str) -> None:
    reach = [*STAGED_REACH]
    reach[side] -= 1
    low_src, stop_src, low_dst, stop_dst = reach
    with pytest.raises(KernelError, match=message):
        check_stage(staged_columns(), (0, 0), (low_src, stop_src, low_dst, stop_dst))


def test_4_destination_written_twice() -> None:
    check_injective(box(((4, 4, 4), (5, 80, 16))))
    for digits in (((4, 4, 4), (5, 80, 12)), ((4, 4, 0),), ((4, 4, 4), (5, 80, -12))):
        with pytest.raises(KernelError, match="destination stride"):
            check_injective(box(digits))
    twice = PairTable(4, lambda m: m, lambda m: m // 2)
    with pytest.raises(KernelError, match="destination offset 0 is written twice"):
        check_injective(box((), (twice,)))


def test_5_regrouping() -> None:
    """A loop of 12 over digits 3 and 4 whose strides leave a hole between them."""
    copy = copy_of("u32[3,4]{1,0}")
    whole = box(((3, 16, 16), (4, 4, 4)))
    before = copied_box(copy, whole, U32, U32)
    after = normal(before)
    check_regrouping(before, after)
    assert [axis.extent for axis in after.axes] == [12]
    with pytest.raises(KernelError, match="stands for no digits"):
        check_regrouping(copied_box(copy, box(((3, 20, 16), (4, 4, 4))), U32, U32), after)
    with pytest.raises(KernelError, match="loops of"):
        check_regrouping(copied_box(copy, box(((3, 16, 16), (5, 4, 4))), U32, U32), after)


@pytest.mark.parametrize(("dst", "src"), [(-4, -8), (-4, 8), (4, -8)])
def test_5_backwards(dst: int, src: int) -> None:
    """Digits that walk one side backwards are reversed on both sides together."""
    copy = copy_of("u32[3,4]{1,0}")
    before, other = (copied_box(copy, box(((3, 80, 64), (4, step, dst))), U32, U32) for step in (src, -src))
    check_regrouping(before, normal(before))
    with pytest.raises(KernelError, match="stands for no digits"):
        check_regrouping(other, normal(before))


def test_6_overlap() -> None:
    check_disjoint((0, 100), (100, 200))
    for dst in ((99, 200), (-50, 1), (10, 20), (-10, 300)):
        with pytest.raises(KernelError, match="overlap"):
            check_disjoint((0, 100), dst)


@pytest.mark.parametrize("change", ["src_base", "dst_base", "strides"])
def test_7_probes(tiled: BoxedCopy, change: str) -> None:
    check_probes(tiled)

    def wrong(box: Box) -> Box:
        if change == "strides":
            return replace(box, digits=tuple((n, src, -dst) for n, src, dst in box.digits))
        return replace(box, **{change: getattr(box, change) + 4})

    with pytest.raises(KernelError, match="no box moves"):
        check_probes(broken(tiled, wrong))


def test_names_of_axes(tiled: BoxedCopy) -> None:
    box = copied_box(tiled, tiled.boxes[0], U32, U32)
    with pytest.raises(KernelError, match="looped over twice"):
        verify_box(box, box.with_axes((box.axes[0], *box.axes)))


def test_a_map_with_wrong_bounds_is_refused() -> None:
    src = strided_map((8,), (4,), (0, 32), element_bits=32)
    dst = AccessMap((8,), (Root((0,), Leaf(8, 4)),), 0, 8, 32, (0, 28), 8)
    with pytest.raises(KernelError, match="the destination is touched at 0 to 31"):
        verify_copy(box_copy(src, dst))
