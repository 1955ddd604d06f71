"""`python -m bench cold_start`: the time from the start of a process to the end of its first copies.

    python -m bench cold_start --rounds 21 --plot cold_start.svg
    python -m bench.cold_start --rounds 21 --empty 7

Each figure comes from a separate process. Three kinds alternate: `import numpy` alone; the first copies with
kernels from a store that the run fills first; and the first copies with an empty store, which also compile
kernels. The figures of copies exclude `import numpy`. Byte code is cached in a
folder of this run, as for installed packages.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from subprocess import PIPE, run
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.table import Table

PROCESS = """
import json, sys, time

def now():
    return time.perf_counter(), time.process_time()

steps = {}
def timed(name, step):
    wall, cpu = now()
    made = step()
    done = now()
    steps[name] = 1e3 * (done[0] - wall), 1e3 * (done[1] - cpu)
    return made

np = timed("import numpy", lambda: __import__("numpy"))
if sys.argv[1] == "copies":
    x = np.arange(300_000, dtype=np.float32).reshape(1000, 300)
    tilejit = timed("import tilejit", lambda: __import__("tilejit"))
    t = timed("first pack", lambda: tilejit.pack(x, "{1,0:T(8,128)}"))
    y = timed("first unpack", lambda: tilejit.unpack(t))
    z = timed("first transpose", lambda: tilejit.transpose(x))
    assert (y == x).all() and (z == x.T).all()
print(json.dumps({"ms": steps, "numba": "numba" in sys.modules}))
"""

SUITE = "cold_start"
NUMPY, TILEJIT = "import numpy", "import tilejit"
COPIES = "first pack", "first unpack", "first transpose"
FROM_IMPORT = "all of these"
STORED, EMPTY = "first copies, kernels stored", "first copies, empty store"
ROUNDS_AN_EMPTY_STORE = 3
"""Processes with a filled store per process with an empty one, which takes some seconds."""

Milliseconds = dict[str, tuple[float, float]]
"""(wall time, processor time) by step."""


@dataclass(frozen=True, slots=True)
class Starts:
    """Processes of each kind: `import numpy` alone, copies with a filled store, and with an empty one."""

    alone: list[Milliseconds] = field(default_factory=list)
    stored: list[Milliseconds] = field(default_factory=list)
    compiled: list[Milliseconds] = field(default_factory=list)

    def medians(self) -> dict[str, float]:
        """Median milliseconds of wall time, in the form of `bench.saved`. Copies include `import tilejit`."""
        found = {
            NUMPY: [start[NUMPY] for start in self.alone],
            TILEJIT: [start[TILEJIT] for start in self.stored],
            STORED: [start[FROM_IMPORT] for start in self.stored],
            EMPTY: [start[FROM_IMPORT] for start in self.compiled],
        }
        return {name: median(wall for wall, _ in times) for name, times in found.items() if times}


def main(
    rounds: Annotated[int, typer.Option(min=1, help="processes whose kernels are in the store")] = 20,
    empty: Annotated[int, typer.Option(min=0, help="processes whose store is empty")] = 3,
) -> None:
    """Start the processes and print the medians."""
    starts = Starts()
    measure(starts, rounds, empty)
    Console().print(tables(starts))


def measure(
    starts: Starts, rounds: int, empty: int, report: Callable[[str], None] = lambda line: None
) -> None:
    """Add processes, in turns; `report` is called for each. The first one fills the store and is not counted.

    Raises:
        CalledProcessError: an answer is wrong, or a process ends without one.
        RuntimeError: copies with stored kernels imported Numba, or those with an empty store did not.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        process(folder, "store")
        for k in range(max(rounds, empty)):
            if k < rounds:
                starts.alone.append(process(folder, "store", copies=False))
                starts.stored.append(process(folder, "store", numba=False))
                took = starts.alone[-1][NUMPY][0], starts.stored[-1][FROM_IMPORT][0]
                report(f"{k + 1}/{rounds} {NUMPY}: {took[0]:.0f} ms; {STORED}: {took[1]:.0f} ms")
            if k < empty:
                starts.compiled.append(process(folder, f"empty{k}", numba=True))
                report(f"{k + 1}/{empty} {EMPTY}: {starts.compiled[-1][FROM_IMPORT][0]:.0f} ms")


def process(folder: Path, store: str, *, copies: bool = True, numba: bool | None = None) -> Milliseconds:
    """Run one process and return the times of its steps.

    Args:
        folder: where the process keeps its files.
        store: the folder of its kernels.
        copies: whether it makes the first copies, or only imports NumPy.
        numba: whether it must import Numba; None if it may do either.
    """
    paths = [path for path in sys.path if path and Path(path).is_dir()]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([os.getcwd(), *paths]),
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        "TILEJIT_CACHE_DIR": str(folder / store),
    }
    for name in ("PYTHONDONTWRITEBYTECODE", "TILEJIT_NO_CACHE", "TILEJIT_DUMP", "TILEJIT_VERIFY"):
        environment.pop(name, None)
    command = [sys.executable, "-c", PROCESS, "copies" if copies else "numpy"]
    printed = json.loads(run(command, env=environment, stdout=PIPE, text=True, check=True).stdout)
    if numba is not None and printed["numba"] is not numba:
        raise RuntimeError(f"numba was {'' if printed['numba'] else 'not '}imported")
    steps: Milliseconds = {name: (wall, cpu) for name, (wall, cpu) in printed["ms"].items()}
    parts = [steps[name] for name in (TILEJIT, *COPIES) if name in steps]
    return {**steps, FROM_IMPORT: (sum(wall for wall, _ in parts), sum(cpu for _, cpu in parts))}


def tables(starts: Starts) -> RenderableType:
    """The medians of each kind of process, beside `import numpy`."""
    found: list[RenderableType] = [_table(starts.alone, f"{NUMPY} alone", (NUMPY,))] if starts.alone else []
    steps = (NUMPY, TILEJIT, *COPIES, FROM_IMPORT)
    if starts.stored:
        found.append(_table(starts.stored, "kernels in the store", steps))
    if starts.compiled:
        found.append(_table(starts.compiled, "empty store", steps))
    return Group(*found, *ratios(starts.medians()))


def ratios(medians: dict[str, float]) -> list[str]:
    """The time of the first copies, `import tilejit` included, relative to `import numpy` alone."""
    return [
        f"{name}: {medians[name] / medians[NUMPY]:.2f} times as long as {NUMPY} alone"
        for name in (STORED, EMPTY)
        if name in medians and NUMPY in medians
    ]


def _table(processes: Sequence[Milliseconds], kind: str, steps: Sequence[str]) -> Table:
    out = Table(
        title=f"{kind}: medians of {len(processes)} processes, ms", title_justify="left", min_width=56
    )
    out.add_column("step")
    for heading in ("wall", "least", "processor"):
        out.add_column(heading, justify="right")
    for step in steps:
        walls, cpus = zip(*(process[step] for process in processes), strict=True)
        out.add_row(step, f"{median(walls):.1f}", f"{min(walls):.1f}", f"{median(cpus):.1f}")
    return out


if __name__ == "__main__":
    typer.run(main)
