"""How much one run tests: a share of the random cases and one lower CPU level; with `--stress` everything.

The share and the level change with the run's turn, which is the day: a few days cover what one run leaves
out. `--turn N` repeats the run of another day.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeVar

from codegen.cpu import host_levels

T = TypeVar("T")

STRESS = "TILEJIT_TEST_STRESS"
"""Set for a run with `--stress` and the processes it starts."""

TURN = "TILEJIT_TEST_TURN"
"""The turn of a run and the processes it starts."""


def today() -> int:
    """The number of the day, which is the turn of a run unless it is given another."""
    return datetime.now(UTC).toordinal()


def turn() -> int:
    """The number of this run's turn."""
    return int(os.environ.get(TURN, 0))


def is_stress() -> bool:
    """Whether this run tests everything."""
    return bool(os.environ.get(STRESS))


def share(count: int, part: int = 10) -> int:
    """How many of `count` random cases a run takes: one in `part`, all of them with `--stress`."""
    return count if is_stress() else -(-count // part)


def in_turn(every: Sequence[T], part: int) -> Sequence[T]:
    """Those of some cases whose turn it is: one in `part`, all of them with `--stress`."""
    return every if is_stress() else every[turn() % part :: part]


def own_level() -> str:
    """The level that this run's own process has."""
    return os.environ.get("TILEJIT_CPU", "").lower() or next(iter(host_levels()), "")


def lower_levels() -> tuple[str, ...]:
    """The lower levels that this run tests besides its own: one of them, all with `--stress`."""
    lower = tuple(level for level in ("avx2", "sse2") if level in host_levels() and level != own_level())
    return tuple(in_turn(lower, max(1, len(lower))))
