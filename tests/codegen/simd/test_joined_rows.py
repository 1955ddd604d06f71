"""Interleaves of joined rows: every kernel between guard pages, at every alignment and CPU level."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from codegen.ir.blocks import INTERLEAVED_ROWS
from codegen.ir.strided_box import StridedBox
from codegen.passes.select_transfer import select_transfer
from codegen.pipeline.program import CopyProgram
from codegen.schedule import choose_interleave
from codegen.schedule.choose import choose
from codegen.schedule.choose_interleave import MOST_LINES
from codegen.schedule.limits import ROW_BUFFER_BYTES
from codegen.schedule.offset_tables import CHUNK_BYTES, MOST_GROUPED, Digit, RowGroups
from codegen.schedule.schedule import STRIP
from codegen.schedule.thresholds import Thresholds
from codegen.schedule.transfers import Interleave
from tests.codegen.simd.forced import PLACES, _guarded, check, lowered
from tests.codegen.simd.levels import AtLevels
from tests.tools.boxes import box_of
from tests.tools.replay import interpreted_when_lowered, watching

LINE = 64
GROUPS = 3
"""The groups of rows that are packed side by side, which keeps joined digits separate in packed lines."""
WIDTHS = (8, 16, 32, 64)
LINES = [
    f"{stream}{de}interleave_lines_{count}_u{bits}"
    for stream, de, count, bits in product(("", "stream_"), ("", "de"), INTERLEAVED_ROWS, WIDTHS)
]
ROW_GROUPS = [
    f"stream_deinterleave_groups_{count}_u{bits}" for count, bits in product(INTERLEAVED_ROWS, WIDTHS)
]
ALIGNMENTS = tuple((True, False, gap) for gap in range(LINE))


def digits_of(
    width: int, count: int, first: int, second: int, *, pack: bool, gap: int, hole: int
) -> tuple[Digit, ...]:
    """Rows of `first` times `second` elements, `gap` bytes apart, with `hole` bytes between packed lines."""
    row = first * second * width + gap
    together = first * count * width
    digits = (
        (GROUPS, count * row, together),
        (second, first * width, GROUPS * together + hole),
        (first, width, count * width),
        (count, row, width),
    )
    return digits if pack else tuple((n, packed, apart) for n, apart, packed in digits)


def shapes_of(width: int, count: int) -> list[tuple[int, int]]:
    """First digits that fill lines and are at most one, with digits around full lines and chunks."""
    firsts = [n for n in (2, 4, 8, 16, 32, 64) if n * width <= LINE and n * count * width % LINE == 0]
    out = []
    for first in (n for n in firsts if n != count):
        least = max(LINE // (first * width), 2)
        many = choose_interleave.CHUNK_BYTES // (first * width)
        out += [(first, second) for second in (least, least + 1, 2 * least + 1, 2 * many + 1)]
    return list(dict.fromkeys(out))


def guard_lines(program: CopyProgram) -> None:
    """Put the tables of lines right before a guard page."""
    for launch in program.launches:
        inner = launch.step.nest.transfer
        if isinstance(inner, Interleave) and inner.lines:
            vars(inner.lines)["offsets"] = _guarded(inner.lines.offsets)
        if isinstance(inner, Interleave) and inner.groups:
            for name in ("offsets", "ahead"):
                vars(inner.groups)[name] = _guarded(getattr(inner.groups, name))


@pytest.mark.parametrize("name", LINES)
def test_every_routine(name: str) -> None:
    found = re.fullmatch(r"(stream_)?(de)?interleave_lines_(\d)_u(\d+)", name)
    assert found, name
    width, count, pack = int(found[4]) // 8, int(found[3]), not found[2]
    kind = f"u{8 * width}_{count}x{LINE // width}"
    written = f"{'stream' if found[1] else 'write'}_{kind}{'_at' * pack}("
    moved = f"{'interleaved' if pack else f'deinterleaved_{count}'}(block)"
    for (first, second), gap, hole in product(shapes_of(width, count), (0, LINE, width), (0, LINE)):
        if found[1] and not pack and (first * second * width + gap) % LINE:
            continue  # These rows go through a buffer.
        digits = digits_of(width, count, first, second, pack=pack, gap=gap, hole=hole)
        program = lowered(digits, width, stream=bool(found[1]))
        source = program.kernels[0].source.splitlines()
        assert any(written in line and moved in line for line in source), digits
        assert pack or any(f"read_{kind}_at(" in line for line in source), digits
        guard_lines(program)
        check(program, digits, width, (*PLACES, (False, True, width), (True, False, 16)))


@pytest.mark.parametrize("name", ROW_GROUPS)
def test_every_routine_of_groups(name: str) -> None:
    """Rows just too short for a buffer and just long enough, partial chunks, at places one byte apart."""
    found = re.fullmatch(r"stream_deinterleave_groups_(\d)_u(\d+)", name)
    assert found, name
    count, width = int(found[1]), int(found[2]) // 8
    for first, second in group_shapes_of(width, count):
        for gap, hole in ((width, 0), (LINE - width, LINE)):
            digits = digits_of(width, count, first, second, pack=False, gap=gap, hole=hole)
            if (first * second * width + gap) % LINE == 0:
                continue
            program = lowered(digits, width, stream=True)
            assert is_through_scratch(program, count), digits
            guard_lines(program)
            check(program, digits, width, (*PLACES, (False, True, width), (True, False, 16)))


def is_through_scratch(program: CopyProgram, count: int) -> bool:
    """Whether a program deinterleaves groups into scratch, and streams full lines from it."""
    source = program.kernels[0].source
    parts = (
        "for group in range(group_count)",
        f"deinterleaved_{count}(",
        "stream_u8_64(dst_row + x, read_u8_64(held",
    )
    return all(part in source for part in parts)


def group_shapes_of(width: int, count: int) -> list[tuple[int, int]]:
    """Digits shorter than a line and longer than a chunk, and rows of several, up to more than a chunk."""
    out = []
    for first in (n for n in (4, 16, 64, 128, 640) if n * count * width % LINE == 0 and n != count):
        row = first * width
        seconds = {max(-(-n // row), 2) for n in (LINE, 300, ROW_BUFFER_BYTES, 1000, 1070)}
        out += [(first, second) for second in sorted(seconds)]
    return out


@pytest.mark.parametrize(("width", "count"), [(1, 4), (2, 2), (2, 8), (4, 3), (8, 8)])
def test_groups_at_every_alignment(width: int, count: int) -> None:
    first, second = group_shapes_of(width, count)[-1]
    digits = digits_of(width, count, first, second, pack=False, gap=width, hole=0)
    program = lowered(digits, width, stream=True)
    assert is_through_scratch(program, count)
    guard_lines(program)
    check(program, digits, width, ALIGNMENTS)


@pytest.mark.parametrize(("columns", "width", "run"), [(3, 4, 16), (2, 1, 64), (8, 2, 640), (4, 8, 12)])
def test_the_prefetch_distance_of_groups(columns: int, width: int, run: int) -> None:
    """Each row requests the chunk after that of the row before it, in runs of all groups."""
    groups = RowGroups(((5, 64, 4096),), columns, width, run)
    together = 5 * columns * width * min(run, CHUNK_BYTES // width)
    elements, within = groups.ahead.T
    assert np.array_equal(elements * (5 * columns * width) + within, CHUNK_BYTES * np.arange(5 * columns))
    assert (within < together).all()
    assert not (elements % min(run, CHUNK_BYTES // width)).any()


def test_groups_of_many_rows() -> None:
    """At one time, as many rows as there are buffers for, then the rest."""
    first, second, count, groups = 128, 9, 4, 11
    row, together = first * second + 5, first * count
    digits = (
        (groups, together, count * row),
        (second, groups * together, first),
        (first, count, 1),
        (count, 1, row),
    )
    program = lowered(digits, 1, stream=True)
    assert len(program.steps) == 2
    assert [x.extent for x in program.steps[0].box.axes if x.name == STRIP] == [1]
    box, schedule = program.steps[0].box, program.steps[0].schedule
    assert schedule.groups
    (group,) = schedule.groups
    assert box.axis(group).extent * count == MOST_GROUPED
    select_transfer(box, schedule)
    more = box.with_axes(replace(x, extent=x.extent + (x.name == group)) for x in box.axes)
    with pytest.raises(AssertionError, match=f"expected at most {MOST_GROUPED} grouped rows, got 36"):
        select_transfer(more, schedule)
    guard_lines(program)
    check(program, digits, 1, ALIGNMENTS)
    program = lowered(digits, 1, 3, stream=True)
    assert len(program.steps) == 1, "threads share the groups"
    check(program, digits, 1, threads=3)


@pytest.mark.parametrize(("width", "count"), [(1, 4), (2, 2), (4, 3), (8, 8)])
@pytest.mark.parametrize("pack", [True, False])
def test_every_alignment(width: int, count: int, pack: bool) -> None:
    """Streaming stores must not meet a line that begins anywhere else."""
    first, second = shapes_of(width, count)[-1]
    digits = digits_of(width, count, first, second, pack=pack, gap=LINE, hole=0)
    program = lowered(digits, width, stream=True)
    guard_lines(program)
    check(program, digits, width, ALIGNMENTS)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("pack", [True, False])
@pytest.mark.parametrize(("width", "count", "gap"), [(1, 4, 0), (2, 2, 2), (4, 3, 4), (8, 8, 0)])
def test_interpreted(width: int, count: int, gap: int, pack: bool, stream: bool) -> None:
    """The functions that sources are printed from, just too short for a buffer and just long enough."""
    for least in (LINE, ROW_BUFFER_BYTES + 100):
        first = LINE // width
        digits = digits_of(width, count, first, -(-least // LINE) + 1, pack=pack, gap=gap, hole=LINE)
        program = lowered(digits, width, stream=stream)
        with watching() as seen:
            check(program, digits, width, ((False, False, 0), (True, False, width)))
        assert len(seen) == 2
        for watched in seen:
            assert np.array_equal(interpreted_when_lowered(watched), watched.after)


def test_threads_share_the_strips() -> None:
    digits = digits_of(2, 2, 16, 100, pack=True, gap=0, hole=0)
    program = lowered(digits, 2, 3, stream=True)
    assert program.steps[0].schedule.outer[0] == STRIP
    check(program, digits, 2, threads=3)


def box(
    width: int, count: int, first: int, second: int, *, pack: bool = True, hole: int = 0, gap: int = 0
) -> StridedBox:
    digits = digits_of(width, count, first, second, pack=pack, gap=gap, hole=hole)
    return box_of(list(digits), width)


ALWAYS = Thresholds(stream_bytes=0)


def test_which_rows_are_joined() -> None:
    """Short rows that fill lines, if lines begin on lines and the table stays small."""
    assert len(choose(box(2, 2, 16, 9)).inner) == 3
    assert len(choose(box(2, 2, 16, 9, pack=False)).inner) == 3
    assert len(choose(box(2, 2, 64, 9)).inner) == 2, "rows of two lines"
    assert len(choose(box(1, 4, 128, 9, hole=4096)).inner) == 2, "two lines that begin on one"
    assert len(choose(box(1, 4, 128, 9, hole=4096, gap=5)).inner) == 2, "in cache"
    assert len(choose(box(1, 4, 128, 9, hole=4096, gap=5), thresholds=ALWAYS).inner) == 3, "past it"
    assert len(choose(box(1, 4, 128, 9, gap=5), thresholds=ALWAYS).inner) == 2, "side by side in a page"
    assert len(choose(box(2, 2, 8, 9)).inner) == 2, "half a line packed"
    assert len(choose(box(1, 4, 16, 3)).inner) == 2, "rows of less than a line, all in all"
    assert len(choose(box(2, 2, 16, 9, hole=32)).inner) == 2, "lines that begin inside lines"
    assert len(choose(box(2, 2, 16, MOST_LINES)).inner) == 3
    assert len(choose(box(2, 2, 16, MOST_LINES + 1)).inner) == 2


def test_chunks() -> None:
    """That many lines of each row at one time, and never a rest of less than a line."""
    assert choose(box(2, 2, 16, 31)).strip is None
    assert choose(box(2, 2, 16, 32)).strip == 16
    assert choose(box(2, 2, 16, 33)).strip == 17
    assert choose(box(2, 2, 16, 33, pack=False)).strip is None


AT_LEVELS = (
    *("interleave_lines_4_u8", "stream_interleave_lines_2_u16", "stream_interleave_lines_3_u32"),
    *("deinterleave_lines_3_u8", "stream_deinterleave_lines_8_u16", "stream_deinterleave_lines_4_u8"),
    *(
        "stream_deinterleave_lines_2_u64",
        "stream_deinterleave_groups_4_u8",
        "stream_deinterleave_groups_2_u16",
    ),
)


def at_lower_levels() -> AtLevels:
    tests = [f"test_every_routine{'_of_groups' * (n in ROW_GROUPS)}[{n}]" for n in AT_LEVELS]
    return AtLevels(__file__, tests, len(tests))
