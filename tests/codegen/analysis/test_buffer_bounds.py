"""Statements whose accesses are proven to be inside, or refused: divisions, and loops that carry locals."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.analysis.buffer_bounds import check_buffers
from codegen.analysis.given import Given, Listed
from codegen.ir.building import minus, plus, quotient, times
from codegen.ir.index import Affine, Least, index_symbol
from codegen.ir.nodes import For, Function, IndexValue, Let, Load, Statement
from codegen.support.errors import KernelError


def check_body(body: tuple[Statement, ...]) -> int:
    """Check a function that reads a table of 128 entries; the number of its accesses."""
    given = Given({}, {}, {"row_offsets": Listed(np.arange(128))}, 1)
    return check_buffers(Function("example", (), body), given)


def drain(rows: int, columns: int, tile: int, ahead: int = 0) -> tuple[Statement, ...]:
    """Each element of a tile, which is counted by rows, reads the entry of a table that its row has."""
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
def test_rows_of_tiles_that_are_cut_are_proven(columns: int) -> None:
    assert check_body(drain(128, columns, 96)) == 1
    with pytest.raises(KernelError, match=r"row_offsets.*may leave the table: expected entries 0 to 127"):
        check_body(drain(128, columns, 96, ahead=2))
