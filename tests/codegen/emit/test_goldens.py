"""Golden files of kernels of loops: the report of each loop, the super-vector form, and the source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from codegen.frontend.python_ast import read_function
from codegen.ir.dtypes import argument
from codegen.ir.printer import format_function
from codegen.pipeline.loops import loops_source, strip_mined, tile_function, vectorize_function
from codegen.schedule.choose_registers import choose_registers
from tests.tools.goldens import GOLDEN, check_golden

KERNELS = GOLDEN / "loops"


def blend(a, b, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] * 0.25 + b[j] if a[i, j] > 0.5 else 0.0


def total(a):
    s = np.float32(0)
    for i in range(3, a.shape[0]):
        s += a[i]
    return s


def transposed(a, c):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = a[j, i]


def stretched(a, c):
    for j in range(c.shape[0]):
        c[j] = a[j // 2]


def running(a):
    for i in range(1, a.shape[0]):
        a[i] += a[i - 1]


def scanned(a, c):
    s = np.float32(0)
    for i in range(a.shape[0]):
        s += a[i]
        c[i] = s


def scanned_before(a, c):
    s = a[0]
    for i in range(a.shape[0]):
        c[i] = s
        s = max(s, a[i])


@dataclass(frozen=True)
class Case:
    """A function on float32, and the options for it."""

    function: Callable[..., Any]
    ranks: tuple[int, ...]
    sizes: tuple[int, ...]
    tail: str = "mask"
    reductions: bool = False
    scans: bool = False
    tiles: bool = False
    strips: bool = False


CASES = {
    "blend": Case(blend, (2, 1, 2), (32,)),
    "blend_in_tiles": Case(blend, (2, 1, 2), (64,), "scalar", tiles=True),
    "blend_in_two_dimensions": Case(blend, (2, 1, 2), (4, 16), "assume_divisible"),
    "sum": Case(total, (1,), (32,), reductions=True),
    "transposed": Case(transposed, (2, 2), (16, 16)),
    "gathered_shifted": Case(stretched, (1, 1), (16,), "shift"),
    "running_sum": Case(running, (1,), (16,)),
    "scan": Case(scanned, (1, 1), (32,), scans=True),
    "scan_before_scalar": Case(scanned_before, (1, 1), (16,), "scalar", scans=True),
    "sum_in_strips": Case(total, (1,), (256,), reductions=True, strips=True),
    "stretched_in_strips": Case(stretched, (1, 1), (256,), strips=True),
    "blend_in_strips": Case(blend, (2, 1, 2), (32, 256), strips=True),
    "transposed_in_strips": Case(transposed, (2, 2), (32, 64), strips=True),
}


def text_of(case: Case) -> str:
    """Reports, super-vectors and source for registers of 64 bytes."""
    names = case.function.__code__.co_varnames
    arrays = [argument(n, np.zeros((1,) * r, np.float32)) for n, r in zip(names, case.ranks, strict=False)]
    function = read_function(case.function).typed(arrays)
    if case.tiles:
        function = tile_function(function, {1: case.sizes[-1]}).function
    made = vectorize_function(function, case.sizes, None, case.reductions, case.tail, case.scans)
    loops = [f"{report.index}: {str(report).partition(f'loop {report.index}: ')[2]}" for report in made.loops]
    lowered, tail = strip_mined(made.function, 64, case.tail) if case.strips else (made.function, case.tail)
    source = loops_source(lowered, choose_registers(lowered, 64, tail)).source
    return "\n".join([*loops, "", format_function(made.function), source])


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str, request: pytest.FixtureRequest) -> None:
    check_golden(KERNELS / f"{name}.txt", text_of(CASES[name]), request)


@pytest.mark.parametrize("name", CASES)
def test_lines_are_short(name: str) -> None:
    """The source after the printed loops."""
    source = text_of(CASES[name]).partition("\ndef ")[2]
    assert max(map(len, source.splitlines())) <= 110


def test_every_golden_file_has_a_case() -> None:
    assert {path.stem for path in KERNELS.glob("*.txt")} == {*CASES}
