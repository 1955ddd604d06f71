"""What shows that there is no layout: an index, what it gives there, and what a layout would give."""

from __future__ import annotations

from codegen import LayoutError, dataclass, shown


@dataclass(frozen=True, slots=True)
class Witness:
    """An index at which no layout can agree: it gives `value`, where the values before ask for `expected`.

    str(Witness(3, 12, 11)) -> "index 3 gives 12, not 11"

    Attributes:
        index: the colexicographic number of a coordinate, or a multi-index where a table has axes. Of a
            complement it is an offset, and the values are how many times that is met.
        value: what was asked for gives there.
        expected: what every layout gives there that agrees before; None where `value` is a place before the
            first element, at which nothing is defined.
    """

    index: int | tuple[int, ...]
    value: int
    expected: int | None

    @property
    def multi_index(self) -> tuple[int, ...]:
        """The index as a tuple, of one number where it is a number."""
        return self.index if isinstance(self.index, tuple) else (self.index,)

    def along(self, axis: int, rank: int) -> Witness:
        """The same of a table or shape of more axes, 0 on all others."""
        (at,) = self.multi_index
        return Witness(tuple(at if k == axis else 0 for k in range(rank)), self.value, self.expected)

    def __str__(self) -> str:
        """As messages say it."""
        place = shown(self.index) if isinstance(self.index, int) else self.index
        other = "before the first element" if self.expected is None else f"not {shown(self.expected)}"
        return f"index {place} gives {shown(self.value)}, {other}"


class NoLayoutError(LayoutError):
    """No layout says what was asked for; `witness` is the index that shows so, where an index can."""

    __module__ = "tilejit.cute"

    def __init__(self, text: str, witness: Witness | None = None) -> None:
        super().__init__(text)
        self.witness = witness
