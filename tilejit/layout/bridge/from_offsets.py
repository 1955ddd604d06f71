"""Recognize the CuTe layout of a table of offsets."""

from __future__ import annotations

from typing import NoReturn

from numpy.typing import ArrayLike

from codegen import shown
from tilejit.cute.digits import Mode
from tilejit.cute.layout import Layout
from tilejit.cute.tables import Table, exact_table, layout_of, table_chains
from tilejit.cute.witness import NoLayoutError, Witness


def from_offsets(table: ArrayLike, *, boxed: bool = False) -> Layout:
    """Find the layout whose offsets a table holds.

    >>> print(from_offsets([0, 4, 1, 5]))  # table[i] == layout(i), the first mode fastest
    (2,2):(4,1)
    >>> print(from_offsets([[0, 4], [1, 5]]))  # table[i, j] == layout((i, j))
    (2,2):(1,4)
    >>> print(from_offsets([0, 1, 10], boxed=True))
    (2,2):(1,10)

    Args:
        table: integers, in elements. A 1-D table gives a coalesced layout; any other gives one mode for each
            axis. `offsets(layout)` is such a table.
        boxed: whether the layout may be larger than the table, which then holds a corner of it.

    Returns:
        The layout.

    Raises:
        NoLayoutError: no layout has these offsets. The witness is the first index, in C order, that
            contradicts the indices before it.
        LayoutError: the rows differ in length, or strides exceed 64 bits.
        TypeError: the table does not consist of integers.
    """
    values = exact_table(table)
    if 0 in values.shape:
        found = layout_of((Mode(n, 0),) for n in values.shape)
        return found[0] if values.ndim == 1 else found
    found = recognized(values, "the table", _fix(boxed), whole=not boxed)
    return found[0] if values.ndim == 1 else found


def recognized(values: Table, name: str, fix: str, *, whole: bool = True) -> Layout:
    """Return the layout of a nonempty table, one mode for each axis; `name` and `fix` appear in the message.

    Raises:
        NoLayoutError: the table is not a layout.
    """
    first = int(values.reshape(-1)[0])  # NumPy's flat has at most 32 dimensions
    if first:
        raise NoLayoutError(
            f"{name} is not a CuTe layout: index 0 gives {shown(first)}, but a layout starts at 0\n  {fix}",
            Witness(0 if values.ndim == 1 else (0,) * values.ndim, first, 0),
        )
    found = table_chains(values, whole=whole)
    if isinstance(found, Witness):
        refuse(name, found, fix)
    return layout_of(found)


def _fix(boxed: bool) -> str:
    """Suggest a fix for a table that is not a layout."""
    law = "the offset of a layout is a sum over the digits of each index"
    return law if boxed else f"{law}; pass boxed=True if the last digit of an axis may end early"


def refuse(name: str, witness: Witness, fix: str) -> NoReturn:
    """Raise the error that a witness of a table proves; for one axis, its index is a number."""
    if len(witness.multi_index) == 1:
        witness = Witness(witness.multi_index[0], witness.value, witness.expected)
    place = shown(witness.index) if isinstance(witness.index, int) else witness.index
    expected = "none" if witness.expected is None else shown(witness.expected)
    raise NoLayoutError(
        f"{name} is not a CuTe layout: index {place} gives {shown(witness.value)}, "
        f"but the indices before it require {expected}\n  {fix}",
        witness,
    )
