"""How a kernel is called for one box: once, or chunk by chunk over tables built while the copy runs.

A kernel reads its arguments from a table of numbers. Each subclass of `Calls` names the arguments that all
calls share, and the tables of each call. Only `Kernel.arguments` defines their order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from codegen.support.dataclasses import dataclass

if TYPE_CHECKING:  # copies whose kernels are stored load no tables
    from codegen.maps.refine import PairTable
    from codegen.schedule.offset_tables import Table

FILL_ARGUMENTS = ("fill_low", "fill_high")
"""The padding pattern, as two eight-byte numbers."""

Pattern: TypeAlias = tuple[int, int]
Chunk: TypeAlias = "tuple[dict[str, Table], int, int]"
"""The tables of one call by the names of their arguments, and its [begin, end)."""


class Calls(ABC):
    """The calls of one kernel for one box."""

    @property
    @abstractmethod
    def given(self) -> dict[str, int]:
        """Arguments that are the same in every call; 0 for addresses that differ between calls."""

    @property
    @abstractmethod
    def is_one(self) -> bool:
        """Whether each part of the box is one call, with only the arguments in `given`."""

    @property
    def keeps_lines(self) -> bool:
        """Whether every call begins at the same offset in a line as the destination."""
        return True

    @property
    def looped(self) -> tuple[PairTable, ...]:
        """The offset tables that the kernel loops over, or none."""
        return ()

    def prepare(self) -> None:
        """Make what all threads share, besides `given`."""
        return

    @abstractmethod
    def chunks(self, begin: int, end: int) -> Iterator[Chunk]:
        """The calls for a part of the box."""


@dataclass(frozen=True)
class PlainCall(Calls):
    """One call over the first loop of the nest."""

    @property
    def given(self) -> dict[str, int]:
        """No arguments."""
        return {}

    @property
    def is_one(self) -> bool:
        """Always true."""
        return True

    def chunks(self, begin: int, end: int) -> Iterator[Chunk]:
        """The single call."""
        yield {}, begin, end
