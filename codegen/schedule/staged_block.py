"""The block of scratch that a tile of a transpose goes through: its runs are runs of the destination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from codegen.ir.lines import LINE_BYTES
from codegen.schedule.loops import Size
from codegen.schedule.offset_tables import OffsetTable
from codegen.support.dataclasses import dataclass

STAGED_OFFSETS, RUN_OFFSETS, STAGED_RUN_OFFSETS = "staged_offsets", "run_offsets", "staged_run_offsets"
"""The arguments of a kernel for the tables of a block: its columns, and its runs on both sides."""

MOST_GROUPED = 32
"""The most parts of result rows in a block of several groups: it takes a third of the first cache."""

MOST_STACK_BYTES = 3 << 12
"""Blocks up to this size are on the stack: packed rows are up to 1.1 times as fast (Zen 4, 2026-11)."""


@dataclass(frozen=True, slots=True)
class StagedBlock:
    """Where columns lie in a block, and which runs leave it. The first run begins after a spare line.

    pitch        bytes from column to column; the offset of each if they join several digits
    run_columns  contiguous columns, which are a run in the destination as in the block
    size_bytes   of the block: registers may write a line beyond the last run
    runs         the offsets of runs in the destination; None if their columns are steps apart on both sides
    staged_runs  the offsets of the same runs in the block
    around       other loops whose iterations have runs of their own, and the bytes from one to the next
    """

    pitch: Size | OffsetTable
    run_columns: Size
    size_bytes: Size
    runs: OffsetTable | None = None
    staged_runs: OffsetTable | None = None
    around: tuple[tuple[str, Size], ...] = ()

    @property
    def alone(self) -> bool:
        """Whether each column is a run."""
        return self.run_columns == 1 and self.runs is None

    @property
    def pitches(self) -> dict[str, Size]:
        """The bytes from one iteration of another loop to the next."""
        return dict(self.around)

    @property
    def tables(self) -> dict[str, OffsetTable]:
        """The tables of offsets, by the names of their arguments."""
        found = {STAGED_OFFSETS: self.pitch, RUN_OFFSETS: self.runs, STAGED_RUN_OFFSETS: self.staged_runs}
        return {name: table for name, table in found.items() if isinstance(table, OffsetTable)}


def staged_block(
    row_bytes: int,
    digits: list[tuple[int, int]],
    layers: Sequence[tuple[int, int]] = (),
    *,
    in_order: bool = False,
) -> StagedBlock:
    """The block of columns with digits (count, destination stride), each of which has `row_bytes`.

    A register block with more rows than the box (`in_order`) also writes into the columns that follow in
    memory. These must be written later, so the digits of a run are in the order in which columns are
    processed, then layers (count, destination stride), if there are any.
    """
    run, inside = joined_run(row_bytes, digits, in_order=in_order)
    for count, stride in layers:
        if stride != run:
            raise AssertionError(f"layers {stride} bytes apart do not follow runs of {run}")
        run *= count
    lines = -(-run // LINE_BYTES) + 1
    lines += lines % 8 == 0  # otherwise the runs of the block share L1 cache sets
    size = lines * LINE_BYTES
    columns, runs = [], []
    for k, (n, d) in enumerate(digits):
        columns.append((n, d if k in inside else size))
        if k not in inside:
            runs.append((n, d, size))
            size *= n
    together = prod(digits[k][0] for k in inside)
    size_bytes = size + 2 * LINE_BYTES
    if len(digits) == 1:
        return StagedBlock(columns[0][1], together, size_bytes)
    runs = runs or [(1, 0, 0)]
    on_both = (OffsetTable(tuple((n, d) for n, d, _ in runs)), OffsetTable(tuple((n, p) for n, _, p in runs)))
    return StagedBlock(OffsetTable(tuple(columns)), together, size_bytes, *on_both)


def grouped_block(block: StagedBlock, columns: int, groups: Sequence[tuple[str, int]]) -> StagedBlock:
    """The block with the columns of several groups: (loop, iterations in the block), outermost first.

    Those of 0 iterations are around the block. Blocks of groups have one size, so that they share kernels.
    """
    assert isinstance(block.pitch, int), "columns of parts of rows are steps apart"
    pitch, around = block.pitch, list[tuple[str, Size]]()
    for axis, count in reversed([x for x in groups if x[1]]):
        around.insert(0, (axis, columns * pitch))
        columns *= count
    size_bytes = max(columns, MOST_GROUPED) * pitch + 2 * LINE_BYTES if around else block.size_bytes
    return replace(block, size_bytes=size_bytes, around=tuple(around))


def joined_run(run: int, digits: list[tuple[int, int]], *, in_order: bool) -> tuple[int, set[int]]:
    """The contiguous bytes when digits (extent, stride) extend a run of `run` bytes, and the digits that do.

    36, [(4, 99), (16, 36), (2, 576)] -> 1152, {1, 2}

    With `in_order`, a digit extends the run only if the list has it after all digits of the run.
    """
    inside: set[int] = set()
    for k, (n, stride) in sorted(enumerate(digits), key=lambda x: x[1][1]):
        if stride == run and not (in_order and k < max(inside, default=0)):
            run, inside = run * n, inside | {k}
    return run, inside
