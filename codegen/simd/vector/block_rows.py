"""Vectors as the rows of a block, and the rows of a block as vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numba.core.errors import TypingError

from codegen.ir.blocks import INTERLEAVED_ROWS
from codegen.simd.register.intrinsics import Emit, routine
from codegen.simd.register.values import Vector, from_rows, row_of, vector_type


def _stacked(count: int) -> Any:
    """stacked_2(a, b): a block whose rows are these vectors."""
    name = f"stacked_{count}"

    def rule(*kinds: Any) -> tuple[Any, Emit]:
        first = vector_type(kinds[0], name)
        if first.rows > 1 or any(kind != first for kind in kinds):
            raise TypingError(f"{name} expected vectors of one type, got {' and '.join(map(str, kinds))}")
        made = Vector(first.dtype, first.lanes, count)
        return made(*kinds), lambda builder, *rows: from_rows(builder, rows)

    return routine(name, count, rule)


def _row(row: int) -> Any:
    """row_0(block): the first row of a block."""
    name = f"row_{row}"

    def rule(kind: Any) -> tuple[Any, Emit]:
        block = vector_type(kind, name)
        if block.rows <= max(row, 1):
            raise TypingError(f"{name} expected a block of more rows, got {kind}")
        return Vector(block.dtype, block.lanes)(kind), lambda builder, value: row_of(builder, value, row)

    return routine(name, 1, rule)


def _routines() -> Iterator[tuple[str, Any]]:
    for count in INTERLEAVED_ROWS:
        yield f"stacked_{count}", _stacked(count)
    for row in range(max(INTERLEAVED_ROWS)):
        yield f"row_{row}", _row(row)


NAMED = dict(_routines())
"""The routines of this module by their names in kernels."""
