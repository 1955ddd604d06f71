"""Tests that run again in a process of a lower CPU level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AtLevels:
    """The value of a file's `at_lower_levels`: some of its tests, and how many cases they have together."""

    file: str
    tests: Sequence[str]
    cases: int
