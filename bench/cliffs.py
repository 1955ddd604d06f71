"""Random permutations of random shapes, to find copies that are slower than their neighbors.

Other suites measure shapes that people chose. These are random, including powers of two, their neighbors, and
short digits, so a cliff between two such shapes shows up here.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from math import exp, log, prod

import numpy as np
from rich.console import RenderableType
from rich.table import Table

import tilejit as tj
from bench import peers
from bench.arrays import aligned, filled, flat_bytes
from bench.jobs import Case, Job
from bench.measure import Row

TABLE = "cliffs"
COUNT, QUICK_COUNT = 2000, 30
SEED = 24
LEAST_BYTES, MOST_BYTES, QUICK_BYTES = 1 << 16, 95_000_000, 1 << 21
LARGE_BYTES = 4 << 20
"""Arrays of at least this size are one group. Smaller ones are the other: memcpy runs from cache there."""
DTYPES = (np.uint8, np.uint16, np.uint32, np.uint64)
WORST = 20
SLOWER = 0.95
"""Ratios to NumPy below this count as slower."""
UNKNOWN = float("inf")
"""The ratio if NumPy was not measured: such cases do not count as slower."""
QUANTILES = 0.01, 0.05, 0.25, 0.5


def cases(quick: bool) -> list[Case]:
    """2,000 cases, the same in every run. The first ones are as mixed as all of them."""
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
        shape = random_shape(draw, rank, size)
        if LEAST_BYTES <= prod(shape) * np.dtype(dtype).itemsize <= most:
            break
    nbytes = prod(shape) * np.dtype(dtype).itemsize
    group = "from 4 MiB" if nbytes >= LARGE_BYTES else "below 4 MiB"
    return Case(TABLE, group, _name(dtype, shape, order), partial(_job, shape, order, dtype), True)


def random_shape(draw: random.Random, rank: int, size: float) -> tuple[int, ...]:
    """Extents with about that product: short ones, powers of two, their neighbors, and others."""
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
    """A `tilejit.copyto` into an existing array."""
    view = filled(shape, dtype).transpose(order)
    out = aligned(view.shape, dtype)
    return Job(
        moved_bytes=2 * view.nbytes,
        out=out,
        expected=flat_bytes(view),
        ours=lambda: lambda: tj.copyto(out, view, threads=threads),
        peers={"numpy": lambda: peers.by_numpy(((out, view),))},
    )


def _name(dtype: type, shape: tuple[int, ...], order: tuple[int, ...]) -> str:
    return f"u{8 * np.dtype(dtype).itemsize} {list(shape)} {order}".replace(", ", ",")


def tables(rows: Sequence[Row]) -> Iterator[RenderableType]:
    """The distribution of shares of memcpy, the worst cases, and cases slower than NumPy with schedules."""
    sound = [row for row in rows if not row.problem]
    if not sound:
        return
    yield _distribution(sound)
    yield _listed("the worst", sorted(sound, key=lambda row: row.share)[:WORST])
    slower = sorted((row for row in sound if _ratio(row) < SLOWER), key=_ratio)
    if slower:
        yield _listed(
            f"slower than NumPy: {len(slower)} of {len(sound)} cases, the slowest first", slower[:WORST]
        )


def _distribution(rows: Sequence[Row]) -> Table:
    table = Table(*DISTRIBUTION_HEADS, title="cliffs: shares of memcpy", title_justify="left")
    for cells in distribution((row.group, row.share, _ratio(row)) for row in rows):
        table.add_row(*cells)
    return table


DISTRIBUTION_HEADS = (
    *("group", "cases", "mean share", "least"),
    *(f"{100 * q:.0f} %" for q in QUANTILES),
    *("slower than NumPy", "least x numpy"),
)


def distribution(cases: Iterable[tuple[str, float, float]]) -> list[list[str]]:
    """One line per group of cases, each with a share of memcpy and a ratio to NumPy.

    The 1 % quantile of 200 cases is the second or third lowest, whichever is nearer.
    """
    groups: dict[str, list[tuple[float, float]]] = {}
    for group, *figures in cases:
        groups.setdefault(group, []).append((figures[0], figures[1]))
    return [_line(group, groups[group]) for group in sorted(groups, reverse=True)]


def _line(group: str, figures: Sequence[tuple[float, float]]) -> list[str]:
    shares, ratios = [share for share, _ in figures], [ratio for _, ratio in figures]
    values = statistics.geometric_mean(shares), min(shares), *np.quantile(shares, QUANTILES, method="nearest")
    slower = str(sum(ratio < SLOWER for ratio in ratios))
    return [group, str(len(figures)), *(f"{value:.2f}" for value in values), slower, _text(min(ratios))]


def _listed(title: str, rows: Sequence[Row]) -> Table:
    table = Table("case", "share", "x numpy", "schedules", title=title, title_justify="left")
    for row in rows:
        table.add_row(row.case, f"{row.share:.2f}", _text(_ratio(row)), _schedules(row.case))
    return table


def _text(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < UNKNOWN else ""


def _ratio(row: Row) -> float:
    figure = row.peers.get("numpy")
    return figure.ratio if figure and not figure.problem else UNKNOWN


def _schedules(case: str) -> str:
    """The schedules of the boxes of the named copy, the largest box first."""
    dtype, shape, order = case.split(" ")
    source = np.empty(_numbers(shape), f"uint{dtype[1:]}").transpose(_numbers(order))
    steps = tj.explain(np.empty(source.shape, source.dtype), source).steps
    return "\n".join(dict.fromkeys(f"{step.schedule} | {step.nest.statement}" for step in steps))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.strip("[]()").split(",")))
