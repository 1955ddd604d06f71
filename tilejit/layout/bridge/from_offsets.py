"""Offset tables to CuTe layouts: the recognizer."""

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
        LayoutError: the rows have several lengths, or strides exceed 64 bits.
        TypeError: the table does not consist of integers.
    """
    values = exact_table(table)
    if 0 in values.shape:
        found = layout_of((Mode(n, 0),) for n in values.shape)
        return found[0] if values.ndim == 1 else found
    found = recognized(values, "the table", _mend(boxed), whole=not boxed)
    return found[0] if values.ndim == 1 else found


def recognized(values: Table, name: str, mend: str, *, whole: bool = True) -> Layout:
    """The layout of a table that is not empty, one mode an axis; `name` and `mend` are for the message.

    Raises:
        NoLayoutError: there is none.
    """
    first = int(values.reshape(-1)[0])  # NumPy's flat has at most 32 dimensions
    if first:
        raise NoLayoutError(
            f"{name} is not a CuTe layout: index 0 gives {shown(first)}, where a layout gives 0\n  {mend}",
            Witness(0 if values.ndim == 1 else (0,) * values.ndim, first, 0),
        )
    found = table_chains(values, whole=whole)
    if isinstance(found, Witness):
        refuse(name, found, mend)
    return layout_of(found)


def _mend(boxed: bool) -> str:
    """What a caller can do about a table that is no layout."""
    law = "a layout adds what each digit of each index gives"
    return law if boxed else f"{law}; boxed=True lets the last digit of an axis end early"


def refuse(name: str, witness: Witness, mend: str) -> NoReturn:
    """Raise the error that a witness of a table proves; of one axis its index is a number."""
    if len(witness.multi_index) == 1:
        witness = Witness(witness.multi_index[0], witness.value, witness.expected)
    place = shown(witness.index) if isinstance(witness.index, int) else witness.index
    expected = "none" if witness.expected is None else shown(witness.expected)
    raise NoLayoutError(
        f"{name} is not a CuTe layout: index {place} gives {shown(witness.value)}, "
        f"where the indices before it ask for {expected}\n  {mend}",
        witness,
    )
