"""A copy that breaks one of the verifier's seven invariants is refused; what the compiler makes passes."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given

from codegen.analysis.ranges import affine_range, check_disjoint, check_range
from codegen.frontend.box_copy import box_copy, copied_box
from codegen.ir.strided_box import Element, StridedBox
from codegen.maps.access import AccessMap, Root, strided_map
from codegen.maps.boxed_copy import BoxedCopy
from codegen.maps.digit_trees import Leaf, Opaque, Split, Tree, Window
from codegen.maps.refine import Box, PairLeaf, PairSplit, PairTable, PairTree
from codegen.passes.lane_reads import lane_reads
from codegen.passes.select_transfer import select_transfer
from codegen.pipeline import copies, steps
from codegen.pipeline.copies import compile_copy
from codegen.pipeline.copy_options import CopyOptions
from codegen.pipeline.copy_request import CopyRequest
from codegen.pipeline.steps import reach_of
from codegen.pipeline.verify import (
    check_box_bounds,
    check_injective,
    check_lanes,
    check_pair_tree,
    check_probes,
    check_regrouping,
    check_tree,
    check_volumes,
    verify_box,
    verify_copy,
)
from codegen.pipeline.verify_panels import check_panels
from codegen.schedule.offset_tables import Digit, OffsetTable
from codegen.schedule.schedule import Schedule, TileSchedule
from codegen.schedule.thresholds import Thresholds
from codegen.schedule.transfer_loops import Loop, int_size
from codegen.schedule.transfers import TransferNest
from codegen.schedule.transposes import LaneReads, TransposeRuns, TransposeTiles
from codegen.support.errors import KernelError
from codegen.support.settings import settings
from tests.codegen.passes.test_passes_of_copies import normal
from tests.tools.strategies import shapes_and_strides
from tilejit.arrays.strided import span
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


PANELS = {
    "one run": [(9, 10000, 2), (5000, 2, 18)],
    "a run for each column": [(9, 1000, 2), (500, 2, 36)],
    "backwards": [(9, -10000, 2), (5000, 2, 18)],
    "layers": [(11, 70, 1), (70, 1, 11), (500, 770, 770)],
    "others between rows": [(9, 30000, 2), (1000, 2, 18), (3, 10000, 18000)],
    "joined columns": [(3, 4000, 2), (20, 2, 808), (100, 40, 8)],
    "parts of lanes": [(100, 9, 1), (9, 1, 100), (1000, 900, 900)],
}
"""Digits (extent, source stride, destination stride) of transposes with short result rows."""


@pytest.mark.parametrize("name", PANELS)
def test_3_panels(name: str) -> None:
    """Panels touch the same bytes as their nest. A panel of half the size is too small."""
    digits = PANELS[name]
    width = digits[0][2]
    dims, *strides = zip(*reversed(digits), strict=True)
    maps = [strided_map(dims, s, span(dims, s, width), element_bits=8 * width) for s in strides]
    element = Element(f"u{8 * width}", 8 * width)
    (launch,) = compile_copy(
        CopyRequest(*maps, element, element, options=CopyOptions(thresholds=Thresholds(stream_bytes=0)))
    ).launches
    inner = launch.step.nest.transfer
    assert isinstance(inner, TransposeRuns)
    assert (inner.run_offsets is not None) == (name == "joined columns")
    assert (inner.layers != 1) == (name in ("layers", "parts of lanes"))
    assert (inner.lanes is not None) == (name == "parts of lanes")
    starts, reach = (launch.src_offset, launch.dst_offset), reach_of(launch.step.box)
    check_panels(inner, starts, reach)
    check_lanes(inner, launch.src_offset, reach)
    for place in range(4):
        less = list(reach)
        less[place] += -1 if place % 2 else 1
        with pytest.raises(KernelError, match="is touched at"):
            check_panels(inner, starts, (less[0], less[1], less[2], less[3]))
    joined = int_size(inner.run_columns)
    for field, value in (
        ("panel_bytes", inner.panel_bytes // 2),
        ("run_columns", joined - 1 or 2),
        ("row_step", OffsetTable(((inner.block[0] - 1, 8),))),
    ):
        with pytest.raises(KernelError, match=r"verify: |panel is touched"):
            check_panels(replace(inner, **{field: value}), starts, reach)  # type: ignore[arg-type]
    if inner.lanes:
        with pytest.raises(KernelError, match="the source is touched at"):
            check_lanes(replace(inner, lanes=LaneReads(0, 0, inner.lanes.open_offset)), starts[0], reach)


LANES = (
    ("rows behind each other", ((100, 9, 1),), ()),
    ("the first row is the last of the source", ((100, -9, 1),), ()),
    ("joined rows", ((4, 9, 1), (16, 144, 4), (4, 36, 64)), ((3, 3000, 3000),)),
    ("the last row of the source is in the middle", ((50, 9, 1), (2, -450, 50)), ()),
    ("others between rows", ((200, 90, 1),), ((10, 9, 3000),)),
    ("others backwards", ((200, 20, 1),), ((10, -5000, 3000),)),
    ("every row is the last", ((64, 0, 1),), ((3, 9, 1000),)),
)


@pytest.mark.parametrize(("rows", "others"), [x[1:] for x in LANES], ids=[x[0] for x in LANES])
def test_3_lanes(rows: tuple[Digit, ...], others: tuple[Digit, ...]) -> None:
    """No open block reads beyond the box, but one more block would, and so would one more of the others."""
    columns, block = 9, (64, 16)
    reads = lane_reads(rows, columns, others, 1, block[0])
    sides = [[(n, s) for n, s, _ in digits] for digits in (rows, others)]
    step: int | OffsetTable = rows[0][1] if len(rows) == 1 else OffsetTable(tuple(sides[0]))
    loops = tuple(Loop(f"d{k}", n, src, dst) for k, (n, src, dst) in enumerate(others))
    count = prod(n for n, _, _ in rows)
    tiles = TransposeTiles(
        *(1, 1, count, columns, step, count, (Loop("rows"), *loops), (384, 16), block, TileSchedule()),
        lanes=reads,
    )
    low, high = affine_range(0, [*sides[0], *sides[1]])
    reach = low, high + columns, 0, 1 << 20
    check_lanes(tiles, 0, reach)
    start, stop, offset = (reads.closed_start, reads.closed_stop, reads.open_offset)
    assert isinstance(start, int)
    assert isinstance(stop, int)
    assert isinstance(offset, int)
    beyond = [replace(reads, closed_start=start + 64), replace(reads, closed_stop=(stop - 1) // 64 * 64)]
    if others:
        beyond.append(replace(reads, open_offset=offset + 1))
    for wrong in beyond:
        with pytest.raises(KernelError, match="is touched at"):
            check_lanes(replace(tiles, lanes=wrong), 0, reach)


@pytest.mark.parametrize("name", ["lane_reads", "panel_bytes"])
def test_3_every_launch_is_checked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes past the source and panels that are too small are refused even without TILEJIT_VERIFY."""
    monkeypatch.setattr(copies, "settings", lambda: replace(settings(), verify=False))
    digits = PANELS["parts of lanes"]
    dims, *strides = zip(*reversed(digits), strict=True)
    maps = [strided_map(dims, s, span(dims, s, 1), element_bits=8) for s in strides]

    def wrong(box: StridedBox, schedule: Schedule) -> TransferNest:
        nest = select_transfer(box, schedule)
        inner = nest.transfer
        assert isinstance(inner, TransposeRuns)
        assert inner.lanes
        if name == "panel_bytes":
            return replace(nest, transfer=replace(inner, panel_bytes=inner.panel_bytes // 2))
        return replace(nest, transfer=replace(inner, lanes=LaneReads(0, 0, inner.lanes.open_offset)))

    def compiled() -> None:
        element = Element("u8", 8)
        compile_copy(
            CopyRequest(*maps, element, element, options=CopyOptions(thresholds=Thresholds(stream_bytes=0)))
        )

    compiled()
    monkeypatch.setattr(steps, "SELECT", (wrong,))
    with pytest.raises(KernelError, match=r"(source|panel) is touched at"):
        compiled()


def test_4_destination_written_twice() -> None:
    check_injective(Box(0, 0, ((4, 4, 4), (5, 80, 16))))
    for digits in (((4, 4, 4), (5, 80, 12)), ((4, 4, 0),), ((4, 4, 4), (5, 80, -12))):
        with pytest.raises(KernelError, match="destination stride"):
            check_injective(Box(0, 0, digits))
    twice = PairTable(4, lambda m: m, lambda m: m // 2)
    with pytest.raises(KernelError, match="destination offset 0 is written twice"):
        check_injective(Box(0, 0, (), (twice,)))


def test_5_regrouping() -> None:
    """A loop of 12 over digits 3 and 4 whose strides leave a hole between them."""
    copy = copy_of("u32[3,4]{1,0}")
    whole = Box(0, 0, ((3, 16, 16), (4, 4, 4)))
    before = copied_box(copy, whole, U32, U32)
    after = normal(before)
    check_regrouping(before, after)
    assert [axis.extent for axis in after.axes] == [12]
    with pytest.raises(KernelError, match="stands for no digits"):
        check_regrouping(copied_box(copy, Box(0, 0, ((3, 20, 16), (4, 4, 4))), U32, U32), after)
    with pytest.raises(KernelError, match="loops of"):
        check_regrouping(copied_box(copy, Box(0, 0, ((3, 16, 16), (5, 4, 4))), U32, U32), after)


@pytest.mark.parametrize(("dst", "src"), [(-4, -8), (-4, 8), (4, -8)])
def test_5_backwards(dst: int, src: int) -> None:
    """Digits that walk one side backwards are reversed on both sides together."""
    copy = copy_of("u32[3,4]{1,0}")
    before, other = (
        copied_box(copy, Box(0, 0, ((3, 80, 64), (4, step, dst))), U32, U32) for step in (src, -src)
    )
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
