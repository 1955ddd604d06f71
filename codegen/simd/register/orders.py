"""Vectors with their elements in another order, or in other rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core.errors import TypingError

from codegen.ir.instructions import REVERSED_GROUPS
from codegen.ir.lines import LINE_BYTES
from codegen.simd.register.intrinsics import Emit, routine
from codegen.simd.register.shuffles import shuffle
from codegen.simd.register.values import Vector, as_one, from_one, vector_type


def _reordered(name: str, order: Callable[[int], list[int]]) -> Any:
    """An instruction on one register: result element k is operand element order(elements)[k]."""

    def rule(given: Any) -> tuple[Any, Emit]:
        kind = vector_type(given, name)
        if kind.rows > 1 or kind.row_bytes > LINE_BYTES:
            raise TypingError(f"{name} expected a vector of at most {LINE_BYTES} bytes, got {kind}")
        each = max(kind.element_bytes // 8, 1)
        mask = [each * k + part for k in order(kind.lanes) for part in range(each)]

        def emit(builder: Any, value: Any) -> Any:
            return shuffle(builder, value, value, mask)

        return kind(given), emit

    return routine(name, 1, rule)


def _backward(count: int) -> list[int]:
    return list(range(count))[::-1]


def _groups_backward(group: int) -> Callable[[int], list[int]]:
    """Each full group is reversed; the elements after the last one stay."""

    def order(count: int) -> list[int]:
        stop = count // group * group
        inside = [start + group - 1 - k for start in range(0, stop, group) for k in range(group)]
        return [*inside, *range(stop, count)]

    return order


def _joined(name: str) -> Any:
    """An instruction that joins rows, a line at most, into one register, pair by pair."""

    def rule(given: Any) -> tuple[Any, Emit]:
        kind = vector_type(given, name)
        if kind.rows * kind.row_bytes > LINE_BYTES:
            raise TypingError(f"{name} expected a vector of at most {LINE_BYTES} bytes, got {kind}")
        joined = Vector(kind.dtype, kind.rows * kind.lanes)

        def emit(builder: Any, value: Any) -> Any:
            return from_one(builder, joined, as_one(builder, value))

        return joined(given), emit

    return routine(name, 1, rule)


ORDERS: dict[str, Any] = {
    "joined": _joined("joined"),
    "rows_in_line": _joined("rows_in_line"),
    "reversed_elements": _reordered("reversed_elements", _backward),
    **{
        f"reversed_groups_{n}": _reordered(f"reversed_groups_{n}", _groups_backward(n))
        for n in REVERSED_GROUPS
    },
}
"""The builders of these instructions by name."""
