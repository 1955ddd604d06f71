"""Candidates of tune=True: every decision, a bounded number of times, and always the same bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from codegen.ir.strided_box import Axis, Element, StridedBox, in_bytes
from codegen.passes.block_axes import block_axes
from codegen.passes.pad_rank import pad_rank
from codegen.passes.select_transfer import select_transfer
from codegen.pipeline.passes import STRIP, run_passes
from codegen.pipeline.steps import reach_of, step_of
from codegen.pipeline.tune import parts_of, shortened
from codegen.schedule.candidates import MOST_CANDIDATES, candidates
from codegen.schedule.choose import LONG_DIGIT, choose
from codegen.schedule.choose_cache_blocks import CacheBlocks
from codegen.schedule.schedule import OUTER_RANKS, Schedule
from codegen.schedule.thresholds import Thresholds
from tests.codegen.passes.test_passes_of_copies import SIZE, boxes, moved, moved_by_loops, normal, widened
from tests.tools.boxes import box_of, visited

NEVER, ALWAYS = Thresholds(stream_bytes=1 << 62), Thresholds(stream_bytes=0)

TRANSPOSED = normal(box_of([(600, 4, 2560), (640, 2400, 4)], 4))
SHORT_RESULT_ROWS = normal(box_of([(50_000, 2, 24), (12, 100_000, 2)], 2))
SHORT_SOURCE_ROWS = normal(box_of([(3, 4, 65536), (16384, 16, 4)], 4))
BYTES = normal(box_of([(300, 1, 320), (320, 300, 1)], 1))


def found(box: StridedBox, **how: Any) -> tuple[Schedule, ...]:
    return candidates(box, **{"footprint": 2 * box.size_bytes, **how})


def cuts(box: StridedBox, **how: Any) -> list[Any]:
    return [x.transpose for x in found(box, **how) if x.transpose]


@given(
    boxes(),
    st.sampled_from([None, 3, (2, 5)]),
    st.integers(1, 3),
    st.sampled_from([NEVER, ALWAYS]),
)
def test_candidates_keep_meaning(box: StridedBox, size: Any, threads: int, thresholds: Thresholds) -> None:
    want, scalar = moved(box), widened(normal(box))
    how: dict[str, Any] = {"threads": threads, "thresholds": thresholds, "virtual_vector_size": size}
    every = candidates(scalar, **how)
    assert every[0] == choose(scalar, **how)
    assert len(set(every)) == len(every) <= MOST_CANDIDATES
    for schedule in every:
        got = np.zeros(SIZE, np.uint8)
        for part, own in parts_of(scalar, schedule, threads):
            made = pad_rank(select_transfer(part, own), own)
            got |= np.frombuffer(moved_by_loops(part, own, made), np.uint8)
        assert got.tobytes() == want, schedule


@settings(max_examples=30)
@given(
    boxes(),
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 5)),
    st.integers(1, 3),
    st.sampled_from([NEVER, ALWAYS]),
)
def test_candidates_around_blocks_keep_meaning(
    box: StridedBox, drawn: tuple[int, int, int], threads: int, thresholds: Thresholds
) -> None:
    """The first schedules of all parts, the last ones, and those halfway between."""
    scalar = widened(normal(box))
    assume(scalar.axes and scalar.size_bytes <= 2000)  # the interpreter takes long for larger ones
    cut, outer = (scalar.axes[k % len(scalar.axes)] for k in drawn[:2])
    around = () if outer is cut else (outer.name,)
    parts = block_axes(scalar, CacheBlocks(around, cut.name, min(drawn[2], cut.extent)))
    every = [candidates(part, threads=threads, thresholds=thresholds) for part in parts]
    for share in (0, 0.5, 1):
        got = np.zeros(SIZE, np.uint8)
        for part, schedules in zip(parts, every, strict=True):
            schedule = schedules[int(share * (len(schedules) - 1))]
            assert schedule.transpose or set(schedule.outer[: part.blocks]) == {*around, "block"}
            for strip, own in parts_of(part, schedule, threads):
                made = pad_rank(select_transfer(strip, own), own)
                got |= np.frombuffer(moved_by_loops(strip, own, made), np.uint8)
        assert got.tobytes() == moved(box)


@pytest.mark.parametrize("thresholds", [NEVER, ALWAYS], ids=["in cache", "past it"])
def test_candidates_vary_stores_staging_tiles_blocks_and_orders_of_a_transpose(
    thresholds: Thresholds,
) -> None:
    tried = cuts(TRANSPOSED, thresholds=thresholds)
    assert {(cut.stage, cut.stream) for cut in tried} == {("", False), ("", True), ("rows", True)}
    assert len({cut.tile for cut in tried}) >= 5
    assert {cut.block for cut in tried} >= {"64x16", "64x64"}
    assert {cut.order for cut in tried} == {"columns", "rows", "diagonals"}
    assert len({cut.loops[-2:] for cut in tried if not cut.stage}) == 2


def test_candidates_vary_the_prefetch_distance_of_a_transpose() -> None:
    for box in (TRANSPOSED, BYTES):
        assert {cut.prefetch_bytes for cut in cuts(box, thresholds=NEVER)} == {0, 128, 256}


def test_candidates_vary_the_prefetch_distance_of_runs_and_chunks() -> None:
    """Those that are not streamed have no distance, except chunks."""
    runs, chunks = box_of([(3000, 700, 640), (640, 1, 1)]), box_of([(4096, 64, 64), (4, -16, 16)], 16, 48)
    for box, mode, thresholds in (
        (runs, "run", ALWAYS),
        (chunks, "chunks", ALWAYS),
        (chunks, "chunks", NEVER),
    ):
        tried = found(normal(box), thresholds=thresholds)
        assert tried[0].mode == mode
        assert {x.runs.prefetch_bytes for x in tried if x.mode == mode} == {0, 256, 512, 1024}
    assert {x.runs.prefetch_bytes for x in found(normal(runs), thresholds=NEVER)} == {256}
    many = normal(box_of([(64, 20480, 20480), (256, 64, 64), (4, -16, 16)], 16, 48))
    counts = {x.runs.prefetch_chunks for x in found(many, thresholds=ALWAYS) if x.mode == "chunks"}
    assert counts == {32, 64, 128, 256}


def test_each_distance_has_a_kernel() -> None:
    box = normal(box_of([(3000, 700, 640), (640, 1, 1)]))
    tried = [x for x in found(box, thresholds=ALWAYS) if x.stream]
    kernels = {x.runs.prefetch_bytes: step_of(box, x).kernel for x in tried}
    assert len({kernel.name for kernel in kernels.values()}) == len(kernels) == 4
    for distance, kernel in kernels.items():
        ahead = [line for line in kernel.source.splitlines() if "prefetch" in line]
        assert len(ahead) == bool(distance)
        assert all(f"+ {distance})" in line for line in ahead)


def test_candidates_vary_panels() -> None:
    tried = cuts(SHORT_RESULT_ROWS, thresholds=ALWAYS)
    assert {cut.separate for cut in tried} == {False, True}
    assert {cut.stream for cut in tried} == {False, True}
    requests = {cut.requests for cut in tried if cut.tile == tried[0].tile and cut.stream}
    assert requests == {0, tried[0].requests, 2 * tried[0].requests}
    assert len({cut.tile for cut in tried}) >= 3
    lines = {
        cut.lines for cut in cuts(normal(box_of([(700, 4, 2804), (701, 2800, 4)], 4)), thresholds=ALWAYS)
    }
    assert lines >= {1, 2, 4}
    layered = normal(box_of([(30, 800, 800), (5, 160, 4), (40, 4, 20)], 4))
    assert len({cut.together for cut in cuts(layered, thresholds=ALWAYS) if cut.layers}) >= 2


def test_candidates_vary_lanes_of_short_rows() -> None:
    """Small boxes also have candidates with lanes, and elements can move one by one."""
    tried = found(SHORT_SOURCE_ROWS)
    assert {x.transpose.block if x.transpose else x.mode for x in tried} >= {"short", "interleave"}
    small = normal(box_of([(3, 2, 1024), (500, 6, 2)], 2))
    assert choose(small).mode == "interleave"
    assert "short" in {cut.block for cut in cuts(small)}


def test_candidates_with_joined_rows_and_without() -> None:
    joined = normal(box_of([(33, 32, 1024), (16, 2112, 64), (16, 2, 4), (2, 1056, 2)], 2))
    assert {len(x.inner) for x in found(joined, thresholds=NEVER) if x.mode == "interleave"} == {2, 3}


def test_candidates_with_wide_elements_and_runs() -> None:
    wide = widened(normal(box_of([(100, 40, 96), (16, 2, 2)], 2)))
    assert {(x.mode, x.in_bytes) for x in found(wide)} == {("elements", False), ("run", True)}
    assert visited(in_bytes(wide)) == visited(normal(box_of([(100, 40, 96), (32, 1, 1)], 1)))
    (part,) = run_passes(STRIP, wide, next(x for x in found(wide) if x.in_bytes))
    assert reach_of(part) == reach_of(wide)


@pytest.mark.parametrize(("size", "narrow"), [(None, True), (1, False)])
def test_bytes_of_elements_are_a_loop_if_a_kernel_has_enough_loops(size: int | None, narrow: bool) -> None:
    """Six axes and strips of the caller's size would be seven loops around the bytes."""
    strides = [(2, 16 * 3**k, 16 * 3 ** (5 - k)) for k in range(6)]
    wide = normal(box_of([(n, 2 * src, 3 * dst) for n, src, dst in strides], 16))
    assert len(wide.axes) == OUTER_RANKS[-1]
    assert any(x.in_bytes for x in found(wide, virtual_vector_size=size)) == narrow


def test_candidates_with_split_digits_and_without() -> None:
    """They are measured with their own extent. Boxes too large for that are not measured."""
    box = normal(box_of([(3 * LONG_DIGIT, 4, 256), (64, 12 * LONG_DIGIT, 4)], 4))
    tried = found(box)
    assert {x.split for x in tried} == {False, True}
    assert tried[0].split
    parts = parts_of(box, tried[0], 1)
    assert [part.axis(box.axes[0].name).extent for part, _ in parts] == [LONG_DIGIT]
    assert not any(own.split for _, own in parts)
    assert shortened(box, tried) == box
    assert shortened(box, tried, 1 << 20) is None


def test_candidates_of_swaps_and_fills() -> None:
    swapped = replace(SHORT_RESULT_ROWS, swap=True)
    assert len(found(swapped)) > 1
    assert len(found(normal(box_of([(9, 0, 4)], 4, fills=True)))) == 1


@pytest.mark.parametrize(
    ("digits", "chosen"),
    [
        ([(1 << 20, 8, 1)], 1024),
        ([(1 << 16, 8, 32), (32, 8 << 16, 1)], 256),
    ],
    ids=["contiguous", "columns"],
)
def test_candidates_vary_the_prefetch_distance_of_packed_bits(digits: Any, chosen: int) -> None:
    """For packing and, with sides swapped, unpacking; only past the cache."""
    loose, packed = Element("pred", 8), Element("pred", 1)
    sides = (
        ("pack bits", loose, packed, digits, chosen),
        (
            "unpack bits",
            packed,
            loose,
            [(n, d, s) for n, s, d in digits],
            chosen * (4 if len(digits) > 1 else 1),
        ),
    )
    for mode, source, target, own, wanted in sides:
        axes = tuple(Axis(f"d{k}", *digit) for k, digit in enumerate(own))
        box = StridedBox(axes, 0, 0, source, target, unit_bits=1)
        tried = [x for x in found(box, thresholds=ALWAYS) if x.stream]
        assert {x.mode for x in tried} == {mode}
        assert {x.runs.prefetch_bytes for x in tried} == {0, wanted // 2, wanted, 2 * wanted}
        assert tried[0].runs.prefetch_bytes == wanted
        lines = {step_of(box, x).kernel.source for x in tried}
        assert len(lines) == 4
