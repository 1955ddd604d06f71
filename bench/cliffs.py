"""Random permutations of random shapes: where copies are slower than their neighbors.

Other suites measure shapes that people chose. These are drawn, powers of two and their neighbors and short
digits among them, so a cliff between two shapes that others measure shows up here.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from functools import partial
from math import exp, log, prod

import numpy as np
from rich.table import Table

import tilejit as tj
from bench.jobs import Case, Job, permutation
from bench.measure import Row

TABLE = "cliffs"
COUNT, QUICK_COUNT = 2000, 30
SEED = 24
LEAST_BYTES, MOST_BYTES, QUICK_BYTES = 1 << 16, 95_000_000, 1 << 21
LARGE_BYTES = 4 << 20
"""Of an array: the two groups are those from here on, and the others, where memcpy runs from cache."""
DTYPES = (np.uint8, np.uint16, np.uint32, np.uint64)
WORST = 20
SLOWER = 0.95
"""Ratios to NumPy below this count as slower."""
QUANTILES = 0.01, 0.05, 0.25, 0.5


def cases(quick: bool) -> list[Case]:
    """2,000 of them, the same in every run."""
    draw = random.Random(SEED)
    most = QUICK_BYTES if quick else MOST_BYTES
    return [_case(draw, most) for _ in range(QUICK_COUNT if quick else COUNT)]


def _case(draw: random.Random, most: int) -> Case:
    while True:
        dtype = draw.choice(DTYPES)
        rank = draw.randint(2, 5)
        order = tuple(draw.sample(range(rank), rank))
        if order == tuple(range(rank)):
            continue
        size = exp(draw.uniform(log(LEAST_BYTES), log(most))) / np.dtype(dtype).itemsize
        shape = _shape(draw, rank, size)
        if LEAST_BYTES <= prod(shape) * np.dtype(dtype).itemsize <= most:
            break
    nbytes = prod(shape) * np.dtype(dtype).itemsize
    group = "from 4 MiB" if nbytes >= LARGE_BYTES else "below 4 MiB"
    return Case(TABLE, group, _name(dtype, shape, order), partial(_job, shape, order, dtype))


def _shape(draw: random.Random, rank: int, size: float) -> tuple[int, ...]:
    """Extents with about that product: short ones, powers of two and their neighbors, and any."""
    extents = [1] * rank
    places = draw.sample(range(rank), rank)
    for k, place in enumerate(places[:-1]):
        room = size ** (1 / (rank - k))
        extent = draw.choice((draw.randint(2, 9), 1 << draw.randint(1, 10), draw.randint(2, 1000)))
        extent = min(extent, max(2, int(room * room)))
        extents[place] = max(2, extent + draw.choice((0, 0, -1, 1)))
        size /= extents[place]
    last = max(2, round(size))
    extents[places[-1]] = draw.choice((last, last, 1 << max(1, last.bit_length() - 1)))
    return tuple(extents)


def _job(shape: tuple[int, ...], order: tuple[int, ...], dtype: type, threads: int) -> Job:
    job = permutation(shape, order, dtype, threads)
    return Job(job.moved_bytes, job.out, job.expected, job.ours, {"numpy": job.peers["numpy"]})


def _name(dtype: type, shape: tuple[int, ...], order: tuple[int, ...]) -> str:
    return f"u{8 * np.dtype(dtype).itemsize} {list(shape)} {order}".replace(", ", ",")


def tables(rows: Sequence[Row]) -> list[Table]:
    """The distribution of shares of memcpy, and the worst cases with their schedules."""
    sound = [row for row in rows if not row.problem]
    return [_distribution(sound), _worst(sound)] if sound else []


def _distribution(rows: Sequence[Row]) -> Table:
    heads = ("group", "cases", "mean share", *(f"{100 * q:.0f} %" for q in QUANTILES), "slower than NumPy")
    table = Table(*heads, title="cliffs: shares of memcpy", title_justify="left")
    for group in dict.fromkeys(row.group for row in rows):
        members = [row for row in rows if row.group == group]
        shares = sorted(row.share for row in members)
        slower = sum(row.peers["numpy"].ratio < SLOWER for row in members if "numpy" in row.peers)
        quantiles = (f"{shares[int(q * len(shares))]:.2f}" for q in QUANTILES)
        mean = f"{statistics.geometric_mean(shares):.2f}"
        table.add_row(group, str(len(members)), mean, *quantiles, str(slower))
    return table


def _worst(rows: Sequence[Row]) -> Table:
    table = Table("case", "share", "x numpy", "schedules", title="the worst", title_justify="left")
    for row in sorted(rows, key=lambda row: row.share)[:WORST]:
        ratio = f"{row.peers['numpy'].ratio:.2f}" if "numpy" in row.peers else ""
        table.add_row(row.case, f"{row.share:.2f}", ratio, _schedules(row.case))
    return table


def _schedules(case: str) -> str:
    """The schedule of the first box of the copy of that name."""
    dtype, shape, order = case.split(" ")
    source = np.empty(_numbers(shape), f"uint{dtype[1:]}").transpose(_numbers(order))
    return tj.explain(np.empty(source.shape, source.dtype), source).schedule.splitlines()[0]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.strip("[]()").split(",")))
