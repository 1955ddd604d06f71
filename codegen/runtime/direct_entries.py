"""What machine code may answer of an object's calls: arguments that were checked, and kernels to be called.

Each part says what it is in words, as `simd.direct` reads them; `direct_fields` says where they lie.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.ir.copies.tiles import LINE_BYTES
from codegen.simd import direct_fields as words

Numbers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """A plain array of a layout."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    written: bool

    @property
    def words(self) -> list[int]:
        """As machine code reads it."""
        flags = words.WRITEABLE if self.written else 0
        return [words.ARRAY, id(self.dtype), len(self.shape), flags, *self.shape, *self.strides]


@dataclass(frozen=True, slots=True)
class SameArgument:
    """The very object."""

    value: Any

    @property
    def words(self) -> list[int]:
        """As machine code reads it."""
        return [words.SAME, id(self.value)]


@dataclass(frozen=True, slots=True)
class FloatArgument:
    """Any float of Python's."""

    @property
    def words(self) -> list[int]:
        """As machine code reads it."""
        return [words.FLOAT, 0]


Argument: TypeAlias = ArrayArgument | SameArgument | FloatArgument


@dataclass(frozen=True, slots=True)
class Disjoint:
    """Two arrays: the address of the second less that of the first is not between low and high."""

    first: int
    second: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class SameAddress:
    """Two arrays that begin at the same address."""

    first: int
    second: int


@dataclass(frozen=True, slots=True)
class DirectCall:
    """A call of a kernel: (src, dst, table, begin, end).

    src, dst  (place of an argument, bytes from there), NO_SIDE, or RESULT for where a result is written
    slots     words of the table that are arguments: (word, place)
    """

    function: int
    src: tuple[int, int]
    dst: tuple[int, int]
    table: Numbers
    begin: int
    end: int
    slots: tuple[tuple[int, int], ...] = ()

    @property
    def words(self) -> list[int]:
        """As machine code reads it."""
        table = self.table.ctypes.data, len(self.table), len(self.slots)
        return [self.function, *self.src, *self.dst, *table, self.begin, self.end, *sum(self.slots, ())]


NO_SIDE = (words.NO_SIDE, 0)
RESULT = (words.RESULTS, 0)


@dataclass(frozen=True, slots=True)
class FreshArray:
    """A new array in C order; `owner`: of its memory, which else begins on a line and belongs to its base."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    owner: bool = False

    @property
    def words(self) -> list[int]:
        """As machine code reads it."""
        size = 0 if self.owner else prod(self.shape) * self.dtype.itemsize + LINE_BYTES - 1
        return [id(self.dtype), len(self.shape), size, *self.shape]


@dataclass(frozen=True, slots=True)
class PassedThrough:
    """What another function gives that is called in place of kernels."""

    function: Any


@dataclass(frozen=True, slots=True)
class Entry:
    """Arguments that were checked, and what is called with them.

    keyword   the name of the last argument, "" where it has none
    releases  whether Python's lock is given away meanwhile
    watches   flags of floating point, as fenv.h has them: where calls raise one, the object's way in Python
              is taken too, which warns; so the calls can be made twice
    returns   None, the place of an argument, the dtype of a number, a new array, whose place for calls is
              behind those of the arguments, or what a function gives
    note      whatever the owner wants to know of the last answer
    """

    arguments: tuple[Argument, ...]
    pairs: tuple[Disjoint | SameAddress, ...]
    calls: tuple[DirectCall, ...]
    keyword: str = ""
    releases: bool = False
    returns: int | np.dtype[Any] | FreshArray | PassedThrough | None = None
    note: Any = None
    watches: int = 0

    @property
    def condition(self) -> tuple[Any, ...]:
        """What has to hold for the calls to be right: of dtypes and objects that equal each other, which."""
        return tuple(tuple(x.words) for x in self.arguments), self.pairs, self.keyword

    @property
    def fits(self) -> bool:
        """Whether machine code has room for its tables."""
        if len(self.arguments) >= words.MOST_ARGUMENTS:
            return False
        return all(not call.slots or len(call.table) <= words.MOST_TABLE for call in self.calls)

    @property
    def words(self) -> list[int]:
        """As machine code reads it."""
        pairs = [
            [x.first, x.second, 0, 0, 1]
            if isinstance(x, SameAddress)
            else [x.first, x.second, x.low, x.high, 0]
            for x in self.pairs
        ]
        parts = [x.words for x in self.arguments] + pairs + [call.words for call in self.calls]
        body = [word for part in parts for word in part]
        returns, result, behind = self._result(words.FIRST_ARGUMENT + len(body))
        keyword = id(sys.intern(self.keyword)) if self.keyword else 0
        counts = (
            len(self.arguments),
            keyword,
            int(self.releases),
            self.watches,
            returns,
            result,
            len(pairs),
            len(self.calls),
        )
        return [1 + len(counts) + len(body) + len(behind), *counts, *body, *behind]

    def _result(self, at: int) -> tuple[int, int, list[int]]:
        """What comes back, of what dtype or in which word it stands, and the words there."""
        match self.returns:
            case None:
                return words.NOTHING, 0, []
            case int():
                return self.returns, 0, []
            case FreshArray():
                return words.FRESH, at, self.returns.words
            case PassedThrough():
                return words.PASSED_ON, id(self.returns.function), []
            case _:
                return words.NUMBER, id(self.returns), []
