"""The bytes of a format of planes in words: a line for each stretch that follows one rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from codegen import dataclass
from tilejit.view.bit_owners import CONSTANT, ByteOwners, Run, owners

Shapes = Mapping[str, tuple[int, ...]]
Bytes = list[tuple[Run, ...]]
MOST_LINES = 16
LONGEST_CYCLE = 4
"""The most kinds of lines that take turns in a series."""
ROUNDED = "Values are rounded together, so the bits of one also depend on the others of its group."


@dataclass(frozen=True, slots=True)
class Line:
    """Bytes first to last of a buffer, and what they hold.

    Attributes:
        first: the number of the first byte.
        last: the number of the last byte.
        text: the elements in words.
        kind: what lines of one kind have in common: their size, planes and bits.
        shown: False for a line that stands for others.
    """

    first: int
    last: int
    text: str
    kind: tuple[Any, ...] = ()
    shown: bool = True

    @property
    def range(self) -> str:
        """The numbers of the bytes: "2 to 17"."""
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"

    def __str__(self) -> str:
        return f"{self.range}: {self.text}"


def byte_lines(text: str, dims: tuple[int, ...] | None = None, **parameters: Any) -> dict[str, list[Line]]:
    """The bytes of each buffer in words.

    ggml-q4_0 -> 0 to 1: d[0, 0]
                 2 to 17: codes[0, 0..15] in bits 0-3, codes[0, 16..31] in bits 4-7

    Args:
        text: the name of a format of planes.
        dims: the dimensions of its main plane; None takes one record, or the format's example.
        parameters: the parameters of the format.
    """
    found = owners(text, dims, **parameters)
    return {key: lines_of(found, key) for key in found.buffers}


def lines_of(found: ByteOwners, buffer: str) -> list[Line]:
    """All lines of a buffer."""
    rows = found.buffers[buffer]
    units, out, at = _units(rows), [], 0
    while at < len(units):
        end = _end_of_rule(rows, units, at, found.shapes)
        count = end - at + 1
        first, last = rows[units[at][0]], rows[units[end][0]]
        texts = [_text(a, b, count, found.shapes) for a, b in zip(first, last, strict=True)]
        size = units[end][1] - units[at][0]
        kind = (size, *((run.low, run.high, run.plane, run.element < 0) for run in first))
        out.append(Line(units[at][0], units[end][1], ", ".join(texts), kind))
        at = end + 1
    return out


def shortened(lines: list[Line]) -> list[Line]:
    """At most MOST_LINES lines: one stands for those left out of a series of similar ones, or at the end."""
    out: list[Line] = []
    at = 0
    while at < len(lines):
        cycle, times = _series([line.kind for line in lines[at:]])
        end = at + cycle * times
        first, last = (2, 1) if cycle == 1 else (cycle, cycle)
        if end - at <= first + last + 1:
            out += lines[at:end]
        else:
            out += [*lines[at : at + first], _others(lines[at + first : end - last], "like these")]
            out += lines[end - last : end]
        at = end
    return out if len(out) <= MOST_LINES else [*out[: MOST_LINES - 1], _others(out[MOST_LINES - 1 :], "more")]


def _series(kinds: list[tuple[Any, ...]]) -> tuple[int, int]:
    """The number of kinds that take turns from the start, and how often; the longest such series.

    [a, a, a, b] -> (1, 3)    [a, b, a, b, c] -> (2, 2)
    """

    def times(cycle: int) -> int:
        return next(
            (k // cycle for k, kind in enumerate(kinds) if kind != kinds[k % cycle]), len(kinds) // cycle
        )

    found = [(cycle, times(cycle)) for cycle in range(1, LONGEST_CYCLE + 1)]
    return max(
        found, key=lambda series: (series[0] * series[1] * (series[1] > 1 or series[0] == 1), -series[0])
    )


def _others(lines: list[Line], what: str) -> Line:
    noun = "line" if len(lines) == 1 else "lines"
    return Line(lines[0].first, lines[-1].last, f"... {len(lines)} {noun} {what}", shown=False)


def _units(rows: Bytes) -> list[tuple[int, int]]:
    """The first and the last byte of each element of whole bytes; other bytes alone."""
    units: list[tuple[int, int]] = []
    for at, row in enumerate(rows):
        if units and len(row) == 1 and row[0].element >= 0 and rows[units[-1][1]] == row:
            units[-1] = (units[-1][0], at)
        else:
            units.append((at, at))
    return units


def _end_of_rule(rows: Bytes, units: list[tuple[int, int]], at: int, shapes: Shapes) -> int:
    """The last unit that continues the one at a position: the same runs, and one index that grows evenly."""
    step: set[tuple[int, ...]] | None = None
    for end in range(at, len(units) - 1):
        (first, last), (begin, stop) = units[end], units[end + 1]
        now, then = rows[first], rows[begin]
        if last - first != stop - begin or [r[:3] for r in now] != [r[:3] for r in then]:
            return end
        if [r.element < 0 and r.element for r in now] != [r.element < 0 and r.element for r in then]:
            return end
        steps = {_step(a, b, shapes) for a, b in zip(now, then, strict=True)} - {()}
        if len(steps) > 1 or step not in (None, steps) or any(own[0] < 0 or any(own[1:]) for own in steps):
            return end
        step = steps
    return len(units) - 1


def _step(first: Run, last: Run, shapes: Shapes) -> tuple[int, ...]:
    """The difference of two indices, without leading zeros; none for bits without an owner."""
    if not first.plane:
        return ()
    both = zip(index_of(first, shapes), index_of(last, shapes), strict=True)
    step = [b - a for a, b in both]
    while step and step[0] == 0:
        step.pop(0)
    return tuple(step)


def _text(first: Run, last: Run, count: int, shapes: Shapes) -> str:
    """The elements from the first byte of a line to the last, and their bits.

    codes[0, 0..15] in bits 0-3    codes[0, 0..24 by 8] in bit 0    padding    constant in bits 6-7
    """
    whole = (first.low, first.high) == (0, 7)
    if not first.plane:
        constant = "padding" if whole else "constant"
        what = constant if first.element == CONSTANT else "computed from several values"
    else:
        begin, end = (index_of(run, shapes) for run in (first, last))
        what = f"{first.plane}[{', '.join(_places(a, b, count) for a, b in zip(begin, end, strict=True))}]"
    return what if whole else f"{what} in {_bits_text(first)}"


def _places(first: int, last: int, count: int) -> str:
    """The indices of one dimension: "3", "0..15", "0 and 4" or "0..30 by 2"."""
    if first == last:
        return str(first)
    step = (last - first) // (count - 1)
    if step == 1:
        return f"{first}..{last}"
    return f"{first} and {last}" if count == 2 else f"{first}..{last} by {step}"


def _bits_text(run: Run) -> str:
    return f"bit {run.low}" if run.low == run.high else f"bits {run.low}-{run.high}"


def index_of(run: Run, shapes: Shapes) -> tuple[int, ...]:
    """The index of the element that owns a run."""
    return tuple(map(int, np.unravel_index(run.element, shapes[run.plane])))
