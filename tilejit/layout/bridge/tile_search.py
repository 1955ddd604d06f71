"""Search, by iterative deepening, for the fewest tiles that put digits into a given storage order.

A tile step is a stable partition: it cuts each axis of a suffix into a high and a low part and puts all high
parts before all low parts. So a step at most doubles the ascending runs of the target order. The search
prunes states with too many runs for the remaining steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from itertools import product
from math import prod
from typing import TypeAlias

from codegen import dataclass
from tilejit.layout.bridge.storage_order import StorageOrder

Axis: TypeAlias = tuple[int, ...]
"""Pieces that one axis still holds, the one with the largest weight first; empty if its extent is 1."""

Tile: TypeAlias = tuple[int, ...]

Cut: TypeAlias = "int | Axis"
"""The number of high pieces of an axis (-1: none, no padding); for an empty axis, the holes it becomes."""


@dataclass(frozen=True, slots=True)
class State:
    """Axes at a step of the search, the most major first, and the short pieces that have been padded."""

    axes: tuple[Axis, ...]
    padded: frozenset[int] = frozenset()

    def reading(self) -> list[int]:
        """The pieces in their current order."""
        return [piece for axis in self.axes for piece in axis]


@dataclass(frozen=True, slots=True)
class Route:
    """Tiles, and the state that they lead to."""

    tiles: tuple[Tile, ...]
    end: State

    @property
    def cost(self) -> tuple[int, int]:
        """The number of tiles, then of their sizes."""
        return len(self.tiles), sum(map(len, self.tiles))


@dataclass(slots=True)
class Search:
    """One search: the target order, and how many more states it may visit."""

    order: StorageOrder
    budget: int
    known: dict[tuple[State, int], Route | None] = field(default_factory=dict)

    def route(self, state: State, steps: int) -> Route | None:
        """The shortest tiles with exactly that many steps, or None if none were found."""
        if self._steps_at_least(state) > steps:
            return None
        if steps == 0:
            return Route((), state)
        if steps == 1:
            return self._last(state)
        key = state, steps
        if key not in self.known:
            self.known[key] = self._first_of(state, steps)
        return self.known[key]

    def _first_of(self, state: State, steps: int) -> Route | None:
        best: Route | None = None
        for after, tile in self._moves(state):
            self.budget -= 1
            if self.budget < 0:
                break
            rest = self.route(after, steps - 1)
            if rest is not None:
                found = Route((tile, *rest.tiles), rest.end)
                best = found if best is None or found.cost < best.cost else best
        return best

    def _steps_at_least(self, state: State) -> int:
        """A lower bound on the number of steps."""
        place = {piece: k for k, piece in enumerate(state.reading())}
        runs = 1 + len(self._descents(place))
        return max((runs - 1).bit_length(), 0 if self._complete(state, place) else 1)

    def _descents(self, place: dict[int, int]) -> list[int]:
        """The pieces that precede the one they should follow."""
        out, last = [], -1
        for piece in sorted(place):
            at = place[piece]
            if at < last:
                out.append(piece)
            last = at
        return out

    def _complete(self, state: State, place: dict[int, int]) -> bool:
        """Whether every short piece is padded, itself or by the hole above it, and the last hole exists."""
        order = self.order
        if order.last_hole is not None and order.last_hole not in place:
            return False
        return all((piece in state.padded) != (order.hole_above(piece) in place) for piece in order.short)

    def _last(self, state: State) -> Route | None:
        """One tile that produces the target order, with the fewest sizes."""
        axes = ((), *state.axes)  # a tile may have one dimension more than there are axes
        reading = state.reading()
        # The low part begins at the only descent; without a descent, it may begin anywhere.
        bounds = self._descents({piece: k for k, piece in enumerate(reading)}) or [
            *sorted(reading),
            len(self.order.pieces),
        ]
        more = len(axes) if len(reading) < len(self.order.pieces) else 0
        routes: list[Route] = []
        for bound in bounds:
            first = next((k for k, axis in enumerate(axes) if axis and axis[-1] >= bound), len(axes) - 1)
            for count in range(len(axes) - first, max(len(axes) - first, more) + 1):
                cuts = self._closing_cuts(axes[len(axes) - count :], bound, state)
                if cuts is None:
                    continue
                after, tile = step(self.order, State(axes, state.padded), cuts)
                if self._steps_at_least(after) == 0:
                    routes.append(Route((tile,), after))
                    break
        return min(routes, key=lambda route: route.cost, default=None)

    def _closing_cuts(self, axes: tuple[Axis, ...], bound: int, state: State) -> tuple[Cut, ...] | None:
        """Cuts that make pieces below `bound` high, with the holes that belong between the low pieces."""
        cuts: list[Cut] = []
        low = -1
        there = set(state.reading())
        for place, axis in enumerate(axes):
            if axis:
                high = sum(piece < bound for piece in axis)
                if any(piece >= bound for piece in axis[:high]):
                    return None
                cuts.append(high)
                low = axis[-1] if high < len(axis) else low
                continue
            following = next((a for a in axes[place + 1 :] if a and a[-1] >= bound), ())
            wanted = next((p for p in following if p >= bound), len(self.order.pieces)) - 1
            fits = wanted in self.order.holes and wanted not in there and wanted > low
            if fits and wanted + 1 not in state.padded:
                there.add(wanted)
                cuts.append((wanted,))
                continue
            cuts.append(())
        for place, axis in enumerate(axes):
            if axis and cuts[place] == 0 and self.order.hole_above(axis[0]) in there:
                cuts[place] = -1
        return tuple(cuts)

    def _moves(self, state: State) -> Iterator[tuple[State, Tile]]:
        """Every possible step; a missing hole may come from an axis of extent 1 added in front."""
        missing = sorted(self.order.holes - set(state.reading()) - {piece - 1 for piece in state.padded})
        holes: list[Cut] = [tuple(missing[a:b]) for a, b in _spans(len(missing))]
        options = [self._cuts(axis, state, missing) if axis else [(), *holes] for axis in state.axes]
        for count in range(1, len(options) + 1):
            for cuts in product(*options[len(options) - count :]):
                if _once(cuts):
                    yield step(self.order, state, cuts)
        led = State(((), *state.axes), state.padded)
        for cuts in product(holes, *options):
            if _once(cuts):
                yield step(self.order, led, cuts)

    def _cuts(self, axis: Axis, state: State, missing: list[int]) -> list[Cut]:
        """The positions at which an axis may be cut, with and without padding its top piece."""
        cuts: list[Cut] = list(range(len(axis) + 1))
        above = self.order.hole_above(axis[0])
        if above is None or axis[0] not in self.order.short or axis[0] in state.padded:
            return cuts
        return [*cuts, -1] if above in missing else [-1, *cuts[1:]]


def _once(cuts: tuple[Cut, ...]) -> bool:
    """Whether no hole is produced twice."""
    made = [hole for cut in cuts if isinstance(cut, tuple) for hole in cut]
    return len(set(made)) == len(made)


def _spans(count: int) -> list[tuple[int, int]]:
    """The bounds (a, b) of each run of one or two among `count` items."""
    return [(a, b) for a in range(count) for b in (a + 1, a + 2) if b <= count]


def step(order: StorageOrder, state: State, cuts: tuple[Cut, ...]) -> tuple[State, Tile]:
    """Apply one tile to the last axes, and return the new state and the tile."""
    first = len(state.axes) - len(cuts)
    highs: list[Axis] = []
    lows: list[Axis] = []
    tile: list[int] = []
    padded = set(state.padded)
    for axis, cut in zip(state.axes[first:], cuts, strict=True):
        at = 0 if isinstance(cut, tuple) else max(cut, 0)
        high, low = axis[:at], cut if isinstance(cut, tuple) else axis[at:]
        if low and cut == 0 and low[0] in order.short:
            padded.add(low[0])
        size = prod(order.pieces[piece].extent for piece in low[1:])
        if low:
            top = order.pieces[low[0]]
            size *= top.room if low[0] in padded else top.extent
        tile.append(size)
        highs.append(high)
        lows.append(low)
    return State((*state.axes[:first], *highs, *lows), frozenset(padded)), tuple(tile)
