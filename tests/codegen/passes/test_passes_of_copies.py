"""Passes on copies: the interpreter moves the same bytes, and each pass does what its docstring shows."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codegen.frontend.box_copy import MAX_BOXES
from codegen.ir.blocks import block_shape
from codegen.ir.buffers import Buffer
from codegen.ir.strided_box import Element, StridedBox
from codegen.passes.block_axes import block_axes
from codegen.passes.normalize import coalesce, drop_units, face_forward, order_by_destination
from codegen.passes.pad_rank import pad_rank
from codegen.passes.parametrize import parametrize_sizes
from codegen.passes.select_transfer import select_transfer
from codegen.passes.split_axes import split_axes
from codegen.passes.strip_mine import strip_mine
from codegen.passes.widen_elements import widen_elements
from codegen.pipeline.copies import repeated
from codegen.pipeline.observer import nobody
from codegen.pipeline.passes import NORMALIZE, run_passes
from codegen.pipeline.steps import first_arguments, kernel_of, launch_of
from codegen.runtime.step import Step
from codegen.schedule.choose import EDGE_PART, choose, padded_rank
from codegen.schedule.choose_cache_blocks import CacheBlocks
from codegen.schedule.choose_cuts import cuts_of_a_run, cuts_of_long_digits
from codegen.schedule.choose_width import wide_axes
from codegen.schedule.schedule import COLUMNS, OUTER_RANKS, ROWS, SHARED_RANKS, Schedule
from codegen.schedule.thresholds import Thresholds
from codegen.schedule.transfer_loops import Loop
from codegen.schedule.transfers import CopyRun, TransferNest
from codegen.support.errors import KernelError
from tests.tools.boxes import box_of, copy_box, visited
from tests.tools.replay import aligned_bytes, interpreting
from tests.tools.strategies import Pick, one_of, permutation

SIZE = 1 << 17
FILL = bytes(range(1, 17))


@st.composite
def boxes(draw: Any, *, fills: bool = False) -> StridedBox:
    """Injective boxes whose bytes all lie within SIZE on both sides."""
    pick: Pick = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    width = one_of(pick, (1, 1, 2, 4, 8, 16))
    extents = [one_of(pick, (1, 2, 2, 3, 4, 5, 8)) for _ in range(pick(0, 4))]
    sides = []
    for side in range(2):
        strides, step = [0] * len(extents), width
        for k in permutation(pick, len(extents)):
            strides[k] = step if pick(0, 5) else -step
            step = step * extents[k] + (one_of(pick, (0, 0, 0, width, 5)))
            if side == 0 and pick(0, 9) == 0:
                strides[k] = 0
        sides.append(strides)
    bases = [
        -sum(min(0, (n - 1) * s) for n, s in zip(extents, side, strict=True)) + pick(0, 3) for side in sides
    ]
    is_fill = fills and pick(0, 2) == 0
    return box_of(list(zip(extents, *sides, strict=True)), width, *bases, fills=is_fill)


def moved(box: StridedBox) -> bytes:
    """The destination after the elements of a box are moved one by one from numbered bytes."""
    dst = np.zeros(SIZE, np.uint8)
    fill = int.from_bytes(FILL[: box.width], "little")
    copy_box(box, Buffer(_source()), Buffer(dst), fill)
    return dst.tobytes()


def _source() -> Any:
    return np.random.default_rng(7).integers(0, 256, SIZE, np.uint8)


def moved_by_loops(
    box: StridedBox, schedule: Schedule, nest: TransferNest, is_literal: Any = lambda name: True
) -> bytes:
    """The destination after the loops of a lowered nest are interpreted."""
    kernel, sizes = kernel_of(nest, first_arguments(nest), nobody, is_literal)
    step = Step(box, schedule, nest, kernel, sizes)
    launch = launch_of(step, ((0, SIZE), (0, SIZE)), fill=repeated(FILL[: box.width]) if nest.fills else None)
    src, dst = (aligned_bytes(x, 0) for x in (_source(), np.zeros(SIZE, np.uint8)))
    with interpreting([src, dst]):
        launch.run(src.ctypes.data, dst.ctypes.data, 0, 1)
    return dst.tobytes()


@pytest.mark.parametrize("run", NORMALIZE, ids=lambda p: p.__name__)
@given(box=boxes(fills=True))
def test_normalizing_keeps_meaning(run: Any, box: StridedBox) -> None:
    assert visited(run(box)) == visited(box)


@given(boxes())
def test_widening_keeps_meaning(box: StridedBox) -> None:
    assert moved(widened(normal(box))) == moved(box)


def normal(box: StridedBox) -> StridedBox:
    made: StridedBox
    (made,) = run_passes(NORMALIZE, box, None)
    return made


def widened(box: StridedBox) -> StridedBox:
    return widen_elements(box, wide_axes(box))


JOINED = (
    box_of([(3, 576, 64), (9, 16, 192), (16, 1, 4), (4, 144, 1)]),
    box_of([(9, 192, 16), (3, 64, 576), (4, 1, 144), (16, 4, 1)]),
)
"""Rows of 16 bytes joined to one of 144, packed and unpacked."""


@given(boxes(fills=True), st.integers(1, 3), st.sampled_from((0, 1 << 30)))
@example(JOINED[0], 1, 0)
@example(JOINED[1], 3, 1 << 30)
def test_nests_keep_meaning(box: StridedBox, threads: int, footprint: int) -> None:
    """With loops that run once, and with all, some or no sizes as literals."""
    want = moved(box)
    scalar = widened(normal(box))
    schedule = choose(scalar, threads=threads, footprint=footprint)
    nest = select_transfer(scalar, schedule)
    if nest.loops:
        assert moved_by_loops(scalar, schedule, nest) == want
    padded = pad_rank(nest, schedule)
    assert schedule.transpose or len(padded.loops) == schedule.rank
    sizes = parametrize_sizes(padded).sizes
    half = {name for name, _ in sizes[::2]}
    for literals in ({name for name, _ in sizes}, half, set()):
        assert moved_by_loops(scalar, schedule, padded, literals.__contains__) == want


@given(
    boxes(),
    st.one_of(st.integers(1, 9), st.tuples(st.integers(1, 3), st.integers(1, 3))),
    st.integers(1, 3),
)
@example(box_of([(2, 5440, 64), (85, 16, 128), (16, 1, 4), (4, 1360, 1)]), 5, 1)
def test_strips_keep_meaning(box: StridedBox, size: Any, threads: int) -> None:
    want, scalar = moved(box), widened(normal(box))
    schedule = choose(scalar, threads=threads, virtual_vector_size=size)
    columns = size[1] if isinstance(size, tuple) else size
    others = (
        prod(scalar.extents[a] for a in schedule.inner if a != schedule.stripped) if schedule.inner else 1
    )
    assert schedule.mode == "interleave" or schedule.strip in (None, -(-columns // others))
    cut = schedule.transpose
    if cut and not cut.stage:
        units = block_shape(scalar.width, "64x16" if cut.block == "short" else cut.block)
        asked = size if isinstance(size, tuple) else (size, size)
        rows, columns = (-(-n // unit) * unit for n, unit in zip(asked, units, strict=True))
        all_columns = prod(scalar.extents[a] for a in cut.columns)
        assert cut.strips == (rows, all_columns if cut.block == "short" else columns)
    parts = strip_mine(scalar, schedule)
    got = np.zeros(SIZE, np.uint8)
    for part in parts:
        if schedule.strip:
            assert part.axis(schedule.stripped).extent <= schedule.strip
        if schedule.row:
            assert part.axis(schedule.row).extent <= schedule.rows
            inside = schedule.outer[schedule.outer.index(schedule.row) :]
            assert schedule.mode == "interleave" or not {ROWS, COLUMNS} & {*inside}
        made = pad_rank(select_transfer(part, schedule), schedule)
        assert schedule.transpose or len(made.loops) == schedule.rank
        got |= np.frombuffer(moved_by_loops(part, schedule, made), np.uint8)
    assert got.tobytes() == want
    assert sorted(pair for part in parts for pair in visited(part)) == visited(scalar)


def body(stage: StridedBox) -> str:
    """The loops as text, without the lines about buffers."""
    return "".join(f"{line}\n" for line in str(stage).splitlines() if " bits, " not in line)


def test_drop_units() -> None:
    assert body(drop_units(box_of([(1, 7, 9), (5, 1, 1)]))) == "for d1 in 5:\n    dst[1*d1] = src[1*d1]\n"


def test_face_forward() -> None:
    assert body(face_forward(box_of([(5, 1, -2)], dst=8))) == "for d0 in 5:\n    dst[2*d0] = src[4 + -1*d0]\n"


def test_order_by_destination() -> None:
    box = order_by_destination(box_of([(3, 5, 1), (5, 1, 3)]))
    assert [axis.name for axis in box.axes] == ["d1", "d0"]


def test_coalesce() -> None:
    assert body(coalesce(box_of([(4, 5, 5), (5, 1, 1)]))) == "for d1 in 20:\n    dst[1*d1] = src[1*d1]\n"
    holes = box_of([(4, 6, 5), (5, 1, 1)])
    assert len(coalesce(holes).axes) == 2


def test_widen_takes_a_shared_run_into_the_element() -> None:
    box = widened(box_of([(9, 4, 40), (2, 2, 2)], width=2))
    assert [axis.extent for axis in box.axes] == [9]
    assert box.target == Element("u32", 32)


@given(st.integers(0, 60), st.integers(1, 5))
def test_splitting_runs_keeps_meaning(extra: int, width: int) -> None:
    width = 1 << (width - 1)
    box = box_of([(8 * 16 // width * 4 + extra, width, width)], width)
    for block_bytes in (16 * 8, 1):  # elements may be larger than a block
        parts = split_axes(box, cuts_of_a_run(box, block_bytes))
        assert sorted(pair for part in parts for pair in visited(part)) == visited(box)


@given(st.integers(2, 9), st.integers(2, 20), st.integers(2, 9), st.integers(1, 20))
def test_blocks_keep_meaning(rows: int, middle: int, columns: int, extent: int) -> None:
    box = box_of([(rows, columns, middle), (middle, rows * columns, 1), (columns, 1, rows * middle)])
    for name, outer in (("d1", ()), ("d1", ("d0",)), ("d2", ("d1",))):
        parts = block_axes(box, CacheBlocks(outer, name, min(extent, box.axis(name).extent)))
        assert sorted(pair for part in parts for pair in visited(part)) == visited(box)
        for part in parts:
            assert [x.name for x in part.axes[: part.blocks]] == [*outer, "block"]


def test_strip_mine() -> None:
    box = box_of([(9, 1200, 512), (100, 4, 4)], 4)
    whole, rest = strip_mine(box, choose(box, virtual_vector_size=32))
    assert body(whole) == (
        "for d0 in 9:\n    for column_strip in 3:\n        for d1 in 32:\n"
        "            dst[512*d0 + 128*column_strip + 4*d1] = src[1200*d0 + 128*column_strip + 4*d1]\n"
    )
    assert [axis.extent for axis in rest.axes] == [9, 1, 4]
    assert rest.dst == 384
    assert len(strip_mine(box, choose(box, virtual_vector_size=25))) == 1
    assert strip_mine(box, choose(box, virtual_vector_size=100)) == (box,)


def test_joined_rows() -> None:
    """Rows of less than a line: the positions of the packed lines become a table."""
    nest = select_transfer(JOINED[0], choose(JOINED[0]))
    assert str(nest) == (
        "for d0 in 3, dst += 64, src += 576:\n    interleave: width 1, rows 4, columns 144, row step 144, "
        "column step 4, side dst, lines 1 at 64 x 9 at 192\n"
    )
    parametrized = parametrize_sizes(nest)
    assert ("columns", 144) in parametrized.sizes
    assert str(parametrized).endswith(", lines by a table\n")


@given(st.integers(2, 40), st.integers(2, 40), st.integers(1, 9))
def test_splitting_long_digits_keeps_meaning(rows: int, columns: int, block: int) -> None:
    box = box_of([(rows, columns, 1), (3, rows * columns, rows * columns), (columns, 1, rows)])
    parts = split_axes(box, cuts_of_long_digits(box, block))
    assert sorted(pair for part in parts for pair in visited(part)) == visited(box)
    longest = max(x.extent for part in parts for x in part.axes if not x.name.startswith("long"))
    assert longest <= max(2 * block, 3)


def test_transposes_stream_below_the_threshold() -> None:
    """Transposes stream from 3/4 of it, or 2/3 if rows share cache sets; other copies from the threshold."""
    thresholds = Thresholds(stream_bytes=12 << 20)

    def streams(box: StridedBox) -> bool:
        found = choose(box, footprint=2 * box.size_bytes, thresholds=thresholds)
        return found.stream or bool(found.transpose and found.transpose.stream)

    def transpose(rows: int, columns: int) -> StridedBox:
        return box_of([(rows, 4 * columns, 4), (columns, 4, 4 * rows)], 4)

    assert streams(transpose(1300, 1000))
    assert not streams(transpose(1000, 1060))
    assert streams(transpose(1024, 1024))
    assert not streams(box_of([(1300, 4100, 4000), (1000, 4, 4)], 4))


def test_ranks() -> None:
    most = OUTER_RANKS[-1]
    for threads, ranks in ((1, OUTER_RANKS), (2, SHARED_RANKS)):
        for loops in range(most + 1):
            assert padded_rank(loops, threads) == min(rank for rank in ranks if rank >= loops)
        with pytest.raises(KernelError, match="outer loops"):
            padded_rank(most + 1, threads)


def test_edges_of_large_copies_do_not_stream() -> None:
    """They share the kernels of small copies. Boxes at table entries are larger than they look."""
    edge = normal(box_of([(100, 640, 512), (512, 1, 1)], 1))
    for part, streams in ((EDGE_PART, True), (EDGE_PART + 1, False)):
        footprint, always = part * edge.size_bytes, Thresholds(stream_bytes=0)
        assert choose(edge, footprint=footprint, thresholds=always).stream == streams
        assert choose(replace(edge, entries=9), footprint=footprint, thresholds=always).stream
    assert EDGE_PART >= 2 * MAX_BOXES


def test_only_shared_loops_enclose_loops_that_run_once() -> None:
    """Inside a loop, loops that run once cost time."""
    nest = TransferNest((Loop("i", 9), Loop("j", 5)), CopyRun(512))
    schedule = Schedule("run", ("i", "j"), ("k",), rank=4)
    padded = [pad_rank(nest, replace(schedule, shared=shared)).loops for shared in (False, True)]
    assert [loop.axis for loop in padded[0]] == ["one0", "one1", "i", "j"]
    assert [loop.axis for loop in padded[1]] == ["i", "one0", "one1", "j"]


def test_short_runs_of_full_lines_are_read_in_order() -> None:
    """Past the cache, wherever they are written: destination order would read each run from another page."""

    def order(run: int, gap: int = 0, footprint: int = 1 << 30) -> tuple[int, ...]:
        """Source strides of the outer loops of permutation 1,3,2,0,4, whose runs are `gap` bytes apart."""
        sizes = (37, 28, 28, 8, run)
        src = [4 * prod(sizes[k + 1 :]) for k in range(5)]
        dst, step = {4: 4}, 4 * run + gap
        for k in (0, 2, 3, 1):
            dst[k], step = step, step * sizes[k]
        box = normal(box_of([(sizes[k], src[k], dst[k]) for k in (1, 3, 2, 0, 4)], 4))
        return tuple(box.axis(name).src for name in choose(box, footprint=footprint).outer)

    for run in (16, 32, 48):
        assert order(run) == tuple(sorted(order(run), reverse=True))
    for other in (order(33), order(32, gap=4), order(64), order(32, footprint=0)):
        assert other != tuple(sorted(other, reverse=True))


def test_tiles_of_one_line_rows_are_long() -> None:
    """Rows of one line, and of two. Tiles of the former are as many lines wide as compensate for few rows."""

    def tile(rows: int) -> tuple[int, int]:
        box = normal(box_of([(1000, 4, 64 * rows), (rows, 4160, 4)], 4))
        always = Thresholds(stream_bytes=0)
        cut = choose(box, footprint=2 * box.size_bytes, thresholds=always).transpose
        assert cut
        assert cut.stream
        assert not cut.stage
        return cut.tile

    assert tile(16)[1] > tile(32)[1]
    assert tile(16)[0] == tile(32)[0]


def test_choose_matches_the_shape_of_the_box() -> None:
    def mode(*digits: tuple[int, int, int], fills: bool = False, swap: bool = False) -> str:
        return choose(replace(normal(box_of(list(digits), 4, fills=fills)), swap=swap)).mode

    assert mode((9, 4, 4)) == "run"
    assert mode((9, 80, 64), (16, 4, 4)) == "run"
    assert mode((16, 4, 64), (16, 64, 4)) == "transpose"
    assert mode((9, 8, 4)) == "elements"
    assert mode((9, 0, 4), fills=True) == "fill"
    assert mode((9, 4, 4), swap=True) == "elements"
