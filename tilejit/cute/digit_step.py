"""Dg<n:s…>, which moves one digit of the offset: by a table, or by another digit. TileJIT's own notation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from codegen import LayoutError, LayoutIndexError, dataclass, shown
from tilejit.cute.int_tuple import as_integer
from tilejit.cute.integers import exact_integers
from tilejit.support.tokens import MAX_INT64

OPERATIONS = ("+", "-", "^")


@dataclass(frozen=True, slots=True)
class DigitStep:
    """Permute the values of one digit of an offset: by a table, or by adding, subtracting or XORing a digit.

    >>> step = DigitStep(4, 2, table=(0, 2, 1, 3))  # of the digit offset // 2 % 4
    >>> step(2), step(5), str(step)
    (4, 3, 'Dg<4:2=(0,2,1,3)>')
    >>> rotation = DigitStep(4, 1, "+", 8, 4)  # digit 4:1 becomes (digit 4:1 + digit 8:4) mod 4
    >>> rotation(3), rotation(4 + 3), str(rotation)
    (3, 4, 'Dg<4:1+8:4>')

    A ComposedLayout may begin with one, as with a Swizzle. CuTe itself has swizzles only.

    Attributes:
        size: the number of values of the digit.
        stride: the distance in elements between two of them.
        operation: "+", "-" or "^", which may need a power of two; "" for a table.
        by_size: the number of values of the other digit.
        by_stride: its stride in elements.
        table: the new value for each value of the digit.

    Raises:
        LayoutError: at construction, if a number is out of range, the table is not a permutation, the two
            digits overlap, or values that are XORed do not stay below `size`.
        TypeError: at construction, if a field has the wrong type.
    """

    size: int
    stride: int
    operation: str = ""
    by_size: int = 1
    by_stride: int = 1
    table: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check that this is a permutation."""
        for name in ("size", "stride", "by_size", "by_stride"):
            number = as_integer(getattr(self, name), f"{name} of a digit")
            object.__setattr__(self, name, number)
            if not 1 <= number <= MAX_INT64:
                raise LayoutError(f"{name} of a digit is {shown(number)}\n  pass a number from 1 to 2^63-1")
        table = tuple(as_integer(value, "a value of a table") for value in self.table)
        object.__setattr__(self, "table", table)
        if bool(table) == bool(self.operation) or self.operation not in ("", *OPERATIONS):
            raise LayoutError(
                f"the operation of a digit is {self.operation!r} and its table has {len(table)} values\n"
                "  pass one of +, - and ^, or a table"
            )
        if table:
            check_permutation(table, self.size)
        else:
            self._check_digits()

    def _check_digits(self) -> None:
        own, other = self.stride * self.size, self.by_stride * self.by_size
        if self.by_stride < own and self.stride < other:
            raise LayoutError(
                f"the digits {self.size}:{self.stride} and {self.by_size}:{self.by_stride} overlap\n"
                "  choose digits of which one is above the other"
            )
        bits = self.size & (self.size - 1) == 0 and self.by_size <= self.size
        if self.operation == "^" and not bits:
            raise LayoutError(
                f"{self.size} values XORed with {self.by_size} do not stay below {self.size}\n"
                "  use a power of two, and at most as many for the other digit"
            )

    def __call__(self, offset: Any) -> Any:
        """Move the digit of an offset: integers, or arrays of integers, as int64 or Python integers.

        Raises:
            LayoutIndexError: an offset is negative.
            TypeError: an offset is not an integer.
        """
        many = isinstance(offset, np.ndarray)
        offset = exact_integers(offset, "an offset") if many else as_integer(offset, "an offset")
        if (offset.size and offset.min() < 0) if many else offset < 0:
            raise LayoutIndexError(
                f"{self} takes nonnegative offsets\n  add an offset to make them nonnegative"
            )
        value = offset // self.stride % self.size
        if self.table:
            return offset + (self._looked_up(value) - value) * self.stride
        by = offset // self.by_stride % self.by_size
        match self.operation:
            case "+":
                moved = (value + by) % self.size
            case "-":
                moved = (value - by) % self.size
            case _:
                moved = value ^ by
        return offset + (moved - value) * self.stride

    def _looked_up(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return np.asarray(self.table, np.int64)[value.astype(np.int64)]
        return self.table[value]

    @property
    def inverse(self) -> DigitStep:
        """The step that moves the digit back."""
        if self.table:
            back = np.argsort(self.table)
            return replace(self, table=tuple(int(value) for value in back))
        return replace(self, operation={"+": "-", "-": "+"}.get(self.operation, "^"))

    @property
    def block(self) -> int:
        """The size in elements of the blocks within which offsets are exchanged."""
        return self.stride * self.size

    def __str__(self) -> str:
        """The digit and what moves it: Dg<4:1+8:4>, or Dg<4:2=(0,2,1,3)>."""
        if self.table:
            return f"Dg<{self.size}:{self.stride}=({','.join(map(str, self.table))})>"
        return f"Dg<{self.size}:{self.stride}{self.operation}{self.by_size}:{self.by_stride}>"


def check_permutation(table: tuple[int, ...], size: int) -> None:
    """Raise a LayoutError unless a table names each number below `size` once."""
    if len(table) != size:
        raise LayoutError(
            f"the table has {len(table)} values, but the digit has {shown(size)}\n  pass one for each"
        )
    seen: set[int] = set()
    for value in table:
        if not 0 <= value < size or value in seen:
            wrong = " twice" if value in seen else f", which is not from 0 to {size - 1}"
            raise LayoutError(
                f"the table names {shown(value)}{wrong}\n  name each position from 0 to {size - 1} once"
            )
        seen.add(value)
