"""The choice for measured shapes, each beside a shape for which the opposite was faster.

The figures are in the decisions' docstrings. The tests simulate the machine on which they were measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import pytest

from codegen.ir.strided_box import StridedBox
from codegen.pipeline.passes import BLOCK, SPLIT, run_passes
from codegen.schedule.candidates import candidates
from codegen.schedule.choose import choose
from codegen.schedule.choose_cache_blocks import CacheBlocks, cache_blocks
from codegen.schedule.choose_cuts import choose_cuts
from codegen.schedule.choose_order import by_source
from codegen.schedule.machine import Machine, described
from codegen.schedule.schedule import Schedule, TransposeSchedule
from codegen.schedule.shuffles import ShuffleSchedule
from codegen.schedule.thresholds import Thresholds
from tests.codegen.passes.test_passes_of_copies import normal, widened
from tests.tools.boxes import box_of

ZEN_4 = Machine("avx512", 64, 32, 8, 1 << 20, 32 << 20)
THRESHOLDS = Thresholds(stream_bytes=24 << 20)


@pytest.fixture(autouse=True)
def zen_4() -> Iterator[None]:
    """All decisions are made for one machine."""
    with described(ZEN_4):
        yield


def permuted(text: str) -> StridedBox:
    """The box of a copy of a permuted array: "u8 [4,300] (1,0)" is the transpose of 4x300 bytes."""
    dtype, shape, order = text.split()
    width = int(dtype[1:]) // 8
    dims, axes = ([int(x) for x in part.strip("[]()").split(",")] for part in (shape, order))
    src = [width * prod(dims[k + 1 :]) for k in range(len(dims))]
    given = [dims[axis] for axis in axes]
    dst = [width * prod(given[k + 1 :]) for k in range(len(given))]
    return widened(normal(box_of([(dims[a], src[a], d) for a, d in zip(axes, dst, strict=True)], width)))


def chosen(text: str) -> Schedule:
    """The schedule of the largest part, because digits that are too long to be joined are split first."""
    box = permuted(text)
    footprint = 2 * box.size_bytes
    parts = run_passes(SPLIT, box, choose_cuts(box, 1, footprint, THRESHOLDS))
    largest: StridedBox = max(parts, key=lambda part: part.size_bytes)
    return choose(largest, footprint=footprint, thresholds=THRESHOLDS)


def blocks_of(text: str) -> CacheBlocks | None:
    """The blocks through which the copy goes, if any."""
    box = permuted(text)
    footprint = 2 * box.size_bytes
    first, *_ = run_passes(SPLIT, box, choose_cuts(box, 1, footprint, THRESHOLDS))
    return cache_blocks(box, first, 1, footprint, THRESHOLDS)


def transposed(text: str) -> TransposeSchedule:
    cut = chosen(text).transpose
    assert cut is not None, text
    return cut


def shuffled(text: str) -> ShuffleSchedule:
    how = chosen(text).shuffle
    assert how is not None, text
    return how


@pytest.mark.parametrize(("rows", "block"), [(68, "16x64"), (80, "16x64"), (100, "64x16"), (129, "64x16")])
def test_rows_of_bytes_that_fill_few_blocks(rows: int, block: str) -> None:
    assert transposed(f"u8 [{rows},4776] (1,0)").block == block


def test_rows_shorter_than_a_line_are_joined() -> None:
    """34 bytes follow 34 others; 68 bytes need no buffer."""
    cut = transposed("u8 [34,2,597,8] (2,3,1,0)")
    assert (len(cut.rows), cut.stage) == (2, "")


@pytest.mark.parametrize(
    ("copy", "stream"),
    [
        ("u64 [13,70000] (1,0)", False),
        ("u64 [57,20000] (1,0)", True),
        ("u32 [31,70000] (1,0)", False),
        ("u32 [57,40000] (1,0)", True),
        ("u32 [15,150000] (1,0)", True),
        ("u16 [31,140000] (1,0)", True),
        ("u64 [13,300000] (1,0)", True),  # more than the cache holds
    ],
)
def test_copies_that_fit_the_cache_are_streamed_if_rows_are_long_or_narrow(copy: str, stream: bool) -> None:
    assert transposed(copy).stream == stream


def test_short_source_rows_are_streamed_through_a_panel_that_joins_them() -> None:
    cut = transposed("u8 [316,4096,3,4] (2,1,0,3)")
    assert (cut.stage, len(cut.columns), cut.stream) == ("dense", 2, True)
    apart = transposed("u8 [6,8,2830,16,6] (2,4,1,3,0)")  # no digit follows the short one
    assert apart.block == "short"


def test_far_parts_are_prefetched() -> None:
    assert shuffled("u8 [67,95,248,7] (1,2,0,3)").ahead == 128
    assert shuffled("u8 [67,9,248,7] (1,2,0,3)").ahead == 0


def test_strips_fit_the_sets_of_the_first_cache() -> None:
    """Rows that are 1 KiB apart share every 16th of 64 sets: 32 lines, of which a strip reads 2 per index."""
    assert chosen("u16 [2,128,8,32,2] (3,2,1,4,0)").strip == 16
    assert chosen("u16 [2,128,9,32,2] (3,2,1,4,0)").strip is None


def test_few_rows_are_shuffled() -> None:
    """Rows of bytes always are. Wider rows are only if they go through the cache, and if they are fewer."""
    assert chosen("u8 [7,4000] (1,0)").mode == "shuffle"
    assert chosen("u8 [10,4000] (1,0)").mode == "transpose"
    assert chosen("u32 [5,4000] (1,0)").mode == "shuffle"
    assert chosen("u32 [7,4000] (1,0)").mode == "transpose"
    assert chosen("u8 [1700,6,4096] (0,2,1)").mode == "shuffle"
    assert chosen("u32 [1365,6,2048] (0,2,1)").mode == "transpose"


def test_pairs_are_shuffled() -> None:
    assert chosen("u8 [6,8,283,16,2] (2,4,1,3,0)").mode == "shuffle"
    assert chosen("u8 [27,1024,3,7] (1,3,0,2)").mode == "transpose"


@pytest.mark.parametrize(("copy", "in_order"), [("u8 [4,27692,325]", True), ("u8 [4,6000,1100]", False)])
def test_partial_runs_are_read_in_order(copy: str, in_order: bool) -> None:
    box = permuted(f"{copy} (1,0,2)")
    schedule = choose(box, footprint=2 * box.size_bytes, thresholds=THRESHOLDS)
    outer = [box.axis(name) for name in schedule.outer]
    assert schedule.stream
    assert (outer == by_source(outer)) == in_order


@pytest.mark.parametrize(
    ("copy", "blocked"),
    [
        ("u16 [598,181,13,6,2] (3,2,4,1,0)", True),  # panels read 24 bytes of each source row
        ("u16 [302,1282,30] (2,1,0)", False),  # 60 bytes, but three rows that follow each other
        ("u64 [142,382,18,2] (3,2,1,0)", False),  # 288 bytes
        ("u16 [2,18,504,363] (3,2,0,1)", True),  # panels write runs of 72 bytes
        ("u16 [9,2,31,404,30] (3,0,4,1,2)", False),  # 3,720 bytes
        ("u16 [2,593,32,70,8] (2,1,4,3,0)", True),  # digits are cut, so that runs have 192 bytes of 280
        ("u16 [2,31,512,860] (2,3,0,1)", False),  # of 124 bytes
        ("u32 [7,17,8,512,8] (1,3,4,2,0)", False),  # few rows
        ("u8 [3,712,16384] (0,2,1)", False),  # source rows share cache sets
        ("u8 [14394,538,3,2] (2,0,3,1)", True),  # blocks of few bytes
        ("u8 [103,66612] (1,0)", True),  # the last cache holds it
        ("u8 [342,22550] (1,0)", False),  # too many rows
        ("u16 [127,53215] (1,0)", False),  # more than half of the last cache
        ("u64 [597,921,6,2] (1,0,3,2)", True),  # interleaves of 96 bytes
        ("u64 [32,8,304,72,2] (2,4,1,0,3)", False),  # of 128 bytes
        ("u16 [510,6,2,158,9] (1,3,0,4,2)", False),  # of less than a line
        ("u8 [6,3,2449,9,33] (0,3,2,4,1)", False),  # of bytes
        ("u8 [67,95,248,7] (1,2,0,3)", False),  # shuffles
        ("u16 [64,50] (1,0)", False),
    ],
)
def test_copies_that_would_move_partial_lines_go_in_blocks(copy: str, blocked: bool) -> None:
    assert (blocks_of(copy) is not None) == blocked


@pytest.mark.parametrize(
    "copy", ["u16 [598,181,13,6,2] (3,2,4,1,0)", "u16 [2,593,32,70,8] (2,1,4,3,0)", "u8 [103,66612] (1,0)"]
)
def test_blocks_fit_the_second_cache_and_all_lines_of_the_copy(copy: str) -> None:
    box, blocks = permuted(copy), blocks_of(copy)
    assert blocks is not None
    parts = run_passes(BLOCK, box, blocks)
    assert sum(part.size_bytes for part in parts) == box.size_bytes
    for part in parts:
        block = part.one_block
        assert block.size_bytes <= ZEN_4.second_cache_bytes // 2
        assert all(min(abs(x.src), abs(x.dst)) >= 64 for x in part.axes[: part.blocks] if x.extent > 1)
        schedule = choose(part, footprint=2 * box.size_bytes, thresholds=THRESHOLDS)
        assert not schedule.stream
        assert schedule.transpose
        assert not schedule.transpose.stream
        loops = [name for name in schedule.transpose.loops if not name.startswith("one")]
        assert loops[: part.blocks] == [x.name for x in part.axes[: part.blocks]]


@pytest.mark.parametrize(("threads", "first"), [(1, "d0"), (2, "block")])
def test_threads_share_the_longest_loop_around_blocks(threads: int, first: str) -> None:
    copy = "u32 [3,353,512,2,6] (0,3,4,2,1)"
    blocks = blocks_of(copy)
    assert blocks is not None
    full = run_passes(BLOCK, permuted(copy), blocks)[0]
    assert [(x.name, x.extent) for x in full.axes[: full.blocks]] == [("d0", 3), ("block", 17)]
    for found in (choose(full, threads=threads), candidates(full, threads=threads)[0]):
        assert found.transpose
        assert next(x for x in found.transpose.loops if not x.startswith("one")) == first
