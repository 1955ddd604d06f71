"""Entries, the calls that machine code may answer: checked arguments, and kernels to call.

Each part encodes itself in words, which `simd.direct` reads; `direct_fields` defines their order.
"""

from __future__ import annotations

import sys
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.ir.lines import LINE_BYTES
from codegen.simd import direct_fields as words
from codegen.support.dataclasses import dataclass

Numbers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """A plain array with a given layout."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    written: bool

    @property
    def words(self) -> list[int]:
        """The encoding that machine code reads."""
        flags = words.WRITEABLE if self.written else 0
        return [words.ARRAY, id(self.dtype), len(self.shape), flags, *self.shape, *self.strides]


@dataclass(frozen=True, slots=True)
class SameArgument:
    """The identical object."""

    value: Any

    @property
    def words(self) -> list[int]:
        """The encoding that machine code reads."""
        return [words.SAME, id(self.value)]


@dataclass(frozen=True, slots=True)
class FloatArgument:
    """Any Python float."""

    @property
    def words(self) -> list[int]:
        """The encoding that machine code reads."""
        return [words.FLOAT, 0]


@dataclass(frozen=True, slots=True)
class HolderArgument:
    """An object of exactly this class. Its first slot holds the array, its second one this very value."""

    kind: type
    value: Any
    array: ArrayArgument

    @property
    def words(self) -> list[int]:
        """The encoding that machine code reads."""
        return [words.HOLDER, id(self.kind), id(self.value), *self.array.words]


Argument: TypeAlias = ArrayArgument | SameArgument | FloatArgument | HolderArgument


@dataclass(frozen=True, slots=True)
class Disjoint:
    """Two arrays: the second address minus the first is not between low and high."""

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
    """A call of a kernel: (operands, scratch, table, begin, end).

    operands  (index of an argument, offset in bytes), or RESULT for where a result is written
    slots     words of the table that are arguments: (index of the word, index of the argument)
    scratch   the address of scratch for entries that hold the GIL, or an offset in the entry's; 0 without
    """

    function: int
    operands: tuple[tuple[int, int], ...]
    table: Numbers
    begin: int
    end: int
    slots: tuple[tuple[int, int], ...] = ()
    scratch: int = 0

    @property
    def words(self) -> list[int]:
        """The encoding that machine code reads."""
        table = self.table.ctypes.data, len(self.table)
        counts = len(self.operands), len(self.slots)
        head = self.function, self.scratch, *table, self.begin, self.end, *counts
        return [*head, *sum(self.operands, ()), *sum(self.slots, ())]


RESULT = (words.RESULTS, 0)


def own_scratch(arguments: int) -> int:
    """The index of a call's own scratch, for calls with that many arguments."""
    return arguments + 1


@dataclass(frozen=True, slots=True)
class FreshArray:
    """A new C-order array. If not `owner` of its memory, this belongs to its base and begins on a line."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    owner: bool = False

    @property
    def words(self) -> list[int]:
        """The encoding that machine code reads."""
        size = 0 if self.owner else prod(self.shape) * self.dtype.itemsize + LINE_BYTES - 1
        return [id(self.dtype), len(self.shape), size, *self.shape]


@dataclass(frozen=True, slots=True)
class PassedThrough:
    """The result of another function, called instead of kernels."""

    function: Any


@dataclass(frozen=True, slots=True)
class Entry:
    """Checked arguments, and the calls to make with them.

    keyword   the name of the last argument, "" if it has none
    releases  whether the GIL is released during the calls
    watches   floating-point flags from fenv.h; if the calls raise one, the object's Python path runs too and
              warns, so the calls may be made twice
    refuses   how many calls, from the first on, may refuse values by writing a number other than 0 to RESULT;
              then the calls after it are not made, and the object's Python path runs
    returns   None, the index of an argument, the dtype of a number, a new array (for calls its index follows
              those of the arguments), or the result of a function
    note      what the owner needs to know about the last answer
    holder    (class, value): the array that is returned is in a new object of this class, see HolderArgument
    scratch_bytes  the size of each call's own scratch, whose index is `own_scratch`; 0 without
    """

    arguments: tuple[Argument, ...]
    pairs: tuple[Disjoint | SameAddress, ...]
    calls: tuple[DirectCall, ...]
    keyword: str = ""
    releases: bool = False
    returns: int | np.dtype[Any] | FreshArray | PassedThrough | None = None
    note: Any = None
    watches: int = 0
    refuses: int = 0
    holder: tuple[type, Any] | None = None
    scratch_bytes: int = 0

    @property
    def holders(self) -> set[type]:
        """The classes of objects that hold arrays."""
        kinds = {x.kind for x in self.arguments if isinstance(x, HolderArgument)}
        return kinds | {self.holder[0]} if self.holder else kinds

    @property
    def condition(self) -> tuple[Any, ...]:
        """What must hold for the calls to be right; dtypes and objects count by identity, not equality."""
        return tuple(tuple(x.words) for x in self.arguments), self.pairs, self.keyword

    @property
    def fits(self) -> bool:
        """Whether the tables fit in the space that machine code reserves."""
        if len(self.arguments) + bool(self.scratch_bytes) >= words.MOST_ARGUMENTS:
            return False
        return all(
            len(call.operands) <= words.MOST_OPERANDS
            and (not call.slots or len(call.table) <= words.MOST_TABLE)
            for call in self.calls
        )

    @property
    def words(self) -> list[int]:
        """The encoding that machine code reads."""
        pairs = [
            [x.first, x.second, 0, 0, 1]
            if isinstance(x, SameAddress)
            else [x.first, x.second, x.low, x.high, 0]
            for x in self.pairs
        ]
        parts = [x.words for x in self.arguments] + pairs + [call.words for call in self.calls]
        body = [word for part in parts for word in part]
        returns, result, appended = self._result(words.FIRST_ARGUMENT + len(body))
        keyword = id(sys.intern(self.keyword)) if self.keyword else 0
        counts = (
            id(self),
            len(self.arguments),
            keyword,
            int(self.releases),
            self.watches,
            self.refuses,
            returns,
            result,
            *map(id, self.holder or ()),
            *[0, 0][2 * bool(self.holder) :],
            self.scratch_bytes + LINE_BYTES - 1 if self.scratch_bytes else 0,
            len(pairs),
            len(self.calls),
        )
        return [1 + len(counts) + len(body) + len(appended), *counts, *body, *appended]

    def _result(self, at: int) -> tuple[int, int, list[int]]:
        """Kind of the result, its dtype or the index of its words, and these words."""
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
