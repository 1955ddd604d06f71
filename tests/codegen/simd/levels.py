"""Tests that run again in a process of a lower CPU level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
TURNS = ("avx2", "sse2")


@dataclass(frozen=True, slots=True)
class AtLevels:
    """The value of a file's `at_lower_levels`: some of its tests, and how many cases they have together.

    Levels differ in their instructions and in the size of registers, not in loops, tails and subscripts.
    Tests of those give each level a turn.
    """

    file: str
    tests: Sequence[str]
    cases: int


def turn(cases: Sequence[T], level: str) -> Sequence[T]:
    """Every second of the cases; the other level has the others."""
    return cases[TURNS.index(level) :: len(TURNS)]
