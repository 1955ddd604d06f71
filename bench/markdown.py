"""Saved runs as Markdown: the geometric means of each run, then every case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from bench import cliffs
from bench.peers import NAMES
from bench.saved import Expression, Figure, Mean, Run

EXPRESSION_PEERS = ("numpy", "numexpr", "torch", "jax", "numba")


def report(runs: Sequence[Run]) -> str:
    """The whole document: a section for each run."""
    parts = ["# Results\n\nEvery saved run. Answers are checked before the clock starts.\n"]
    for machine, date in dict.fromkeys((run.machine, run.date) for run in runs):
        parts.append(f"## {machine}, {date}\n")
        parts += [_run(run) for run in runs if (run.machine, run.date) == (machine, date)]
    return "\n".join(parts)


def _run(run: Run) -> str:
    threads = "1 thread" if run.threads == 1 else f"{run.threads} threads"
    facts = [f"### `{run.command}`\n", f"{threads}, {run.rounds} rounds. {run.note}".rstrip() + "\n"]
    if run.head:
        facts.append(f"{run.head}\n")
    if run.means:
        facts.append(means(run.means))
    if run.two_threads:
        facts.append(two_threads(run))
    if run.cold_start_ms:
        facts.append(cold_start(run))
    if run.table(cliffs.TABLE):
        facts.append(shares(run.table(cliffs.TABLE)))
    for name in dict.fromkeys(figure.table for figure in run.figures):
        facts.append(f"#### {name}\n\n{cases(run.table(name))}")
    if run.expressions:
        facts.append(f"#### expressions\n\n{expressions(run.expressions)}")
    for dtype, points in run.vector_sizes.items():
        heads = ["virtual_vector_size", "GB/s, read and written"]
        rates = [[size, f"{rate:.1f}"] for size, rate in points]
        facts.append(f"#### a+b+1+2 of 1000x1000, {dtype}\n\n{table(heads, rates)}")
    return "\n".join(facts)


def means(found: Iterable[Mean]) -> str:
    """One line per group."""
    heads = ["group", "cases", "share of memcpy, geometric mean", "lowest", *_times(NAMES)]
    body = [
        [f"{m.table}: {m.group}", str(m.cases), f"{m.share:.2f}", f"{m.least:.2f}", *_ratios(m.times, NAMES)]
        for m in found
    ]
    return table(heads, body)


def cold_start(run: Run) -> str:
    """One line per step."""
    return table(["cold start", "ms"], [[step, f"{ms:.4g}"] for step, ms in run.cold_start_ms.items()])


def shares(found: Iterable[Figure]) -> str:
    """The distribution of random copies' shares of memcpy, one line per group."""
    figures = ((f.group, f.share, f.times.get("numpy", cliffs.UNKNOWN)) for f in found)
    return table(cliffs.DISTRIBUTION_HEADS, cliffs.distribution(figures))


def two_threads(run: Run) -> str:
    """One line per case."""
    heads = ["two threads against one", "gain", "memcpy's gain"]
    return table(heads, [[g["case"], f"{g['gain']:.2f}", f"{g['memcpy_gain']:.2f}"] for g in run.two_threads])


def cases(figures: Iterable[Figure]) -> str:
    """One line per case, with TileJIT's speedup over each peer."""
    heads = ["case", "MB", "GB/s", "share of memcpy", *_times(NAMES)]
    body = [
        [f.case, _megabytes(f.mb), f"{f.gb_per_s:.1f}", f"{f.share:.2f}", *_ratios(f.times, NAMES)]
        for f in figures
    ]
    return table(heads, body)


def expressions(found: Iterable[Expression]) -> str:
    """One line per expression."""
    heads = ["case", "dtype", "elements", "us", *_times(EXPRESSION_PEERS)]
    body = [
        [e.case, e.dtype, f"{e.elements:,}", f"{e.us:.1f}", *_ratios(e.times, EXPRESSION_PEERS)]
        for e in found
    ]
    return table(heads, body)


def table(heads: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A Markdown table; text on the left, numbers on the right."""
    return "".join(_lines(heads, body))


def _lines(heads: Sequence[str], body: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |\n"
    yield f"|---|{'---:|' * (len(heads) - 1)}\n"
    for cells in body:
        yield f"| {' | '.join(cells)} |\n"


def _times(names: Iterable[str]) -> list[str]:
    return [f"times {name}" for name in names]


def _megabytes(mb: float) -> str:
    return f"{mb:.0f}" if mb >= 1 else "<1"


def _ratios(times: Mapping[str, float], names: Iterable[str]) -> list[str]:
    return [f"{times[name]:.1f}" if name in times else "" for name in names]
