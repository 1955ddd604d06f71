"""The chain of digits of each dimension of an XLA shape, or an index whose slot no chains produce."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from codegen import LayoutError, Opaque, logical_roots
from tilejit.cute.digits import Chain, Mode
from tilejit.cute.tables import Table, table_chains
from tilejit.cute.witness import Witness
from tilejit.layout.bridge.chains import cut_chain, tree_chain
from tilejit.layout.indexing import access_map, linear_index, shape_name
from tilejit.layout.shape import Shape
from tilejit.layout.shape_facts import tile_steps_of
from tilejit.layout.strides import buffer_digits

MOST_LISTED = 1 << 21
"""The most elements whose slots are enumerated if nothing else decides."""
PROBES = 1 << 18


def xla_chains(shape: Shape) -> tuple[Chain, ...] | Witness:
    """Return for each dimension a chain of digits; their sum is the slot of every element.

    f32[3,5]{1,0:T(2,2)} -> ((2, 2), (2, 12)), ((2, 1), (3, 4))

    Slots are enumerated only if the tiles of a `*` cut through its dimensions. The shape has elements.

    Raises:
        LayoutError: the tiles of a `*` cut through dimensions of more than 2^21 elements, and no sampled
            index shows whether padding hides it.
    """
    roots = logical_roots(access_map(shape))
    if any(len(root.dims) > 1 or isinstance(root.tree, Opaque) for root in roots):
        return _digit_chains(shape) or _listed_chains(shape)
    chains: list[Chain] = [()] * shape.rank
    breaks: list[Witness] = []
    for root in roots:
        (dim,) = root.dims
        found = tree_chain(root.tree, shape.dimensions[dim])
        if isinstance(found, Witness):
            breaks.append(found.along(dim, shape.rank))
        else:
            chains[dim] = found
    return min(breaks, key=lambda b: b.multi_index) if breaks else tuple(chains)


def _digit_chains(shape: Shape) -> tuple[Chain, ...] | None:
    """The chains if no tile cuts a merged axis between two of its digits, otherwise None."""
    found = buffer_digits(*tile_steps_of(shape))
    if found is None:
        return None
    chains: list[Chain] = []
    for dim, size in enumerate(shape.dimensions):
        axis = shape.rank - 1 - shape.minor_to_major.index(dim)
        digits = sorted(
            (digit for digit in found if digit.dim == axis and digit.size > 1 and digit.weight < size),
            key=attrgetter("weight", "size", "stride"),
        )
        reach = 1
        for digit in digits:
            if digit.weight != reach:
                return None
            reach *= digit.size
        if reach < size:
            return None
        chains.append(cut_chain(tuple(Mode(digit.size, digit.stride) for digit in digits), size))
    return tuple(chains)


def _listed_chains(shape: Shape) -> tuple[Chain, ...] | Witness:
    """`xla_chains` by enumerating the slots."""
    if prod(shape.dimensions) <= MOST_LISTED:
        table = np.asarray(linear_index(shape, tuple(np.indices(shape.dimensions, sparse=True))))
        return table_chains(_exact(table, shape), whole=False)
    for numbers in _samples(prod(shape.dimensions)):
        index = np.unravel_index(numbers, shape.dimensions)
        zero = tuple(np.zeros_like(i) for i in index)
        slots = _exact(np.asarray(linear_index(shape, index)), shape)
        wanted = sum(
            _exact(np.asarray(linear_index(shape, (*zero[:d], index[d], *zero[d + 1 :]))), shape)
            for d in range(shape.rank)
        )
        wrong = np.flatnonzero(slots != wanted)
        if wrong.size:
            first = int(wrong[0])
            return Witness(
                tuple(int(i[first]) for i in index), int(slots[first]), int(np.asarray(wanted)[first])
            )
    raise LayoutError(
        f"{shape_name(shape)} cannot be checked: its tiles cut through the dimensions that * merges, and it "
        f"has more than the {MOST_LISTED} elements that TileJIT compares\n"
        "  write tiles without *, or use smaller dimensions"
    )


def _exact(slots: NDArray[np.int64], shape: Shape) -> Table:
    """Slots whose sums over the dimensions do not overflow."""
    return slots.astype(np.int64 if shape.physical_size * (shape.rank + 1) < 2**62 else object, copy=False)


def _samples(count: int) -> Iterator[NDArray[np.int64]]:
    """Numbers of elements to try: the first ones, then some across the whole range."""
    yield np.arange(PROBES)
    yield np.sort(np.random.default_rng(0).integers(0, count, PROBES))
