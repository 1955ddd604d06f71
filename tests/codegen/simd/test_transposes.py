"""Transposes, interleaves and runs of every shape between guard pages, at every alignment and CPU level."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

import numpy as np
import pytest

from codegen import CopyProgram
from tests.codegen.simd.levels import AtLevels, turn
from tests.codegen.simd.problems import PLACES, Digit, Problem, check, copied, problem
from tests.tools.extent import in_pairs, spread
from tests.tools.replay import Watched, interpreted, interpreted_when_lowered

LINE = 64
WIDTHS = (1, 2, 4, 8, 16, 32, 64)
STREAM = pytest.mark.parametrize("stream", [False, True], ids=["in cache", "past it"])
ALIGNMENTS = tuple((src, dst, gap) for gap in range(LINE) for src, dst in ((False, True), (True, False)))
"""The destination begins `gap` bytes after a guard page, or ends that many before one."""
THREE = (*PLACES[1:], (True, False, 3))
INTERPRETED_ELEMENTS = 64 * 64


def problems(width: int) -> list[Problem]:
    """Rows and columns around multiples of a line, alone and joining several digits, with and without gaps.

    Result rows begin on lines, or anywhere in one.
    """
    side = max(LINE // width, 2)
    short, part = max(16 // width - 1, 2), max(side // 4, 2)
    counts = [
        *((side, 2 * side), (2 * side, 6 * side + 3), (2 * side + 3, 3 * side + 5), (9 * side, 2 * side + 5)),
        *(
            (short, 40 * side),
            (40 * side + 3, short),
            (3, 64 * side + 5),
            (part, 20 * side),
            (20 * side + 5, part),
        ),
        *((2048 // width + 5, 2 * side + 5), (4 * side + 3, 5 * side)),
    ]
    made = []
    for rows, columns in counts:
        to_a_line = LINE - rows * width % LINE
        made += [
            problem(width, (rows,), (columns,)),
            problem(width, (rows,), (columns,), gaps=(3, to_a_line), change="backwards"),
            problem(width, (rows,), (columns,), (2, 2), gaps=(0, 5)),
        ]
    rows, columns = 2 * side + 3, 3 * side + 5
    joined = (max(side // 2, 2), 6)
    made += [
        problem(width, (rows,), (columns,), (3,), change="broadcast others"),
        problem(width, joined, (columns,), (2,), gaps=(1, 0)),
        problem(width, joined, (side, 3), columns_swapped=True),
        problem(width, joined, (side + 1, 2), gaps=(9, 0), change="broadcast rows"),
        problem(width, (rows,), (2, side, 2), columns_swapped=True),
        problem(width, (rows,), (3, side), (2,), columns_swapped=True, gaps=(0, LINE)),
        problem(width, (short,), (7, side), (2, 3), columns_swapped=True),
        problem(width, (2 * side,), (2 * side,), (2, 2, 3, 3, 2), gaps=(3, 3)),
        layered(width, side + 1, (short,)),
        layered(width, side // 2, (2, short, 2)),
    ]
    return [each for each in made if prod(n for n, _, _ in each.digits) * width < 1 << 18]


def layered(width: int, rows: int, columns: tuple[int, ...]) -> Problem:
    """Five layers, three times. All column digits but the second follow a result row."""
    run, src, digits = rows * width, width, list[Digit]()
    apart = 5 * 4 * run + 7
    for k, n in enumerate(columns):
        digits.append((n, src, apart if k == 1 else run))
        src *= n
        run *= 1 if k == 1 else n
    whole = apart * columns[1] if len(columns) > 1 else 5 * run
    layers = (5, rows * (src + 3), run)
    return Problem(width, ((rows, src + 3, width),), tuple(digits), (layers, (3, 5 * layers[1], whole + 1)))


def judge(program: CopyProgram) -> None:
    """The function that each kernel is printed from makes the same copy as the boxes."""
    src, dst = program.bounds
    content = np.random.default_rng(1).integers(0, 256, src[1] - src[0], np.uint8)
    seen = Watched(program, content, np.zeros(dst[1] - dst[0], np.uint8), np.zeros(0, np.uint8))
    wanted = interpreted(seen)
    assert wanted is not None
    assert np.array_equal(interpreted_when_lowered(seen), wanted)


@pytest.mark.full
@STREAM
@pytest.mark.parametrize("width", WIDTHS)
def test_every_shape(width: int, stream: bool) -> None:
    """Widths have every fourth shape each, in cache and two further ones past it."""
    some = spread(problems(width)[(WIDTHS.index(width) + 2 * stream) % 4 :: 4], 3)
    for shape in some:
        check(copied(shape.digits, width, stream=stream), shape.digits, width, THREE)
    for shape in some:
        if prod(n for n, _, _ in shape.digits) <= INTERPRETED_ELEMENTS:
            judge(copied(shape.digits, width, stream=stream))


def test_short_rows_in_panels() -> None:
    """Layers of source rows shorter than a lane: an order names their rows, and columns stay inside."""
    shape = layered(1, 65, (15,))
    program = copied(shape.digits, 1, stream=True)
    assert "LanesBeyond()" in str(program.launches[0].step.nest)
    check(program, shape.digits, 1, THREE[:1])


@pytest.mark.full
@pytest.mark.parametrize("width", WIDTHS)
def test_every_alignment(width: int) -> None:
    """Heads and tails of result rows: rows that begin on lines, and rows that begin anywhere."""
    side = max(LINE // width, 2)
    for rows, columns in ((2 * side, 3 * side + 5), (2 * side + 3, 2 * side + 5), (9, 20 * side)):
        for gap in (0, LINE - rows * width % LINE):
            shape = problem(width, (rows,), (columns,), gaps=(1, gap))
            check(copied(shape.digits, width, stream=True), shape.digits, width, ALIGNMENTS)


@pytest.mark.full
@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("width", [1, 4, 16])
@STREAM
def test_threads_share_the_tiles(width: int, stream: bool, threads: int) -> None:
    """Tiles request what the next one reads, also in another thread's part."""
    side = LINE // width
    for rows, others in ((4 * side, ()), (4 * side + 3, (5,)), (9, (5,))):
        shape = problem(width, (rows,), (3 * side + 2,), others, gaps=(4, LINE))
        program = copied(shape.digits, width, threads, stream=stream)
        check(program, shape.digits, width, ((False, False, 0), (True, True, 0)), threads=threads)


def interleaves(width: int, count: int) -> Iterator[tuple[Digit, ...]]:
    """`count` rows side by side and packed element by element: one digit, and two that are joined.

    Rows are shorter than a line, of a line, and longer; next to each other, or apart.
    """
    side = LINE // width
    for many in (max(side // 2, 2), side - 1, side, 3 * side + side // 2 + 1, 700 // width):
        for gap in (0, 3, LINE - many * width % LINE):
            if many > 1 and many != count:
                row = many * width + gap
                yield (
                    (5, row * count, many * count * width),
                    (many, width, count * width),
                    (count, row, width),
                )
    for first, second in ((side // 2, 9), (side, 2 * side + 1), (2 * side, 33)):
        for gap, hole in ((0, 0), (LINE, LINE), (width, 0)):
            row, together = first * second * width + gap, first * count * width
            if first > 1 and first != count:
                yield (
                    *((3, count * row, together), (second, first * width, 3 * together + hole)),
                    *((first, width, count * width), (count, row, width)),
                )


INTERLEAVES = {
    f"{count}-{width}-{'pack' if packs else 'unpack'}-{'past it' if stream else 'in cache'}": (
        count,
        width,
        packs,
        stream,
    )
    for count, width, (packs, stream) in in_pairs(
        (2, 3, 4, 8), (1, 2, 4, 8), list(product((True, False), (False, True)))
    )
}


@pytest.mark.full
@pytest.mark.parametrize(("count", "width", "packs", "stream"), INTERLEAVES.values(), ids=INTERLEAVES)
def test_interleaves(count: int, width: int, packs: bool, stream: bool) -> None:
    """Directions and stores meet each count and each width, and every second shape of each."""
    half = (count > 3) ^ (width.bit_length() % 2)
    for apart in spread(list(interleaves(width, count))[half::2], 2):
        digits = apart if packs else tuple((n, dst, src) for n, src, dst in apart)
        program = copied(digits, width, stream=stream)
        check(program, digits, width, (*PLACES, (False, True, width), (True, False, 16), (True, False, 32)))
        if prod(n for n, _, _ in digits) <= INTERPRETED_ELEMENTS:
            judge(program)


@pytest.mark.full
@pytest.mark.parametrize(("width", "count"), [(1, 4), (2, 2), (4, 3), (8, 8)])
@pytest.mark.parametrize("packs", [True, False], ids=["pack", "unpack"])
def test_interleaves_at_every_alignment(width: int, count: int, packs: bool) -> None:
    """Streaming stores must not meet a line that begins anywhere else."""
    for apart in list(interleaves(width, count))[-3:]:
        digits = apart if packs else tuple((n, dst, src) for n, src, dst in apart)
        check(copied(digits, width, stream=True), digits, width, ALIGNMENTS)


RUNS = (3, 5, 9, 17, 31, 33, 63, 64, 65, 127, 128, 192, 255, 256, 257, 320, 447, 2047, 2048, 2113)


@pytest.mark.full
@STREAM
def test_runs_at_every_alignment(stream: bool) -> None:
    for count in RUNS:
        for gap in (LINE - count % LINE, 7):
            digits = ((3, count + 1, count + gap), (count, 1, 1))
            check(copied(digits, 1, stream=stream), digits, 1, ALIGNMENTS)


def at_lower_levels(level: str) -> AtLevels:
    tests = [f"test_every_shape[{width}-past it]" for width in turn((1, 8), level)]
    streamed = [f"test_interleaves[{name}]" for name in INTERLEAVES if name.endswith("past it")]
    tests += turn(streamed, level)
    tests += ["test_every_alignment[2]", "test_interleaves_at_every_alignment[pack-1-4]"]
    tests += ["test_runs_at_every_alignment[past it]"]
    return AtLevels(__file__, tests, len(tests))
