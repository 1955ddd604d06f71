"""Recognize the layout of a table of offsets: the coalesced layout, or the first index that contradicts one.

A chain of digits (s0,s1,..):(d0,d1,..) sends i to (i mod s0)*d0 + (i // s0 mod s1)*d1 + ... Among all chains
with the same offsets on [0, n), one has the fewest digits. Its first digit is the longest linear run, and

    offset(i) = offset(i mod s0) + offset(i - i mod s0)

so the chain is found, or refuted, digit by digit.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from codegen import LayoutError
from tilejit.cute.digits import Chain, Mode
from tilejit.cute.int_tuple import IntTuple, as_int_tuple, flatten, unflatten
from tilejit.cute.integers import exact_integers, reach_of
from tilejit.cute.layout import Layout
from tilejit.cute.witness import Witness
from tilejit.support.tokens import named

Table: TypeAlias = NDArray[Any]
"""Offsets as int64, or as Python integers if int64 could overflow."""


def recognize(table: ArrayLike, shape: object = None) -> Layout | Witness:
    """Find the layout whose offsets a table holds, or a witness that there is none.

    >>> print(recognize([0, 1, 10, 11]))
    (2,2):(1,10)
    >>> print(recognize([0, 1, 10, 12]))
    index 3 gives 12, not 11

    `from_offsets` reads tables with an axis for each mode, and raises an error in place of a witness.

    Args:
        table: integers, in elements, in colexicographic order.
        shape: an IntTuple of sizes; the layout is coalesced within each. None coalesces the whole layout.

    Returns:
        The layout, or a `Witness`: the first index that no layout agrees with.

    Raises:
        LayoutError: rows differ in length, the shape has another size, or strides exceed 64 bits.
        TypeError: the table does not consist of integers.
    """
    values = exact_table(table).reshape(-1)
    profile = values.size if shape is None else as_int_tuple(shape, "a shape")
    sizes = flatten(profile)
    if min(sizes, default=1) < 0 or prod(sizes) != values.size:
        raise LayoutError(
            f"a table of {values.size} offsets does not fill the shape {named(profile)}\n"
            "  pass a shape of that size"
        )
    if values.size == 0:
        return Layout(profile, unflatten(iter([0] * len(sizes)), profile))
    if values[0]:
        return Witness(0, int(values[0]), 0)
    axes = [place for place, size in enumerate(sizes) if size > 1]
    found = table_chains(values.reshape([sizes[place] for place in reversed(axes)]), whole=True)
    if isinstance(found, Witness):
        index = 0
        for place, at in zip(reversed(axes), found.multi_index, strict=True):
            index = index * sizes[place] + at
        return Witness(index, found.value, found.expected)
    chains: list[Chain] = [()] * len(sizes)
    for place, chain in zip(reversed(axes), found, strict=True):
        chains[place] = chain
    modes = [mode_of(chain) for chain in chains]
    return Layout(
        unflatten(iter([size for size, _ in modes]), profile),
        unflatten(iter([step for _, step in modes]), profile),
    )


def layout_of(chains: Iterable[Chain]) -> Layout:
    """The layout with one mode for each chain."""
    modes = [mode_of(chain) for chain in chains]
    return Layout(tuple(size for size, _ in modes), tuple(step for _, step in modes))


def mode_of(chain: Chain) -> tuple[IntTuple, IntTuple]:
    """Shape and stride of a chain; one digit as integers.

    ((2, 1), (2, 10)) -> (2, 2), (1, 10)    () -> 1, 0
    """
    if len(chain) < 2:
        return chain[0] if chain else (1, 0)
    sizes, steps = zip(*chain, strict=True)
    return sizes, steps


def exact_table(table: ArrayLike) -> Table:
    """Convert a table to an array whose sums and differences do not overflow.

    Raises:
        LayoutError: the rows differ in length.
        TypeError: the table does not consist of integers.
    """
    try:
        array = np.asanyarray(table)
    except ValueError as error:
        raise LayoutError(
            f"the rows of the table differ in length: {error}\n  pass rows of equal length"
        ) from error
    if array.size == 0 and array.dtype == np.float64:
        return np.asarray(array, np.int64)  # NumPy reads [] as floats
    if array.dtype.kind not in "iuO" and not isinstance(table, np.ndarray):
        array = np.asarray(table, dtype=object)  # integers beyond 64 bits, which NumPy reads as floats
    values = exact_integers(array, "a table of offsets")
    return values.astype(values.dtype if reach_of(values) * (values.ndim + 1) < 2**62 else object, copy=False)


def table_chain(values: Table, *, whole: bool) -> Chain | Witness:
    """The chain of a 1-D table whose first offset is 0, or the first index that breaks it.

    [0, 1, 10, 11] -> ((2, 1), (2, 10))    [0, 1, 10, 12] -> Witness(3, 12, 11)

    Args:
        values: the offsets, at least one.
        whole: whether the chain must end with the table. If not, [0, 1, 10] has one, in a box of 4.
    """
    digits: list[Mode] = []
    size, weight, broken = values.size, 1, None
    while values.size > 1:
        step = int(values[1])
        run = linear_run(values, step)
        if run == values.size:
            digits.append(Mode(run, step))
            break
        if whole and size % run:
            return Witness(weight * run, int(values[run]), run * step)
        wrong = _first_wrong(values, run)
        if wrong is not None:
            index, expected = wrong
            broken = Witness(weight * index, int(values[index]), expected)
            values = values[:index]
        digits.append(Mode(run, step))
        values, size, weight = values[::run], size // run, weight * run
    return broken or tuple(digits)


def linear_run(values: Table, step: int) -> int:
    """The number of offsets from the start that are 0, step, 2*step and so on."""
    other = np.diff(values) != step
    first = int(other.argmax())
    return first + 1 if other[first] else values.size


def _first_wrong(values: Table, run: int) -> tuple[int, int] | None:
    """The first index whose offset is not its run's start plus the first run's offset at that position."""
    rows, rest = divmod(values.size, run)
    body = values[: rows * run].reshape(rows, run)
    expected = body[:, :1] + values[:run]
    wrong = body != expected
    index = int(wrong.argmax())
    if wrong.flat[index]:
        return index, int(expected.flat[index])
    if not rest:
        return None
    tail = values[rows * run] + values[:rest]
    wrong = values[rows * run :] != tail
    index = int(wrong.argmax())
    return (rows * run + index, int(tail[index])) if wrong[index] else None


def table_chains(table: Table, *, whole: bool) -> tuple[Chain, ...] | Witness:
    """Chains for the axes whose sum is the table, or the first multi-index in C order that breaks them.

    The offset of the first element must be 0, and the table not empty.
    """
    breaks: list[Witness] = []
    chains: list[Chain] = []
    for axis in range(table.ndim):
        found = table_chain(axis_table(table, axis), whole=whole)
        if isinstance(found, Witness):
            breaks.append(found.along(axis, table.ndim))
        else:
            chains.append(found)
    mixed = mixed_axes(table) if table.ndim > 1 else None
    if mixed:
        breaks.append(mixed)
    return min(breaks, key=lambda b: b.multi_index) if breaks else tuple(chains)


def axis_table(table: Table, axis: int) -> Table:
    """The offsets along one axis, 0 in all others."""
    line: Table = table[tuple(slice(None) if k == axis else 0 for k in range(table.ndim))]
    return line


def mixed_axes(table: Table) -> Witness | None:
    """The first index in C order whose offset is not the sum of those along the axes, or None."""
    total = axis_table(table, 0)
    for axis in range(1, table.ndim):
        total = total[..., None] + axis_table(table, axis)
    wrong = table != total
    first = int(wrong.argmax())
    if not wrong.reshape(-1)[first]:
        return None
    index = tuple(int(i) for i in np.unravel_index(first, table.shape))
    return Witness(index, int(table[index]), int(total[index]))
