"""Convert a storage order to `minor_to_major` and tiles: the fewest found by search, otherwise by sorting."""

from __future__ import annotations

from itertools import pairwise, permutations
from math import prod

from tilejit.layout.bridge.storage_order import BLOCK, Stage, StorageOrder
from tilejit.layout.bridge.tile_search import Route, Search, State, Tile
from tilejit.layout.bridge.tile_sort import sorting_route
from tilejit.layout.tiling import MERGE

MOST_STEPS = 5
"""The depths that the search tries: 0 to 4 tiles."""
MOST_STATES = 6000
"""States to visit at one depth, over all orders of the dimensions: about a tenth of a second."""
MOST_PERMUTED = 5
"""The most dimensions whose orders are all tried."""
MOST_DEAD = 16
"""The most dimensions of extent 1 that the search tries in positions other than the front."""


def spelled(stages: tuple[Stage, ...]) -> tuple[tuple[int, ...], tuple[Tile, ...]]:
    """Return minor_to_major and tiles that put every piece in place: fewest tiles first, then fewest sizes.

    ((2,2),(2,3)):((2,12),(1,4)) -> (1, 0), ((2, 2),)
    """
    starts = _physical_orders(stages[0].order)
    number, route = _shortest(stages[0].order, [_state(stages[0].order, start) for start in starts])
    tiles = route.tiles
    for stage, following in pairwise(stages):
        merged = _merged(stage, route.end, following.order)
        _, route = _shortest(following.order, [merged.end])
        tiles = (*tiles, *merged.tiles, *route.tiles)
    return starts[number][::-1], tiles


def _shortest(order: StorageOrder, states: list[State]) -> tuple[int, Route]:
    """The shortest route found from one of the states, and the number of that state."""
    for steps in range(MOST_STEPS):
        found: list[tuple[int, Route]] = []
        exhausted = True
        for number, state in enumerate(states):
            search = Search(order, MOST_STATES // len(states))
            route = search.route(state, steps)
            exhausted &= search.budget >= 0
            if route is not None:
                found.append((number, route))
        if found:
            return min(found, key=lambda item: item[1].cost)
        if not exhausted:
            break
    return min(((n, sorting_route(order, s)) for n, s in enumerate(states)), key=lambda item: item[1].cost)


def _merged(stage: Stage, state: State, following: StorageOrder) -> Route:
    """Tiles that merge a stage's lowest pieces into one axis, and the state with the next stage's names."""
    first = next(k for k, axis in enumerate(state.axes) if axis and axis[-1] >= stage.above)
    stars = (MERGE,) * (len(state.axes) - first - 1)
    axes = list(state.axes[:first])
    tiles: list[Tile] = []
    upper = tuple(piece for piece in state.axes[first] if piece < stage.above)
    if upper:  # the axis holds pieces of both sides
        tiles.append((*stars, stage.extent))
        axes, stars = [*axes, upper], ()
    if stage.extent < stage.room:
        tiles.append((*stars, stage.room))
        axes.append(())
    else:  # holes past the last offset are cut off; they move to the front
        whole = (prod(stage.order.pieces[piece].extent for piece in axis) for axis in axes)
        tiles.append((*whole, *stars, stage.room))
    names = {(piece.dim, piece.weight): k for k, piece in enumerate(following.pieces)}
    new = [names[piece.dim, piece.weight] for piece in stage.order.pieces[: stage.above]]
    end = State((*(tuple(new[piece] for piece in axis) for axis in axes), (names[BLOCK, 0],)))
    return Route(tuple(tiles), end)


def _physical_orders(order: StorageOrder) -> list[tuple[int, ...]]:
    """Orders of the dimensions to start from, most major first; row-major comes first."""
    live = tuple(dim for dim in range(order.rank) if order.axes[dim])
    dead = tuple(dim for dim in range(order.rank) if not order.axes[dim])
    moving: list[tuple[int, ...]] = [live]
    if len(live) <= MOST_PERMUTED:
        moving = list(permutations(live))
    else:
        moving.append(tuple(sorted(live, key=lambda dim: order.axes[dim][0])))
        moving.append(tuple(sorted(live, key=lambda dim: order.axes[dim][-1])))
    starts = [(*dead, *dims) for dims in moving]
    if len(dead) <= MOST_DEAD:
        starts.insert(0, tuple(range(order.rank)))
        if order.holes:  # an axis of extent 1 may become a hole, so its position matters
            starts += [(*dims, *dead) for dims in moving]
            starts += permutations(range(order.rank)) if order.rank < MOST_PERMUTED else []
    return list(dict.fromkeys(starts))


def _state(order: StorageOrder, start: tuple[int, ...]) -> State:
    """The axes for an order of the dimensions, without leading ones of extent 1, which a tile adds itself."""
    axes = [order.axes[dim] for dim in start]
    first = next((k for k, axis in enumerate(axes) if axis), len(axes))
    return State(tuple(axes[first:]))
