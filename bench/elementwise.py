"""`python -m bench.elementwise`: expressions and sums, against numpy, numexpr, torch, jax and numba.

It runs on one thread and on two, each in a process with as many processors. Answers are checked first: they
must be within 16 ulp, or for sums within 1e-4 of the sum of magnitudes. TileJIT and its peers take turns.
Figures are medians and speedups over each peer. Sizes of super-vectors are measured first.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from bench import expressions, fused
from bench.expressions import CASES, DTYPES, SIZES
from bench.jobs import Job
from bench.markdown import report
from bench.peers import Call
from bench.saved import Json, fits, runs_of, save
from bench.sweep import sweep
from bench.timing import conditions, interleaved, machine, today

THREADS = (1, 2)
PEERS = ("numpy", "numexpr", "torch", "jax", "numba")
BEST = "the best peer"


def seconds_of(what: str, job: Job, size: int, rounds: int) -> dict[str, float]:
    """Median seconds per call, by name. Peers with wrong answers are omitted.

    Raises:
        AssertionError: TileJIT's answer is wrong.
    """
    calls: dict[str, Call] = {"ours": job.ours()}
    for name, make in job.peers.items():
        with suppress(ImportError):
            calls[name] = make()
    for name, call in list(calls.items()):
        if job.agrees and not job.agrees(call()):
            assert name != "ours", f"{what}: TileJIT's answer is wrong"
            print(f"{what}: {name}'s answer is wrong; omitted")
            del calls[name]
    repeats = max(1, 100_000 // size)
    times = interleaved({name: partial(_several, call, repeats) for name, call in calls.items()}, rounds)
    return {name: timing.median / repeats for name, timing in times.items()}


def _several(call: Call, repeats: int) -> None:
    for _ in range(repeats):
        call()


def table(rounds: int, threads: int, sizes: Sequence[int], only: str) -> list[Json]:
    """Measure all cases on that many threads, and print them as they finish."""
    print(
        "",
        f"{machine()['cpu']}, {today()}, threads {threads}, rounds {rounds}",
        "",
        "| case | dtype | size | us | best peer / ours | " + " | ".join(f"times {n}" for n in PEERS) + " |",
        "|" + "---|" * (5 + len(PEERS)),
        sep="\n",
    )
    found: list[Json] = []
    over: dict[tuple[str, int], list[float]] = {}
    for name, dtype, size, seconds in _all(rounds, threads, sizes, only):
        ratios = {n: seconds[n] / seconds["ours"] for n in PEERS if n in seconds}
        for n, ratio in (*ratios.items(), (BEST, min(ratios.values()))):
            over.setdefault((n, size), []).append(ratio)
        head = [name, dtype, str(size), f"{seconds['ours'] * 1e6:.1f}", f"{min(ratios.values()):.2f}"]
        cells = [f"{ratios[n]:.2f}" if n in ratios else "" for n in PEERS]
        print("| " + " | ".join([*head, *cells]) + " |", flush=True)
        found.append(
            {"case": name, "dtype": dtype, "elements": size, "us": seconds["ours"] * 1e6, "times": ratios}
        )
    for size in sizes:
        each = [
            f"{n} {statistics.geometric_mean(over[n, size]):.2f} (least {min(over[n, size]):.2f})"
            for n in (BEST, *PEERS)
            if (n, size) in over
        ]
        if each:
            print(f"{size} elements, threads {threads}, times as fast: {', '.join(each)}", flush=True)
    return found


def _all(
    rounds: int, threads: int, sizes: Sequence[int], only: str
) -> Iterator[tuple[str, str, int, dict[str, float]]]:
    """(case, dtype, elements, seconds of TileJIT and of every peer)."""
    for dtype in DTYPES:
        for size in sizes:
            for case in [c for c in CASES if only in c.name]:
                name = np.dtype(dtype).name
                job = expressions.job(case, size, dtype, threads)
                seconds = seconds_of(f"{case.name}, {name}, {size}", job, size, rounds)
                yield case.name, name, size, seconds
    for size in sizes:
        if only in fused.NAME:
            seconds = seconds_of(f"{fused.NAME}, {size}", fused.job(size, threads), size, rounds)
            yield fused.NAME, "float32", size, seconds


def processors() -> list[int]:
    """The processors that this process may run on; empty if the system does not report them."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def use_processors(which: Sequence[int]) -> None:
    """Restrict this process, and the processes that it starts, to these processors."""
    if which:
        os.sched_setaffinity(0, which)


def main(
    rounds: Annotated[int, typer.Option(min=1)] = 9,
    threads: Annotated[list[int], typer.Option(min=1, help="each is a separate run")] = list(THREADS),  # noqa: B006
    sizes: Annotated[list[int], typer.Option(help="elements: 1000, 100000, 10000000")] = list(SIZES),  # noqa: B006
    only: Annotated[str, typer.Option(help="only cases with this text, without super-vector sizes")] = "",
    markdown_file: Annotated[Path | None, typer.Option("--markdown", help="a file for the tables")] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="save the runs in this file, or add them to it")
    ] = None,
) -> None:
    """Measure, print, and keep the figures."""
    if not set(sizes) <= set(SIZES):
        raise typer.BadParameter(f"sizes are {', '.join(map(str, SIZES))}")
    facts, date = machine(), today()
    if json_file and not fits(json_file, facts, date):
        raise typer.BadParameter(f"{json_file} holds results from another machine or day; name another file")
    found: list[Json] = []
    if not only:
        rates = {np.dtype(dtype).name: sweep(dtype, rounds) for dtype in DTYPES}
        for name, points in rates.items():
            each = ", ".join(f"{size} {rate:.1f}" for size, rate in points)
            print(f"virtual_vector_size, a+b+1+2 of 1000x1000 {name}, GB/s: {each}", flush=True)
        found.append({**_facts(rounds, 1), "vector_sizes": rates})
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as alone:
        cpus = processors()
        for count in threads:
            use_processors(cpus[:count])  # threads inherit the processors of their process
            cases = alone.submit(table, rounds, count, sizes, only).result()
            found.append({**_facts(rounds, count), "expressions": cases})
        use_processors(cpus)
    if markdown_file:
        markdown_file.write_text(report(runs_of({"machine": facts, "date": date, "runs": found})))
    if json_file:
        for run in found:
            save(json_file, facts, date, run)


def _facts(rounds: int, threads: int) -> Json:
    command = f"python -m bench.elementwise --rounds {rounds} --threads {threads}"
    return {"command": command, "threads": threads, "rounds": rounds, **conditions()}


if __name__ == "__main__":
    typer.run(main)
