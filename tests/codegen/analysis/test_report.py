"""The reports of kernels about their loops, in super-vectors of fixed sizes: the same on every machine."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tilejit as tj
from codegen.analysis.report import LoopReport
from tests.codegen.passes.rows import ROWS, Row
from tests.tools.extent import few_by_default

WALKS = r"\] (contiguous|reversed|repeated|gathered|strided by -?\d+|along dimension \d(?: by -?\d+)?)"
REDUCED = r"is (reduced by \w+)"


def in_short(report: LoopReport) -> str:
    """A report in the form of the rows, without names of arrays."""
    if not report.vectorized:
        return report.code
    found = [walk or reduced for walk, reduced in re.findall(f"{WALKS}|{REDUCED}", report.text)]
    labels = [*dict.fromkeys(found), *(["masked"] if report.tail in ("mask", "scalar") else [])]
    return f"{'x'.join(map(str, report.shape))} {', '.join(labels)}".replace("along dimension", "along")


@pytest.mark.parametrize("row", few_by_default(ROWS, 50), ids=str)
def test_shape_or_reason_of_each_loop(row: Row) -> None:
    for expected, size, reductions in (
        (row.gives, 16, False),
        (row.tiles, (2, 8), False),
        (row.asked or row.gives, 16, True),
    ):
        loops = reports(row, size, reductions)
        if expected:
            assert "; ".join(map(in_short, loops)) == expected, "\n".join(map(str, loops))
        else:  # no nest has two loops
            assert loops == reports(row, 8, reductions)


def reports(row: Row, size: Any, reductions: bool) -> tuple[LoopReport, ...]:
    """The reports of a row's loops in super-vectors of a size."""
    made = tj.kernel(virtual_vector_size=size, vectorize_reductions=reductions, tail="shift")
    loops: tuple[LoopReport, ...] = made(row.function).specialize(*row.arguments).program.vectorized.loops
    return loops
