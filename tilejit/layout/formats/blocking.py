"""`Blocking`: an array cut into digits, and the digits' order in memory: pad, reshape, transpose."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from codegen import LayoutError, dataclass, shown
from tilejit.layout.checks import int_tuple, set_fields
from tilejit.layout.text.recipe import Packed, Recipe, add_packing
from tilejit.support.tokens import MAX_INT64


class DigitName(NamedTuple):
    """A dimension, and the number of a digit in it, the most major digit first."""

    dim: int
    number: int


@dataclass(frozen=True, slots=True)
class Permutation:
    """A digit whose values have another order in memory.

    Attributes:
        digit: the digit.
        by: the digit that moves it.
        operation: how: "+" and "-" modulo the size of `digit`, or "^". Empty without `by`.
        table: the position of each value; without one and without `by`, the digit is reversed.
    """

    digit: DigitName
    by: DigitName | None = None
    operation: str = ""
    table: tuple[int, ...] = ()

    @property
    def reverses(self) -> bool:
        """Whether the digit is reversed."""
        return self.by is None and not self.table


@dataclass(frozen=True, slots=True)
class Blocking:
    """The digits of each dimension, and their order in memory.

    [40,300] as (5,8) and (3,128), with contiguous blocks:
    Blocking((40, 300), ((5, 8), (3, 128)), ((0, 0), (1, 0), (0, 1), (1, 1)))

    Attributes:
        dimensions: the dimensions of the array, in elements.
        digits: for each dimension the sizes of its digits, the most major first; a product beyond the
            dimension is padding.
        order: every digit once, in memory order, the most major first.
        permutations: the digits whose values have another order in memory, each once. Those that are read,
            `by`, come after the permutations that read them.

    Raises:
        LayoutError: at construction, if digits are smaller than a dimension, or the order does not name each
            digit once.
        TypeError: at construction, if a value is not an integer.
    """

    dimensions: tuple[int, ...]
    digits: tuple[tuple[int, ...], ...]
    order: tuple[DigitName, ...]
    permutations: tuple[Permutation, ...] = ()

    def __post_init__(self) -> None:
        """Check that digits cover the dimensions and that the order names each once."""
        dims = int_tuple(self.dimensions, "dimensions")
        digits = tuple(int_tuple(sizes, "digits") for sizes in self.digits)
        set_fields(self, dimensions=dims, digits=digits)
        if len(digits) != len(dims):
            raise LayoutError(
                f"digits are given for {len(digits)} of {len(dims)} dimensions\n  pass digits for each"
            )
        for size, sizes in zip(dims, digits, strict=True):
            _check_digits(size, sizes)
        order = tuple(int_tuple(digit, "a digit") for digit in self.order)
        if sorted(order) != self.axes:
            raise LayoutError(
                "the order does not name every digit once\n  pass each (dimension, number) once"
            )
        set_fields(self, order=tuple(DigitName(*digit) for digit in order))

    @property
    def axes(self) -> list[DigitName]:
        """Every digit, in the order of the reshaped array's axes."""
        return [DigitName(dim, k) for dim, sizes in enumerate(self.digits) for k in range(len(sizes))]

    @property
    def padded(self) -> tuple[int, ...]:
        """The dimensions, padding included."""
        return tuple(map(prod, self.digits))

    @property
    def heads(self) -> tuple[int, ...] | None:
        """The dimensions in the order of their first digits, if these precede all others; otherwise None."""
        rank = len(self.dimensions)
        first = self.order[:rank]
        return tuple(dim for dim, _ in first) if all(number == 0 for _, number in first) else None

    def size(self, digit: DigitName) -> int:
        """The number of values of a digit."""
        return self.digits[digit.dim][digit.number]

    def extent(self, digits: Sequence[DigitName]) -> int:
        """The number of elements of some digits together, at least 1, because a tile cannot have size 0."""
        return max(1, prod(self.digits[dim][k] for dim, k in digits))

    def is_padded(self, dim: int) -> bool:
        """Whether the digits cover more than a dimension."""
        return prod(self.digits[dim]) > self.dimensions[dim]

    def is_grown(self, dim: int) -> bool:
        """Whether whole steps of the first digit are padding, beyond the padding of lower digits."""
        first, *rest = self.digits[dim]
        return first > -(-self.dimensions[dim] // max(1, prod(rest)))

    def recipe(self, heading: str, fill: str = "", shape: Packed | None = None) -> str:
        """Write the source of `pack(x)`, which converts an array to its flat buffer: pad, reshape, transpose.

        Args:
            heading: the docstring of `pack`.
            fill: further arguments of np.pad, starting with a comma.
            shape: the shape whose elements share bytes, if they do.

        Raises:
            LayoutError: the code needs more than NumPy's 64 dimensions.
        """
        out, axis = Recipe(self.dimensions, fill), self.axes.index
        out.pad(self.padded)
        out.reshape(tuple(size for sizes in self.digits for size in sizes))
        out.flip(tuple(axis(one.digit) for one in self.permutations if one.reverses))
        for one in self.permutations:
            if one.by is not None:
                out.move(axis(one.digit), one.operation, axis(one.by))
            elif one.table:
                out.place(axis(one.digit), one.table)
        out.transpose(tuple(axis(digit) for digit in self.order))
        out.flatten(prod(self.padded))
        if shape is not None:
            add_packing(out, shape)
        return out.source(heading)


def _check_digits(size: int, digits: tuple[int, ...]) -> None:
    if not digits:
        raise LayoutError("a dimension has no digits\n  pass one digit of the dimension's size")
    for digit in digits:
        if not 0 <= digit <= MAX_INT64:
            raise LayoutError(f"a digit is {shown(digit)}\n  pass a size from 0 to 2^63-1")
    if prod(digits) < size:
        raise LayoutError(
            f"the digits {' x '.join(map(str, digits))} cover {shown(prod(digits))} elements, less than the "
            f"dimension's {shown(size)}\n"
            "  make them larger"
        )
