"""The facts before a launch: the numbers, the storage and the tables passed to a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.support.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Storage:
    """The bytes [low, stop) from an address on; the kernel's name for them starts at `start`.

    start is in units of the buffer.
    """

    low: int
    stop: int
    start: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """A table with known entries."""

    values: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Between:
    """A table with an entry for each iteration of a call; only the range of the entries is known."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Lines:
    """Unless a local is 0, the line at an offset in a storage starts inside it.

    local    the name of the local
    field    the number of the record that is the offset
    storage  the name of the storage
    """

    local: str
    field: int
    storage: str


@dataclass(frozen=True, slots=True)
class Records:
    """A table with a record of several numbers for each iteration of a call.

    kinds  for each kind of record, the range of each number
    sums   expressions that are not negative in any record: a constant, and a factor for each number
    lines  the line of a storage that is inside it
    """

    kinds: tuple[tuple[tuple[int, int], ...], ...]
    sums: tuple[tuple[int, tuple[int, ...]], ...]
    lines: Lines | None = None

    @property
    def fields(self) -> int:
        """The numbers of a record."""
        return len(self.kinds[0])


Table: TypeAlias = Listed | Between | Records


@dataclass(frozen=True, slots=True)
class Given:
    """The facts that all calls of a launch share.

    trips          the largest end of a call's range
    scratch_bytes  the size of the memory that the thread lends
    elements       the range of the elements of arrays of indices
    """

    numbers: Mapping[str, int]
    storages: Mapping[str, Storage]
    tables: Mapping[str, Table]
    trips: int
    scratch_bytes: int = 0
    elements: Mapping[str, tuple[int, int]] = field(default_factory=dict)
