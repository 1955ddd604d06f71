"""Layouts with steps on digits as trees: a switch over the values of a digit that moves, or a table.

If no sum of digits carries into another digit, a step moves one digit and leaves the rest of the offset
alone. So the offset is affine in all digits but those that steps move or read. A tree selects these one
after the other, if there are few cases. Otherwise the offsets of their dimensions are a table, computed when
needed: one dimension for a table of rows, several if a digit of one dimension moves by that of another.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from codegen import Leaf, Offsets, Opaque, Root, Split, Switch, Tree, ceil_div, mode_tree
from tilejit.cute.digit_step import DigitStep
from tilejit.cute.digits import Chain
from tilejit.cute.swizzle import Swizzle

MAX_CASES = 32
"""The most combinations of digits that become cases of a tree; each case is copied on its own."""

MAX_TABLE = 1 << 22
"""The most combinations of digits of a table, all of which are computed once for its bounds."""

Step = Swizzle | DigitStep


class _Part(NamedTuple):
    """A digit of a dimension between the bounds of steps.

    Attributes:
        dim: the dimension.
        weight: the index of the dimension at which it is 1.
        size: the number of values that indices use.
        stride: its stride; negative if it counts down.
        whole: the number of values of the digit.
        moves: whether a step moves or reads it.
    """

    dim: int
    weight: int
    size: int
    stride: int
    whole: int
    moves: bool


def stepped_roots(
    modes: tuple[Chain, ...], dims: tuple[int, ...], offset: int, steps: tuple[Step, ...]
) -> tuple[int, tuple[Root, ...]] | None:
    """The base and the roots of a sum of digits on [0, dims), followed by an offset and steps.

    None if a sum of digits may carry into a digit of a step, or if such a digit is not one of the modes.
    """
    ranges = {(s.stride, s.stride * s.size) for s in map(_as_digit_step, steps)}
    ranges |= {(s.by_stride, s.by_stride * s.by_size) for s in map(_as_digit_step, steps) if not s.table}
    parts: list[_Part] = []
    for dim, (mode, extent) in enumerate(zip(modes, dims, strict=True)):
        own = _parts(dim, mode, extent, ranges)
        if own is None:
            return None
        parts += own
    if not _is_apart(parts, offset, {bound for pair in ranges for bound in pair}):
        return None

    def moved(value: Any) -> Any:
        for step in steps:
            value = step(value)
        return value

    base = int(moved(offset))
    roots: list[Root] = []
    for group in _groups(parts, steps, len(dims)):
        own = [part for part in parts if part.dim in group]
        if not any(part.moves for part in own):
            (dim,) = group
            roots.append(Root(group, mode_tree(modes[dim], dims[dim])))
            continue
        extents = tuple(dims[dim] for dim in group)
        cases = prod(part.size for part in own if part.moves)
        if cases > MAX_TABLE:
            return None
        grown = _Grown(group, extents, own, offset, moved)
        roots.append(Root(group, grown.tree() if cases <= MAX_CASES else grown.table()))
    return base, tuple(roots)


def _as_digit_step(step: Step) -> DigitStep:
    """The same step as the XOR of a digit."""
    if isinstance(step, DigitStep):
        return step
    up, down = max(0, step.shift), max(0, -step.shift)
    size, target, source = 1 << step.bits, 1 << step.base + down, 1 << step.base + up
    return DigitStep(size, target, "^", size, source)


def _parts(dim: int, mode: Chain, extent: int, ranges: set[tuple[int, int]]) -> list[_Part] | None:
    """The digits of a mode, cut where steps begin and end; None if a cut falls between values."""
    out: list[_Part] = []
    bounds = sorted({bound for pair in ranges for bound in pair})
    weight = 1
    for place, (size, stride) in enumerate(mode):
        low, left = abs(stride), size
        for bound in (*(bound for bound in bounds if low < bound < low * size), None):
            count = left if bound is None else bound // low
            if bound is not None and (bound % low or (left % count and place < len(mode) - 1)):
                return None
            used = min(count, ceil_div(extent, weight))
            moves = any(begin <= low < stop for begin, stop in ranges)
            if used > 1:
                out.append(_Part(dim, weight, used, low if stride > 0 else -low, count, moves))
                if stride < 0 and (moves or bound is not None):
                    return None
            weight, left, low = weight * count, ceil_div(left, count), bound or low
    return out


def _is_apart(parts: list[_Part], offset: int, bounds: set[int]) -> bool:
    """Whether no sum of the digits below a bound reaches it, and all others are multiples of it.

    Digits that count down are part of the offset: its rest is a multiple, too.
    """
    reach = [(abs(p.stride), abs(p.stride) * ((p.whole if p.stride < 0 else p.size) - 1)) for p in parts]
    down = sum(most for part, (_, most) in zip(parts, reach, strict=True) if part.stride < 0)
    for bound in bounds:
        below = sum(most for stride, most in reach if stride < bound)
        if below >= bound or any(stride % bound for stride, _ in reach if stride >= bound):
            return False
    return offset >= down and not any((offset - down) % bound for bound in bounds)


def _groups(parts: list[_Part], steps: tuple[Step, ...], rank: int) -> list[tuple[int, ...]]:
    """The dimensions, those together whose digits move each other, directly or one after the other."""
    clusters: list[set[tuple[int, int]]] = []
    for step in map(_as_digit_step, steps):
        spans = {(step.stride, step.block)}
        if not step.table:
            spans.add((step.by_stride, step.by_stride * step.by_size))
        for cluster in [c for c in clusters if any(_meet(one, other) for one in c for other in spans)]:
            clusters.remove(cluster)
            spans |= cluster
        clusters.append(spans)
    group = list(range(rank))
    for cluster in clusters:
        joined = {
            group[part.dim] for part in parts if any(begin <= part.stride < stop for begin, stop in cluster)
        }
        group = [min(joined) if number in joined else number for number in group]
    return [tuple(d for d in range(rank) if group[d] == number) for number in sorted({*group})]


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two ranges of strides overlap."""
    return one[0] < other[1] and other[0] < one[1]


class _Grown:
    """The offsets of a group of dimensions, less their offset at index 0, as a tree or as a table."""

    def __init__(
        self,
        dims: tuple[int, ...],
        extents: tuple[int, ...],
        parts: list[_Part],
        offset: int,
        moved: Callable[[Any], Any],
    ) -> None:
        self.dims, self.extents, self.offset, self.moved = dims, extents, offset, moved
        order = {dim: place for place, dim in enumerate(dims)}
        self.parts = sorted(parts, key=lambda part: (order[part.dim], -part.weight))

    def tree(self) -> Tree:
        """A switch for each digit that steps move or read."""
        return self._below(0, 0, self.extents[0], 0)

    def _below(self, dim: int, place: int, extent: int, chosen: int) -> Tree:
        """The tree of the digits from `place` on.

        Args:
            dim: the number of the dimension in the group.
            place: the digit.
            extent: the number of indices of the dimension that this digit and those below it cover.
            chosen: the sum of the moving digits that are selected above.
        """
        inner = prod(self.extents[dim + 1 :])
        if place == len(self.parts) or self.parts[place].dim != self.dims[dim]:
            if dim + 1 == len(self.dims):
                return Leaf(1, 0)
            return self._below(dim + 1, place, self.extents[dim + 1], chosen)
        part = self.parts[place]
        count, tile = ceil_div(extent, part.weight), part.weight * inner
        if not part.moves:
            if tile == 1:
                return Leaf(count, part.stride)
            below = self._below(dim, place + 1, part.weight, chosen)
            return Split(extent * inner, tile, Leaf(count, part.stride), below)
        values = [chosen + k * part.stride for k in range(count)]
        starts = tuple(self._at(value) - self._at(chosen) for value in values)
        cases = tuple(self._below(dim, place + 1, part.weight, value) for value in values)
        return Switch(extent * inner, tile, starts, cases)

    def _at(self, chosen: int) -> int:
        return int(self.moved(self.offset + chosen))

    def table(self) -> Opaque:
        """The offsets of all indices, computed for those that are asked for."""
        moving = [part for part in self.parts if part.moves]
        fixed = [part for part in self.parts if not part.moves]
        start = self._at(0)

        def offsets(rows: Offsets) -> Offsets:
            index: dict[int, Any] = {}
            for dim, extent in zip(reversed(self.dims), reversed(self.extents), strict=True):
                index[dim], rows = rows % extent, rows // extent
            chosen = self.offset + _sum(moving, index)
            return np.asarray(self.moved(chosen) - start + _sum(fixed, index), np.int64)

        values = np.zeros(1, np.int64)
        for part in moving:
            values = (values[:, None] + np.arange(part.size) * part.stride).reshape(-1)
        every = self.moved(self.offset + values) - start
        ends = [(part.size - 1) * part.stride for part in fixed]
        low, high = sum(min(0, end) for end in ends), sum(max(0, end) for end in ends)
        return Opaque(prod(self.extents), offsets, int(every.min()) + low, int(every.max()) + high)


def _sum(parts: list[_Part], index: dict[int, Any]) -> Any:
    total: Any = np.int64(0)
    for part in parts:
        total = total + index[part.dim] // part.weight % part.size * part.stride
    return total
