"""Kernels with wrong statements are refused, and so are calls with wrong numbers or tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from codegen.analysis.buffer_bounds import check_buffers
from codegen.analysis.given import Given, Listed, Records
from codegen.ir.building import plus
from codegen.ir.index import Affine, Least
from codegen.ir.nodes import Alloc, Blocks, Call, For, Function, If, Let, Statement, Store
from codegen.ir.values import Const, IndexValue, Load
from codegen.pipeline.proofs import given_of
from codegen.runtime.launch import Launch
from codegen.support.errors import KernelError
from tests.codegen.emit.test_copy_goldens import NAMES, many_ways, program_of
from tests.codegen.simd.cases import cases

__all__ = ["many_ways"]

Change = Callable[[Statement], Statement]


def changed(function: Function, change: Change) -> Function:
    """The function with changed statements; at least one statement differs."""
    body = tuple(_changed(statement, change) for statement in function.body)
    assert body != function.body
    return replace(function, body=body)


def _changed(statement: Statement, change: Change) -> Statement:
    match statement:
        case For(body=body):
            statement = replace(statement, body=tuple(_changed(s, change) for s in body))
        case If(tests, then, otherwise):
            branches = (tuple(_changed(s, change) for s in each) for each in (then, otherwise))
            statement = If(tests, *branches)
    return change(statement)


def further(statement: Statement) -> Statement:
    """A loop over full lines that does not leave the last line to the statements after it."""
    match statement:
        case For("x", upper=(upper,), step=64):
            return replace(statement, upper=(plus(upper, 65),))
    return statement


def not_clamped(name: str) -> Change:
    """A last block that begins where the loop does, not earlier."""

    def change(statement: Statement) -> Statement:
        match statement:
            case Let(known, IndexValue(Least((block, _)))) if known == name:
                return Let(name, IndexValue(block))
        return statement

    return change


def moved(side: str, by: int) -> Change:
    """Move all stores to a view a few bytes further."""

    def change(statement: Statement) -> Statement:
        match statement:
            case Store(array, (at,)) if array.startswith(side):
                return replace(statement, subscripts=(plus(at, by),))
        return statement

    return change


def longer_part(name: str) -> Change:
    """Let an instruction act on 64 more bytes."""

    def change(statement: Statement) -> Statement:
        match statement:
            case Call(called, (*buffers, count)) if called == name and not isinstance(count, str):
                return Call(name, (*buffers, plus(count, 64)))
        return statement

    return change


def smaller_memory(by: int) -> Change:
    """Make an allocation a few bytes too small."""

    def change(statement: Statement) -> Statement:
        match statement:
            case Alloc(size_bytes=int(size)):
                return replace(statement, size_bytes=size - by)
        return statement

    return change


def twice(statement: Statement) -> Statement:
    """Let a branch allocate twice."""
    match statement:
        case If(_, then):
            return replace(statement, body=(Alloc("other", 64, "scratch"), *then))
    return statement


def always(statement: Statement) -> Statement:
    """Let a branch run whatever its tests say."""
    match statement:
        case If(_, then, otherwise) if otherwise:
            return If((), then)
    return statement


UNEVEN = "stream transpose, 1 bytes: 2053x133, pitches 134 and 2113"
"""A copy through panels that blocks do not divide."""

FUNCTIONS: tuple[tuple[str, Change, str], ...] = (
    (
        "runs of 300 bytes, pitch 303",
        further,
        r"load of src_.\[x\], bits8\[64\] in the loops over a, .*x of .* got 0 to 927",
    ),
    ("copy_u32_transposed", not_clamped("i"), r"load of src_tile\[.*\], bits32\[16, 4\]"),
    ("copy_u32_transposed", moved("dst", 4), "may leave dst: .* 0 to 239999, got 0 to 240003"),
    ("copy_u32_transposed", moved("dst", -4), "may leave dst: .* got -4 to"),
    (UNEVEN, not_clamped("i"), "load of src_tile.* may leave src"),
    (UNEVEN, not_clamped("j"), "load of src_tile.* may leave src"),
    ("copy_u8_transposed_staged", moved("panel", 128), "store of panel.* may leave panel_memory"),
    ("copy_u8_transposed_staged", smaller_memory(65), "may leave panel_memory: expected bytes 0 to"),
    (UNEVEN, longer_part("drain_part"), "drain_part of .* expected 0 to 63"),
    ("pack_u8_8x8x32_gathered", always, "may leave dst: expected bytes 0 to"),
    ("pack_u8_8x8x32_gathered", moved("buffer", 128), "may leave buffer_memory: expected bytes 0 to"),
    ("pack_u8_8x8x32_gathered", twice, "other may overlap buffer_memory: both are in scratch"),
    ("pack_u8_8x8x32_gathered", longer_part("copy_part"), "copy_part of .* expected 0 to 63"),
)


def largest(name: str) -> Launch:
    """The largest launch of a golden copy or of a case."""
    program = program_of(name) if name in NAMES else next(x.program for x in cases() if x.name == name)
    return max(program.launches, key=lambda launch: launch.step.box.size_bytes)


@pytest.mark.full
@pytest.mark.parametrize(("name", "change", "message"), FUNCTIONS)
def test_a_wrong_statement_is_refused(name: str, change: Change, message: str) -> None:
    launch = largest(name)
    with pytest.raises(KernelError, match=message):
        check_buffers(changed(launch.step.kernel.function, change), given_of(launch))


def smaller_scratch(by: int) -> Callable[[Given], Given]:
    """Make scratch a few bytes too small."""
    return lambda given: replace(given, scratch_bytes=given.scratch_bytes - by)


def more(name: str, by: int = 1) -> Callable[[Given], Given]:
    """Change a number in a call."""
    return lambda given: replace(given, numbers={**given.numbers, name: given.numbers[name] + by})


def shorter(name: str, by: int = 1) -> Callable[[Given], Given]:
    """Remove the last entries of a table."""

    def change(given: Given) -> Given:
        table = given.tables[name]
        assert isinstance(table, Listed)
        return replace(given, tables={**given.tables, name: Listed(table.values[:-by])})

    return change


def without_lines(given: Given) -> Given:
    """Segments with no information about the bytes that are carried into them."""
    table = given.tables["segments"]
    assert isinstance(table, Records)
    return replace(given, tables={**given.tables, "segments": replace(table, lines=None)})


def farther(name: str) -> Callable[[Given], Given]:
    """Increase the largest entry of a table by one."""

    def change(given: Given) -> Given:
        table = given.tables[name]
        assert isinstance(table, Listed)
        values = table.values.copy()
        values[values.argmax()] += 1
        return replace(given, tables={**given.tables, name: Listed(values)})

    return change


CALLS: tuple[tuple[str, Callable[[Given], Given], str], ...] = (
    ("copy_u8_transposed_staged", smaller_scratch(1), "panel_memory leaves scratch: expected 49215 bytes"),
    ("pack_u8_8x8x32_gathered", smaller_scratch(1), "buffer_memory leaves scratch: expected"),
    ("pack_u8_8x8x32_gathered", more("buffer_bytes", -65), "may leave buffer_memory: expected bytes 0 to"),
    ("copy_u32_transposed", more("src_pitch"), "may leave src: .* 0 to 239999, got 0 to 240298"),
    ("copy_u32_transposed", more("dst_pitch"), "may leave dst: .* 0 to 239999, got 0 to 240198"),
    ("copy_u32_transposed", more("rows"), "may leave src: .* 0 to 239999, got 0 to 240799"),
    ("copy_u32_transposed", more("columns", -198), "may leave src: .* got -8 to"),
    (
        "copy_u64_chunks",
        shorter("line_offsets"),
        r"line_offsets\[.*may leave the table: expected entries 0 to",
    ),
    ("copy_u64_chunks", farther("line_offsets"), "may leave src"),
    ("pack_u8_8x8x32_gathered", without_lines, "may leave dst: .* got -63 to"),
    ("pack_u8_8x8x32_gathered", shorter("moves"), "moves.*may leave the table: expected entries 0 to"),
    (
        "unpack_f32_16x1_staged",
        shorter("row_offsets", 100),
        "row_offsets.*may leave the table: expected entries",
    ),
)


@pytest.mark.parametrize(("name", "change", "message"), CALLS)
def test_a_wrong_call_is_refused(name: str, change: Callable[[Given], Given], message: str) -> None:
    launch = largest(name)
    with pytest.raises(KernelError, match=message):
        check_buffers(launch.step.kernel.function, change(given_of(launch)))


ODD: tuple[Statement, ...] = (
    Store("dst", (Affine(),), Const(0, "bits8"), accumulate="add"),
    Let("x", Load("dst", (Affine(),), "bits8", (4,), along=("i",))),
    Let("x", Load("dst", (Affine(),), "bits8", offsets=Const(0, "i64"))),
    Let("x", Load("dst", (Affine(0, (("unheard_of", 1),)),), "bits8")),
    Let("x", Load("unheard_of", (Affine(),), "i64")),
    Call("transposed", ("dst",)),
    Call("copy_part", ("dst", Affine(), Affine())),
    For("i", (Affine(3),), (Affine(),), -1, ()),
    For("i", (Affine(),), (Affine(4),), 4, (), size=4),
    For("i", (Affine(),), (Affine(4),), 4, (), blocks=Blocks()),
    If((Const(True, "i1"),), ()),
)


@pytest.mark.parametrize("statement", ODD, ids=lambda statement: type(statement).__name__)
def test_statements_without_a_rule_are_refused(statement: Statement) -> None:
    launch = program_of("copy_u32_transposed").launches[0]
    function = launch.step.kernel.function
    odd = replace(function, body=(*function.body, statement))
    with pytest.raises(KernelError, match="bounds: "):
        check_buffers(odd, given_of(launch))
