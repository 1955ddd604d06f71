"""Passes keep the meaning of gathers and scatters, which are printed as in MLIR."""

from __future__ import annotations

import pytest

from codegen.frontend.python_ast import read_function
from codegen.ir.nodes import ArrayArg, Function
from codegen.ir.printer import format_function
from codegen.pipeline.loops import vectorize_function
from codegen.pipeline.passes import lower
from codegen.schedule.choose_registers import choose_registers
from tests.codegen.ir.printed import check_names
from tests.codegen.passes.meaning import same_meaning
from tests.codegen.passes.test_lower_vectors import after_passes, check
from tests.kernels.indexed import CASES, Case

SMALL = {1: (37,), 2: (13, 11)}
"""The interpreter is slow, and loops cover whole arrays."""


def kernel_of(case: Case, *, masked: bool = False) -> Function:
    arrays = [ArrayArg(name, "f32", case.rank, "C") for name in ("y", "x")]
    return read_function(case.function).typed([*arrays, ArrayArg("idx", "i32", 1, "C")], masked=masked)


@pytest.mark.full
@pytest.mark.parametrize(
    ("sizes", "tail"), [((8,), "mask"), ((4, 8), "scalar"), ((8,), "shift"), ((4, 8), "mask")], ids=str
)
@pytest.mark.parametrize("case", [c for c in CASES if not c.apart], ids=lambda case: case.name)
def test_each_pass_keeps_the_meaning(case: Case, sizes: tuple[int, ...], tail: str) -> None:
    kernel = kernel_of(case, masked=tail == "mask")
    made = vectorize_function(kernel, sizes, tail=tail)
    same_meaning(kernel, made.function, {}, extents=SMALL)
    check(kernel, made.function, choose_registers(made.function, 16, made.directives), {}, SMALL)
    check(kernel, kernel, choose_registers(kernel, 16), {}, SMALL)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_form_prints(case: Case, masked: bool) -> None:
    kernel = kernel_of(case, masked=masked)
    wide = vectorize_function(kernel, (8,)).function
    forms = [kernel, wide, *(made for _, made in after_passes(wide, choose_registers(wide, 16)))]
    for form in forms:
        check_names(format_function(form))


def test_gathers_and_scatters_in_mlir() -> None:
    by_name = {case.name: case for case in CASES}
    text = format_function(kernel_of(by_name["gather"]))
    assert "memref.load %idx[%i] : memref<?xi32>" in text
    assert "arith.index_cast %0 : i32 to index" in text
    wide = vectorize_function(kernel_of(by_name["scatter_apart"]), (8,)).function
    text = format_function(wide)
    assert "vector.scatter %y[%c0] [" in text
    assert "vector.transfer_read %idx[%i]" in text
    lowered = format_function(lower(wide, choose_registers(wide, 16)))
    assert "offsets = " in lowered
