"""What a run of the suite covers: a fixed set by default, everything with `--full`, new seeds with `--soak`.

The set depends on the sources alone. By default, a test with several parameters runs the cases in which each
value of each parameter appears, and Hypothesis and loops of random cases take few examples.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import combinations, product
from typing import Any, TypeVar

import pytest
from _pytest.mark import ParameterSet

from codegen.support.cpu import host_levels

T = TypeVar("T")

EXTENT = "TILEJIT_TEST_EXTENT"
"""The extent of a run and of the processes it starts: `plain`, `full` or `soak`."""

SOAK_FACTOR = 10
"""A soak takes this many times the examples of `--full`."""


def extent() -> str:
    """The extent of this run."""
    return os.environ.get(EXTENT, "plain")


def is_full() -> bool:
    """Whether this run takes every case."""
    return extent() != "plain"


def examples(plain: int, *, full: int) -> int:
    """The number of examples that a run takes."""
    return {"plain": plain, "full": full, "soak": SOAK_FACTOR * full}[extent()]


def spread(cases: Sequence[T], count: int) -> Sequence[T]:
    """Cases spread evenly over the sequence, `count` to twice as many; all with `--full`."""
    step = 1 if is_full() else max(1, len(cases) // count)
    return cases[::step]


def few_by_default(cases: Sequence[T], count: int) -> list[ParameterSet | T]:
    """Values for `parametrize`: those that `spread` takes, and the others only with `--full`."""
    step = max(1, len(cases) // count)
    return [
        case
        if position % step == 0
        else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.full)
        for position, case in enumerate(cases)
    ]


def in_pairs(*axes: Sequence[object]) -> list[tuple[Any, ...]]:
    """Values for `parametrize`: few cases of the product, in which each two values of two axes meet.

    (1, 2), (3, 4), (5, 6) -> (1, 3, 5), (1, 4, 6), (2, 3, 6), (2, 4, 5)
    """
    every = list(product(*(range(len(axis)) for axis in axes)))
    at = list(combinations(range(len(axes)), 2))
    pairs = [{f"{a}, {b}": (places[a], places[b]) for a, b in at} for places in every]
    return [tuple(axis[k] for axis, k in zip(axes, every[n], strict=True)) for n in covering(pairs)]


def own_level() -> str:
    """The CPU level of this process."""
    return os.environ.get("TILEJIT_CPU", "").lower() or next(iter(host_levels()), "")


def lower_levels() -> tuple[str, ...]:
    """The lower CPU levels that this run tests besides its own: the highest of them, or all."""
    lower = tuple(level for level in ("avx2", "sse2") if level in host_levels() and level != own_level())
    return lower if is_full() else lower[:1]


def covering(cases: Sequence[Mapping[str, object]]) -> list[int]:
    """The positions of few cases in which each value of each parameter appears.

    a in (1, 2, 3) and b in (4, 5) -> (1, 4), (2, 5), (3, 4) of the six cases
    """
    pairs = [frozenset((name, _identity(value)) for name, value in case.items()) for case in cases]
    chosen: list[int] = []
    seen: set[tuple[str, object]] = set()
    queue = [(-len(pair), position) for position, pair in enumerate(pairs)]  # the first of equals leads
    heapify(queue)
    while queue:
        known, position = heappop(queue)
        gain = len(pairs[position] - seen)  # never more than when it was queued
        if gain == -known > 0:
            chosen.append(position)
            seen |= pairs[position]
        elif gain:
            heappush(queue, (-gain, position))
    return sorted(chosen)


def _identity(value: object) -> object:
    """What a value is compared by: equality if it can be hashed, else the object itself."""
    try:
        hash(value)
    except (TypeError, ValueError):  # ValueError: writable memoryviews
        return id(value)
    return type(value), value
