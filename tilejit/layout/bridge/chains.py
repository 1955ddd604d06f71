"""Chains of digits, the modes of CuTe layouts, in tables and in digit trees, or an index that breaks them.

A chain (s0,s1,..):(d0,d1,..) sends i to (i mod s0)*d0 + (i // s0 mod s1)*d1 + ... Of all chains that give
the same offsets on [0, n) one has the fewest digits; its first digit is their longest linear run, and

    offset(i) = offset(i mod s0) + offset(i - i mod s0)

so that the chain is found, or refuted, digit by digit.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.digit_trees import Leaf, Split, Tree, coalesce, evaluate, truncate

Chain: TypeAlias = tuple[tuple[int, int], ...]
"""(size, stride) of each digit, the fastest first, in elements; none where there is one offset, 0."""

Table: TypeAlias = NDArray[Any]
"""Offsets as int64, or as Python's integers where int64 could overflow."""


@dataclass(frozen=True, slots=True)
class Break:
    """The index at which no chain agrees with all indices before it, its offset, and the one they ask for."""

    index: int
    value: int
    wanted: int


@dataclass(frozen=True, slots=True)
class Witness:
    """As `Break`, for a multi-index; first in C order where a table was searched."""

    index: tuple[int, ...]
    value: int
    wanted: int


def merged_chain(digits: Chain) -> Chain:
    """The same offsets with the fewest digits; a bound on the last one rides on the merged digit.

    ((2, 1), (4, 2), (1, 7), (3, 10)) -> ((8, 1), (3, 10))
    """
    out: list[tuple[int, int]] = []
    for size, stride in digits:
        if size == 1:
            continue
        if out and stride == out[-1][0] * out[-1][1]:
            size, stride = size * out[-1][0], out.pop()[1]
        out.append((size, stride))
    return tuple(out)


def cut_chain(digits: Chain, bound: int) -> Chain:
    """The chain of the fewest digits, and the least box, with the same offsets on [0, bound).

    (((2, 1), (4, 10)), 5) -> ((2, 1), (3, 10))    (((3, 1), (4, 3)), 5) -> ((5, 1),)
    """
    out, left = [], bound
    for size, stride in digits:
        if left == 1:
            break
        out.append((min(size, left), stride))
        left = -(-left // size)
    merged = merged_chain(tuple(out))
    below = prod(size for size, _ in merged[:-1])
    return (*merged[:-1], *((-(-bound // below), stride) for _, stride in merged[-1:]))


def tree_chain(tree: Tree, extent: int) -> Chain | Break:
    """The chain of a storage tree on [0, extent), or the first index that breaks it; never enumerates.

    There is none only where a digit below the top is cut short (`Split(6, 4, ..)` as the low side of a
    Split): past it the chain law asks for a slot that the tree keeps for padding, and slots are never
    shared. Trees of Leaf and Split nodes only.
    """
    digits: list[tuple[int, int]] = []
    whole = rest = coalesce(truncate(tree, extent))
    weight = 1
    while isinstance(rest, Split):
        if not isinstance(rest.low, Leaf):
            found = _short_digit(rest)
            assert found is not None
            index = weight * found[0]
            return Break(index, evaluate(whole, index), found[1])
        digits.append((rest.tile, rest.low.stride))
        weight *= rest.tile
        rest = rest.high
    assert isinstance(rest, Leaf)
    return merged_chain((*digits, (rest.extent, rest.stride)))


def _short_digit(tree: Tree) -> tuple[int, int] | None:
    """The index at which the lowest digit that is cut short first carries, and its offset without the carry.

    Split(12, 6, high, Split(6, 4, Leaf(2, 16), Leaf(4, 1))) -> (6, 18)    The tree is coalesced.
    """
    if not isinstance(tree, Split):
        return None
    if isinstance(tree.low, Split):  # a whole digit would have been coalesced into the levels above
        return _short_digit(tree.low) or (tree.tile, evaluate(tree.low, tree.tile))
    above = _short_digit(tree.high)
    return above and (above[0] * tree.tile, above[1])


def table_chain(values: Table, *, whole: bool) -> Chain | Break:
    """The chain of a 1-D table whose first offset is 0, or the first index that breaks it.

    [0, 1, 10, 11] -> ((2, 1), (2, 10))    [0, 1, 10, 12] -> Break(index=3, value=12, wanted=11)

    Args:
        values: the offsets; at least one.
        whole: the chain must end with the table: [0, 1, 10] has one without (box 4), none with.
    """
    digits: list[tuple[int, int]] = []
    size, weight, broken = values.size, 1, None
    while values.size > 1:
        step = int(values[1])
        run = _linear_run(values, step)
        if run == values.size:
            digits.append((run, step))
            break
        if whole and size % run:
            return Break(weight * run, int(values[run]), run * step)
        wrong = _first_wrong(values, run)
        if wrong is not None:
            index, wanted = wrong
            broken = Break(weight * index, int(values[index]), wanted)
            values = values[:index]
        digits.append((run, step))
        values, size, weight = values[::run], size // run, weight * run
    return broken or tuple(digits)


def _linear_run(values: Table, step: int) -> int:
    """How many offsets from the start on are 0, step, 2*step and so on."""
    other = np.diff(values) != step
    first = int(other.argmax())
    return first + 1 if other[first] else values.size


def _first_wrong(values: Table, run: int) -> tuple[int, int] | None:
    """The first index whose offset is not that of its run's start plus that of its place in the first run."""
    rows, rest = divmod(values.size, run)
    body = values[: rows * run].reshape(rows, run)
    wanted = body[:, :1] + values[:run]
    wrong = body != wanted
    index = int(wrong.argmax())
    if wrong.flat[index]:
        return index, int(wanted.flat[index])
    if not rest:
        return None
    tail = values[rows * run] + values[:rest]
    wrong = values[rows * run :] != tail
    index = int(wrong.argmax())
    return (rows * run + index, int(tail[index])) if wrong[index] else None


def table_chains(table: Table, *, whole: bool) -> tuple[Chain, ...] | Witness:
    """One chain an axis, whose sum the table is, or the first index in C order that breaks them.

    The offset of the first element must be 0, the table not empty.
    """
    breaks: list[Witness] = []
    chains: list[Chain] = []
    for axis in range(table.ndim):
        found = table_chain(axis_table(table, axis), whole=whole)
        if isinstance(found, Break):
            index = tuple(found.index if k == axis else 0 for k in range(table.ndim))
            breaks.append(Witness(index, found.value, found.wanted))
        else:
            chains.append(found)
    mixed = mixed_axes(table) if table.ndim > 1 else None
    if mixed:
        breaks.append(mixed)
    return min(breaks, key=lambda b: b.index) if breaks else tuple(chains)


def axis_table(table: Table, axis: int) -> Table:
    """The offsets along one axis, 0 in all others."""
    line: Table = table[tuple(slice(None) if k == axis else 0 for k in range(table.ndim))]
    return line


def mixed_axes(table: Table) -> Witness | None:
    """The first index in C order whose offset is not the sum of those along the axes; None where all are."""
    total = axis_table(table, 0)
    for axis in range(1, table.ndim):
        total = total[..., None] + axis_table(table, axis)
    wrong = table != total
    first = int(wrong.argmax())
    if not wrong.flat[first]:
        return None
    index = tuple(int(i) for i in np.unravel_index(first, table.shape))
    return Witness(index, int(table[index]), int(total[index]))
