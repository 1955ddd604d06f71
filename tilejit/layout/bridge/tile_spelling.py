"""Storage order to `minor_to_major` and tiles: the fewest found by searching, else by sorting."""

from __future__ import annotations

from itertools import permutations

from tilejit.layout.bridge.storage_order import StorageOrder
from tilejit.layout.bridge.tile_search import Search, State, Tile, entries
from tilejit.layout.bridge.tile_sort import sorting_tiles

MOST_STEPS = 5
MOST_STATES = 6000
"""Looked into at one depth, over all orders of the dimensions: about a tenth of a second."""
MOST_PERMUTED = 5
MOST_DEAD = 16
"""Dimensions of extent 1 that are tried elsewhere than in front."""


def spelled(order: StorageOrder) -> tuple[tuple[int, ...], tuple[Tile, ...]]:
    """minor_to_major and tiles that put every piece at its place: fewest tiles first, then fewest sizes.

    ((2,2),(2,3)):((2,12),(1,4)) -> (1, 0), ((2, 2),)
    """
    starts = _physical_orders(order)
    states = [_state(order, start) for start in starts]
    for steps in range(MOST_STEPS):
        found: list[tuple[int, int, tuple[Tile, ...]]] = []
        exhausted = True
        for number, state in enumerate(states):
            search = Search(order, MOST_STATES // len(states))
            tiles = search.tiles(state, steps)
            exhausted &= search.budget >= 0
            if tiles is not None:
                found.append((entries(tiles), number, tiles))
        if found:
            _, number, tiles = min(found)
            return starts[number][::-1], tiles
        if not exhausted:
            break
    sorted_ways = [(sorting_tiles(order, state), number) for number, state in enumerate(states)]
    tiles, number = min(sorted_ways, key=lambda way: (len(way[0]), entries(way[0]), way[1]))
    return starts[number][::-1], tiles


def _physical_orders(order: StorageOrder) -> list[tuple[int, ...]]:
    """Orders of the dimensions to begin with, most major first, row-major before all others."""
    live = tuple(dim for dim in range(order.rank) if order.axes[dim])
    dead = tuple(dim for dim in range(order.rank) if not order.axes[dim])
    ways: list[tuple[int, ...]] = [live]
    if len(live) <= MOST_PERMUTED:
        ways = list(permutations(live))
    else:
        ways.append(tuple(sorted(live, key=lambda dim: order.axes[dim][0])))
        ways.append(tuple(sorted(live, key=lambda dim: order.axes[dim][-1])))
    starts = [(*dead, *way) for way in ways]
    if len(dead) <= MOST_DEAD:
        starts.insert(0, tuple(range(order.rank)))
        if order.holes:  # an axis of one may become a hole, so its place counts
            starts += [(*way, *dead) for way in ways]
    return list(dict.fromkeys(starts))


def _state(order: StorageOrder, start: tuple[int, ...]) -> State:
    """The axes of an order of the dimensions, without leading ones of extent 1, which a tile adds itself."""
    axes = [order.axes[dim] for dim in start]
    first = next((k for k, axis in enumerate(axes) if axis), len(axes))
    return State(tuple(axes[first:]))
