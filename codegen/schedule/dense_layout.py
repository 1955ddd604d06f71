"""The layout of the buffer in which short result rows are staged: its runs are runs of the destination."""

from __future__ import annotations

from math import prod

from codegen.ir.lines import LINE_BYTES
from codegen.support.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DenseLayout:
    """Where columns lie in the buffer, and which runs leave it.

    columns      (count, distance in the buffer) of each digit of columns
    runs         (count, destination stride, distance in the buffer) of the digits that separate runs
    run_columns  columns per run
    size_bytes   of the buffer: blocks may write a line beyond the last run
    """

    columns: tuple[tuple[int, int], ...]
    runs: tuple[tuple[int, int, int], ...]
    run_columns: int
    size_bytes: int


def dense_layout(
    row_bytes: int, digits: list[tuple[int, int]], *, in_order: bool, layers: tuple[int, int] | None
) -> DenseLayout:
    """The layout for columns with digits (count, destination stride), whose result rows have `row_bytes`.

    A block with more rows than the box (`in_order`) also writes into the columns that follow in memory. These
    must be written later, so the digits of a run are in the order in which columns are processed, then layers
    (count, destination stride).
    """
    run, inside = joined_run(row_bytes, digits, in_order=in_order)
    if layers and layers[1] != run:
        raise AssertionError(f"layers {layers[1]} bytes apart do not follow runs of {run}")
    run *= layers[0] if layers else 1
    lines = -(-run // LINE_BYTES) + 1
    lines += lines % 8 == 0  # otherwise the buffer's runs share L1 cache sets
    size = lines * LINE_BYTES
    columns, runs = [], []
    for k, (n, d) in enumerate(digits):
        columns.append((n, d if k in inside else size))
        if k not in inside:
            runs.append((n, d, size))
            size *= n
    together = prod(digits[k][0] for k in inside)
    return DenseLayout(tuple(columns), tuple(runs), together, size + 2 * LINE_BYTES)


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
