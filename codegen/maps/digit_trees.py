"""Digit trees: how one index becomes an offset, as sums of mixed-radix digits.

    Leaf(n, s)              m * s                               for 0 <= m < n
    Split(n, t, high, low)  high(m // t) + low(m % t)           XLA's tile step, a CuTe mode
    Window(n, tree, a, k)   tree(a + k * m)                     a slice of another tree
    Switch(n, t, b, cases)  b[m // t] + cases[m // t](m % t)    a swizzle: one digit reverses others
    Opaque(n, f)            f(m), known only point by point     `*` at a later tile level

The extent n is a bound at every node, not only at the top: partial tiles are Splits whose tile does not
divide the extent. All arithmetic uses exact Python integers. Nothing depends on the size of the array.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import gcd, prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.support.caching import cached
from codegen.support.dataclasses import dataclass

Offsets: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Leaf:
    """Offsets with one stride: m -> m * stride."""

    extent: int
    stride: int


@dataclass(frozen=True, slots=True)
class Split:
    """Two digits: m -> high(m // tile) + low(m % tile); `high` may cover more than the bound needs."""

    extent: int
    tile: int
    high: Tree
    low: Tree


@dataclass(frozen=True, slots=True)
class Window:
    """A slice of another tree: m -> tree(start + step * m), less its value at m = 0."""

    extent: int
    tree: Tree
    start: int
    step: int


@dataclass(frozen=True, slots=True)
class Switch:
    """A digit that selects the tree below it: m -> starts[m // tile] + cases[m // tile](m % tile).

    If a bit of the offset is XORed with another, the other one selects whether the first counts up or down.
    starts[0] is 0; each case has `tile` indices and begins at 0.
    """

    extent: int
    tile: int
    starts: tuple[int, ...]
    cases: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Opaque:
    """Offsets known only through a function; every value lies within [lowest, highest]."""

    extent: int
    offsets: Callable[[Offsets], Offsets]
    lowest: int
    highest: int


Tree: TypeAlias = Leaf | Split | Window | Switch | Opaque


Mode: TypeAlias = tuple[tuple[int, int], ...]
"""Digits, (extent, stride), the most minor one first."""


def ceil_div(a: int, b: int) -> int:
    """The smallest integer not below a / b."""
    return -(-a // b)


def mode_tree(mode: Mode, extent: int) -> Tree:
    """The tree of digits on [0, extent); digits beyond the extent are storage.

    ((2, 1), (4, 10)), 5 -> Split(5, 8, Leaf(1, 0), Split(8, 2, Leaf(4, 10), Leaf(2, 1)))
    """
    complete = prod(size for size, _ in mode)
    tree: Tree | None = None
    for size, stride in reversed(mode):
        leaf = Leaf(size, stride)
        tree = leaf if tree is None else Split(tree.extent * size, size, tree, leaf)
    tree = tree or Leaf(1, 0)
    return tree if extent == complete else Split(extent, complete, Leaf(1, 0), tree)


def evaluate_tree(tree: Tree, index: Any) -> Any:
    """The offset at `index`, an int or an int64 array; the definition, without shortcuts."""
    match tree:
        case Leaf(_, stride):
            return index * stride
        case Split(_, tile, high, low):
            return evaluate_tree(high, index // tile) + evaluate_tree(low, index % tile)
        case Window(_, inner, start, step):
            return evaluate_tree(inner, start + step * index) - evaluate_tree(inner, start)
        case Switch():
            return _evaluate_switch(tree, index)
        case Opaque(_, offsets, _, _):
            return offsets(np.asarray(index, dtype=np.int64))


def _evaluate_switch(tree: Switch, index: Any) -> Any:
    which, below = index // tree.tile, index % tree.tile
    if not isinstance(index, np.ndarray):
        return tree.starts[which] + evaluate_tree(tree.cases[which], below)
    out = np.take(np.asarray(tree.starts, np.int64), which)
    for k, case in enumerate(tree.cases):
        out = out + np.where(which == k, evaluate_tree(case, below), 0)
    return out


def truncate_tree(tree: Tree, extent: int) -> Tree:
    """The same offsets on [0, extent); digits that never carry disappear."""
    match tree:
        case Leaf(_, stride):
            return Leaf(extent, stride if extent > 1 else 0)
        case Split(_, tile, high, low):
            if extent <= tile:
                return truncate_tree(low, extent)
            return Split(extent, tile, truncate_tree(high, ceil_div(extent, tile)), truncate_tree(low, tile))
        case Switch(_, tile, starts, cases):
            if extent <= tile:
                return truncate_tree(cases[0], extent)
            count = ceil_div(extent, tile)
            return Switch(extent, tile, starts[:count], cases[:count])
        case _:
            return replace(tree, extent=extent)


def coalesce_tree(tree: Tree) -> Tree:
    """The same offsets with the fewest digits; a merged digit keeps the bound.

    Split(n, t, Leaf(_, t*s), Leaf(t, s))  ->  Leaf(n, s)
    """
    match tree:
        case Leaf(extent, stride):
            return Leaf(extent, stride if extent > 1 else 0)
        case Window():
            return _coalesce_window(tree)
        case Switch():
            return _coalesce_switch(tree)
        case Opaque():
            return tree
    high, low = coalesce_tree(tree.high), coalesce_tree(tree.low)
    extent, tile = tree.extent, tree.tile
    if tile == 1:
        return truncate_tree(high, extent)
    if extent <= tile:
        return coalesce_tree(truncate_tree(low, extent))
    if isinstance(low, Split) and low.extent % low.tile == 0:
        inner = low.tile
        upper = Split(ceil_div(extent, inner), tile // inner, high, low.high)
        return coalesce_tree(Split(extent, inner, upper, low.low))
    if isinstance(low, Leaf):
        if isinstance(high, Leaf) and (high.stride == low.stride * tile or high.extent == 1):
            return Leaf(extent, low.stride)
        if isinstance(high, Split) and isinstance(high.low, Leaf) and high.low.stride == low.stride * tile:
            return coalesce_tree(
                Split(extent, high.tile * tile, high.high, Leaf(high.tile * tile, low.stride))
            )
    return Split(extent, tile, high, low)


def _coalesce_switch(tree: Switch) -> Tree:
    """A switch with the fewest digits; a plain tree if its cases are equal and its starts equidistant."""
    if tree.extent <= tree.tile:
        return coalesce_tree(truncate_tree(tree, tree.extent))
    cases = tuple(coalesce_tree(case) for case in tree.cases)
    step = tree.starts[1]
    if all(case == cases[0] for case in cases) and tree.starts == tuple(k * step for k in range(len(cases))):
        return coalesce_tree(Split(tree.extent, tree.tile, Leaf(len(cases), step), cases[0]))
    return replace(tree, cases=cases)


def _coalesce_window(window: Window) -> Tree:
    """Remove a window over a leaf, over full tiles, or inside one tile."""
    extent, start, step = window.extent, window.start, window.step
    tree = coalesce_tree(window.tree)
    if extent == 1:
        return Leaf(1, 0)
    match tree:
        case Leaf(_, stride):
            return Leaf(extent, stride * step)
        case Split(_, tile, high, low):
            last = start + step * (extent - 1)
            if start // tile == last // tile:
                return coalesce_tree(Window(extent, low, start % tile, step))
            if step == 1 and start % tile == 0:
                upper = Window(ceil_div(extent, tile), high, start // tile, 1)
                return coalesce_tree(Split(extent, tile, upper, low))
            if step % tile == 0:
                return coalesce_tree(Window(extent, high, start // tile, step // tile))
            return Window(extent, tree, start, step)
        case Switch(_, tile, _, cases):
            if start // tile == (start + step * (extent - 1)) // tile:
                return coalesce_tree(Window(extent, cases[start // tile], start % tile, step))
            return Window(extent, tree, start, step)
        case Window(_, inner, start0, step0):
            return coalesce_tree(Window(extent, inner, start0 + step0 * start, step0 * step))
        case Opaque():
            return Window(extent, tree, start, step)


def split_tree(tree: Tree, tile: int) -> tuple[Tree, Tree] | None:
    """(high, low) with tree == Split(extent, tile, high, low), or None if the tree has no such split."""
    match tree:
        case Leaf(extent, stride):
            return Leaf(ceil_div(extent, tile), stride * tile), Leaf(tile, stride)
        case Split(extent, t, high, low):
            if tile == t:
                return high, low
            if tile % t == 0 and tile // t < high.extent:
                upper = split_tree(high, tile // t)
                return upper and (upper[0], Split(tile, t, upper[1], low))
            if t % tile == 0:
                lower = split_tree(low, tile)
                return lower and (Split(ceil_div(extent, tile), t // tile, high, lower[0]), lower[1])
            return None
        case Window(extent, inner, start, 1):
            pair = split_tree(inner, tile) if start % tile == 0 and tile < inner.extent else None
            return pair and (Window(ceil_div(extent, tile), pair[0], start // tile, 1), pair[1])
        case Switch() if tree.tile % tile == 0 and tile < tree.tile:
            return _split_cases(tree, tile)
        case _:
            return None


def _split_cases(tree: Switch, tile: int) -> tuple[Tree, Tree] | None:
    """(high, low) with the low digit that all cases share, or None if they differ."""
    pairs = [split_tree(case, tile) for case in tree.cases]
    highs = tuple(pair[0] for pair in pairs if pair)
    lows = {coalesce_tree(pair[1]) for pair in pairs if pair}
    if len(highs) < len(pairs) or len(lows) > 1:
        return None
    return Switch(ceil_div(tree.extent, tile), tree.tile // tile, tree.starts, highs), lows.pop()


def tree_cuts(tree: Tree) -> frozenset[int]:
    """Weights at which the complete tree can be split into two digits."""
    match tree:
        case Split(_, tile, high, low):
            inner = {c for c in tree_cuts(low) if tile % c == 0}
            return frozenset({tile} | {tile * c for c in tree_cuts(high)} | inner)
        case Window(_, inner_tree, start, 1):
            return frozenset(gcd(c, start) for c in tree_cuts(inner_tree)) - {1}
        case Switch(_, tile, _, cases):
            shared = {c for case in cases for c in tree_cuts(case) if c < tile and tile % c == 0}
            return frozenset(c for c in shared if _split_cases(tree, c))
        case _:
            return frozenset()


def offset_range(tree: Tree, extent: int | None = None) -> tuple[int, int]:
    """The exact lowest and highest offset on [0, extent).

    For Opaque, its given bounds. A window that skips indices has the range of all between its ends.
    """
    return _range_between(tree, 0, tree.extent if extent is None else extent)


@cached(4096)
def _range_between(tree: Tree, begin: int, end: int) -> tuple[int, int]:
    """The lowest and highest offset on [begin, end)."""
    match tree:
        case Leaf(_, stride):
            ends = begin * stride, (end - 1) * stride
            return min(ends), max(ends)
        case Opaque(_, _, lowest, highest):
            return lowest, highest
        case Window(_, inner, start, step):
            ends = start + begin * step, start + (end - 1) * step
            low, high = _range_between(inner, min(ends), max(ends) + 1)
            first = int(evaluate_tree(inner, start))
            return low - first, high - first
    (first, skipped), (last, rest) = divmod(begin, tree.tile), divmod(end - 1, tree.tile)
    found = []
    if isinstance(tree, Switch):
        for k in range(first, last + 1):
            part = skipped if k == first else 0, rest + 1 if k == last else tree.tile
            low, high = _range_between(tree.cases[k], *part)
            found.append((tree.starts[k] + low, tree.starts[k] + high))
    else:
        if first == last:
            digits = [(first, first + 1, skipped, rest + 1)]
        else:
            digits = [(first, first + 1, skipped, tree.tile), (last, last + 1, 0, rest + 1)]
        if first + 1 < last:
            digits.append((first + 1, last, 0, tree.tile))
        for high_begin, high_end, low_begin, low_end in digits:
            upper = _range_between(tree.high, high_begin, high_end)
            lower = _range_between(tree.low, low_begin, low_end)
            found.append((upper[0] + lower[0], upper[1] + lower[1]))
    return min(low for low, _ in found), max(high for _, high in found)


def scaled(tree: Tree, old: int, new: int) -> Tree:
    """The same tree with strides converted from units of `old` bits to `new` bits; all must stay integers."""
    match tree:
        case Leaf(extent, stride):
            return Leaf(extent, stride * old // new)
        case Split(extent, tile, high, low):
            return Split(extent, tile, scaled(high, old, new), scaled(low, old, new))
        case Window(extent, inner, start, step):
            return Window(extent, scaled(inner, old, new), start, step)
        case Switch(extent, tile, starts, cases):
            each = tuple(scaled(case, old, new) for case in cases)
            return Switch(extent, tile, tuple(start * old // new for start in starts), each)
        case Opaque(extent, offsets, lowest, highest):
            return Opaque(
                extent, lambda index: offsets(index) * old // new, lowest * old // new, highest * old // new
            )
