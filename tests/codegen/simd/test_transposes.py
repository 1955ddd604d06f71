"""Every routine of transposes, staging, interleaves and runs, reached through nests, between guard pages."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import cast, get_args

import numpy as np
import pytest

from codegen.ir.blocks import INTERLEAVED_ROWS, TRANSPOSED_BLOCKS, Block, block_shape
from codegen.pipeline.program import CopyProgram
from codegen.runtime import copy_calls as calls
from codegen.runtime.launch import Launch
from codegen.schedule import choose_tables, choose_transpose, transpose_box
from codegen.schedule.candidates import PANEL_LINES_TRIED
from codegen.schedule.machine import described, machine
from codegen.schedule.transposes import Transpose
from tests.codegen.simd.forced import PLACES, Cut, Problem, check, compiled, lowered, problem
from tests.codegen.simd.levels import AtLevels
from tests.tools.replay import Watched, interpreted, interpreted_when_lowered, watching

PANELS = [
    f"stream_staged_rows_by_{block}s_u{8 * width}"
    for width in (1, 2, 4, 8, 16, 32, 64)
    for block in ("64x64", "64x16", "short", "16x64")
    if width <= 16 or block == "64x64"
    if width < 16 or block != "16x64"
    if width < 8 or block != "short"
]
DENSE = [
    f"{stream}staged_dense_by_{block}s_u{8 * width}"
    for width in (1, 2, 4, 8, 16, 32, 64)
    for block in ("64x64", "64x16", "short", "16x64")
    for stream in ("", "stream_")
    if width <= 16 or (block == "64x64" and stream)
    if width < {"16x64": 16, "short": 8}.get(block, 128)
]
IN_PLACE = [
    f"{stream}transpose_by_{block}s_u{8 * width}"
    for width in (1, 2, 4, 8, 16, 32, 64)
    for block in ("64x64", "64x16", "short")
    for stream in ("", "stream_")
    if (width < 8 if block == "short" else width < 32 or stream or block == "64x64")
]
BLOCKED = sorted([*IN_PLACE, *PANELS, *DENSE])
SMALL = [f"transpose_small_u{bits}" for bits in (8, 16, 32)]
ALIGNMENTS = tuple((src, dst, gap) for gap in range(64) for src, dst in ((False, True), (True, False)))
"""The destination begins `gap` bytes after a guard page, or ends that many before one."""
THREE = (*PLACES[1:], (True, False, 3))
INTERPRETED_ELEMENTS = 64 * 64


def block_columns(width: int, block: Block) -> int:
    """Columns of a block; for part of a lane, one more than its maximum."""
    return block_shape(width, "64x16" if block == "short" else block)[1]


@dataclass(frozen=True, slots=True)
class Routine:
    """A transpose, given by the parts of its name."""

    name: str
    stream: bool
    stage: str
    block: Block
    width: int

    @property
    def side(self) -> int:
        """Rows of a block."""
        return 64 // self.width

    @property
    def least_columns(self) -> int:
        """Columns of a block; for part of a lane, the most it may have."""
        return block_columns(self.width, self.block) - (self.block == "short")

    @property
    def shown(self) -> str:
        """The stores of blocks, as in the source of its kernels."""
        if self.name in (*PANELS, *DENSE):
            rows = 16 // self.width if self.block == "16x64" else self.side
            verb = "write" + "_first" * (self.block == "short")
            into = "panel_tile" if self.name in PANELS else "panel"
            return f" {verb}_u{8 * self.width}_{block_columns(self.width, self.block)}x{rows}({into}"
        verb = "stream" if self.stream else "write"
        verb += "_first" * (self.block == "short")
        return f" {verb}_u{8 * self.width}_{block_columns(self.width, self.block)}x{self.side}"

    @property
    def finds_lines(self) -> bool:
        """Whether there are narrow blocks for the ends of rows that begin inside a line."""
        return self.width in TRANSPOSED_BLOCKS["16x64"][2] and self.block != "short"

    def cut(self, tile: tuple[int, int]) -> Cut:
        lines = PANEL_LINES_TRIED[sum(tile) % len(PANEL_LINES_TRIED)] if self.stage == "rows" else 1
        return Cut(self.stage, self.stream, self.block, tile, lines=lines)


def routine(name: str) -> Routine:
    blocks = "|".join(get_args(Block))
    found = re.fullmatch(rf"(stream_)?(?:transpose|staged_(rows|dense))_by_({blocks})s_u(\d+)", name)
    assert found, name
    return Routine(name, bool(found[1]), found[2] or "", cast(Block, found[3]), int(found[4]) // 8)


def row_counts(r: Routine) -> list[int]:
    """Rows around multiples of a block, up to the most that the routine ever gets. One row is no loop."""
    return [max(n, 2) for n in _row_counts(r)]


def _row_counts(r: Routine) -> list[int]:
    if r.stage == "dense" and r.block == "short":
        return [r.side, r.side + 1, 2 * r.side, 2 * r.side + 3]
    if r.stage == "dense":
        return [2, 3, max(r.side - 1, 2), r.side, r.side + 1, 2 * r.side + 3]
    if r.stage == "rows":
        return [
            r.side,
            r.side + 1,
            2 * r.side,
            2 * r.side + 1,
            4 * r.side + 3,
            8 * r.side + 1,
        ]
    return (
        [r.side, 2 * r.side, 3 * r.side] if r.stream else [r.side, r.side + 1, 2 * r.side - 1, 2 * r.side + 3]
    )


def column_counts(r: Routine) -> list[int]:
    b = max(r.least_columns, 2)
    if r.block == "short":
        return list(dict.fromkeys([2, (b + 2) // 2, b]))
    return list(dict.fromkeys([b, b + 1, 2 * b - 1, 2 * b, 2 * b + 3, 3 * r.side + 1]))


def line_gap(r: Routine, rows: int) -> int:
    """Bytes after a result row: lines are streamed to their places only if all rows begin on lines."""
    return 64 - rows * r.width % 64 if r.stream and not r.stage else 5


def problems(r: Routine) -> list[Problem]:
    """Shapes of every kind, each with a tile."""
    w, out = r.width, []
    for rows, columns in zip(row_counts(r), column_counts(r) * 4, strict=False):
        out.append(problem(w, (rows,), (columns,)))
        out.append(problem(w, (rows,), (columns,), gaps=(3, line_gap(r, rows)), change="backwards"))
    rows, columns = row_counts(r)[-1], column_counts(r)[-2]
    if r.block == "short":
        return [*out, *_parts(r, rows, columns)]
    aligned = 64 if r.stream and not r.stage else 7
    joined_rows = (r.side // 2, 6) if r.side > 2 else (2, 6)
    out += [
        problem(w, (rows,), (columns,), (2, 2), gaps=(0, aligned * 2)),
        problem(w, (rows,), (columns,), (3,), change="broadcast others"),
        problem(w, joined_rows, (columns,), (2,), gaps=(1, 0)),
        problem(w, joined_rows, (max(r.least_columns, 2), 3), columns_swapped=True),
        problem(w, joined_rows, (max(r.least_columns, 2) + 1, 2), gaps=(9, 0), change="broadcast rows"),
        problem(w, (rows,), (2, max(r.side, 2), 2), columns_swapped=True),
        problem(
            w,
            (rows,),
            (3, max(r.side, 2)),
            (2,),
            columns_swapped=True,
            gaps=(0, aligned if aligned == 64 else 0),
        ),
    ]
    return out


def _parts(r: Routine, rows: int, columns: int) -> list[Problem]:
    """Few columns, joined from two digits if there are enough. The last source row is not among the last.

    In one problem, the others begin one element apart. In another, the last source row is in the last two
    blocks.
    """
    w, aligned = r.width, 64 if r.stream and not r.stage else 7
    joined = (r.side // 2, 6)
    near = problem(w, (rows,), (columns,), (16 // w,), gaps=(0, aligned * 2))
    few, pitch = r.side // 2 if aligned == 64 else 3 * r.side // 4, columns * w
    middle = ((few, pitch, w), (2, -few * pitch, few * w))
    out = [
        replace(near, others=tuple((n, w, dst) for n, _, dst in near.others)),
        Problem(w, middle, problem(w, (2 * few,), (columns,), gaps=(0, aligned)).columns),
        problem(w, (rows,), (columns,), (2, 2), gaps=(0, aligned * 2)),
        problem(w, (rows,), (columns,), (3,), change="broadcast others"),
        problem(w, joined, (columns,), (2,), gaps=(1, 0)),
        problem(w, joined, (columns,), gaps=(9, 0), change="broadcast rows"),
    ]
    return out if w > 2 else [*out, problem(w, joined, (2, 3), (2,), columns_swapped=True)]


def tiles(r: Routine, shape: Problem) -> list[tuple[int, int]]:
    """Tiles that hold everything, and ones that leave partial rows and columns."""
    rows, columns = shape.counts
    if r.stage == "rows":
        return [(rows, r.side), (rows, 16 * r.side)]
    if r.stage == "dense":
        return [(rows, r.side if len(shape.columns) == 1 else columns)]
    return [(r.side, r.side), (2 * r.side, 16 * r.side)]


@pytest.mark.parametrize("name", BLOCKED)
def test_every_shape(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    r = routine(name)
    interpreted = False
    for shape in problems(r):
        for k, tile in enumerate(tiles(r, shape)):
            program = compiled(shape, r.cut(tile), monkeypatch)
            assert r.shown in _by_pitch(program.kernels[0].source), shape
            aligned = r.stream and not r.stage
            places = ((False, False, 0), (True, False, 0)) if aligned else PLACES if k else THREE
            check(program, shape.digits, r.width, places)
            if not interpreted and np.prod(shape.counts) <= INTERPRETED_ELEMENTS:
                judge(program, shape)
                interpreted = True
    assert interpreted


LAYERED = [n for n in BLOCKED if routine(n).stage == "dense" and routine(n).width < 64]


@pytest.mark.parametrize("name", LAYERED)
def test_layers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several tiles in one buffer, the last with fewer; complete runs, partial runs, and both."""
    r = routine(name)
    few, least = max(r.least_columns, 2), r.side if r.block == "short" else 2
    for rows, together in product((least, least + r.side // 2 + 1, least + r.side - 1), (1, 2, 4, 5)):
        for columns in ((few,), (2, few, 2)) if r.block != "short" else ((few,),):
            shape = _layered(r, rows, columns)
            cut = replace(r.cut(shape.counts), together=together)
            program = compiled(shape, cut, monkeypatch)
            assert r.shown in _by_pitch(program.kernels[0].source), shape
            assert panel_count(program.launches[0]) == 3 * -(-5 // together)
            check(program, shape.digits, r.width, THREE)
            if rows == least and np.prod(shape.counts) <= INTERPRETED_ELEMENTS:
                judge(program, shape)


def _by_pitch(source: str) -> str:
    """The source, as if the columns of every panel were at a pitch and each call began in one line."""
    return re.sub(r"(_at|_each)?\(\s*panel", "(panel", source)


def panel_count(step: Launch) -> int:
    """How often a buffer is filled."""
    inner = step.step.nest.transfer
    assert isinstance(inner, Transpose)
    return prod(replace(inner, loops=(each,)).trips for each in inner.loops)


def _layered(r: Routine, rows: int, columns: tuple[int, ...]) -> Problem:
    """Five layers, three times.

    The first column digit and the last follow a result row; the second does not.
    """
    w = r.width
    run, src, digits = rows * w, w, []
    apart = 5 * 4 * run + 7
    for k, n in enumerate(columns):
        digits.append((n, src, apart if k == 1 else run))
        src *= n
        run *= 1 if k == 1 else n
    whole = apart * columns[1] if len(columns) > 1 else 5 * run
    layers = (5, rows * (src + 3), run)
    return Problem(w, ((rows, src + 3, w),), tuple(digits), (layers, (3, 5 * layers[1], whole + 1)))


def judge(program: CopyProgram, shape: Problem) -> None:
    """The function that the source is printed from makes the same copy as the box."""
    src, dst = program.bounds
    content = np.random.default_rng(1).integers(0, 256, src[1] - src[0], np.uint8)
    seen = Watched(program, content, np.zeros(dst[1] - dst[0], np.uint8), np.zeros(0, np.uint8))
    wanted = interpreted(seen)
    assert wanted is not None
    assert np.array_equal(interpreted_when_lowered(seen), wanted), shape


@pytest.mark.parametrize("name", [n for n in BLOCKED if routine(n).stream or routine(n).stage])
def test_every_alignment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Heads and tails of staged copies, and replacements of streamed ones that begin inside a line."""
    r = routine(name)
    rows, columns = (2 * r.side + 3 if r.stage else 2 * r.side), 2 * r.side + 5
    columns = columns if r.block != "short" else r.least_columns
    for shape in (
        problem(r.width, (rows,), (columns,), gaps=(1, line_gap(r, rows))),
        problem(r.width, (3 if r.stage == "dense" and r.block != "short" else rows,), (columns,)),
    ):
        tile = (shape.counts[0], r.side)
        program = compiled(shape, r.cut(tile), monkeypatch)
        assert (program.launches[0].misaligned is None) == bool(r.stage), shape
        check(program, shape.digits, r.width, ALIGNMENTS)


FROM_LINES = [n for n in IN_PLACE if routine(n).stream and routine(n).finds_lines]


@pytest.mark.full
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", FROM_LINES)
def test_rows_may_begin_anywhere(name: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same kernel streams from the first line of each row on, wherever it is."""
    r = routine(name)
    for rows, columns, others in ((1, 64, ()), (2, 70, (3,)), (5, 131, ())):
        shape = problem(r.width, (rows * r.side,), (columns,), others, gaps=(1, 64), change="backwards")
        for tile in tiles(r, shape):
            cut = replace(r.cut(tile), finds_lines=True)
            program = compiled(shape, cut, monkeypatch, threads=threads)
            assert program.launches[0].misaligned is None
            assert "head = " in program.kernels[0].source
            check(program, shape.digits, r.width, ALIGNMENTS[:: 5 if threads == 1 else 17], threads=threads)
    judge(program, shape)


@pytest.mark.full
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("name", [n for n in BLOCKED if n.endswith("64x64s_u32")])
def test_tiles_and_threads(name: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles request what the next one reads, also in another thread's part."""
    r = routine(name)
    rows = 4 * r.side if r.stream and not r.stage else 4 * r.side + 3
    for others in ((), (5,)):
        shape = problem(r.width, (rows,), (3 * r.side + 2,), others, gaps=(4, line_gap(r, rows)))
        tile = (rows if r.stage else r.side, r.side)
        program = compiled(shape, r.cut(tile), monkeypatch, threads=threads)
        check(program, shape.digits, r.width, ((False, False, 0), (True, True, 0)), threads=threads)


@pytest.mark.full
@pytest.mark.parametrize("name", [n for n in BLOCKED if n.endswith("64x16s_u16")])
def test_tables_around_tiles(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """More loops than a kernel has: the outermost become tables, whose entries begin anywhere in a line."""
    r = routine(name)
    monkeypatch.setattr(choose_tables, "OUTER_RANKS", (2, 4))
    monkeypatch.setattr(calls, "TABLE_CHUNK", 4)
    for gap in (0, 3):
        shape = problem(r.width, (2 * r.side,), (2 * r.side,), (2, 2, 3, 3))
        others = tuple((n, s + gap * k, d + gap * k) for k, (n, s, d) in enumerate(shape.others))
        shape = Problem(r.width, shape.rows, shape.columns, others)
        program = compiled(shape, r.cut((2 * r.side, r.side)), monkeypatch)
        assert len(program.launches[0].tables) == 2
        for threads in (1, 2):
            check(program, shape.digits, r.width, (*THREE, (False, False, 0)), threads=threads)


@pytest.mark.parametrize("name", SMALL)
def test_small_transposes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    width = int(name.rsplit("u", 1)[1]) // 8
    for rows, columns, change in product(
        (2, 3, 63, 65, 130), (2, 5, 17), ("", "backwards", "broadcast rows")
    ):
        shape = problem(width, (rows,), (columns,), (3,), gaps=(1, 2), change=change)
        program = compiled(shape, "", monkeypatch)
        assert f"move_u{8 * width}_at(to, 0, at, 0)" in program.kernels[0].source
        check(program, shape.digits, width)


INTERLEAVES = [
    f"{stream}{de}interleave_{count}_u{bits}"
    for stream, de, count, bits in product(("", "stream_"), ("", "de"), INTERLEAVED_ROWS, (8, 16, 32, 64))
]


@pytest.mark.full
@pytest.mark.parametrize("name", INTERLEAVES)
def test_interleaves(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = re.fullmatch(r"(stream_)?(de)?interleave_(\d)_u(\d+)", name)
    assert found, name
    width, count, taken_apart = int(found[4]) // 8, int(found[3]), bool(found[2])
    side = 64 // width
    block = f"u{8 * width}_{count}x{side}" if taken_apart else f"u{8 * width}_{count * side}"
    verb = "stream" if found[1] else "write"
    shuffled = f"deinterleaved_{count}(block)" if taken_apart else "interleaved(block)"
    parts = (side // 4, side // 2, 3 * side // 4, side)
    for many in (2, *parts, side - 1, side + 1, 2 * side, 3 * side + side // 2 + 1):
        rows, columns = ((many,), (count,)) if taken_apart else ((count,), (many,))
        if many < 2 or many == count:
            continue
        for gap in (0, 3, 64 - many * width % 64):
            gaps = (0, gap) if taken_apart else (gap, 0)
            change = "backwards" if gap == 3 and not taken_apart else ""
            shape = problem(width, rows, columns, (3,), gaps=gaps, change=change)
            how = "src" if taken_apart else "dst"
            program = compiled(shape, how, monkeypatch, stream=bool(found[1]))
            in_a_block = taken_apart and gap == 0 and many in parts and count * many * width % 64 == 0
            moved = f"{verb}_u{8 * width}_" if in_a_block else f"{verb}_{block}("
            assert any(moved in line and shuffled in line for line in program.kernels[0].source.splitlines())
            check(program, shape.digits, width, (*PLACES, *((True, False, gap) for gap in (1, 16, 32))))


@pytest.mark.parametrize(
    ("side", "stream"), [("dst", False), ("src", False), ("dst", True), ("src", True), ("", False)]
)
@pytest.mark.parametrize(("width", "count"), [(1, 4), (2, 2), (4, 3)])
def test_interleaves_interpreted(
    width: int, count: int, side: str, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The functions that sources are printed from: aligned, through scratch, short rows."""
    for many in (5, 24 // width, 64 // width, 700 // width):
        rows, columns = ((many,), (count,)) if side == "src" else ((count,), (many,))
        for gap in (3, 64 - many * width % 64):
            gaps = (0, gap) if side == "src" else (gap, 0)
            shape = problem(width, rows, columns, (2,), gaps=gaps)
            program = compiled(shape, side, monkeypatch, stream=stream)
            with watching() as seen:
                check(program, shape.digits, width, ((False, False, 0), (True, False, width)))
            assert len(seen) == 2
            for watched in seen:
                assert np.array_equal(interpreted_when_lowered(watched), watched.after)


CHOSEN = {
    "a first column digit too short for registers": (1, ((3, 1, 375), (25, 3, 15), (15, 75, 1))),
    "column digits in reverse order, rows of half a line": (1, ((16, 1, 66), (2, 16, 33), (33, 32, 1))),
    "the same, rows of a line and a little": (2, ((33, 2, 102), (3, 66, 34), (17, 198, 2))),
}


@pytest.mark.parametrize(("panel_bytes", "joined"), [(100, 100), (100, 1 << 14), (1 << 17, 1 << 14)])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("case", CHOSEN)
def test_chosen_schedules(
    case: str, stream: bool, panel_bytes: int, joined: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies whose digits leave panels little choice."""
    monkeypatch.setattr(choose_transpose, "DENSE_BYTES", panel_bytes)
    monkeypatch.setattr(transpose_box, "MOST_JOINED", joined)
    width, digits = CHOSEN[case]
    check(lowered(digits, width, stream=stream), digits, width)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("width", [1, 2, 4, 16])
def test_panels_stay_in_cache(width: int, stream: bool) -> None:
    """Whatever is between result rows. Nothing is run."""
    panels = 0
    for rows, gap in product((3, 5, 7, 13, 20, 60, 130, 3000), (0, 1, 64)):
        for columns in ((1 << 17,), (1 << 13, 3), (3000, 5)):
            shape = problem(width, (rows,), columns, gaps=(0, gap), columns_swapped=True)
            for step in lowered(shape.digits, width, stream=stream).launches:
                assert step.scratch_bytes <= 5 << 18, step.step.schedule
                panels += step.scratch_bytes > 0
    assert panels


@pytest.mark.parametrize(
    ("width", "shape", "ways", "panel"),
    [
        (1, (8192, 8192), 12, None),
        (1, (8192, 8192), 8, (256, 4)),
        (1, (8000, 8064), 8, None),
        (2, (8191, 8193), 12, (256, 2)),
        (2, (8191, 8193), 8, (256, 4)),
        (4, (8191, 4097), 12, (256, 2)),
        (4, (8191, 4097), 8, (256, 4)),
        (4, (5003, 6001), 8, (256, 4)),
    ],
)
def test_panels_by_the_ways_of_the_first_cache(
    width: int,
    shape: tuple[int, int],
    ways: int,
    panel: tuple[int, int] | None,
) -> None:
    """Columns and lines of each result row. None means that blocks are stored in place."""
    rows, columns = shape
    digits = ((rows, columns * width, width), (columns, width, rows * width))
    with described(replace(machine(), first_cache_ways=ways)):
        program = lowered(digits, width, stream=True)
    cuts = [x.step.schedule.transpose for x in program.launches]
    cut = max((c for c in cuts if c), key=lambda c: c.tile[0])
    assert ((cut.tile[1], cut.lines) if cut.stage else None) == panel


def test_rows_of_a_few_bytes_share_no_sets() -> None:
    """Weights of OIhw4i16o4i, whose rows are 9 bytes apart, took twice as long in panels (Zen 4, 2026-11)."""
    digits = ((128, 516096, 516096), (16, 32256, 4), (224, 144, 2304), (4, 36, 64), (4, 9, 1), (9, 1, 256))
    schedules = set()
    for ways in (8, 12):
        with described(replace(machine(), first_cache_ways=ways)):
            schedules.add(tuple(x.step.schedule for x in lowered(digits, 1, stream=True).launches))
    assert len(schedules) == 1


RUNS = (3, 5, 9, 17, 31, 33, 63, 64, 65, 127, 128, 192, 255, 256, 257, 320, 447, 2047, 2048, 2113)


@pytest.mark.parametrize("stream", [False, True])
def test_runs_at_every_alignment(stream: bool) -> None:
    for count in RUNS:
        for gap in (64 - count % 64, 7):
            digits = ((3, count + 1, count + gap), (count, 1, 1))
            program = lowered(digits, 1, stream=stream)
            assert f"{'stream' if stream else 'write'}_u8_64(" in program.kernels[0].source
            check(program, digits, 1, ALIGNMENTS)


AT_LEVELS = (
    *(
        "transpose_by_64x64s_u8",
        "transpose_by_64x16s_u16",
        "transpose_by_64x64s_u32",
        "transpose_by_64x64s_u128",
    ),
    *("stream_transpose_by_64x16s_u8", "stream_transpose_by_64x64s_u16", "stream_transpose_by_64x16s_u64"),
    *("staged_dense_by_64x64s_u8", "stream_staged_dense_by_64x16s_u32", "stream_staged_rows_by_64x64s_u16"),
    *("stream_staged_rows_by_64x16s_u64", "staged_dense_by_64x16s_u128"),
    *("stream_transpose_by_shorts_u8", "stream_staged_dense_by_16x64s_u8"),
    "stream_staged_rows_by_shorts_u16",
)
INTERLEAVES_AT_LEVELS = ("interleave_4_u8", "stream_deinterleave_2_u16", "stream_interleave_8_u32")


def at_lower_levels() -> AtLevels:
    """Every network and every way out of a buffer, tested above, with kernels of a lower CPU level."""
    tests = [f"test_every_shape[{n}]" for n in AT_LEVELS]
    tests += [f"test_every_alignment[{n}]" for n in AT_LEVELS if routine(n).stream and routine(n).stage]
    tests += [f"test_rows_may_begin_anywhere[{n}-1]" for n in FROM_LINES if n in AT_LEVELS]
    tests += [f"test_interleaves[{n}]" for n in INTERLEAVES_AT_LEVELS]
    tests += ["test_small_transposes[transpose_small_u16]", "test_runs_at_every_alignment[True]"]
    return AtLevels(__file__, tests, len(tests))
