"""Find an ascending layout whose repeats of a tile reach every offset of a window once.

The window need not start at 0. The repeats may or may not reach offsets below it, so several candidates may
lead to a solution, and the search tries all of them. Sets of offsets are the bits of integers, so a repeat is
a shift.
"""

from __future__ import annotations

from collections.abc import Iterator

from codegen import dataclass
from tilejit.cute.digits import Mode
from tilejit.cute.exact.injective import distinct_offsets
from tilejit.cute.layout import Layout, cosize

MAX_REACH = 1 << 14
"""The most offsets to examine one by one; in a longer window, the last mode continues to the end."""
MAX_TRIES = 1_500_000
"""The most layouts and strides to try: a second or two."""


@dataclass(frozen=True, slots=True)
class _Repeats:
    """An ascending layout whose last mode may still grow, and the offsets that its repeats of the tile reach.

    Attributes:
        modes: the modes of the layout.
        top: the highest offset of the layout.
        unit: the offsets that one step of the last mode repeats.
        met: the offsets that all repeats reach, each once.
    """

    modes: tuple[Mode, ...]
    top: int
    unit: int
    met: int

    def next(self, first: int) -> Iterator[_Repeats]:
        """Add one more repeat to the last mode, or add a mode of size 2; each offset is reached at most once.

        The repeat starts at or before `first`, the first missing offset, because later ones cannot reach it.
        """
        if self.modes:
            size, step = self.modes[-1]
            more = self.unit << size * step
            if size * step <= first and not more & self.met:
                yield _Repeats(
                    (*self.modes[:-1], Mode(size + 1, step)), self.top + step, self.unit, self.met | more
                )
        for step in range(self.top + 1, first + 1):
            more = self.met << step
            if not more & self.met:
                yield _Repeats((*self.modes, Mode(2, step)), self.top + step, self.met, self.met | more)


def window_repeats(tile: Layout, begin: int, end: int) -> list[Mode] | int | None:
    """Find modes of an ascending layout whose repeats of the tile reach begin to end - 1 once.

    (2,2):(2,3), 5, 9 -> (2, 4)    (4,2):(3,1), 10, 15 -> 13, which none reach together with 10 to 12

    Without such a layout, the result is the first offset that none reaches together with all before it. It is
    None if there are too many layouts to try.
    """
    if cosize(tile) > MAX_REACH:
        return None
    last = min(end, MAX_REACH)
    window = (1 << last) - (1 << begin)
    start = sum(1 << offset for offset in distinct_offsets(tile).tolist())
    furthest = begin
    stack = [iter([_Repeats((), 0, start, start)])]
    seen: set[tuple[int, tuple[Mode, ...]]] = set()
    tries = 0
    while stack:
        now = next(stack[-1], None)
        if now is None:
            stack.pop()
            continue
        tries += 1
        missing = window & ~now.met
        if not missing:
            return _to_the_end(now, last, end)
        first = (missing & -missing).bit_length() - 1
        furthest = max(furthest, first)
        state = now.met, now.modes[-1:]
        if state not in seen:
            seen.add(state)
            stack.append(now.next(first))
            tries += max(0, first - now.top)
        if tries > MAX_TRIES:
            return None
    return furthest


def _to_the_end(found: _Repeats, last: int, end: int) -> list[Mode] | None:
    """Extend the last mode to the end; the window up to `last` is already reached once.

    Repeats of the unit's offsets are periodic after the unit's highest offset. The result is None if a period
    does not end before `last`, or if the repeats reach an offset twice.
    """
    if end <= last:
        return list(found.modes)
    if not found.modes:
        return None
    step = found.modes[-1].stride
    if found.unit.bit_length() + step > last:
        return None
    met = 0
    for count in range(last // step + 1):
        more = found.unit << count * step & (1 << last) - 1
        if more & met:
            return None
        met |= more
    return [*found.modes[:-1], Mode(-(-end // step), step)]
