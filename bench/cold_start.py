"""`python -m bench.cold_start`: what a fresh process takes until its first copies are made.

    python -m bench.cold_start --rounds 20 --empty 3

Each round is a process of its own; `import numpy` is timed apart, and no part of the other figures. Byte code
is kept, in a folder of this run's, as it is where packages are installed. Kernels come from a store that the
run fills first; `--empty` processes begin with no kernel, and measure this machine too.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from subprocess import PIPE, run
from typing import Annotated

import typer
from rich.console import Console
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
x = np.arange(300_000, dtype=np.float32).reshape(1000, 300)
tilejit = timed("import tilejit", lambda: __import__("tilejit"))
t = timed("first pack", lambda: tilejit.pack(x, "{1,0:T(8,128)}"))
y = timed("first unpack", lambda: tilejit.unpack(t))
z = timed("first transpose", lambda: tilejit.transpose(x))
assert (y == x).all() and (z == x.T).all()
print(json.dumps({"ms": steps, "numba": "numba" in sys.modules}))
"""

NUMPY, TILEJIT = "import numpy", "import tilejit"
COPIES = "first pack", "first unpack", "first transpose"
FROM_IMPORT = "all of these"

Milliseconds = dict[str, tuple[float, float]]
"""Of the clock and of the processor, by what took them."""


def main(
    rounds: Annotated[int, typer.Option(min=1, help="processes whose kernels are in the store")] = 20,
    empty: Annotated[int, typer.Option(min=0, help="processes whose store is empty")] = 3,
) -> None:
    """Start the processes and print the medians."""
    with tempfile.TemporaryDirectory() as folder:
        stored, compiled = measured(Path(folder), rounds, empty)
    Console().print(table(stored, kernels_stored=True))
    if compiled:
        Console().print(table(compiled, kernels_stored=False))


def measured(folder: Path, rounds: int, empty: int) -> tuple[list[Milliseconds], list[Milliseconds]]:
    """Processes whose kernels are stored, and those whose store is empty; the byte code is there for both."""
    process(folder, "store")
    stored = [process(folder, "store", numba=False) for _ in range(rounds)]
    compiled = [process(folder, f"empty{k}", numba=True) for k in range(empty)]
    return stored, compiled


def process(folder: Path, store: str, *, numba: bool | None = None) -> Milliseconds:
    """One process: what each step took. numba: whether it must have imported Numba, None for either."""
    paths = [path for path in sys.path if path and Path(path).is_dir()]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([os.getcwd(), *paths]),
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        "TILEJIT_CACHE_DIR": str(folder / store),
    }
    for name in ("PYTHONDONTWRITEBYTECODE", "TILEJIT_NO_CACHE", "TILEJIT_DUMP", "TILEJIT_VERIFY"):
        environment.pop(name, None)
    done = run([sys.executable, "-c", PROCESS], env=environment, stdout=PIPE, text=True, check=True)
    told = json.loads(done.stdout)
    if numba is not None and told["numba"] is not numba:
        raise RuntimeError(f"numba was {'' if told['numba'] else 'not '}imported")
    steps: Milliseconds = {name: (wall, cpu) for name, (wall, cpu) in told["ms"].items()}
    parts = [steps[name] for name in (TILEJIT, *COPIES)]
    return {**steps, FROM_IMPORT: (sum(wall for wall, _ in parts), sum(cpu for _, cpu in parts))}


def table(processes: Sequence[Milliseconds], *, kernels_stored: bool) -> Table:
    """Medians, a row for each step."""
    title = "kernels in the store" if kernels_stored else "empty store"
    out = Table(title=f"{title}: medians of {len(processes)} processes, ms")
    out.add_column("step")
    for heading in ("wall", "least", "processor"):
        out.add_column(heading, justify="right")
    for step in (NUMPY, TILEJIT, *COPIES, FROM_IMPORT):
        walls, cpus = zip(*(process[step] for process in processes), strict=True)
        out.add_row(step, f"{median(walls):.1f}", f"{min(walls):.1f}", f"{median(cpus):.1f}")
    return out


if __name__ == "__main__":
    typer.run(main)
