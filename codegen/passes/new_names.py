"""Names that passes create, distinct from all arguments and locals of a function."""

from __future__ import annotations

from dataclasses import field
from itertools import count

from codegen.support.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NewNames:
    """Numbered names of one pass: `j_whole:peel1`. The source uses the part before the colon."""

    by: str
    numbers: count[int] = field(default_factory=lambda: count(1))

    def name(self, wanted: str) -> str:
        """A new name, never returned twice."""
        return f"{wanted}:{self.by}{next(self.numbers)}"


@dataclass(frozen=True, slots=True)
class FreshNames(NewNames):
    """Names as they are wanted, numbered only if they are among those that are `taken`."""

    by: str = ""
    taken: set[str] = field(default_factory=set)

    def name(self, wanted: str) -> str:
        """A new name, never returned twice."""
        return fresh_name(wanted, self.taken)


def fresh_name(wanted: str, taken: set[str]) -> str:
    """The name, with a number if it is taken; adds the result to `taken`."""
    name, k = wanted, 2
    while name in taken:
        name, k = f"{wanted}{k}", k + 1
    taken.add(name)
    return name


def wanted(name: str) -> str:
    """The part of a name before the colon, which the source uses."""
    return name.partition(":")[0]
