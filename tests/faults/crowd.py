"""Many threads at once, forks among them, spawned processes: `python -m tests.faults.crowd --threads 64`.

All threads pack, unpack and relayout the same layouts and different ones, in parallel from the first call on.
This runs in a process with an empty store, and again in one with a filled store. Children are forked
meanwhile. Every byte is compared with the definition.
"""

from __future__ import annotations

import argparse
import faulthandler
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tilejit as tj
from tests.tools.oracle import environment, packed_by_definition, random_elements, same_elements

TEXTS = (
    "f32[37,300]{1,0:T(8,128)}",
    "bf16[70,129]{1,0:T(8,128)(2,1)}",
    "u8[33,300]{0,1:T(8,128)(4,1)}",
    "pred[64,130]{1,0:T(32,128)(32,1)E(1)}",
    "s4[65,128]{1,0:T(64,128)(8,1)E(4)}",
    "f64[9,10,11]{0,2,1}",
    "s16[5,7,9]{2,1,0:T(*,3,4)}",
    "f32[40,40] ((8,5),(4,10)):((4,320),(1,32))",
    "f16[32,64] Sw<3,2,3> o 0 o ((8,4),(64,1)):((64,512),(1,0))",
)
CHILD_SECONDS = 120
"""A child that takes longer waits for a lock that is never released; it then prints where."""


@dataclass(frozen=True)
class Case:
    """An array, its layout, and the packed bytes by the definition."""

    spec: Any
    array: np.ndarray[Any, Any]
    packed: bytes


def cases(layouts: int) -> list[Case]:
    """Arrays in that many of the layouts."""
    rng = np.random.default_rng(7)
    found = []
    for text in TEXTS[:layouts]:
        spec = tj.as_layout(text)
        array = random_elements(rng, spec.dtype, int(np.prod(spec.dimensions))).reshape(spec.dimensions)
        zero = np.zeros(spec.dtype.itemsize, np.uint8).view(spec.dtype)
        whole = packed_by_definition(array, spec, zero, np.zeros(spec.size_in_bytes, np.uint8))
        found.append(Case(spec, array, whole.tobytes()))
    return found


def copies(case: Case, threads: int | None) -> None:
    """Pack and unpack, relayout to rows and back.

    Raises:
        AssertionError: a byte is wrong.
    """
    t = tj.pack(case.array, case.spec, threads=threads)
    if t.buffer.view(np.uint8).tobytes() != case.packed:
        raise AssertionError(f"{case.spec}: packed to other bytes")
    if not same_elements(tj.unpack(t, threads=threads), case.array, case.spec):
        raise AssertionError(f"{case.spec}: unpacked to other elements")
    rows = tj.relayout(t, tj.make_shape(case.spec.element, case.spec.dimensions), threads=threads)
    again = tj.relayout(rows, case.spec, threads=threads)
    if again.buffer.view(np.uint8).tobytes() != case.packed:
        raise AssertionError(f"{case.spec}: relayout gives other bytes")


def all_copies(layouts: int, first: int) -> int:
    """Run every case, starting from one of them; return 1, and print the reason, if one went wrong."""
    todo = cases(layouts)
    try:
        for k in range(len(todo)):
            copies(todo[(first + k) % len(todo)], (1, 2, 3, None)[k % 4])
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def crowd(threads: int, rounds: int, forks: int, layouts: int) -> list[str]:
    """What went wrong while that many threads copied and that many children were forked among them."""
    todo, wrong = cases(layouts), []
    start = threading.Barrier(threads + 1)

    def work(own: int) -> None:
        start.wait()
        for k in range(rounds):
            # Every other time all have the same layout, otherwise each has a different one.
            case = todo[(k // 2 if k % 2 == 0 else k + own) % len(todo)]
            try:
                copies(case, (1, 2, 3, None)[(k + own) % 4])
            except Exception as error:
                wrong.append(f"thread {own}, round {k}: {type(error).__name__}: {error}")
                return

    running = [threading.Thread(target=work, args=(k,)) for k in range(threads)]
    for thread in running:
        thread.start()
    start.wait()
    for k in range(forks):
        time.sleep(0.02)
        child = os.fork()
        if not child:
            faulthandler.dump_traceback_later(CHILD_SECONDS, exit=True)
            os._exit(all_copies(layouts, k))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code:
            wrong.append(
                f"fork {k}, of {sum(t.is_alive() for t in running)} threads at work: ended with {code}"
            )
    for thread in running:
        thread.join()
    return wrong


def spawned(processes: int, layouts: int) -> list[str]:
    """The same in processes that multiprocessing spawns."""
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        codes = pool.map(partial(all_copies, layouts), range(2 * processes))
    return [f"spawned {k}: ended with {code}" for k, code in enumerate(codes) if code]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.crowd", description=__doc__)
    parser.add_argument("--threads", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=100, help="of each thread")
    parser.add_argument("--forks", type=int, default=40)
    parser.add_argument("--spawned", type=int, default=4)
    parser.add_argument("--layouts", type=int, default=len(TEXTS))
    parser.add_argument(
        "--stores", type=int, default=3, help="1: an empty store, 2: a full one too, 3: none too"
    )
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.here:
        wrong = crowd(options.threads, options.rounds, options.forks, options.layouts)
        wrong += spawned(options.spawned, options.layouts) if options.spawned else []
        print("\n".join(wrong), end="\n" if wrong else "")
        return 1 if wrong else 0
    given = sys.argv[1:] if arguments is None else arguments
    failed = 0
    with tempfile.TemporaryDirectory() as directory:  # of mode 700, as stores must be
        for store in ("empty store", "store with the kernels", "no store")[: options.stores]:
            own = {"TILEJIT_NO_CACHE": "1"} if store == "no store" else {"TILEJIT_CACHE_DIR": directory}
            began = time.monotonic()
            command = [sys.executable, "-X", "faulthandler", "-m", "tests.faults.crowd", *given, "--here"]
            done = subprocess.run(command, env=environment(**own), check=False)
            took = time.monotonic() - began
            print(
                f"{store}: {options.threads} threads x {options.rounds} rounds, {options.forks} forks, "
                f"{options.spawned} spawned, {took:.0f} s, exit code {done.returncode}",
                flush=True,
            )
            failed |= done.returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
