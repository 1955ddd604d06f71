"""The passes from super-vectors to registers keep the meaning, for many functions and schedules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from codegen.analysis.strides import ELEMENT_BYTES
from codegen.ir.buffers import Buffer
from codegen.ir.interpreter import interpret
from codegen.ir.nodes import RESULTS, For, Function
from codegen.ir.operations import compute
from codegen.ir.printer import format_function
from codegen.ir.streams import Stream
from codegen.ir.visit import trips_with
from codegen.passes.tile import tile
from codegen.pipeline.loops import Vectorized, vectorize_function
from codegen.pipeline.passes import lower
from codegen.schedule.choose_registers import choose_registers
from codegen.schedule.choose_strips import choose_strips
from codegen.schedule.directives import Directive
from codegen.schedule.loop_schedule import LoopSchedule
from tests.codegen.ir.nests import add, function, i, j, load, number, op, over_m, over_n, plus, store
from tests.codegen.ir.printed import check_names
from tests.codegen.passes.meaning import EXTENTS, arguments, tails
from tests.codegen.passes.table import ROWS, Row, in_lanes, scan
from tests.tools.extent import few_by_default

MEANT = [row for row in ROWS if "unknown operation" not in row.name and "annotated" not in row.name]
TURNS = [(row, ("mask", "shift", "scalar")[n % 3]) for n, row in enumerate(MEANT)]
"""Rows, with the tails in turn."""

STRIPS = [(row, ("mask", "scalar")[n % 2]) for n, row in enumerate(filter(in_lanes, MEANT))]
"""The same of the rows that have super-vectors."""


def after_passes(kernel: Function, schedule: LoopSchedule) -> list[tuple[str, Function]]:
    """The function after each pass that changes it."""
    seen: list[tuple[str, Function]] = []

    def observe(name: str, made: Function) -> None:
        if not seen or made != seen[-1][1]:
            seen.append((name, made))

    lower(kernel, schedule, observe)
    return seen


def shared_range(kernel: Function, given: dict[str, int]) -> tuple[int, int]:
    """The iterations of the first loop, of which the caller of a kernel chooses some."""
    loop = kernel.body[0] if kernel.body else None
    if not isinstance(loop, For):
        return 0, 0
    return 0, trips_with(loop, given)


def run(kernel: Function, before: Function, given: list[Any]) -> list[Any]:
    """Interpret a function at any stage, and return its results."""
    named = dict(zip((a.name for a in before.arguments), given, strict=True))
    sizes = {name: x for name, x in named.items() if not isinstance(x, np.ndarray)}
    for name, x in named.items():
        if isinstance(x, np.ndarray):
            sizes |= {f"{name}.shape[{k}]": n for k, n in enumerate(x.shape)}
            sizes |= {f"{name}.stride[{k}]": n for k, n in enumerate(x.strides)}
    span = shared_range(before, sizes)
    if not kernel.buffers:
        return list(interpret(kernel, given, span=span))
    results = np.zeros(8 * len(before.results), np.uint8)
    buffers = {RESULTS: Buffer(results)}
    buffers |= {
        name: Buffer((x if x.flags.c_contiguous else x.T).reshape(-1).view(np.uint8))
        for name, x in named.items()
        if isinstance(x, np.ndarray)
    }
    known = [sizes.get(a.name, 0) for a in kernel.arguments]
    interpret(kernel, known, buffers, span)
    return [
        results[8 * k : 8 * k + ELEMENT_BYTES[value.dtype]].tobytes()
        for k, value in enumerate(before.results)
    ]


def check(
    kernel: Function,
    wide: Function,
    schedule: LoopSchedule,
    numbers: dict[str, int],
    extents: Mapping[int, tuple[int, ...]] = EXTENTS,
) -> None:
    """Each stage leaves the same bits in each array and gives the same results."""
    expected = arguments(kernel, 5, numbers, extents)
    results = [np.asarray(x).tobytes() for x in interpret(kernel, expected)]
    for name, made in after_passes(wide, schedule):
        found = arguments(kernel, 5, numbers, extents)
        got = [x if isinstance(x, bytes) else np.asarray(x).tobytes() for x in run(made, kernel, found)]
        assert got == results, name
        for argument, a, b in zip(kernel.arguments, expected, found, strict=True):
            assert np.array_equal(a, b), f"{name}: {argument.name} differs"


@pytest.mark.parametrize(
    ("row", "tail"), few_by_default(TURNS, 12), ids=lambda given: getattr(given, "name", given)
)
def test_each_pass_keeps_the_meaning(row: Row, tail: str) -> None:
    """With 16-byte registers, super-vectors of 8 floats are two registers."""
    options = {**row.options, "tail": tail}
    made = vectorize_function(row.kernel, row.sizes, **options)  # type: ignore[arg-type]
    schedule = choose_registers(made.function, 16, made.directives)
    for numbers in ({"n": 23, "m": 13}, {"n": 3, "m": 1}):
        check(row.kernel, made.function, schedule, numbers)


@pytest.mark.full
@pytest.mark.parametrize(("row", "tail"), STRIPS, ids=lambda given: getattr(given, "name", given))
def test_strips_keep_the_meaning(row: Row, tail: str) -> None:
    """Strips of 10 lanes, which blocks of 16 bytes do not divide, then all later passes."""
    options, sizes = {**row.options, "tail": tail}, (*row.sizes[:-1], 10)
    strips, directives = in_strips(vectorize_function(row.kernel, sizes, **options))  # type: ignore[arg-type]
    for numbers in ({"n": 23, "m": 13}, {"n": 3, "m": 1}):
        schedule = choose_registers(strips, 16, (*directives, Stream("full")))
        check(row.kernel, strips, schedule, numbers)


def in_strips(made: Vectorized) -> tuple[Function, tuple[Directive, ...]]:
    """A function in strips of its super-vectors, and its directives."""
    tiles = choose_strips(made.function, 16)
    return tile(made.function, LoopSchedule(tiles)), (*tiles, *made.directives)


@pytest.mark.full
@pytest.mark.parametrize(
    ("sizes", "tail"),
    [
        ((5, 40), "mask"),
        ((40, 8), "shift"),
        ((12, 12), "scalar"),
        ((12, 12), "shift"),
        ((1, 100), "mask"),
        ((64, 64), "scalar"),
    ],
    ids=str,
)
def test_strips_of_two_dimensions_keep_the_meaning(sizes: tuple[int, int], tail: str) -> None:
    for body in BLOCKS.values():
        kernel = function(body)
        strips, directives = in_strips(vectorize_function(kernel, sizes, tail=tail))
        for numbers in ({"n": 47, "m": 43}, {"n": 3, "m": 1}):
            check(kernel, strips, choose_registers(strips, 16, directives), numbers)


COLUMNS = over_n("i", over_m("j", store("C", (j, i), add(load("A", i, j), load("B", i)))))
SUMMED = over_n("i", over_m("j", store("C", (j, i), load("A", i, j), "add")))
SOME = over_n(
    "i",
    over_m("j", store("C", (i, j), load("A", j, i), where=op("gt", load("A", j, i), number(1), dtype="i1"))),
)
BLOCKS = {"columns": COLUMNS, "accumulated": SUMMED, "masked": SOME}


@pytest.mark.full
@pytest.mark.parametrize("tail", ["mask", "shift", "scalar"])
@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_keep_the_meaning(name: str, tail: str) -> None:
    kernel = function(BLOCKS[name])
    made = vectorize_function(kernel, (4, 8), tail=tail)
    schedule = choose_registers(made.function, 16, made.directives)
    for numbers in ({"n": 37, "m": 21}, {"n": 16, "m": 8}, {"n": 3, "m": 1}):
        check(kernel, made.function, schedule, numbers)


@pytest.mark.full
@pytest.mark.parametrize(
    "body",
    [
        over_n("i", store("C", (i,), load("A", i))),
        over_n("i", over_m("j", store("C", (i, j), add(load("A", i, j), load("B", i))))),
        over_n("i", over_m("j", store("C", (i, plus(j, 3)), load("A", i, j)))),
        scan("add"),
    ],
)
def test_streams_keep_the_meaning(body: For) -> None:
    kernel = function(body)
    wide = vectorize_function(kernel, (64,), scans=True).function
    schedule = choose_registers(wide, 64, [Stream("full")])
    assert "streamed=True" in str(lower(wide, schedule))
    for numbers in ({"n": 41, "m": 43}, {"n": 3, "m": 1}):
        check(kernel, wide, schedule, numbers)


@pytest.mark.parametrize("array", ["B", "C"])
def test_elements_that_loops_change_are_read_again(array: str) -> None:
    """The loop writes C[i, 0] before it reads it."""
    body = store("C", (i, j), load("A", i, j)), store("D", (i, j), add(load("A", i, j), load(array, i, 0)))
    kernel = function(over_n("i", over_m("j", *body)))
    wide = vectorize_function(kernel, (8,)).function
    check(kernel, wide, choose_registers(wide, 16), {"n": 7, "m": 21})


def computed(dtype: str) -> For:
    """C[i] = a few operations whose results a dtype rounds, wraps or truncates; D[i] and E[i] are casts."""
    a, b = load("A", i, dtype=dtype), load("B", i, dtype=dtype)
    c = op("mul", add(a, number(77, dtype)), add(b, number(3, dtype)))
    c = op("select", op("lt", a, c, dtype="i1"), op("min", c, b), op("max", op("neg", c), a))
    if dtype[0] in "iu":
        c = op("xor", op("not", c), op("shr", a, number(1, dtype)))
    else:
        c = op("div", op("sqrt", op("abs", c)), number(3, dtype))
    wide = op("cast", load("F", i, dtype="f64"), dtype=dtype)
    casts = (
        op("cast", c, dtype="f32"),
        op("cast", wide, dtype="i16"),
        op("cast", op("add", wide, a), dtype="f64"),
    )
    return over_n(
        "i", store("C", (i,), c), *(store(to, (i,), each) for to, each in zip("DEG", casts, strict=True))
    )


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32", "i8", "u8", "i32", "u32", "i64", "u64"])
def test_numbers_keep_their_dtype(dtype: str) -> None:
    """Halves round after each operation and integers wrap, in registers and one by one in the tail."""
    kernel = function(computed(dtype))
    wide = vectorize_function(kernel, (8,), tail="scalar").function
    check(kernel, wide, choose_registers(wide, 16, tails(wide, "scalar"), fast=dtype == "f32"), {"n": 11})


def test_booleans_stay_booleans() -> None:
    a, b = (load(x, i, dtype="i1") for x in "AB")
    values = [op(name, a, b) for name in ("add", "mul", "and", "or", "xor", "min", "max")]
    kernel = function(
        over_n("i", *(store(x, (i,), op("not", v)) for x, v in zip("CDEFGHI", values, strict=True)))
    )
    wide = vectorize_function(kernel, (8,), tail="scalar").function
    check(kernel, wide, choose_registers(wide, 16, tails(wide, "scalar")), {"n": 11})


def test_round_to_odd() -> None:
    """Rounding the result to f16 equals rounding once. The smallest numbers record that a bit was lost."""
    random = np.random.default_rng(5)
    near = random.normal(size=2000).astype(np.float16).astype(np.float64)
    above = near * (1 + 2.0**-12), near * (1 + 2.0**-12 + 2.0**-40)
    x = np.concatenate([near, *above, [1e-300, -1e300, 0.0, -0.0]])
    with np.errstate(all="ignore"):
        assert np.array_equal(compute("round_to_odd", [x], "f32").astype(np.float16), x.astype(np.float16))
        assert compute("round_to_odd", [np.float64(1e-300)], "f32") == np.float32(1e-45)
        assert np.isnan(compute("round_to_odd", [np.float64("nan")], "f32"))


STORED = re.compile(r"(vector|tilejit)\.(transfer_write|scatter)|(affine|memref)\.store")


@pytest.mark.full
@pytest.mark.parametrize("tail", ["mask", "shift", "scalar"])
def test_each_stage_prints(tail: str) -> None:
    """The printer raises on unknown nodes and names. Rows take the tails in turn; every second streams."""
    wide = [
        vectorize_function(row.kernel, row.sizes, **{**row.options, "tail": tail})  # type: ignore[arg-type]
        for row, own in TURNS
        if own == tail
    ]
    wide += [vectorize_function(function(body), (4, 8), tail=tail) for body in BLOCKS.values()]
    for n, each in enumerate(wide):
        directives = (*each.directives, *[Stream("full")] * (n % 2))
        for name, made in after_passes(each.function, choose_registers(each.function, 16, directives)):
            text = format_function(made)
            check_names(text)
            assert len(STORED.findall(text)) == str(made).count("Store("), name
