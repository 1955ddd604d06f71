"""Accesses with divisions, and in loops that carry locals, are proven to be in bounds or refused."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.analysis.buffer_bounds import check_buffers
from codegen.analysis.given import Given, Listed
from codegen.ir.building import minus, plus, quotient, times
from codegen.ir.index import Affine, Least, index_symbol
from codegen.ir.names import BEGIN, END
from codegen.ir.nodes import Carried, For, Function, Let, Statement
from codegen.ir.values import Const, IndexValue, Load, Local, Value
from codegen.support.errors import KernelError


def check_body(body: tuple[Statement, ...]) -> int:
    """Check a function that reads a table of 128 entries, and return the number of its accesses."""
    given = Given({}, {}, {"row_offsets": Listed(np.arange(128))}, 1)
    return check_buffers(Function("example", (), body), given)


def drain(rows: int, columns: int, tile: int, ahead: int = 0) -> tuple[Statement, ...]:
    """Each element of a tile, counted by rows, reads the entry of a table for its row."""
    last = Least((Affine(tile, (("j_tile", 1),)), Affine(columns)))
    first = Least((index_symbol("j_tile"), Affine(columns - 8)))
    row = quotient(times(minus("j", "j_first"), rows), "tile_columns")
    entry = Let("entry", Load("row_offsets", (plus(row, ahead),), "i64"))
    body = (
        Let("j_stop", IndexValue(last)),
        Let("j_first", IndexValue(first)),
        Let("tile_columns", IndexValue(minus("j_stop", "j_first"))),
        For("j", (index_symbol("j_first"),), (index_symbol("j_stop"),), 1, (entry,)),
    )
    return (For("j_tile", (Affine(),), (Affine(columns),), tile, body),)


@pytest.mark.parametrize("columns", [3001, 3000, 3072, 97, 192])
def test_rows_of_partial_tiles_are_proven(columns: int) -> None:
    assert check_body(drain(128, columns, 96)) == 1
    with pytest.raises(KernelError, match=r"row_offsets.*may leave the table: expected entries 0 to 127"):
        check_body(drain(128, columns, 96, ahead=2))


def carried(name: str, start: Value) -> Carried:
    """A local that a loop carries unchanged."""
    return Carried(name, start, Local(name, "i64"))


def counted(index: str, body: tuple[Statement, ...], *locals_: Carried) -> For:
    """A loop with four iterations."""
    return For(index, (Affine(),), (Affine(4),), 1, body, carried=locals_)


def read(name: str, further: int = 0) -> Let:
    """A read of the table entry whose index is in a local."""
    return Let("entry", Load("row_offsets", (plus(name, further),), "i64"))


@pytest.mark.parametrize("trips", [1, 64])
def test_a_loop_that_runs_has_a_last_iteration(trips: int) -> None:
    """A read at `end - 1` inside a loop happens only if `end` is at least 1."""
    given = Given({}, {}, {"row_offsets": Listed(np.arange(128))}, trips)
    begin, end = index_symbol(BEGIN), index_symbol(END)
    inside = For("entry", (begin,), (end,), 1, (read(END, -1),))
    assert check_buffers(Function("example", (), (inside,)), given) == 1
    with pytest.raises(KernelError, match="expected entries 0 to 127, got -1 to 127"):
        check_buffers(Function("example", (), (read(END, -1),)), given)


def test_an_inner_loop_may_carry_larger_values_than_the_outer_one() -> None:
    zero, a = Const(0, "i64"), Local("a", "i64")
    inner = counted("j", (read("a"), read("b")), carried("a", a), carried("b", zero))
    outer = counted("i", (inner, read("a")), carried("a", zero))
    assert check_body((outer, read("a"))) == 4
    wrong = counted("i", (inner, read("a", 128)), carried("a", zero))
    with pytest.raises(KernelError, match="expected entries 0 to 127, got 0 to 128"):
        check_body((wrong,))


def test_starts_refer_to_what_is_known_before_the_loop() -> None:
    a, zero = Local("a", "i64"), Const(0, "i64")
    before = Let("a", Const(200, "i64"))
    assert check_body((before, counted("i", (read("a"),), carried("a", zero), carried("b", a)))) == 1
    with pytest.raises(KernelError, match="expected entries 0 to 127, got 0 to 200"):
        check_body((before, counted("i", (read("b"),), carried("a", zero), carried("b", a))))
