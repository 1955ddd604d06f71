"""Offset tables to CuTe layouts: the recogniser."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from codegen.errors import LayoutError
from tilejit.layout.bridge.chains import Chain, Table, Witness, table_chains
from tilejit.layout.cute.layout import Layout


def from_offsets(table: ArrayLike, *, boxed: bool = False) -> Layout:
    """The layout whose offsets a table holds: one mode an axis, or, of a 1-D table, coalesced modes.

    [0, 4, 1, 5]         -> (2,2):(4,1)         table[i] == layout(i), the first mode fastest
    [[0, 4], [1, 5]]     -> (2,2):(1,4)         table[i, j] == layout((i, j))
    [0, 1, 10] boxed     -> (2,2):(1,10)        a larger box may end past the table

    Args:
        table: integers of any dimensions; `offsets(layout)` gives such a table.
        boxed: whether a layout of a larger box will do, of which the table holds a corner.

    Raises:
        LayoutError: no layout has these offsets; the message names the first index, in C order, at which
            none agrees with the indices before it.
        TypeError: not a table of integers.
    """
    values = exact_table(table)
    if 0 in values.shape:
        return layout_of(((n, 0),) for n in values.shape)
    found = recognised(values, "the table", _mend(boxed), whole=not boxed)
    return found[0] if values.ndim == 1 else found


def recognised(values: Table, name: str, mend: str, *, whole: bool = True) -> Layout:
    """The layout of a table that is not empty, one mode an axis; `name` and `mend` are for the message.

    Raises:
        LayoutError: there is none.
    """
    first = int(values.flat[0])
    if first:
        raise LayoutError(
            f"{name} is not a CuTe layout: index 0 gives {first}, where a layout gives 0\n  {mend}"
        )
    found = table_chains(values, whole=whole)
    if isinstance(found, Witness):
        refuse(name, found, mend)
    return layout_of(found)


def _mend(boxed: bool) -> str:
    """What a caller can do about a table that is no layout."""
    law = "a layout adds what each digit of each index gives"
    return law if boxed else f"{law}; boxed=True lets the last digit of an axis end early"


def layout_of(chains: Iterable[Chain]) -> Layout:
    """One mode a chain."""
    shape: list[Any] = []
    stride: list[Any] = []
    for digits in chains:
        sizes, steps = zip(*(digits or ((1, 0),)), strict=True)
        shape.append(sizes if len(sizes) > 1 else sizes[0])
        stride.append(steps if len(steps) > 1 else steps[0])
    return Layout(tuple(shape), tuple(stride))


def exact_table(table: ArrayLike) -> Table:
    """A table as an array whose sums and differences do not overflow."""
    try:
        array = np.asarray(table)
    except ValueError as error:
        raise LayoutError(f"the table has no dimensions: {error}\n  give rows of one length") from error
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        kind = array.dtype
        array = np.asarray(table, dtype=object)  # integers past 64 bits, which NumPy takes for floats
        if not all(type(value) is int for value in array.flat):
            raise TypeError(f"a table of offsets holds integers, not {kind}")
    reach = max(int(array.max()), -int(array.min())) * (array.ndim + 1)
    return array.astype(np.int64 if reach < 2**62 else object, copy=False)


def refuse(name: str, witness: Witness, mend: str) -> NoReturn:
    """Raise the LayoutError that a witness proves."""
    index = witness.index[0] if len(witness.index) == 1 else witness.index
    raise LayoutError(
        f"{name} is not a CuTe layout: index {index} gives {witness.value}, "
        f"where the indices before it ask for {witness.wanted}\n  {mend}"
    )
