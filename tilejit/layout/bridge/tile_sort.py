"""Find tiles for any storage order by sorting: always few, though rarely the fewest.

Each step is a pass of a radix sort. Axes are halved until each holds one piece. Then the pieces are sorted by
the number of their ascending run, lowest bit first. `*` merges axes of extent 1 into their neighbors, so that
the number of axes does not double with every step.
"""

from __future__ import annotations

from tilejit.layout.bridge.storage_order import StorageOrder
from tilejit.layout.bridge.tile_search import Axis, Cut, Route, State, Tile, step
from tilejit.layout.tiling import MERGE


def sorting_route(order: StorageOrder, state: State) -> Route:
    """Return tiles that take the axes of any state to the target order."""
    tiles: list[Tile] = []
    while any(len(axis) > 1 for axis in state.axes):
        state = _pass(order, state, {p for axis in state.axes for p in _lower_half(axis)}, tiles)
    runs = _runs(state)
    for bit in range(max(runs.values(), default=0).bit_length()):
        state = _pass(order, state, {piece for piece, run in runs.items() if run >> bit & 1}, tiles)
    if order.short - state.padded:
        state = _pass(order, state, set(state.reading()), tiles)
    if order.last_hole is not None and order.last_hole not in state.reading():
        if state.axes[-1:] != ((),):
            tiles.append((1,))
            state = State((*state.axes, ()), state.padded)
        tiles.append((order.pieces[order.last_hole].extent,))
        state = State((*state.axes[:-1], (), (order.last_hole,)), state.padded)
    return Route(tuple(tiles), state)


def _pass(order: StorageOrder, state: State, lows: set[int], tiles: list[Tile]) -> State:
    """Append one tile that moves the pieces `lows` behind all others, starting at their first axis."""
    first = next(k for k, axis in enumerate(state.axes) if lows & set(axis))
    axes: list[Axis] = []
    stars: list[int] = []
    ones = 0
    for axis in state.axes[first:]:
        if axis:
            axes.append(axis)
            stars.append(ones)
            ones = 0
        else:
            ones += 1
    stars[-1] += ones
    cuts: tuple[Cut, ...] = tuple(sum(piece not in lows for piece in axis) for axis in axes)
    after, tile = step(order, State((*state.axes[:first], *axes), state.padded), cuts)
    tiles.append(
        tuple(s for count, size in zip(stars, tile, strict=True) for s in (MERGE,) * count + (size,))
    )
    return after


def _lower_half(axis: Axis) -> Axis:
    """The pieces of an axis that move to the low part."""
    return axis[(len(axis) + 1) // 2 :] if len(axis) > 1 else ()


def _runs(state: State) -> dict[int, int]:
    """For each piece, the ascending run of the target order that it belongs to, in the current order."""
    runs: dict[int, int] = {}
    place = {piece: k for k, piece in enumerate(state.reading())}
    run, last = 0, -1
    for piece in sorted(place):
        run += place[piece] < last
        last = place[piece]
        runs[piece] = run
    return runs
