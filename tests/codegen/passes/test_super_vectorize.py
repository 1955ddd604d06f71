"""The super-vectorizer on a table of loops: vector shapes, reasons, and unchanged meaning."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from codegen.analysis.report import CARRIED
from codegen.ir.combiners import neutral
from codegen.ir.dtypes import numpy_dtype
from codegen.ir.nodes import COMBINERS, Function
from codegen.ir.operations import compute
from codegen.pipeline.loops import Vectorized, vectorize_function
from codegen.schedule.machine import described, machine
from codegen.support.errors import KernelError
from tests.codegen.ir.nests import add, function, i, j, load, number, over_m, over_n, plus, store
from tests.codegen.passes.meaning import same_meaning
from tests.codegen.passes.table import REASONS, ROWS, Row
from tests.tools.extent import few_by_default

each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


def vectorized(row: Row) -> Vectorized:
    return vectorize_function(row.kernel, row.sizes, **row.options)  # type: ignore[arg-type]


@each_row
def test_shape_or_reason(row: Row) -> None:
    made = vectorized(row)
    outcomes = tuple(report.shape if report.vectorized else report.code for report in made.loops)
    assert outcomes == row.expected, "\n".join(map(str, made.loops))
    assert all(report.code in REASONS and report.text for report in made.loops)
    if not any(report.vectorized for report in made.loops):
        assert made.function == row.kernel


@pytest.mark.parametrize("row", few_by_default(ROWS, 30), ids=lambda row: row.name)
@pytest.mark.parametrize("numbers", [{"n": 37, "m": 21}, {"n": 16, "m": 8}, {"n": 3, "m": 1}], ids=str)
def test_same_meaning(row: Row, numbers: dict[str, int]) -> None:
    if "unknown operation" in row.name or "annotated" in row.name:
        pytest.skip("has no meaning that lanes keep")
    same_meaning(row.kernel, vectorized(row).function, numbers)


def copies() -> Function:
    return function(over_n("i", over_m("j", store("C", (i, j), load("A", i, j)))))


REDUCED = [(how, dtype) for how in COMBINERS for dtype in ("i1", "i8", "i32", "i64", "u8", "u32", "u64")]
REDUCED += [(how, dtype) for how in ("add", "mul", "min", "max") for dtype in ("f32", "f64")]


@pytest.mark.parametrize(("combiner", "dtype"), REDUCED)
def test_neutral_elements_change_nothing(combiner: str, dtype: str) -> None:
    """Lanes start with them, so not even the extremes and zeros of either sign may change."""
    numpy = numpy_dtype(dtype)
    if numpy.kind == "f":
        numbers = [-np.inf, -2.5, -0.0, 0.0, 2.5, np.inf]
    elif numpy.kind == "b":
        numbers = [False, True]
    else:
        info = np.iinfo(numpy)
        numbers = [info.min, max(info.min, -3), 0, 3, info.max]
    start = np.array(neutral(combiner, dtype), numpy)[()]
    for x in np.array(numbers, numpy):
        assert compute(combiner, (start, x), dtype).tobytes() == x.tobytes(), x


def test_accesses_to_one_element_do_not_vectorize() -> None:
    """The kernel stays scalar and gives the reason, even if the user promised independent iterations."""
    kernel = function(over_n("i", store("C", (3,), load("A", i)), parallel=True))
    (report,) = vectorize_function(kernel, (8,)).loops
    assert (report.code, report.text) == (CARRIED, "C[3] is one element for all iterations of i")


def test_reasons_name_both_accesses() -> None:
    kernel = function(over_n("i", store("A", (plus(i, 1),), load("A", i))))
    (report,) = vectorize_function(kernel, (8,)).loops
    assert report.code == CARRIED
    assert report.text == "A[i + 1] is written and A[i] read in a later iteration of i of the super-vector"


def test_pairs_of_arrays_to_check_at_run_time() -> None:
    kernel = function(
        over_n("i", store("C", (i,), add(load("A", i), load("B", i)))),
        over_n("i", store("D", (i,), load("D", plus(i, -1)))),
        over_n("i", over_m("j", store("E", (i, j), load("A", i)))),
    )
    assert vectorize_function(kernel, (8,)).checks == (("A", "C"), ("A", "E"), ("B", "C"))


@pytest.mark.parametrize(
    ("asked", "level", "wanted", "stored", "loaded"),
    [
        ("shift", "avx512", "shift", "C", "A"),
        ("shift", "avx512", "mask", "A", "A"),
        ("shift", "avx2", "scalar", "A", "A"),
        ("clamp", "avx2", "clamp", "C", "A"),
        ("mask", "avx2", "mask", "A", "A"),
        ("scalar", "avx512", "scalar", "A", "A"),
    ],
)
def test_tails_are_shifted_only_if_iterations_may_run_twice(
    asked: str, level: str, wanted: str, stored: str, loaded: str
) -> None:
    """If they may not, the tail is masked, or scalar where the processor has no masks."""
    kernel = function(over_n("i", store(stored, (i,), add(load(loaded, i), number(1)))))
    with described(replace(machine(), level=level)):
        (report,) = vectorize_function(kernel, (8,), tail=asked).loops
    assert (report.vectorized, report.tail) == (True, wanted)


@pytest.mark.parametrize(
    ("sizes", "fastest", "tail", "text"),
    [
        ((), None, "mask", "one to eight sizes"),
        ((2,) * 9, None, "mask", "one to eight sizes"),
        ((0,), None, "mask", "at least one element"),
        ((-8,), None, "mask", "at least one element"),
        ((8,), (1, 0), "mask", "another length"),
        ((8,), (-1,), "mask", "from 0"),
        ((8,), None, "round", "tail: expected one of"),
    ],
)
def test_wrong_arguments(
    sizes: tuple[int, ...], fastest: tuple[int, ...] | None, tail: str, text: str
) -> None:
    kernel = function(over_n("i", store("C", (i,), load("A", i))))
    with pytest.raises(KernelError, match=text):
        vectorize_function(kernel, sizes, fastest, tail=tail)
