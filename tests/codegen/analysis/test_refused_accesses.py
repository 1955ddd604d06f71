"""Functions with accesses that may leave their storages are refused, and so are such calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from codegen import Affine, Const, For, Function, Let, Load, ScalarArg, Statement, Store, index_symbol
from codegen.analysis.buffer_bounds import check_buffers
from codegen.analysis.given import Given, Listed, Storage
from codegen.ir.building import compare, plus, times
from codegen.ir.index import Index
from codegen.ir.nodes import Alloc, BufferArg, Call, If
from codegen.ir.values import IndexValue, Local, Op
from codegen.support.errors import KernelError

ROWS = 10
NUMBERS = {"rows": ROWS, "pitch": 64}
STORAGES = {"src": Storage(0, 64 * ROWS), "dst": Storage(0, 64 * ROWS)}
OFFSETS = 64 * np.arange(ROWS)
SCRATCH = 256


def given(
    numbers: Mapping[str, int] = NUMBERS,
    storages: Mapping[str, Storage] = STORAGES,
    offsets: np.ndarray[tuple[int], np.dtype[np.int64]] = OFFSETS,
    scratch_bytes: int = SCRATCH,
) -> Given:
    return replace(Given(numbers, storages, {"offsets": Listed(offsets)}, 1), scratch_bytes=scratch_bytes)


def moved(src: Index, dst: Index) -> Store:
    """A line from one storage to the other."""
    return Store("dst", (dst,), Load("src", (src,), "bits8", (64,), (0,), (1,)), (0,), (1,))


def completed(dst: Index) -> Store:
    """The line that a row completes; the bytes before each row are in scratch."""
    before = Load("held", (Affine(),), "bits8", (1, 64), (0, 0), (64, 1))
    row = Load("src", (AT,), "bits8", (1, 64), (0, 0), (64, 1))
    return Store("dst", (dst,), row, (0, 0), (64, 1), streamed=True, carry=before)


AT = times("i", "pitch")
BY_TABLE = (Let("at", Load("offsets", (index_symbol("i"),), "i64")), moved(index_symbol("at"), AT))
HELD = Alloc("held", SCRATCH, "scratch")
GATHERED = Let("x", Load("src", (AT,), "bits8", (64,), offsets=IndexValue(Affine(), "i64", (64,), (), (1,))))
BEYOND = Load("src", (Affine(64 * ROWS),), "bits8")
BACKWARD = For("k", (Affine(64 * ROWS - 64),), (Affine(-1),), -64, (moved(index_symbol("k"), AT),))
UNSURE = If((Op("lt", (Load("src", (AT,), "f32"), Const(0.5, "f32")), "i1"),), (moved(AT, AT),))
NEXT = If((compare("i", "lt", ROWS - 1),), (moved(plus(AT, 64), AT),))


def rows(*body: Statement, more: int = 0) -> Function:
    """The body for each row."""
    arguments = ScalarArg("rows", "i64"), ScalarArg("pitch", "i64")
    stop = index_symbol("rows") + Affine(more)
    loop = For("i", (Affine(),), (stop,), 1, body)
    return Function("moves", arguments, (loop,), buffers=(BufferArg("src"), BufferArg("dst")))


@pytest.mark.parametrize(
    "body",
    [
        (moved(AT, AT),),
        BY_TABLE,
        (HELD,),
        (NEXT,),
        (Call("copy_part", ("dst", "src", Affine(63))),),
        (GATHERED,),
        (UNSURE,),
        (BACKWARD,),
        (HELD, If((compare("i", "ge", 1),), (completed(AT),))),
    ],
    ids=[
        "by pitch",
        "by table",
        "scratch",
        "under a condition",
        "instruction",
        "gather",
        "unsure",
        "backward",
        "completed lines",
    ],
)
def test_accesses_inside_their_storages_are_proven(body: tuple[Statement, ...]) -> None:
    check_buffers(rows(*body), given())


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (rows(moved(AT, AT), more=1), "may leave src: expected bytes 0 to 639, got 0 to 703"),
        (rows(HELD, completed(AT)), "may leave dst: expected bytes 0 to 639, got -63 to 639"),
        (rows(moved(AT, plus(AT, 4))), "may leave dst: .* got 0 to 643"),
        (rows(moved(plus(AT, -4), AT)), "may leave src: .* got -4 to"),
        (rows(*BY_TABLE, more=1), "offsets.* may leave the table: expected entries 0 to 9, got 0 to 10"),
        (rows(GATHERED, more=1), "may leave src: .* got 0 to 703"),
        (rows(replace(BACKWARD, upper=(Affine(-65),))), "may leave src: .* got -64 to"),
        (rows(*NEXT.body), "may leave src: .* got 0 to 703"),
        (rows(HELD, Alloc("other", 64, "scratch")), "other may overlap held: both are in scratch"),
        (rows(Call("copy_part", ("dst", "src", Affine(64)))), "copy_part of .* expected 0 to 63"),
    ],
    ids=[
        "a row too many",
        "line before the row",
        "beyond",
        "before",
        "table",
        "gather",
        "backward",
        "without the condition",
        "twice",
        "too long",
    ],
)
def test_a_wrong_statement_is_refused(function: Function, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        check_buffers(function, given())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (given(numbers={**NUMBERS, "pitch": 65}), "may leave src: .* 0 to 639, got 0 to 648"),
        (given(numbers={**NUMBERS, "rows": 11}), "may leave src|may leave the table"),
        (given(storages={**STORAGES, "src": Storage(0, 639)}), "may leave src: expected bytes 0 to 638"),
        (given(storages={**STORAGES, "dst": Storage(1, 640)}), "may leave dst: expected bytes 1 to 639"),
        (given(offsets=OFFSETS[:-1]), "offsets.*may leave the table: expected entries 0 to 8"),
        (given(offsets=OFFSETS + 1), "may leave src: .* got 0 to 640"),
        (given(scratch_bytes=255), "held leaves scratch: expected 255 bytes, got 256"),
    ],
    ids=["pitch", "rows", "source", "destination", "short table", "farther entries", "scratch"],
)
def test_a_wrong_call_is_refused(call: Given, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        check_buffers(rows(HELD, moved(AT, AT), *BY_TABLE), call)


ODD: tuple[Statement, ...] = (
    Store("dst", (Affine(),), Const(0, "bits8"), accumulate="add"),
    Let("x", Load("dst", (Affine(),), "bits8", (4,), along=("i",))),
    Let("x", Load("dst", (Affine(),), "bits8", offsets=Local("unheard_of", "i64"))),
    Let("x", Load("dst", (Affine(0, (("unheard_of", 1),)),), "bits8")),
    Let("x", Load("unheard_of", (Affine(),), "i64")),
    Call("transposed", ("dst",)),
    Call("copy_part", ("dst", Affine(), Affine())),
    For("i", (Affine(),), (Affine(4),), 4, (), size=4),
    If((Const(True, "i1"),), (Let("x", BEYOND),)),
    If((Const(True, "i1"),), (), (Let("x", BEYOND),)),
)


@pytest.mark.parametrize("statement", ODD, ids=lambda statement: type(statement).__name__)
def test_statements_without_a_rule_are_refused(statement: Statement) -> None:
    with pytest.raises(KernelError, match="bounds: "):
        check_buffers(rows(statement), given())
