"""`python -m bench.elementwise`: expressions and sums, against numpy, numexpr, torch, jax and numba.

On one thread and on two: each in a process that has so many processors. Answers are checked before the clock,
within 16 units in the last place; sums within 1e-4 of the sum of magnitudes. Ours and the peers take turns;
figures are medians, and how many times as fast as each peer. Sizes of super-vectors come first.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import ml_dtypes
import numpy as np
import typer

import tilejit as tj
from bench.expressions import CASES, Expression, Way, ways, wrong
from bench.markdown import report
from bench.saved import Json, fits, runs_of, save
from bench.sweep import sweep
from bench.timing import conditions, interleaved, machine, today

SIZES = (1_000, 100_000, 10_000_000)
THREADS = (1, 2)
DTYPES = (np.float32, np.float64)
PEERS = ("numpy", "numexpr", "torch", "jax", "numba")
BEST = "the best peer"
SEED = 7


def measured(case: Expression, size: int, dtype: Any, threads: int, rounds: int) -> dict[str, float]:
    """Median seconds of a call, by name."""
    rng = np.random.default_rng(SEED)
    arrays = tuple(rng.random(size).astype(dtype) for _ in range(case.arrays))
    given = case.views(*arrays) if case.views else arrays
    found = ways(case, arrays, given, threads)
    for name in wrong(case, given, found):
        print(f"{case.name}, {np.dtype(dtype).name}, {size}: the answer of {name} is off; left out")
        del found[name]
    calls = max(1, 100_000 // size)
    times = interleaved({name: partial(_several, way, calls) for name, way in found.items()}, rounds)
    return {name: timing.median / calls for name, timing in times.items()}


FUSED = "scale to bf16, T(8,128)(2,1)"
FUSED_SHAPES = {1_000: (8, 128), 100_000: (96, 1024), 10_000_000: (1024, 9728)}
"""About as many elements as the other cases have, in whole tiles."""


def fused(size: int, threads: int, rounds: int) -> dict[str, float]:
    """Median seconds of a multiplication whose result is packed as bf16, by name; all answers bit for bit."""
    shape = FUSED_SHAPES[size]
    x = np.random.default_rng(SEED).random(shape).astype(np.float32)
    short, rows, columns = np.dtype(ml_dtypes.bfloat16), shape[0] // 8, shape[1] // 128
    tiles, order = (rows, 4, 2, columns, 128), (0, 3, 1, 4, 2)
    kernel = tj.elementwise(lambda x: (x * 0.7).astype(short), parallel=None if threads > 1 else False)
    out = tj.pack(x.astype(short), "{1,0:T(8,128)(2,1)}")
    found: dict[str, Way] = {
        "ours": lambda: kernel(x, out=out).buffer,
        "numpy": lambda: np.ascontiguousarray(
            (x * np.float32(0.7)).astype(short).reshape(tiles).transpose(order)
        ),
    }
    try:
        import torch

        torch.set_num_threads(threads)
        tensor = torch.from_numpy(x)
        found["torch"] = lambda: (tensor * 0.7).to(torch.bfloat16).reshape(tiles).permute(order).contiguous()
    except ImportError:
        pass
    try:
        import jax

        jnp = jax.numpy
        packed = jax.jit(lambda a: (a * jnp.float32(0.7)).astype(short).reshape(tiles).transpose(order))
        argument = jax.device_put(x)
        found["jax"] = lambda: packed(argument).block_until_ready()
    except ImportError:
        pass
    want = found["numpy"]().tobytes()
    for name, way in list(found.items()):
        got = way()
        made = got.view(torch.int16).numpy() if name == "torch" else np.asarray(got)
        if made.tobytes() != want:
            assert name != "ours", f"{FUSED} is off"
            print(f"{FUSED}, {size}: the answer of {name} is off; left out")
            del found[name]
    calls = max(1, 100_000 // size)
    times = interleaved({name: partial(_several, way, calls) for name, way in found.items()}, rounds)
    return {name: timing.median / calls for name, timing in times.items()}


def _several(way: Way, calls: int) -> None:
    for _ in range(calls):
        way()


def table(rounds: int, threads: int, sizes: Sequence[int], only: str) -> list[Json]:
    """All cases on so many threads, printed as they come."""
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
    """(case, dtype, elements, seconds of ours and of every peer)."""
    for dtype in DTYPES:
        for size in sizes:
            for case in [c for c in CASES if only in c.name]:
                name = np.dtype(dtype).name
                yield case.name, name, size, measured(case, size, dtype, threads, rounds)
    for size in sizes:
        if only in FUSED:
            yield FUSED, "float32", size, fused(size, threads, rounds)


def processors() -> list[int]:
    """Those that this process may run on; none where the system does not tell."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def use_processors(which: Sequence[int]) -> None:
    """Leave this process, and those that it starts, just these."""
    if which:
        os.sched_setaffinity(0, which)


def main(
    rounds: Annotated[int, typer.Option(min=1)] = 9,
    threads: Annotated[list[int], typer.Option(min=1, help="each is a run of its own")] = list(THREADS),  # noqa: B006
    sizes: Annotated[list[int], typer.Option(help="elements: 1000, 100000, 10000000")] = list(SIZES),  # noqa: B006
    only: Annotated[str, typer.Option(help="cases with this text, and no sizes of super-vectors")] = "",
    markdown_file: Annotated[Path | None, typer.Option("--markdown", help="a file for the tables")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="save the runs there, or add them")] = None,
) -> None:
    """Measure, print, and keep the figures."""
    if not set(sizes) <= set(SIZES):
        raise typer.BadParameter(f"sizes are {', '.join(map(str, SIZES))}")
    facts, date = machine(), today()
    if json_file and not fits(json_file, facts, date):
        raise typer.BadParameter(f"{json_file} holds results of another machine or day; name another file")
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
            use_processors(cpus[:count])  # what a process begins with, its threads have
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
