"""A proof that no layout exists: an index, its value, and the value that a layout would have there."""

from __future__ import annotations

from codegen import LayoutError, dataclass, shown


@dataclass(frozen=True, slots=True)
class Witness:
    """An index at which no layout can agree: it gives `value`, while the values before it require `expected`.

    >>> print(recognize([0, 1, 10, 12]))
    index 3 gives 12, not 11

    Attributes:
        index: the colexicographic number of a coordinate, or a multi-index for a table with axes. For a
            complement it is an offset, and the values count how often the offset is reached.
        value: the value at that index.
        expected: the value of every layout that agrees with the indices before. None if `value` is an offset
            before the first element, where nothing is defined.
    """

    index: int | tuple[int, ...]
    value: int
    expected: int | None

    @property
    def multi_index(self) -> tuple[int, ...]:
        """The index as a tuple; a number becomes a tuple of one."""
        return self.index if isinstance(self.index, tuple) else (self.index,)

    def along(self, axis: int, rank: int) -> Witness:
        """Return the same witness for a table or shape of more axes, with 0 on all others.

        >>> Witness(3, 12, 11).along(1, 2)
        Witness(index=(0, 3), value=12, expected=11)

        Args:
            axis: the axis of the index.
            rank: the number of axes.

        Returns:
            The witness.
        """
        (at,) = self.multi_index
        return Witness(tuple(at if k == axis else 0 for k in range(rank)), self.value, self.expected)

    def __str__(self) -> str:
        """The witness as messages print it."""
        place = shown(self.index) if isinstance(self.index, int) else self.index
        other = "before the first element" if self.expected is None else f"not {shown(self.expected)}"
        return f"index {place} gives {shown(self.value)}, {other}"


class NoLayoutError(LayoutError):
    """No layout has the requested offsets; `witness` is an index that shows it, if an index can."""

    __module__ = "tilejit.cute"

    def __init__(self, text: str, witness: Witness | None = None) -> None:
        super().__init__(text)
        self.witness = witness
