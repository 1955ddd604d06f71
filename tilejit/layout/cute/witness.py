"""Is a table of offsets a layout? The unique coalesced answer, or an index that shows it is none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from codegen.errors import LayoutError
from tilejit.layout.cute.int_tuple import IntTuple, flatten, unflatten
from tilejit.layout.cute.layout import Layout, trusted

Mode = tuple[int, int]
"""A size and a stride."""


@dataclass(frozen=True, slots=True)
class Witness:
    """An index at which no layout can agree: it gives `value`, where the values before ask for `expected`."""

    index: int
    value: int
    expected: int

    def __str__(self) -> str:
        return f"index {self.index} gives {self.value}, not {self.expected}"


class NoLayoutError(LayoutError):
    """No layout says what was asked for; `witness` is the index that shows so, where an index can."""

    def __init__(self, text: str, witness: Witness | None = None) -> None:
        super().__init__(text)
        self.witness = witness


def recognise(table: NDArray[np.int64], shape: IntTuple | None = None) -> Layout | Witness:
    """The layout whose offsets a table holds, coalesced within each size of the shape, or a witness.

    [0, 1, 10, 11] -> (2,2):(1,10)    [0, 1, 10, 12] -> Witness(3, 12, 11)    None -> one mode of all offsets

    The table is in colexicographic order. A layout of one mode begins with its longest linear run, of s
    elements; s divides the size, and f(i) = f(i mod s) + f(i - i mod s). So the answer is unique, and either
    rule that fails is a witness.

    Raises:
        TypeError: not a table of integers.
    """
    try:
        offsets = np.asarray(table).reshape(-1)
    except ValueError as error:
        raise TypeError(f"a table of offsets is an array of integers: {error}") from error
    if offsets.size and offsets.dtype.kind not in "iu":
        raise TypeError(f"a table of offsets is an array of integers, not of {offsets.dtype}")
    sizes = (offsets.size,) if shape is None else flatten(shape)
    if offsets.size == 0:
        zeros = unflatten(iter([0] * len(sizes)), 0 if shape is None else shape)
        return trusted(0 if shape is None else shape, zeros)
    if offsets[0] != 0:
        return Witness(0, int(offsets[0]), 0)
    parts: list[IntTuple] = []
    steps: list[IntTuple] = []
    stride = 1
    rest = offsets
    for size in sizes:
        found = _recognise_mode(rest[:size], stride)
        if isinstance(found, Witness):
            return found
        parts.append(nested(tuple(n for n, _ in found)))
        steps.append(nested(tuple(d for _, d in found)))
        fault = _not_additive(rest, size, stride)
        if fault:
            return fault
        rest = rest[::size]
        stride *= size
    profile = 0 if shape is None else shape
    return trusted(unflatten(iter(parts), profile), unflatten(iter(steps), profile))


def nested(parts: tuple[int, ...]) -> IntTuple:
    """One integer as itself, more as a tuple."""
    return parts[0] if len(parts) == 1 else parts


def _recognise_mode(values: NDArray[np.int64], scale: int) -> list[Mode] | Witness:
    """The coalesced modes of f(0), f(1), …, whose indices are `scale` apart in the whole table."""
    out: list[Mode] = []
    while values.size > 1:
        linear = np.arange(values.size, dtype=values.dtype) * values[1]
        run = _first(values != linear)
        if run is None:
            out.append((values.size, int(values[1])))
            return out
        if values.size % run:
            return Witness(run * scale, int(values[run]), int(linear[run]))
        fault = _not_additive(values, run, scale)
        if fault:
            return fault
        out.append((run, int(values[1])))
        values = values[::run]
        scale *= run
    return out or [(1, 0)]


def _not_additive(values: NDArray[np.int64], size: int, scale: int) -> Witness | None:
    """The first i at which f(i) is not f(i mod size) + f(i - i mod size)."""
    rows = values.reshape(-1, size)
    expected = rows[:, :1] + rows[0]
    at = _first((rows != expected).reshape(-1))
    return None if at is None else Witness(at * scale, int(values[at]), int(expected.reshape(-1)[at]))


def _first(faults: NDArray[np.bool_]) -> int | None:
    """The first place that is true."""
    at = int(faults.argmax())
    return at if faults[at] else None
