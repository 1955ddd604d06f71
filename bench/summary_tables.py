"""The tables of the documentation's benchmark page."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import geometric_mean

from bench.cold_start import EMPTY, NUMPY, STORED, TILEJIT
from bench.markdown import table
from bench.saved import Mean
from bench.selection import MAIN, MOVES, PEERS, SUMMARY, Runs, mean_on


def copies_table(runs: Runs) -> str:
    """The groups of copies: cases, shares on two machines, and the speedup over each peer."""
    heads = ["copies", "cases", "Zen 4", "Zen 5", *(f"× {label}" for label in PEERS.values())]
    body = []
    for name, group, label, more in SUMMARY:
        mean, other = mean_on(runs, MAIN, name, group), mean_on(runs, "Zen 5", name, group)
        assert mean is not None
        ratios = [f"{mean.times[p]:.1f}" if p in mean.times else "" for p in PEERS]
        body.append(
            [f"{label}, {more}" if more else label, str(mean.cases), _share(mean), _share(other), *ratios]
        )
    return table(heads, body)


def moves_table(runs: Runs) -> str:
    """Relayouts, swizzles and tiles: shares on every machine."""
    names = ("Zen 3", "Zen 4", "Zen 5", "Sapphire Rapids")
    body = []
    for name, group, label, more in MOVES:
        means = [mean_on(runs, machine, name, group) for machine in names]
        number = max(mean.cases for mean in means if mean)
        body.append([f"{label}, {more}", str(number), *(_share(mean) for mean in means)])
    return table(["copies", "cases", *names], body)


def threads_table(runs: Runs) -> str:
    """The speedups of two threads on the main machine."""
    run = [run for run in runs if run.two_threads and MAIN in run.machine][-1]
    body = [[g["case"], f"{g['gain']:.2f}", f"{g['memcpy_gain']:.2f}"] for g in run.two_threads]
    return table(["case", "TileJIT", "memcpy"], body)


def expressions_table(runs: Runs) -> str:
    """Expressions and sums: the speedup over the fastest peer of each case, on every machine."""
    found: dict[int, dict[str, str]] = {}
    for run in runs:
        if run.threads != 1:
            continue
        for mean in run.expression_means:
            found.setdefault(mean["elements"], {})[run.machine] = f"{mean['best_peer']:.2f}"
        for count in dict.fromkeys(e.elements for e in run.expressions):
            best = [min(e.times.values()) for e in run.expressions if e.elements == count]
            found.setdefault(count, {})[run.machine] = f"{geometric_mean(best):.2f}"
    names = sorted({machine for by_machine in found.values() for machine in by_machine})
    body = [[f"{count:,}", *(found[count].get(name, "") for name in names)] for count in sorted(found)]
    return table(["elements", *names], body)


def cold_start_table(runs: Runs) -> str:
    """The newest cold starts on each machine; copies relative to NumPy's import, if it was timed."""
    newest = {run.machine: run for run in runs if run.cold_start_ms}
    steps = [
        step
        for step in (NUMPY, TILEJIT, STORED, EMPTY)
        if any(step in run.cold_start_ms for run in newest.values())
    ]
    body = [
        [run.machine, run.date, *(_milliseconds(run.cold_start_ms, step) for step in steps)]
        for run in newest.values()
    ]
    return table(["machine", "date", *(f"{step}, ms" for step in steps)], body)


def _milliseconds(medians: Mapping[str, float], step: str) -> str:
    """91 (1.10 x import numpy)"""
    if step not in medians:
        return ""
    beside = step in (STORED, EMPTY) and NUMPY in medians
    ratio = f" ({medians[step] / medians[NUMPY]:.2f} × {NUMPY})" if beside else ""
    return f"{float(f'{medians[step]:.2g}'):g}{ratio}"


def _share(mean: Mean | None) -> str:
    """1.02 (0.77)"""
    return f"{mean.share:.2f} ({mean.least:.2f})" if mean else ""
