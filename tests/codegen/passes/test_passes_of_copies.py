"""Passes on copies: the interpreter moves the same bytes, and each pass does what its docstring shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codegen import CopyOptions, CopyRequest, strided_map
from codegen.ir.buffers import Buffer
from codegen.ir.strided_box import Element, StridedBox
from codegen.passes.normalize import coalesce, drop_units, face_forward, order_by_destination
from codegen.passes.split_axes import split_axes
from codegen.passes.widen_elements import widen_elements
from codegen.pipeline.copies import compile_copy
from codegen.pipeline.passes import NORMALIZE, run_passes
from codegen.schedule.choose_cuts import JOINED_BYTES, choose_cuts, cuts_of_a_run
from codegen.schedule.choose_width import wide_axes
from codegen.schedule.conditions import Conditions
from codegen.schedule.machine import ALWAYS_STREAM
from tests.tools.boxes import box_of, copy_box, visited
from tests.tools.guard import strided_view
from tests.tools.replay import Watched, interpreted_when_lowered
from tests.tools.strategies import Pick, one_of, permutation
from tilejit.arrays.strided import span

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


@given(
    boxes(),
    st.one_of(st.none(), st.integers(1, 9), st.tuples(st.integers(1, 3), st.integers(1, 3))),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from(("structure", "sizes")),
)
@example(JOINED[0], None, 1, True, "structure")
@example(JOINED[1], None, 3, False, "structure")
@example(box_of([(2, 5440, 64), (85, 16, 128), (16, 1, 4), (4, 1360, 1)]), 5, 1, False, "sizes")
def test_copies_keep_meaning(box: StridedBox, size: Any, threads: int, stream: bool, specialize: str) -> None:
    """The loops of all kernels move what the elements one by one do."""
    dims = tuple(axis.extent for axis in box.axes)
    sides = [tuple(axis.stride(side) for axis in box.axes) for side in ("src", "dst")]
    maps = [strided_map(dims, s, span(dims, s, box.width), element_bits=8 * box.width) for s in sides]
    options = CopyOptions(threads, size, specialize, 0 if stream else 1 << 30)
    program = compile_copy(CopyRequest(*maps, box.target, box.target, options=options))
    rng, dtype = np.random.default_rng(7), np.dtype(f"V{box.width}")
    content, before = (rng.integers(0, 256, each.bounds[1] - each.bounds[0], np.uint8) for each in maps)
    wanted = before.copy()
    strided_view(wanted, dtype, dims, sides[1])[...] = strided_view(content, dtype, dims, sides[0])
    assert (interpreted_when_lowered(Watched(program, content, before, wanted)) == wanted).all()


def body(stage: StridedBox) -> str:
    """The loops as text, without the lines about buffers."""
    return "".join(f"{line}\n" for line in str(stage).splitlines() if " bits, " not in line)


def test_drop_units() -> None:
    assert body(drop_units(box_of([(1, 7, 9), (5, 1, 1)]))) == "for d1 in 5:\n    dst[1*d1] = src[1*d1]\n"


def test_face_forward() -> None:
    """The side with the smaller stride decides; the destination, if they are equal or the source repeats."""
    assert body(face_forward(box_of([(5, 2, -1)], dst=4))) == "for d0 in 5:\n    dst[1*d0] = src[8 + -2*d0]\n"
    assert body(face_forward(box_of([(5, 1, -2)], dst=8))) == "for d0 in 5:\n    dst[8 + -2*d0] = src[1*d0]\n"
    assert body(face_forward(box_of([(5, -1, 2)], src=4))) == "for d0 in 5:\n    dst[8 + -2*d0] = src[1*d0]\n"
    assert body(face_forward(box_of([(5, 1, -1)], dst=4))) == "for d0 in 5:\n    dst[1*d0] = src[4 + -1*d0]\n"
    assert body(face_forward(box_of([(5, 0, -1)], dst=4))) == "for d0 in 5:\n    dst[1*d0] = src[0]\n"


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


@pytest.mark.parametrize(
    ("row", "middle", "joined"),
    [(97, 29, True), (100, 31, True), (125, 23, True), (64, 50, False), (150, 31, False), (35, 20, False)],
)
def test_short_rows_are_joined_to_long_runs(row: int, middle: int, joined: bool) -> None:
    """Rows of a line or more that begin inside lines follow each other in blocks, or all in one tile."""
    columns = 65
    digits = [(columns, 1, row * middle), (middle, columns, row), (row, columns * middle, 1)]
    box = box_of([(n, 2 * src, 2 * dst) for n, src, dst in digits], width=2)
    cuts = choose_cuts(box, Conditions(footprint=2 * box.size_bytes, stream_bytes=ALWAYS_STREAM))
    parts = split_axes(box, cuts)
    assert bool(cuts) == joined
    assert sorted(pair for part in parts for pair in visited(part)) == visited(box)
    assert all(cut.axis == "d1" and 2 * row * cut.block <= JOINED_BYTES for cut in cuts)
