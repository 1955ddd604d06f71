"""Random copies between guard pages against two oracles: `python -m tests.tools.soak --cases 1000 --seed 1`.

A wrong byte fails the case, and so does an access that the compiler cannot prove to be inside. A byte out
of bounds ends the process that runs it. Either way, the case is named. `sample.py` says which launches are
proven. Kernels of loops and expressions are among the cases. Compiled kernels are kept for later runs, like
those of the tests. With `--seconds`, a long range stops in time and prints how to continue.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from math import inf
from pathlib import Path

from codegen.support.cpu import host_levels
from tests.tools.kernel_store import close_store, open_store
from tests.tools.oracle import environment

FAILURES_SHOWN = 20


def main(arguments: list[str] | None = None) -> int:
    """Run cases in child processes; return 0 if all hold."""
    options = _options(arguments)
    if options.worker:
        return _work(options)
    print(f"seed {options.seed}, cases {options.first} to {options.first + options.cases - 1}", flush=True)
    began = time.monotonic()
    made = open_store(cold=False)
    try:
        with tempfile.TemporaryDirectory() as directory:
            jobs = range(min(options.jobs, options.cases))
            reports = [_start(options, job, Path(directory)) for job in jobs]
            outcomes = [_finish(options, *report) for report in reports]
    finally:
        close_store(made)
    counts: Counter[str] = Counter()
    kernels: set[str] = set()
    for _, summary in outcomes:
        counts.update(summary.get("counts", {}))
        kernels |= set(summary.get("kernels", []))
    done = sum(summary.get("done", 0) for _, summary in outcomes)
    seconds = time.monotonic() - began
    print(f"{done} cases in {seconds:.0f} s ({done / seconds:.0f} a second), {len(kernels)} kernels")
    open_from = min((summary["next"] for _, summary in outcomes if "next" in summary), default=None)
    if open_from is not None and open_from < options.first + options.cases:
        left = options.first + options.cases - open_from
        print(f"  to continue: --seed {options.seed} --first {open_from} --cases {left}")
    print("  " + ", ".join(f"{name} {count}" for name, count in sorted(counts.items())))
    kinds = Counter(name.rsplit("_", 1)[0] for name in kernels)
    print("  kernels: " + ", ".join(f"{name} {count}" for name, count in sorted(kinds.items())))
    return 0 if all(good for good, _ in outcomes) else 1


def _options(arguments: list[str] | None) -> argparse.Namespace:
    """The command line. A mistake in it ends the process with exit code 2."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.tools.soak", usage="%(prog)s [options]", description=__doc__
    )
    parser.add_argument("--cases", type=_positive, default=2000)
    parser.add_argument("--seed", type=_natural, default=0)
    parser.add_argument("--first", type=_natural, default=0, help="number of the first case")
    parser.add_argument("--jobs", type=_positive, default=1)
    parser.add_argument(
        "--seconds", type=_seconds, help="start no case after this time; print how to continue"
    )
    parser.add_argument("--kinds", type=_kinds, help="such as copy,relayout,loops; all by default")
    parser.add_argument("--level", choices=host_levels(), default="", help="CPU level of the kernels")
    parser.add_argument(
        "--keep-going", action="store_true", help="show up to 20 failures instead of only the first"
    )
    parser.add_argument("--worker", nargs=2, type=int, metavar=("STEP", "FILE"), help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _natural(text: str, least: int = 0) -> int:
    if not (text.isascii() and text.isdecimal() and least <= int(text) < 2**63):
        raise argparse.ArgumentTypeError(f"expected an integer of at least {least}, got {text[:40]!r}")
    return int(text)


def _positive(text: str) -> int:
    return _natural(text, 1)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < inf:
        raise argparse.ArgumentTypeError(f"expected a positive number of seconds, got {text[:40]!r}")
    return seconds


def _kinds(text: str) -> str:
    from tests.tools.soak.cases import KINDS

    if unknown := [kind for kind in text.split(",") if kind not in KINDS]:
        known = ", ".join(sorted({*KINDS}))
        raise argparse.ArgumentTypeError(f"unknown kind {unknown[0][:40]!r}; choose from {known}")
    return text


def _start(options: argparse.Namespace, job: int, directory: Path) -> tuple[subprocess.Popen[str], Path]:
    """A worker that takes every jobs-th case. The file holds the current case."""
    progress = directory / f"progress{job}"
    progress.write_bytes(bytes(8))
    handle = os.open(progress, os.O_RDWR)
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.tools.soak", "--seed", str(options.seed)]
    command += ["--first", str(options.first + job), "--cases", str(options.cases - job)]
    command += ["--worker", str(options.jobs), str(handle)] + ["--keep-going"] * options.keep_going
    command += ["--seconds", str(options.seconds)] if options.seconds else []
    command += ["--kinds", options.kinds] if options.kinds else []
    changes = {"TILEJIT_VERIFY": "1"} | ({"TILEJIT_CPU": options.level} if options.level else {})
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, pass_fds=[handle], env=environment(**changes)
    )
    os.close(handle)
    return child, progress


def _finish(options: argparse.Namespace, child: subprocess.Popen[str], progress: Path) -> tuple[bool, dict]:  # type: ignore[type-arg]
    output, _ = child.communicate()
    lines = output.splitlines()
    summary = json.loads(lines.pop()) if lines and lines[-1].startswith("{") else {}
    print("\n".join(lines), end="\n" if lines else "", flush=True)
    if child.returncode not in (0, 1):
        number = int.from_bytes(progress.read_bytes(), "little")
        print(f"case {number} of seed {options.seed} ended the process: {child.returncode}")
        level = f" --level {options.level}" if options.level else ""
        print(f"  python -m tests.tools.soak --seed {options.seed} --first {number} --cases 1{level}")
    return child.returncode == 0, summary


def _work(options: argparse.Namespace) -> int:
    from tests.tools.kernel_store import use_kept_ir
    from tests.tools.soak.cases import KINDS, Bench, SoakError, run_case

    use_kept_ir()
    step, handle = options.worker
    kinds = tuple(options.kinds.split(",")) if options.kinds else KINDS
    at = mmap.mmap(handle, 8)
    bench, failures, done, number = Bench(), 0, 0, options.first
    began = time.monotonic()
    for number in range(options.first, options.first + options.cases, step):
        if done and options.seconds and time.monotonic() - began > options.seconds:
            break
        at[:] = number.to_bytes(8, "little")
        try:
            with bench.sample.replacing():
                run_case(bench, options.seed, number, kinds)
        except SoakError as error:
            print(error, flush=True)
            failures += 1
            if not options.keep_going or failures >= FAILURES_SHOWN:
                break
        done += 1
    else:
        number = options.first + options.cases
    facts = {"done": done, "counts": bench.counts, "kernels": sorted(bench.kernels), "next": number}
    print(json.dumps(facts))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
