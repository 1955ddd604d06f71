"""`python -m bench.first_calls [SUITES]`: the compile time of each kernel, starting from an empty store.

    python -m bench.first_calls permute,pack --most 10

Numba is already imported and has compiled a function. Times are processor times of this thread. Copies stream
from the default size on, regardless of calibration, so that the kernels are always the same.
"""

from __future__ import annotations

import gc
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from bench.suites import ALL, SUITES
from codegen import TilejitError
from codegen.backend import build
from codegen.backend.store import default_store
from codegen.pipeline.calibrate import remember
from codegen.schedule.machine import STREAM_BYTES
from codegen.support.cpu import cpu_level


@dataclass(slots=True)
class FirstCall:
    """The seconds that a kernel takes to compile.

    Numba's part includes the routines that no earlier kernel used.
    """

    case: str
    numba: float = 0.0
    llvm: float = 0.0

    @property
    def seconds(self) -> float:
        """Numba's and LLVM's seconds together."""
        return self.numba + self.llvm


def main(
    suites: Annotated[
        str, typer.Argument(help="suites of `python -m bench`, separated by commas")
    ] = ",".join(SUITES),
    most: Annotated[int, typer.Option(help="number of the slowest kernels to list")] = 10,
    seconds: Annotated[float, typer.Option(help="stop after the case that passes this time")] = 600.0,
) -> None:
    """Compile the kernels of every case into a separate store, and list the slowest."""
    with tempfile.TemporaryDirectory() as directory:
        os.environ["TILEJIT_CACHE_DIR"] = directory
        remember(default_store(), STREAM_BYTES, cpu_level().name)
        calls = measured([*SUITES] if suites == ALL else suites.split(","), seconds)
    print_table(calls, most)


def measured(suites: list[str], seconds: float) -> dict[str, FirstCall]:
    """The kernels of those suites by name, each compiled once."""
    build.numba_ir("empty", "def empty(operands, scratch, sizes, begin, end):\n    pass\n")
    calls: dict[str, FirstCall] = {}
    running = [""]

    def timed(half: str, compile_half: Callable[..., Any], name_of: Callable[..., str]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            begin = time.thread_time()
            made = compile_half(*given)
            call = calls.setdefault(name_of(*given), FirstCall(running[0]))
            setattr(call, half, time.thread_time() - begin)
            return made

        return run

    build.numba_ir = timed("numba", build.numba_ir, lambda name, source: name)
    build.machine_code = timed("llvm", build.machine_code, lambda kernel, level: kernel.name)
    begin = time.monotonic()
    for case in (case for suite in suites for case in SUITES[suite](True)):
        running[0] = f"{case.table}, {case.group} {case.name}"
        with suppress(TilejitError):
            case.make(1).ours()()
        gc.collect()
        if time.monotonic() - begin > seconds:
            break
    return calls


def print_table(calls: dict[str, FirstCall], most: int) -> None:
    """Print the slowest calls, and the totals."""
    table = Table("kernel", "Numba s", "LLVM s", "s", "first case")
    slowest = sorted(calls.items(), key=lambda item: -item[1].seconds)
    for name, call in slowest[:most]:
        figures = (f"{value:.2f}" for value in (call.numba, call.llvm, call.seconds))
        table.add_row(name, *figures, call.case)
    console = Console(width=160)
    console.print(table)
    numba, llvm = sum(call.numba for call in calls.values()), sum(call.llvm for call in calls.values())
    console.print(f"{len(calls)} kernels; Numba {numba:.1f} s, LLVM {llvm:.1f} s")


if __name__ == "__main__":
    typer.run(main)
