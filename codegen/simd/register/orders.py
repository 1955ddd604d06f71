"""Super-vectors with their elements in another order, or in other rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core.errors import TypingError

from codegen.ir.instructions import REVERSED_GROUPS
from codegen.ir.lines import LINE_BYTES
from codegen.simd.register.intrinsics import Emit, routine
from codegen.simd.register.shuffles import shuffle
from codegen.simd.register.super_vectors import (
    SuperVector,
    from_parts,
    lanes_as,
    parts_of,
    super_vector,
)


def _reordered(name: str, order: Callable[[int], list[int]]) -> Any:
    """An instruction on one register: result element k is operand element order(elements)[k]."""

    def rule(given: Any) -> tuple[Any, Emit]:
        kind = super_vector(given, name)
        if kind.parts != 1:
            raise TypingError(f"{name} expected a super-vector of at most {LINE_BYTES} bytes, got {kind}")
        each = max(kind.bits // 64, 1)
        mask = [each * k + part for k in order(kind.columns) for part in range(each)]

        def emit(builder: Any, value: Any) -> Any:
            lanes = lanes_as(builder, parts_of(builder, value)[0], kind.bits)
            return from_parts(builder, kind, [shuffle(builder, lanes, lanes, mask)])

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
        kind = super_vector(given, name)
        if kind.rows * kind.row_bytes > LINE_BYTES:
            raise TypingError(f"{name} expected a super-vector of at most {LINE_BYTES} bytes, got {kind}")
        joined = SuperVector(kind.bits, 1, kind.rows * kind.columns)

        def emit(builder: Any, value: Any) -> Any:
            parts = [lanes_as(builder, part, 64) for part in parts_of(builder, value)]
            while len(parts) > 1:
                both = list(range(2 * parts[0].type.count))
                parts = [shuffle(builder, a, b, both) for a, b in zip(parts[::2], parts[1::2], strict=True)]
            return from_parts(builder, joined, parts)

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
