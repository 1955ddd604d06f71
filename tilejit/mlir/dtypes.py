"""The indices and arrays of a text."""

from __future__ import annotations

from collections.abc import Sequence

from codegen import Affine, Index, add_indices, dataclass, scale_index
from tilejit.mlir.selected_indices import check_selected

INDEX = "i64"
"""The dtype of `index`, a 64-bit integer here."""


def is_integer(dtype: str) -> bool:
    """Whether a dtype holds integers of several bits, which can be subscripts."""
    return dtype[0] in "iu" and dtype != "i1"


@dataclass(frozen=True, slots=True)
class MemRef:
    """An array in a function: its name, its dtype, and its sizes, which are numbers or expressions."""

    name: str
    dtype: str
    sizes: tuple[Index, ...]

    @property
    def static_sizes(self) -> tuple[int | None, ...]:
        """The sizes that are numbers, None for the others."""
        return tuple(map(number_of, self.sizes))


def number_of(index: Index) -> int | None:
    """The number that an index expression is, or None."""
    return index.constant if isinstance(index, Affine) and not index.terms else None


@dataclass(frozen=True, slots=True)
class View:
    """A view of an array, as memref.subview and memref.reinterpret_cast define it.

    first  the subscripts of the array's element at which the view starts
    moves  for each dimension of the view, the array's dimension that it traverses, and the step in elements
    sizes  for each dimension of the view, one or more sizes whose minimum applies
    """

    memref: MemRef
    first: tuple[Index, ...]
    moves: tuple[tuple[int, int], ...]
    sizes: tuple[tuple[Index, ...], ...]

    def subscripts(self, indices: Sequence[Index]) -> tuple[Index, ...]:
        """The array's subscripts of an element of the view.

        Raises:
            Unsupported: a subscript is selected by a size other than the array's.
        """
        where = list(self.first)
        for index, (dimension, step) in zip(indices, self.moves, strict=True):
            begin, moved = where[dimension], index if step == 1 else scale_index(index, step)
            where[dimension] = moved if begin == Affine() else add_indices(begin, moved)
        check_selected(where, self.memref.sizes)
        return tuple(where)


def whole(memref: MemRef) -> View:
    """A view of a complete array."""
    rank = len(memref.sizes)
    first: tuple[Index, ...] = (Affine(),) * rank
    return View(memref, first, tuple((k, 1) for k in range(rank)), tuple((size,) for size in memref.sizes))
