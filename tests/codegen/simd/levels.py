"""Tests that run again in a process of a lower CPU level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AtLevels:
    """What a file's `at_lower_levels` returns: those of its tests, and how many cases they have together."""

    file: str
    tests: Sequence[str]
    cases: int
