"""How much of the suite a run covers: by default a share of the cases and one lower CPU level.

The share and the level depend on the run's turn, which is the day. `--turn N` repeats the run of another day,
and `--stress` runs everything. There are two lower levels, so cases that also depend on the level are divided
by an odd number. Then each case runs at each level.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeVar

from codegen.support.cpu import host_levels

T = TypeVar("T")

STRESS = "TILEJIT_TEST_STRESS"
"""Set for a run with `--stress` and the processes it starts."""

TURN = "TILEJIT_TEST_TURN"
"""The turn of a run and the processes it starts."""


def today() -> int:
    """The number of the day, which is a run's turn by default."""
    return datetime.now(UTC).toordinal()


def turn() -> int:
    """The number of this run's turn."""
    return int(os.environ.get(TURN, 0))


def is_stress() -> bool:
    """Whether this run tests everything."""
    return bool(os.environ.get(STRESS))


def share(count: int, part: int = 10) -> int:
    """The number of `count` random cases that a run takes: one in `part`, all of them with `--stress`."""
    return count if is_stress() else -(-count // part)


def in_turn(every: Sequence[T], part: int) -> Sequence[T]:
    """Every `part`-th case beginning with the turn's, at least one; all of them with `--stress`."""
    part = max(1, min(part, len(every)))
    return every if is_stress() else every[turn() % part :: part]


def turn_of(part: int) -> int:
    """The turn among `part` turns, 0 with `--stress`: where a share of numbered cases begins."""
    return 0 if is_stress() else turn() % part


def own_level() -> str:
    """The CPU level of this process."""
    return os.environ.get("TILEJIT_CPU", "").lower() or next(iter(host_levels()), "")


def lower_levels() -> tuple[str, ...]:
    """The lower levels that this run tests besides its own: one of them, all with `--stress`."""
    lower = tuple(level for level in ("avx2", "sse2") if level in host_levels() and level != own_level())
    return tuple(in_turn(lower, 2))
